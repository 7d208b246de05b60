"""Ways to find runs of 50 words that stand at an earlier place too, on real documents.

    python benchmarks/substrings.py FOLDER [MEGABYTES]

* picks: as the stage does it, winnowed hashes first, then hashes of the runs that they leave.
* all runs: without winnowing, the 128-bit hashes of all runs are told apart.
* suffix array: of the words' numbers by prefix doubling (Manber and Myers 1993) with NumPy's sort,
  stopped once it knows all runs of 50: what it costs to sort all runs instead of hashing them.
All three mark the same words; CPU seconds of one core, peak memory beyond the texts.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from corpus_texts import read_texts
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))
from assets.deduped.kernels.document_rows import first_equal
from assets.deduped.kernels.word_runs import extend_runs
from assets.deduped.repeats.substrings import (
    candidate_runs,
    distinct_runs,
    fingerprints,
    hashed_blocks,
    repeated_words,
    runs_elsewhere,
    shared_picks,
    shared_runs,
)
from assets.text.buffers import text_buffers
from resources.settings.repeats import SubstringsConfig

CONFIG = SubstringsConfig()
NUM_PARTS = 2


def by_picks(texts: pl.Series) -> int:
    """Words that are cut, found as the stage finds them, in two parts."""
    half = len(texts) // NUM_PARTS
    parts = [texts[:half], texts[half:]]
    picks = shared_picks(pl.concat([fingerprints(part, CONFIG, 0) for part in parts]))
    runs = [candidate_runs(part, picks["hash"], CONFIG, 0) for part in parts]
    shared = shared_runs([distinct_runs(part) for part in runs])
    spans = [
        repeated_words(part, runs_elsewhere(shared, number, keep_first=True), CONFIG)
        for number, part in enumerate(runs)
    ]
    return sum(int((stop - start).sum()) for _, start, stop in spans)


def by_all_runs(texts: pl.Series) -> int:
    """Words that are cut, from a table of the hashes of all runs of 50 words."""
    hashes, places, text_of = [], [], []
    num_words = 0
    for block in hashed_blocks(texts, CONFIG):
        for lane in block.hashes:
            extend_runs(lane, CONFIG.pick_words, CONFIG.min_words)
        at = np.flatnonzero(block.picks >= 0)
        hashes.append(block.hashes[:, at])
        places.append(at + num_words)
        text_of.append(np.searchsorted(block.word_offsets, at, side="right") + block.first_text)
        num_words += block.hashes.shape[1]
    first = first_equal(np.ascontiguousarray(np.concatenate(hashes, axis=1)))
    return cut_words(first, np.concatenate(places), np.concatenate(text_of))


def by_suffix_array(texts: pl.Series) -> int:
    """Words that are cut, from ranks of all runs of 1, 2, 4, ..., 32 and 50 words."""
    words, places, text_of = [], [], []
    num_words = 0
    one_word = CONFIG.model_copy()
    for block in hashed_blocks(texts, one_word):
        at = np.flatnonzero(block.picks >= 0)
        words.append(block.hashes[0])
        places.append(at + num_words)
        text_of.append(np.searchsorted(block.word_offsets, at, side="right") + block.first_text)
        num_words += block.hashes.shape[1]
    # The blocks' hashes are of 16 words: four of the six rounds of sorting are left out.
    ranks = np.unique(np.concatenate(words), return_inverse=True)[1]
    length = CONFIG.pick_words
    while length < CONFIG.min_words:
        step = min(length, CONFIG.min_words - length)
        shifted = np.zeros_like(ranks)
        shifted[:-step] = ranks[step:]
        ranks = np.unique(ranks * len(ranks) + shifted, return_inverse=True)[1]
        length += step
    at = np.concatenate(places)
    _, first, inverse = np.unique(ranks[at], return_index=True, return_inverse=True)
    return cut_words(first[inverse], at, np.concatenate(text_of))


def cut_words(first: NDArray[np.int64], at: NDArray[np.int64], text: NDArray[np.int64]) -> int:
    """Words in runs that have an earlier equal one; runs begin at words `at` of all texts."""
    is_repeated = (text[first] < text) | (at[first] + CONFIG.min_words <= at)
    ends = np.zeros(int(at.max()) + CONFIG.min_words + 1, np.int64)
    np.add.at(ends, at[is_repeated], 1)
    np.add.at(ends, at[is_repeated] + CONFIG.min_words, -1)
    return int((np.cumsum(ends) > 0).sum())


def resident_bytes() -> int:
    """Memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(find: Callable[[pl.Series], int], texts: pl.Series) -> str:
    """Words found, CPU seconds, speed and the greatest memory beyond what was there before."""
    before, peak, is_done = resident_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_done.wait(0.01):
            peak = max(peak, resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    found = find(texts)
    seconds = time.process_time() - begin
    is_done.set()
    watcher.join()
    speed = int(texts.str.len_bytes().sum()) / 1e6 / seconds
    return (
        f"{found:>10,} words  {seconds:6.2f} s  {speed:6.1f} MB/s  {(peak - before) / 1e6:6.0f} MB"
    )


def main() -> None:
    """Compare the three on the documents of a folder."""
    max_bytes = int(sys.argv[2]) * 1_000_000 if len(sys.argv) > 2 else None
    texts = read_texts(Path(sys.argv[1]), max_bytes)["text"].rechunk()
    for warm in (by_picks, by_all_runs, by_suffix_array):
        warm(texts.head(300))
    text_buffers(texts)
    for name, frame in (("with copies", texts), ("without", texts.unique(maintain_order=True))):
        print(f"{name}: {frame.str.len_bytes().sum() / 1e6:.0f} MB, {len(frame):,} documents")
        for find in (by_picks, by_all_runs, by_suffix_array):
            print(f"  {find.__name__:16} {measure(find, frame)}")


if __name__ == "__main__":
    main()
