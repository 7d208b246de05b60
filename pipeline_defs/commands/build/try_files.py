"""`corpus try`: a look at files before there is a config.

What `corpus init` would propose is taken through the stages on a sample, in a temporary folder: the
rules, the removal of copies and the tokens are those of a build. Of a folder only the first entries
are listed, and of its files a few megabytes are read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import polars as pl
from cyclopts import Parameter

from assets.raw.places.local_files import MAGIC
from assets.raw.places.sampling.sample_source import sample_source
from assets.raw.readers.input_file import BEGINNING, InputFile
from assets.raw.readers.read_chunks import read_chunks
from corpus_loader.places.stage_names import FILTERED
from corpus_loader.places.url_secrets import shown
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.build.init import (
    CONFIG_NAME,
    OfDomain,
    Proposal,
    check_found,
    check_utf8,
    config_text,
    proposals_of,
    remarks,
)
from pipeline_defs.commands.build.own_files import Place, Project, placed, places_of
from pipeline_defs.commands.marked_texts import ShownDocument, show_documents
from pipeline_defs.commands.rules.sample import Choice, choose, read_samples, rule_in_force
from pipeline_defs.commands.terminal import Json, as_typed, print_json, say
from pipeline_defs.forecast.estimation import counts_by_trained
from pipeline_defs.forecast.sampled_store import (
    publish_raw,
    removed_copies,
    results,
    run_stages,
    sampled_corpus,
)
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.pipeline import load_settings
from resources.settings.sources import SourceConfig
from resources.store.store import Store

MOST_PLACES = 10
MOST_ENTRIES = 2000  # of the folders of a place: a folder may have a million
NUM_DOCUMENTS = 200
SMALL_BYTES = 2 << 20  # of a place that is read whole
MOST_DOCUMENTS = 2000  # of a file of these, which may be compressed
LEAST_SHARE = 1e-9  # of a source's bytes: `sample_source` then reads some 2 MB of it
PART_BYTES = 4 << 20
WIDTH = 500  # characters of an excerpt
MOST_REASONS = 3  # with an excerpt
COUNTED = 20_000  # characters of a text whose tokens are counted
MOST_KEPT = 2  # excerpts
MOST_LANGUAGES = 5


@dataclass(frozen=True)
class Tried:
    """The sample of a place, as the stages leave it: `documents` has reasons, and texts if kept."""

    proposal: Proposal
    documents: pl.DataFrame
    copies: int
    tokens: Sequence[float]  # of a document, fewest and most

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.proposal.place.name


def try_files(
    *where: Annotated[
        str, Parameter(help="Files, folders, globs or URLs (default: the working folder).")
    ],
    domain: OfDomain = "general",
    json: Json = False,
) -> int:
    """Look at a sample of files: what a build would keep, reject and why."""
    wanted = [*dict.fromkeys(where or ".")]
    check_names(wanted)
    with TemporaryDirectory(prefix="corpus-try-") as folder:
        project = Project(Path.cwd(), [placed(each, Path()) for each in wanted])
        places = places_of(project, Path(folder, "_downloads"), MOST_ENTRIES)
        check_found(project, places)
        proposals, unclear = proposals_of(places, domain)
        corpus = proposed_corpus(proposals, Path(folder))
        sampled, _ = sampled_corpus(corpus, corpus.settings.source_names(), Path(folder))
        tables = {each.place.name: documents_of(each.place, sampled) for each in proposals}
        for name, documents in tables.items():
            publish_raw(sampled, name, documents)
        run_stages(sampled)
        chosen = () if domain == "general" else ("--domain", domain)
        next_step = as_typed("init", *wanted, "--into", "my_corpus", *chosen)
        show([*tried(sampled, proposals)], sampled, unclear, next_step, json=json)
    return 0


def check_names(where: Sequence[str]) -> None:
    """Raise UsageError for a name that means nothing, and for more than can be looked at."""
    check_utf8(*where)
    for each in where:
        if "://" not in each and not os.path.lexists(each) and not MAGIC.search(each):
            raise UsageError(f"{each}: no such file or folder. Correct the name.")
    if len(where) > MOST_PLACES:
        raise UsageError(
            f"{len(where):,} places, each a source of its own, are more than {MOST_PLACES}. Name "
            "their folder, or put the glob into quotes."
        )


def proposed_corpus(proposals: Sequence[Proposal], folder: Path) -> Corpus:
    """Return the corpus that `corpus init` proposes, in a folder of its own."""
    config = folder / CONFIG_NAME
    config.write_text(config_text(proposals), encoding="utf-8")
    return Corpus(load_settings(config), config, Store(folder / "store"))


def documents_of(place: Place, sampled: Corpus) -> pl.DataFrame:
    """Return NUM_DOCUMENTS documents of a place at random, drawn from all or a few megabytes."""
    source = sampled.settings.source(place.name)
    number = sampled.settings.source_names().index(place.name)
    rng = np.random.default_rng(number)
    files = [*place.files]
    documents = pl.DataFrame()
    if sum(file.bytes for file in files) > SMALL_BYTES:
        drawn = sample_source(files, source, LEAST_SHARE, rng)
        documents = drawn.table().drop("block")
        files = [*(file for file in files if file.name in drawn.unread), *files][:1]
    if documents.is_empty():
        documents = pl.concat(first_documents(files, source))
    if documents.is_empty():
        raise UsageError(f"{shown(place.where[0])}: no document in what was read of its files.")
    documents = documents[np.sort(rng.permutation(documents.height)[:NUM_DOCUMENTS])]
    ids = [f"{number:08x}{row:024x}" for row in range(documents.height)]
    return documents.with_columns(doc_id=pl.Series(ids, dtype=pl.String))


def first_documents(files: Sequence[InputFile], source: SourceConfig) -> Iterator[pl.DataFrame]:
    """Yield the documents of files, of each the first MOST_DOCUMENTS."""
    for file in files:
        for chunk in read_chunks(file, BEGINNING, source, PART_BYTES, MOST_DOCUMENTS):
            yield chunk.documents


def tried(sampled: Corpus, proposals: Sequence[Proposal]) -> Iterator[Tried]:
    """Yield what the stages made of each place."""
    found = [results(sampled, each.place.name) for each in proposals]
    copies = Counter(removed_copies(sampled)["source"].to_list())
    heads = pl.concat(each["text"].drop_nulls() for each in found).str.head(COUNTED)
    counts = counts_by_trained(heads, sampled) if len(heads) else ()
    start = 0
    for proposal, documents in zip(proposals, found, strict=True):
        texts = documents["text"].drop_nulls()
        rows = slice(start, start + len(texts))
        whole_bytes, head_bytes = (int(of.str.len_bytes().sum()) for of in (texts, heads[rows]))
        scale = whole_bytes / max(1, head_bytes * len(texts))
        tokens = [float(each[rows].sum()) * scale for each in counts]
        yield Tried(proposal, documents, copies[proposal.place.name], tokens)
        start = rows.stop


def show(
    sources: Sequence[Tried],
    sampled: Corpus,
    left_out: Sequence[str],
    next_step: str,
    *,
    json: bool,
) -> None:
    """Print what was found, the numbers of the sample, excerpts, and the next command."""
    notes = {each.name: [*remarks(each.proposal)] for each in sources}
    table = pl.DataFrame([*map(row_of, sources)], infer_schema_length=None)
    documents = [document for each in sources for document in excerpts(each, sampled)]
    if json:
        texts = [each._asdict() for each in documents]
        told = {"sources": nested(table, "source"), "remarks": notes, "excerpts": texts}
        print_json(told | {"left_out": left_out, "next": next_step})
        return
    say(*(f"left out: {each}" for each in left_out))
    for each in sources:
        limits = f"limits of the domain {each.proposal.domain} (--domain)"
        say(f"{each.name}: {', '.join(notes[each.name])}; {limits}")
    print_frame("documents of the sample", table)
    say(
        "Tokens: by a tokenizer of 16,000 entries that was trained on the sample, and by one that "
        "has seen its other half only; that of a build lies between.",
        "Duplicates: a sample has few of the pairs, a build finds more.",
    )
    show_documents("excerpts", {}, documents, page=None, end=f"Next: {next_step}")


def row_of(each: Tried) -> dict[str, Any]:
    """Return the numbers of a sample."""
    read, kept = each.documents.height, int(each.documents["kept"].sum())
    fewest, most = map(round, each.tokens) if kept else (None, None)
    found = Counter(each.documents["detected_lang"].fill_null("unknown").to_list())
    return {
        "source": each.name,
        "languages": ", ".join(f"{lang} {n:,}" for lang, n in found.most_common(MOST_LANGUAGES)),
        **{"read": read, "rejected": read - kept, "duplicates": each.copies},
        "kept": kept - each.copies,
        **{"tokens_per_document": fewest, "or_up_to": most},
    }


def excerpts(each: Tried, sampled: Corpus) -> Iterator[ShownDocument]:
    """Yield a document for each of the main reasons, with its passages, and some that are kept."""
    manifest = sampled.store.newest(FILTERED, each.name)
    reasons = Counter(each.documents["reasons"].list.first().drop_nulls().to_list())
    told = set[str]()
    for reason, number in reasons.most_common(MOST_REASONS):
        rule = rule_in_force(sampled, manifest, reason)
        chosen = choose(sampled, manifest, rule, Choice(each.name, reason, count=1))
        for document in read_samples(sampled, manifest, rule, chosen, WIDTH):
            if document.title in told:
                continue
            told.add(document.title)
            title = f"{each.name}: rejected, {reason} ({number:,} of {each.documents.height:,})"
            origin = document.lines["origin"].rpartition(", ")[0]  # of the sample, not the file
            yield document._replace(title=title, lines={**document.lines, "origin": origin})
    for text in each.documents["text"].drop_nulls().head(MOST_KEPT):
        rest = [("omitted", f"{len(text) - WIDTH:,} characters")] if len(text) > WIDTH else []
        yield ShownDocument(f"{each.name}: kept", {}, [("", text[:WIDTH]), *rest])
