"""`corpus trace`: trace a training sample to its documents, and a document through the stages.

corpus trace --phase P --sample N [--token K]     sample N of a phase, as the loader gives it;
                                                  --data F: of an older mixture, a state's "data"
corpus trace --source S --shard N --row R         a row of a source's shard
corpus trace --shard FILE --offset T              the row with token T of a flat file, copied or not
corpus trace DOC                                  the result of every stage for a document
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from cyclopts import Parameter
from msgspec import UNSET, structs
from rich.console import Console
from rich.text import Text

from assets.mixed.complete_state_files import incomplete
from assets.sharded.flat_row_files import FlatShard, open_shard
from assets.sharded.shard_files import files_of
from corpus_loader.find_mixture import find_mixture, with_samples
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.stage_names import (
    BUCKETED,
    DEDUPED,
    DUPLICATES,
    FILTERED,
    RAW,
    SHARDED,
    TOKENIZED,
)
from corpus_loader.reader import LoaderOptions, Reader
from pipeline_defs.commands.look.trace_document import DocumentTrace, trace_document
from pipeline_defs.commands.look.trace_rows import (
    Origin,
    Row,
    RowDocument,
    SampleRow,
    describe_row,
    is_removed,
)
from pipeline_defs.commands.origins import origin_text
from pipeline_defs.commands.published_documents import likeness
from pipeline_defs.commands.terminal import (
    Json,
    Natural,
    masked_values,
    one_line,
    print_json,
    print_named,
    warn,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.store.loader_files import StoreFiles
from resources.store.store import StoreError

DocumentId = Annotated[str | None, Parameter(help="A doc_id, or its beginning.")]
NOT_THERE = "not there: see `corpus summary` for what is materialized"
Line = tuple[str, str | None]  # name and text; None: not known


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """Options: a sample of a phase or a row of a shard, and a token in it."""

    phase: Annotated[str | None, Parameter(help="Phase of the sample.")] = None
    sample: Annotated[Natural | None, Parameter(help="Sample of the phase, from 0 on.")] = None
    seed: Annotated[Natural | None, Parameter(help="The loader's, if it was given one.")] = None
    data: Annotated[
        str | None, Parameter(help="Fingerprint of the mixture (default: the newest).")
    ] = None
    source: Annotated[str | None, Parameter(help="Source of the shard.")] = None
    shard: Annotated[str | None, Parameter(help="Its number, or the path of its .bin.")] = None
    row: Annotated[Natural | None, Parameter(help="Row of the shard, from 0 on.")] = None
    offset: Annotated[Natural | None, Parameter(help="A token of the shard's file.")] = None
    token: Annotated[Natural | None, Parameter(help="A token of the row, to point at.")] = None


def trace(document: DocumentId = None, /, *, place: Place | None = None, json: Json = False) -> int:
    """Trace a sample, a row or a document, and print the result."""
    place = place or Place()
    trace_place = form_of(document, place)
    corpus = load_corpus()
    try:
        found = trace_place(corpus, place) if trace_place else None
        result = found or trace_document(corpus, str(document).lower())
    except CorpusError as error:
        raise StoreError(str(error)) from error
    warn(incomplete(corpus))
    if json:
        print_json(masked_values(msgspec.to_builtins(result)))
    elif isinstance(result, DocumentTrace):
        console = Console(soft_wrap=True, highlight=False)
        console.print(Text(f"{result.doc_id} ({result.source})", "bold"))
        print_lines(console, stage_lines(result))
    else:
        print_row(result)
    return 0


def form_of(document: str | None, place: Place) -> Callable[[Corpus, Place], Row] | None:
    """Choose by the given options how a place is traced, None for a document; else UsageError."""
    forms: dict[tuple[str, ...], tuple[Callable[[Corpus, Place], Row] | None, set[str]]] = {
        ("document",): (None, set()),
        ("phase", "sample"): (trace_sample, {"seed", "data", "token"}),
        ("source", "shard", "row"): (trace_shard, {"token"}),
        ("shard", "row"): (trace_shard, {"token"}),
        ("shard", "offset"): (trace_shard, {"source"}),
    }
    options = {"document": document, **asdict(place)}
    given = {name for name, value in options.items() if value is not None}
    for needed, (form, optional) in forms.items():
        if set(needed) <= given <= {*needed, *optional}:
            return form
    raise UsageError(
        "give a document, or --phase and --sample, or --source, --shard and --row, or --shard and "
        f"--offset; given: {', '.join(sorted(given)) or 'nothing'}"
    )


def trace_sample(corpus: Corpus, place: Place) -> Row:
    """Describe the documents of a sample of a phase."""
    assert place.phase is not None and place.sample is not None, "form_of checks that they are"
    check_name("phase", place.phase, corpus.settings.phase_names())
    files = StoreFiles(corpus.store.root)
    mixture = with_samples(find_mixture(files, place.phase, place.data))
    seed = mixture.seed_of(place.seed)
    reader = Reader(files, mixture, seed, LoaderOptions())
    samples = reader.order.samples([place.sample])
    lookup = reader.look_up(np.array([place.sample]))
    shard, [row] = reader.shards.shards[lookup.shards[0]], lookup.rows.tolist()
    for suffix, file in shard.files.items():
        with files.local_path(f"{shard.path}.{suffix}", file.bytes, file.sha256):
            pass  # it is checked
    flat = open_shard(corpus.store.root / shard.path)
    return SampleRow(
        **structs.asdict(row_at(corpus, flat, row, place.token)),
        phase=place.phase,
        sample=place.sample,
        epoch=place.sample // len(reader.order),
        seed=seed,
        data=mixture.fingerprint,
        source=mixture.sources[int(samples.source[0])].name,
        source_epoch=int(samples.epoch[0]),
    )


def trace_shard(corpus: Corpus, place: Place) -> Row:
    """Describe the documents of a row of a shard, or of the row with a token of its flat file."""
    shard = open_shard(shard_stem(corpus, place))
    if place.offset is None:
        assert place.row is not None, "form_of checks that one of them is given"
        return row_at(corpus, shard, place.row, place.token)
    row = shard.row_at(place.offset)
    return row_at(corpus, shard, row, place.offset - shard.first_token(row))


def row_at(corpus: Corpus, shard: FlatShard, row: int, token: int | None) -> Row:
    """Describe the documents of a row, and say whether it is removed by now."""
    described = describe_row(corpus, shard, row, token)
    return structs.replace(described, is_removed=is_removed(corpus, shard.stem, row) or UNSET)


def shard_stem(corpus: Corpus, place: Place) -> Path:
    """Return the path of a shard without a suffix, from a file's path or a source and a number."""
    assert place.shard is not None, "form_of checks that it is"
    if not place.shard.isdecimal():
        given = Path(place.shard)
        return given.with_suffix("") if given.suffix in (".bin", ".idx", ".spans") else given
    if place.source is None:
        raise UsageError(f"--shard {place.shard} is a number: give its --source too")
    check_name("source", place.source, corpus.settings.source_names())
    manifest = corpus.store.newest(SHARDED, place.source)
    flat = [file for part in manifest.parts for file in part.files if file.kind == "megatron.bin"]
    number = int(place.shard)
    if not flat:
        raise StoreError(
            f"sharded[{place.source}] has no flat token files. Add megatron to `shards.formats` "
            "and materialize `sharded` again."
        )
    if number >= len(flat):
        raise StoreError(f"sharded[{place.source}] has {len(flat):,} shards: no {number:,}")
    part = next(part for part in manifest.parts if flat[number] in part.files)
    paths = [corpus.store.file_of(manifest, file).checked() for file in files_of(part, "megatron")]
    return paths[0].with_suffix("")


