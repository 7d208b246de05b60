"""`corpus trace`: from a training sample back to its documents, and from a document to its fate.

corpus trace --phase P --sample N [--token K]     sample N of a phase, as the loader gives it;
                                                  --data F: of an older mixture, a state's "data"
corpus trace --source S --shard N --row R         a row of a source's shard
corpus trace --shard FILE --offset T              the row with token T of a flat file, copied or not
corpus trace DOC                                  what every stage did with a document
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from assets.sharded.flat_row_files import FlatShard, open_shard
from corpus_loader.errors import CorpusError
from corpus_loader.files import LocalFiles
from corpus_loader.mixture import find_mixture
from corpus_loader.order import order_seed
from pipeline_defs.commands.look.trace_document import trace_document
from pipeline_defs.commands.look.trace_rows import describe_row
from pipeline_defs.commands.look.trace_show import print_document, print_row
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.store.records import to_json
from resources.store.store import StoreError

MOST_DIGITS = 18
Found = dict[str, Any]


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("document", nargs="?", metavar="DOC", help="a doc_id, or its beginning")
    parser.add_argument("--phase", metavar="P")
    parser.add_argument("--sample", type=natural, metavar="N", help="of the phase, from 0 on")
    parser.add_argument("--seed", type=natural, help="the loader's, if it was given one")
    parser.add_argument("--data", metavar="F", help="fingerprint of the mixture; the newest's")
    parser.add_argument("--source", metavar="S")
    parser.add_argument("--shard", metavar="N|FILE", help="its number, or the path of its .bin")
    parser.add_argument("--row", type=natural, metavar="R", help="of the shard, from 0 on")
    parser.add_argument("--offset", type=natural, metavar="T", help="a token of the shard's file")
    parser.add_argument(
        "--token", type=natural, metavar="K", help="a token of the row, to point at"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def natural(text: str) -> int:
    """Read a whole number below 10^18, which int64 can hold."""
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise ArgumentTypeError(f"{text!r:.40} is no whole number from 0 to 10^18")
    return int(text)


def run(options: Namespace) -> int:
    """Find, print."""
    trace = form_of(options)
    corpus = load_corpus()
    try:
        found = trace(corpus, options)
    except CorpusError as error:
        raise StoreError(str(error)) from error
    if options.json:
        sys.stdout.write(to_json(found).decode())
    elif options.document:
        print_document(found)
    else:
        print_row(found)
    return 0


def form_of(options: Namespace) -> Any:
    """What the options ask for; UsageError names the four ways to ask."""
    forms: dict[tuple[str, ...], tuple[Any, set[str]]] = {
        ("document",): (trace_one_document, set()),
        ("phase", "sample"): (trace_sample, {"seed", "data", "token"}),
        ("source", "shard", "row"): (trace_row, {"token"}),
        ("shard", "row"): (trace_row, {"token"}),
        ("shard", "offset"): (trace_offset, {"source"}),
    }
    names = {name for needed, (_, optional) in forms.items() for name in {*needed, *optional}}
    given = {name for name in names if getattr(options, name) is not None}
    for needed, (trace, optional) in forms.items():
        if set(needed) <= given <= {*needed, *optional}:
            return trace
    raise UsageError(
        "give a document, or --phase and --sample, or --source, --shard and --row, or --shard and "
        f"--offset; given: {', '.join(sorted(given)) or 'nothing'}"
    )


def trace_one_document(corpus: Corpus, options: Namespace) -> Found:
    """What became of a document."""
    return trace_document(corpus, options.document.lower())


def trace_sample(corpus: Corpus, options: Namespace) -> Found:
    """The documents of a sample of a phase."""
    phases = [phase.name for phase in corpus.settings.phases]
    if options.phase not in phases:
        raise UsageError(unknown_name("phase", options.phase, phases))
    files = LocalFiles(corpus.store.root, verify=False)
    mixture = find_mixture(files, options.phase, options.data)
    seed = mixture.seed if options.seed is None else order_seed(options.seed, options.phase)
    order = mixture.order(seed)
    samples = order.samples([options.sample])
    source, row = mixture.sources[int(samples.source[0])], int(samples.row[0])
    for shard in source.shards:
        if row < shard.rows:
            break
        row -= shard.rows
    at = {
        "phase": options.phase,
        "sample": options.sample,
        "epoch": options.sample // len(order),
        "seed": seed,
        "data": mixture.fingerprint,
        "source": source.name,
        "source_epoch": int(samples.epoch[0]),
    }
    flat = open_shard(corpus.store.root / shard.path)
    return at | describe_row(corpus, flat, row, options.token)


def trace_row(corpus: Corpus, options: Namespace) -> Found:
    """The documents of a row of a shard."""
    shard = open_shard(shard_stem(corpus, options))
    return describe_row(corpus, shard, options.row, options.token)


def trace_offset(corpus: Corpus, options: Namespace) -> Found:
    """The documents of the row that has a token of a flat file."""
    shard: FlatShard = open_shard(shard_stem(corpus, options))
    row = shard.row_at(options.offset)
    return describe_row(corpus, shard, row, options.offset - shard.first_token(row))


def shard_stem(corpus: Corpus, options: Namespace) -> Path:
    """Path of the shard without a suffix: a file's, or that of the source's shard of a number."""
    if not options.shard.isdecimal():
        given = Path(options.shard)
        return given.with_suffix("") if given.suffix in (".bin", ".idx", ".spans") else given
    if options.source is None:
        raise UsageError(f"--shard {options.shard} is a number: give its --source too")
    sources = corpus.settings.source_names()
    if options.source not in sources:
        raise UsageError(unknown_name("source", options.source, sources))
    manifest = corpus.store.newest("sharded", options.source)
    flat = [file for part in manifest.parts for file in part.files if file.kind == "megatron.bin"]
    number = int(options.shard)
    if not flat:
        raise StoreError(
            f"sharded[{options.source}] has no flat token files. Add megatron to `shards.formats` "
            "and materialize `sharded` again."
        )
    if number >= len(flat):
        raise StoreError(f"sharded[{options.source}] has {len(flat):,} shards: no {number:,}")
    return corpus.store.path_of(manifest, flat[number]).with_suffix("")
