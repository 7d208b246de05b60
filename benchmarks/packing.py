"""Packing: what is left open, what is cut, what it costs; next to concatenation and to others.

    corpus build && python benchmarks/packing.py [store] [--documents 1000000]

Takes the lengths of all documents of a store's `tokenized`, and prints for sequences of 2,048 and
8,192 tokens, per source and for all documents together: padding of `pack` next to the least
possible, sequences that best-fit-decreasing (a document at a time)
needs beyond ours, documents that concatenation cuts although they fit; then what documents take
that are padded to a multiple; then the share of sequences
that survive if a document of a window is removed, or 1 % are. Then, for so many documents drawn
from these lengths, CPU time of the plan, of assignment, of a plan for a thousand times as many, and
of OLMo-core's InstancePacker where that is installed; then the whole transform with its copy of
tokens, next to a plain copy of as many bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from assets.bucketed.document_chunks import Segments, cut_stream, split  # noqa: E402
from assets.bucketed.make_sequences import document_names, segment_names  # noqa: E402
from assets.bucketed.packing import (  # noqa: E402
    KEY_BITS,
    NO_LIMIT,
    GroupedPacking,
    count_sequences,
    pack_segments,
    packing_keys,
)
from corpus_loader.permutation import UInt64s, mix64  # noqa: E402

LENGTHS = (2048, 8192)
PEER_DOCUMENTS = 100_000
ROUNDS = 3
MULTIPLES = (4, 8, 16, 32)
WINDOWS = (33_000_000, 410_000)  # tokens: the default, and 200 sequences of 2,048
REMOVED = 10  # documents that are removed in turn
ALL = "all as one"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?", type=Path, default=ROOT / "corpus_store")
    parser.add_argument("--documents", type=int, default=1_000_000)
    options = parser.parse_args()
    tables = read_tables(options.store)
    counts = {source: count_tokens(each) for source, each in tables.items()}
    counts[ALL] = np.concatenate(list(counts.values()))
    names = {source: document_names(each) for source, each in tables.items()}
    names[ALL] = np.concatenate(list(names.values()))
    for length in LENGTHS:
        print_padding(counts, names, length)
    for length in (*LENGTHS, 32768):
        print_multiples(counts[ALL], names[ALL], length)
    for length in (*LENGTHS, 32768):
        for tokens in WINDOWS:
            print_survival(counts[ALL], names[ALL], length, tokens)
    drawn = np.random.Generator(np.random.PCG64(0)).choice(counts[ALL], options.documents)
    for length in (*LENGTHS, 32768):
        print_speed(drawn, length)
    print_whole([table for each in tables.values() for table in each])


def read_tables(store: Path) -> dict[str, list[pl.DataFrame]]:
    """The mapped tables of every source's tokenized parts."""
    tables: dict[str, list[pl.DataFrame]] = {}
    for path in sorted(store.glob("tokenized/*/*.tokens.arrow")):
        frame = pl.read_ipc(path, columns=["doc_id", "tokens"])
        tables.setdefault(path.parent.name, []).append(frame)
    if not tables:
        raise SystemExit(f"{store} has no tokenized documents. Build a corpus first.")
    return tables


def count_tokens(tables: list[pl.DataFrame]) -> NDArray[np.int64]:
    """Tokens of every document."""
    lengths = [table["tokens"].list.len().cast(pl.Int64).to_numpy() for table in tables]
    return np.concatenate(lengths)


def pack(pieces: Segments, names: UInt64s, length: int) -> NDArray[np.int64]:
    """The sequence of each piece."""
    return pack_segments(pieces.lengths, packing_keys(names, 0), length, max_segments=None)


