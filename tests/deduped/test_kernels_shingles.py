"""Shingles, their sets and signatures against joined slices of words and of characters."""

import xxhash
from prelude import NDArray, example, given, np, pairwise, pl, pytest, st

from assets.deduped.kernels.minhash_sketch import sketch
from assets.deduped.kernels.shingle_sets import hash_sets
from assets.deduped.kernels.shingles import BLOCK, first_span, next_spans
from assets.text.buffers import code_point_entries, text_buffers
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.words import join_words

Joined = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
words = st.text("aé中𝒜", min_size=1, max_size=9)
texts = st.lists(words, max_size=12).map(" ".join)
shingles = st.tuples(st.integers(1, 9), st.booleans())


def joined(contents: list[str]) -> Joined:
    """Words of texts, as blanks separate them."""
    entries = code_point_entries(False, "keep")
    of_texts: Joined = join_words(*text_buffers(pl.Series(contents, dtype=pl.String)), entries)
    return of_texts


def plain_words(text: str) -> list[str]:
    """Words of a text; a Han character is one by itself."""
    return text.replace("中", " 中 ").split()


def plain_shingles(text: str, shingle: tuple[int, bool]) -> list[bytes]:
    ngram, is_characters = shingle
    parts = plain_words(text)
    units = list(" ".join(parts)) if is_characters else parts
    between = "" if is_characters else " "
    last = max(1, len(units) - ngram + 1) if units else 0
    return [between.join(units[i : i + ngram]).encode() for i in range(last)]


def all_shingles(text: str, shingle: tuple[int, bool]) -> list[bytes]:
    """The shingles of a text with a word, block after block."""
    data, starts, _ = joined([text])
    spans = np.empty((2, BLOCK), np.int64)
    found: list[bytes] = []
    count, state = next_spans((data, starts), shingle, first_span((data, starts), shingle), spans)
    while count:
        assert count <= BLOCK
        found += [data[a:b].tobytes() for a, b in spans[:, :count].T]
        count, state = next_spans((data, starts), shingle, state, spans)
    return found


@given(texts.filter(bool), shingles)
@example("a " * (BLOCK + 3), (4, False))  # ends with a block
@example("é" * (BLOCK + 4), (4, True))  # a shingle more than a block
@example("a", (9, True))
@example("a b", (3, False))
@example("aé𝒜", (3, True))
@example("aकé", (1, True))  # three bytes, the first of them 0xE0
def test_shingles_are_the_slices_of_units(text: str, shingle: tuple[int, bool]) -> None:
    assert all_shingles(text, shingle) == plain_shingles(text, shingle)


@given(st.lists(texts, max_size=4), shingles)
@example(["a " * 3 * BLOCK, "", "a b " * BLOCK], (2, False))
def test_sets_are_the_sorted_distinct_hashes(
    contents: list[str], shingle: tuple[int, bool]
) -> None:
    values, offsets, _ = hash_sets(*joined(contents), shingle, 0)

    assert [values[a:b].tolist() for a, b in pairwise(offsets)] == [
        sorted({hash_of(part) for part in plain_shingles(text, shingle)}) for text in contents
    ]


def hash_of(content: bytes) -> int:
    return int(hash_bytes(np.frombuffer(content, np.uint8), np.uint64(0), np.uint64(len(content))))


def finalized(value: int) -> int:
    """MurmurHash3's finalizer for 32 bits."""
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13), (1, 16)):
        value = (value ^ value >> shift) * factor % 2**32
    return value


@given(st.lists(texts, max_size=3), shingles)
@example(["a b " * BLOCK, "", "é 中 " * 40], (3, False))
@example(["", "a" * 50], (1, True))
def test_signatures_are_the_least_permuted_hashes(
    contents: list[str], shingle: tuple[int, bool]
) -> None:
    permutations = np.array([[1, 3, 0xFFFFFFFF], [0, 5, 0xFFFFFFFF]], np.uint32)

    signatures = sketch(*joined(contents), permutations, shingle)

    for text, signature in zip(contents, signatures.tolist(), strict=True):
        hashes = [finalized(xxhash.xxh32_intdigest(part)) for part in plain_shingles(text, shingle)]
        assert signature == [
            min(((a * h + b) % 2**32 for h in hashes), default=2**32 - 1)
            for a, b in permutations.T.tolist()
        ]


@pytest.mark.parametrize("count", [1, 31, 32, 33, BLOCK - 1, BLOCK, BLOCK + 1])
def test_no_hash_of_another_text_is_left_in_a_signature(count: int) -> None:
    least = min(range(2000), key=lambda i: finalized(xxhash.xxh32_intdigest(f"w{i}".encode())))
    other = " ".join(f"w{i}" for i in range(2000, 2000 + count))
    permutations = np.array([[1], [0]], np.uint32)

    both = sketch(*joined([f"w{least} " * 2000, other]), permutations, (1, False))

    assert both[1].tolist() == sketch(*joined([other]), permutations, (1, False))[0].tolist()