def print_row(row: Row) -> None:
    """Print a row of a shard: its place, then its documents in their order."""
    console = Console(soft_wrap=True, highlight=False)
    print_lines(console, row_lines(row))
    pointed = None if row.token is UNSET else row.token.document
    for number, document in enumerate(row.documents):
        console.rule()
        mark = " <- the token" if number == pointed else ""
        console.print(Text(f"{document.doc_id}{mark}", "bold"))
        print_lines(console, document_lines(document))


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Print lines; those that are not known are left out."""
    print_named(console, {name: one_line(text) for name, text in lines if text})


def row_lines(row: Row) -> Iterator[Line]:
    """Yield lines about the row itself."""
    if isinstance(row, SampleRow):
        yield "sample", f"{row.sample:,} of phase {row.phase} (seed {row.seed})"
        yield "epoch", f"{row.epoch} of the phase, {row.source_epoch} of {row.source}"
        yield "data", f"{row.data}: the fingerprint of its mixture"
    removed = ": removed, no longer drawn" if row.is_removed is True else ""
    yield "shard", f"{row.shard}, row {row.row:,}{removed}"
    padding = row.stored_tokens - row.num_tokens
    yield "tokens", f"{row.num_tokens:,} and {padding:,} of padding"
    if (token := row.token) is not UNSET:
        is_padding = token.document is None
        inside = "padding" if is_padding else f"number {token.index:,} of its document"
        yield "token", f"{token.position:,} (id {token.id}): {inside}"


def document_lines(document: RowDocument) -> Iterator[Line]:
    """Yield lines about a document in a row."""
    first, length, start = document.position, document.tokens, document.start
    yield "tokens", f"{first:,} to {first + length - 1:,}: its {start:,} to {start + length - 1:,}"
    if document.source is UNSET:
        yield "origin", "not among the tokenized documents that are still there"
    else:
        yield from origin_lines(document)
    yield "text", document.text


def origin_lines(document: RowDocument | Origin) -> Iterator[Line]:
    """Yield lines about the origin of a document."""
    yield "source", document.source or None
    origin = document.origin or None
    yield "origin", origin_text(origin.file, origin.row) if origin else None
    for name in ("url", "id", "lang", "license"):
        yield name, getattr(document, name) or None


def stage_lines(trace: DocumentTrace) -> Iterator[Line]:
    """Yield the result of each stage for a document."""
    yield from [(RAW, NOT_THERE)] if trace.raw is None else origin_lines(trace.raw)
    verdict = "kept" if trace.filtered.kept else f"rejected: {', '.join(trace.filtered.reasons)}"
    other = trace.filtered.other_language
    yield FILTERED, verdict + (f"; in {other}, none of its source's languages" if other else "")
    yield DUPLICATES, cluster_text(trace)
    yield DEDUPED, deduped_text(trace)
    for said in trace.annotations or ():
        columns = ", ".join(f"{name} {shown_value(value)}" for name, value in said.columns.items())
        dropped = ": in no sequence for it" if said.is_dropped else ""
        yield f"annotated by {said.annotator}", f"{columns}{dropped}"
    tokens = trace.tokenized
    yield TOKENIZED, "has none of it" if tokens is None else f"{tokens.tokens:,} tokens"
    rows = [
        f"shard {row.shard}, row {row.row:,}: {row.tokens:,} tokens from its {row.start:,} on, at "
        f"{row.position:,}"
        for row in trace.sharded
    ]
    if trace.removed_rows:
        rows.append(f"removed rows with tokens of it, no longer drawn: {trace.removed_rows:,}")
    held_out = f"held out for {trace.split}: " if trace.split else ""
    yield SHARDED, held_out + ("; ".join(rows) or "has none of it")
    if (leakage := trace.leakage) is not UNSET:
        verdict = "in no sequence for it" if leakage.is_left_out else "stays in training"
        shared = f"{leakage.share:.1%} of its 13-grams are in the held-out {leakage.held_doc_id}"
        yield "leakage", f"{shared}: {verdict}"
    if (left_out := trace.left_out) is not UNSET:
        reasons = ", ".join(f"{count:,} for {reason}" for reason, count in left_out.items())
        yield BUCKETED, f"leaves out documents of {trace.source}: {reasons}"


def shown_value(value: float | str | None) -> str:
    """Return a number or label of an annotator as text."""
    return (
        "unknown" if value is None else one_line(value) if isinstance(value, str) else f"{value:g}"
    )


def cluster_text(trace: DocumentTrace) -> str:
    """Describe the document's cluster, and whether the one that stays for it is held out."""
    member = trace.duplicates
    if member is None:
        return "no copy of it was found"
    cluster = f"cluster {member.cluster_id} of {member.cluster_size:,}"
    if member.method is None:
        return f"stays for {cluster}"
    survivor = f"{member.kept_doc_id} ({member.kept_source})"
    measure = f"{member.method}, similarity {likeness(member.similarity)}"
    held = f", which is held out for {trace.kept_split}" if trace.kept_split else ""
    return f"a copy ({measure}) of {survivor}{held}, {cluster}"


def deduped_text(trace: DocumentTrace) -> str:
    """Describe the result of `deduped`: what removed the document, and what was cut."""
    deduped, member = trace.deduped, trace.duplicates
    if deduped is None:
        return NOT_THERE
    cuts = [f"{cut.step} cut {cut.cut_chars:,} characters" for cut in deduped.changes]
    hits = [
        f"{'contaminated by' if hit.is_contaminated else 'partly like'} item {hit.item} of "
        f"evaluation set {hit.set} ({hit.item_share:.0%} of it; "
        f"bytes {hit.start:,} to {hit.stop:,}: {hit.passage!r})"
        for hit in deduped.contamination
    ]
    if deduped.kept:
        return ", ".join(["kept", *cuts, *hits])
    if not trace.filtered.kept:
        return "has none of it: `filtered` rejected it"
    if member is not None and member.method is not None:
        return f"removed as a copy of {member.kept_doc_id}"
    rejected = [
        f"removed by {cut.step}: too little of it is left"
        for cut in deduped.changes
        if cut.is_rejected
    ]
    is_gone = any(hit.is_contaminated for hit in deduped.contamination)
    return ", ".join(["removed" if is_gone else "", *hits, *rejected, *cuts]).removeprefix(", ")