def print_padding(
    counts: dict[str, NDArray[np.int64]], names: dict[str, UInt64s], length: int
) -> None:
    """One line per source, then their sum, then all documents as one source."""
    print(f"\nsequences of {length} tokens; shares of all tokens of them, in %")
    print(f"{'source':<14}{'tokens':>12}{'least':>9}{'pack':>9}{'BFD more':>10}{'concat cuts':>13}")
    total = np.zeros(3)
    for source, num_tokens in counts.items():
        pieces = split(num_tokens, length)
        tokens = int(num_tokens.sum())
        named = segment_names(names[source], pieces)
        ours = count_sequences(pack(pieces, named, length))
        least = -tokens % length
        found = np.array([tokens, least, ours * length - tokens])
        more = best_fit_decreasing(pieces.lengths, length) - ours
        cut, _ = cut_stream(num_tokens, length)
        fits = (np.bincount(cut.documents, minlength=len(num_tokens)) > 1) & (num_tokens <= length)
        end = f"{more:>10}{fits.sum() / (num_tokens <= length).sum():>13.1%}"
        if source == ALL:
            print_line("together", total, "")
        print_line(source, found, end)
        total += found


def print_multiples(num_tokens: NDArray[np.int64], names: UInt64s, length: int) -> None:
    """The tokens that documents padded to a multiple take, beyond those that are not, by piece."""
    pieces = split(num_tokens, length)
    named = segment_names(names, pieces)
    stored = [
        length
        * count_sequences(
            pack_segments(
                pieces.lengths, packing_keys(named, 0), length, max_segments=None, multiple=multiple
            )
        )
        for multiple in (1, *MULTIPLES)
    ]
    shown = [
        f"{multiple}: {(more - stored[0]) / len(named):.2f} ({more / stored[0]:.4f})"
        for multiple, more in zip(MULTIPLES, stored[1:], strict=True)
    ]
    print(f"padded to a multiple, {length} tokens; more tokens a piece: {', '.join(shown)}")


def print_line(source: str, found: NDArray[Any], end: str) -> None:
    """A line of counts as shares of the first."""
    shares = [f"{100 * count / found[0]:.4f}" for count in found[1:]]
    print(f"{source:<14}{int(found[0]):>12,}" + "".join(f"{share:>9}" for share in shares) + end)


def best_fit_decreasing(lengths: NDArray[np.int64], capacity: int) -> int:
    """Sequences that best-fit-decreasing needs, a piece at a time."""
    spaces: list[int] = []
    sequences = 0
    for length in np.sort(lengths)[::-1].tolist():
        place = bisect_left(spaces, length)
        if place == len(spaces):
            sequences += 1
            space = capacity
        else:
            space = spaces.pop(place)
        if space > length:
            insort(spaces, space - length)
    return sequences


def print_survival(num_tokens: NDArray[np.int64], names: UInt64s, length: int, tokens: int) -> None:
    """Share of sequences that are the same after documents of a window were removed."""
    random = np.random.Generator(np.random.PCG64(0))
    window = random.permutation(len(num_tokens))
    window = window[np.cumsum(num_tokens[window]) <= tokens]
    for is_grouped in (False, True):
        before = sequence_names(num_tokens[window], names[window], length, is_grouped)
        shares = []
        for row in random.integers(0, len(window), REMOVED):
            rest = np.delete(window, row)
            after = sequence_names(num_tokens[rest], names[rest], length, is_grouped)
            shares.append(np.isin(before, after).mean())
        rest = window[random.random(len(window)) > 0.01]
        after = sequence_names(num_tokens[rest], names[rest], length, is_grouped)
        way = "in groups" if is_grouped else "as one   "
        print(
            f"window of {len(before):>6,} sequences of {length:>6,} {way}: of a document removed "
            f"{np.mean(shares):.2%} survive (at least {min(shares):.2%}), of 1 % removed "
            f"{np.isin(before, after).mean():.1%}"
        )


def sequence_names(
    num_tokens: NDArray[np.int64], names: UInt64s, length: int, is_grouped: bool
) -> UInt64s:
    """A number for the pieces of each sequence, as a set."""
    pieces = split(num_tokens, length)
    named = segment_names(names, pieces)
    packing = GroupedPacking(pieces.lengths, mix64(named), length, NO_LIMIT)
    if not is_grouped:
        packing.group_tokens = int(num_tokens.sum())
    packing.pack(range(len(named)), 0, KEY_BITS)
    sums = np.zeros(packing.count, np.uint64)
    np.add.at(sums, packing.sequences(), mix64(named))
    return sums


