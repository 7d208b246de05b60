"""`corpus contamination review` and `sets`: passages of evaluation items in documents."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter

from assets.deduped.decontamination.evaluation_index import units_of
from assets.deduped.deduped_records import DEDUPED, EVALUATION
from assets.deduped.evaluation_index_files import index_files
from assets.text.buffers import text_buffers
from pipeline_defs.commands.answers import print_rows
from pipeline_defs.commands.look.duplicates import MOST, MOST_SHOWN
from pipeline_defs.commands.marked_texts import Segment, ShownDocument, show_documents
from pipeline_defs.commands.published_documents import path_of
from pipeline_defs.commands.rules.filtered_files import pick_sources
from pipeline_defs.commands.terminal import Json, one_line, print_json
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.decontamination import DecontaminationConfig, Unit, known_sets
from resources.tasks import GLOBAL

AROUND = 150  # characters of an item that are shown on both sides of the passage


def review(
    *,
    evaluation_set: Annotated[
        str | None, Parameter(name="--set", help="Only passages of this evaluation set.")
    ] = None,
    source: Annotated[str | None, Parameter(help="Only documents of this source.")] = None,
    rare: Annotated[
        bool, Parameter(help="Also documents with too little of an item to be contaminated.")
    ] = False,
    html: Annotated[Path | None, Parameter(help="Write a page (HTML) to this file.")] = None,
    most: MOST_SHOWN = MOST,
    json: Json = False,
) -> int:
    """Print passages of documents with the evaluation items that they share; 1 if there is none."""
    corpus = load_corpus()
    config = configured(corpus)
    if evaluation_set is not None:
        check_name("evaluation set", evaluation_set, [each.name for each in config.sets])
    hits = read_hits(corpus, pick_sources(corpus, [source] if source else None))
    if not rare:
        hits = hits.filter("is_contaminated")
    if evaluation_set is not None:
        hits = hits.filter(set=evaluation_set)
    order = ["item_share", "num_ngrams", "doc_id", "set", "item"]
    shown = with_items(
        corpus, hits.sort(order, descending=[True, True, False, False, False])[:most]
    )
    if json:
        print_json(shown.to_dicts())
        return int(shown.is_empty())
    counts = hits.group_by("set").agg(pl.n_unique("item"), pl.n_unique("doc_id")).sort("set")
    lines = {
        name: f"{items:,} of its items in {documents:,} documents"
        for name, items, documents in counts.iter_rows()
    }
    documents = [shown_hit(hit, config.ngram.unit) for hit in shown.to_dicts()]
    more = hits.height - shown.height
    end = f"{more:,} more: --most shows more" if more else ""
    show_documents("Contamination", lines or {"found": "none"}, documents, page=html, end=end)
    return int(shown.is_empty())


def list_sets(*, json: Json = False) -> int:
    """Print the evaluation sets that can be named only, their places and licences."""
    sets = known_sets()
    if json:
        print_json({name: each.keys | {"license": each.license} for name, each in sets.items()})
        return 0
    print_rows(
        "dedup.decontamination.sets may name",
        ({"set": name, **each.keys, "licence": each.license} for name, each in sets.items()),
    )
    return 0


def configured(corpus: Corpus) -> DecontaminationConfig:
    """Return the settings of decontamination; UsageError if there are none."""
    config = corpus.settings.dedup.decontamination
    if config is None:
        raise UsageError(
            f"{corpus.config} names no evaluation set, so none was looked for. Add them, for "
            "example dedup: {decontamination: {sets: [gsm8k]}}, and build; `corpus contamination "
            "sets` lists the known ones."
        )
    return config


def read_hits(corpus: Corpus, sources: list[str]) -> pl.DataFrame:
    """Return the hits of all newest documents with their source, and whether they are enough."""
    tables = []
    for source in sources:
        manifest = corpus.store.newest(DEDUPED, source)
        for part in manifest.parts:
            if part.file("contamination"):
                hits = pl.read_parquet(path_of(corpus, manifest, part, "contamination"))
                tables.append(hits.with_columns(source=pl.lit(source)))
    if not tables:
        raise UsageError("No document was compared with an evaluation set yet. Run: corpus build")
    return pl.concat(tables)


def with_items(corpus: Corpus, hits: pl.DataFrame) -> pl.DataFrame:
    """Add the column item_text: the items' words, or characters, as they are compared."""
    items = index_files(corpus, corpus.store.newest(EVALUATION, GLOBAL)).items.checked()
    texts = pl.scan_parquet(items).select("set", "item", item_text="units")
    wanted = texts.join(hits.lazy().select("set", "item").unique(), on=["set", "item"], how="semi")
    found = wanted.unique(["set", "item"]).collect()
    return hits.join(found, on=["set", "item"], how="left", maintain_order="left")


def shown_hit(hit: dict[str, object], unit: Unit) -> ShownDocument:
    """Return a passage of a document above the item that it is from."""
    lines = {
        "document": f"{hit['doc_id']} ({hit['source']}), bytes {hit['start']:,} to {hit['stop']:,}",
        "share of the item": f"{hit['item_share']:.0%} of it, {hit['num_ngrams']:,} n-grams",
        "contaminated": "yes" if hit["is_contaminated"] else "no: too little of the item",
    }
    passage, item = str(hit["passage"]), hit["item_text"]
    segments: list[Segment] = [("omitted", "in the document"), ("passage", passage)]
    if item is not None:  # the index may be of other sets by now
        segments += [("omitted", "in the item, as compared"), *marked(str(item), passage, unit)]
    return ShownDocument(one_line(f"{hit['set']} {hit['item']}"), lines, segments)


def marked(item: str, passage: str, unit: Unit) -> list[Segment]:
    """Mark the longest stretch of an item that a passage has, when both are normalised."""
    units, _ = units_of(text_buffers(pl.Series([passage])), unit)
    normal = units.data[: units.starts[-1]].tobytes().decode()
    start, _, size = SequenceMatcher(None, item, normal, autojunk=False).find_longest_match()
    before, after = item[:start], item[start + size :]
    cut = [("omitted", f"{len(before) - AROUND:,} characters")] if len(before) > AROUND else []
    rest = [("omitted", f"{len(after) - AROUND:,} characters")] if len(after) > AROUND else []
    shared = item[start : start + size]
    return [*cut, ("same", before[-AROUND:]), ("passage", shared), ("same", after[:AROUND]), *rest]
