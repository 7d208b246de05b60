"""The next item of a stream is made in a thread while the caller works on one."""

import gzip
import threading

from input_files import as_input, jsonl, numbers, write
from prelude import Iterator, Path, pytest

from assets.raw.readers.input_file import Slice
from assets.raw.readers.read_chunks import read_ahead, read_chunks
from resources.settings.sources import SourceConfig


def test_the_next_item_is_made_while_one_is_in_use() -> None:
    is_made = threading.Event()

    def items() -> Iterator[str]:
        yield "first"
        is_made.set()
        yield "second"

    found = read_ahead(items())

    assert next(found) == "first" and is_made.wait(60)
    assert list(found) == ["second"]


def test_an_error_comes_behind_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError(5, "Input/output error")

    found = read_ahead(items())

    assert next(found) == 1
    with pytest.raises(OSError, match="Input/output error"):
        next(found)


def test_a_stream_that_is_left_early_leaves_no_thread(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl.gz", gzip.compress(jsonl(*numbers(1000))))
    file = as_input(tmp_path / "a.jsonl.gz")
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    chunks = read_chunks(file, Slice(0, "stream", 0, file.bytes), source, 1000)
    assert next(chunks).rows_in

    chunks.close()  # type: ignore[attr-defined]

    assert not [each for each in threading.enumerate() if each.name.startswith("read-ahead")]