def print_speed(num_tokens: NDArray[np.int64], length: int) -> None:
    """CPU time of the steps for some documents, and of a peer for fewer."""
    from assets.bucketed.kernels.packing_plan import plan_sequences

    pieces = split(num_tokens, length)
    histogram = np.bincount(pieces.lengths, minlength=length + 1)
    plan = best_of(lambda: plan_sequences(histogram, NO_LIMIT))
    larger = best_of(lambda: plan_sequences(histogram * 1000, NO_LIMIT))
    named = segment_names(mix64(np.arange(len(num_tokens), dtype=np.uint64)), pieces)
    both = best_of(lambda: pack(pieces, named, length))
    cut = best_of(lambda: split(num_tokens, length))
    print(
        f"\n{len(num_tokens):,} documents, {len(pieces.lengths):,} pieces, length {length}: cut "
        f"{cut * 1e3:.0f} ms, plan {plan * 1e3:.1f} ms, plan and assignment {both * 1e3:.0f} ms; "
        f"plan for 1000 times as many {larger * 1e3:.1f} ms"
    )
    few = num_tokens[:PEER_DOCUMENTS]
    olmo = olmo_packer(few, length)
    if olmo is not None:
        pieces = split(few, length)
        named = named[: len(pieces.lengths)]
        ours = best_of(lambda: pack(pieces, named, length))
        needed = count_sequences(pack(pieces, named, length))
        print(
            f"  {len(few):,} documents: OLMo-core {olmo[0]:.2f} s, {olmo[1]:,} sequences; ours "
            f"{ours:.3f} s, {needed:,} sequences: {olmo[0] / ours:.0f} times as fast"
        )


def olmo_packer(num_tokens: NDArray[np.int64], length: int) -> tuple[float, int] | None:
    """(CPU seconds, sequences) of OLMo-core's best-fit-decreasing; None if it is not installed."""
    try:
        from olmo_core.data.utils import InstancePacker
    except ImportError:
        return None
    lengths = split(num_tokens, length).lengths
    ends = np.cumsum(lengths)
    packer = InstancePacker(length)
    begin = time.process_time()
    sequences = packer.pack_documents(np.stack([ends - lengths, ends], axis=1))[0]
    return time.process_time() - begin, len(sequences)


def print_whole(tables: list[pl.DataFrame]) -> None:
    """The whole transform of each mode over all documents as one window."""
    try:
        from assets.bucketed.make_sequences import make_sequences
        from resources.settings.buckets import BucketConfig
    except ImportError as error:
        print(f"\nthe whole transform is left out: {error}")
        return
    size = 2 * int(count_tokens(tables).sum())
    source = np.ones(size // 2, np.uint16)
    print(f"\nwhole transform, {size / 1e6:.0f} MB of tokens in one window")
    print(f"  plain copy: {size / 1e6 / best_of(source.copy):,.0f} MB/s")
    for mode in ("pack", "concat", "decompose", "buckets"):
        config = BucketConfig(mode=mode)
        held = anonymous_memory()
        frame, _ = make_sequences(tables, config, 0)
        held = anonymous_memory() - held
        del frame
        seconds = best_of(lambda config=config: make_sequences(tables, config, 0))
        print(
            f"  {mode}: {size / 1e6 / seconds:,.0f} MB/s, holds {held / size:.1f} times the input"
        )


def anonymous_memory() -> int:
    """Bytes that this process holds, mapped files left out."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def best_of(run: Callable[[], Any]) -> float:
    """CPU seconds of the best of some rounds, after one to warm up."""
    run()
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        run()
        seconds.append(time.process_time() - begin)
    return min(seconds)


if __name__ == "__main__":
    main()
