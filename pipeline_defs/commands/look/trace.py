"""`corpus trace`: trace a training sample to its documents, and a document through the stages.

corpus trace --phase P --sample N [--token K]     sample N of a phase, as the loader gives it;
                                                  --data F: of an older mixture, a state's "data"
corpus trace --source S --shard N --row R         a row of a source's shard
corpus trace --shard FILE --offset T              the row with token T of a flat file, copied or not
corpus trace DOC                                  the result of every stage for a document
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from cyclopts import Parameter
from msgspec import UNSET, structs

from assets.sharded.flat_row_files import FlatShard, open_shard
from assets.sharded.shard_files import files_of
from corpus_loader.find_mixture import find_mixture, with_samples
from corpus_loader.places.errors import CorpusError
from corpus_loader.reader import LoaderOptions, Reader
from pipeline_defs.commands.look.tracing.trace_document import DocumentTrace, trace_document
from pipeline_defs.commands.look.tracing.trace_rows import Row, SampleRow, describe_row, is_removed
from pipeline_defs.commands.look.tracing.trace_show import print_document, print_row
from pipeline_defs.commands.terminal.options import Json, Natural
from pipeline_defs.commands.terminal.output import masked_values, print_json
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.store.loader_files import StoreFiles
from resources.store.store import StoreError

DocumentId = Annotated[str | None, Parameter(help="A doc_id, or its beginning.")]
Trace = Row | DocumentTrace


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
    form = form_of(document, place or Place())
    corpus = load_corpus()
    try:
        result = form(corpus)
    except CorpusError as error:
        raise StoreError(str(error)) from error
    if json:
        print_json(masked_values(msgspec.to_builtins(result)))
    elif isinstance(result, DocumentTrace):
        print_document(result)
    else:
        print_row(result)
    return 0


def form_of(document: str | None, place: Place) -> Callable[[Corpus], Trace]:
    """Choose the form of the trace by the given options; UsageError names the four forms."""
    forms: dict[tuple[str, ...], tuple[Callable[[Corpus], Trace], set[str]]] = {
        ("document",): (lambda corpus: trace_document(corpus, str(document).lower()), set()),
        ("phase", "sample"): (lambda c: trace_sample(c, place), {"seed", "data", "token"}),
        ("source", "shard", "row"): (lambda corpus: trace_row(corpus, place), {"token"}),
        ("shard", "row"): (lambda corpus: trace_row(corpus, place), {"token"}),
        ("shard", "offset"): (lambda corpus: trace_offset(corpus, place), {"source"}),
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
    phases = corpus.settings.phase_names()
    assert place.phase is not None and place.sample is not None, "form_of checks that they are"
    if place.phase not in phases:
        raise UsageError(unknown_name("phase", place.phase, phases))
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


def trace_row(corpus: Corpus, place: Place) -> Row:
    """Describe the documents of a row of a shard."""
    assert place.row is not None, "form_of checks that it is"
    return row_at(corpus, open_shard(shard_stem(corpus, place)), place.row, place.token)


def trace_offset(corpus: Corpus, place: Place) -> Row:
    """Describe the documents of the row that has a token of a flat file."""
    assert place.offset is not None, "form_of checks that it is"
    shard: FlatShard = open_shard(shard_stem(corpus, place))
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
    sources = corpus.settings.source_names()
    if place.source not in sources:
        raise UsageError(unknown_name("source", place.source, sources))
    manifest = corpus.store.newest("sharded", place.source)
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
