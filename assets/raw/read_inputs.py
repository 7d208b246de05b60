"""Read the inputs of a task of `raw` as chunks of documents, whatever they are."""

from __future__ import annotations

from collections.abc import Iterator

from assets.raw.file_groups import most_bytes
from assets.raw.places.file_digests import check_unchanged, removed
from assets.raw.places.open_input import with_content
from assets.raw.places.streams.stream_chunks import read_range
from assets.raw.raw_inputs import Cap, RawInputs
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.read_chunks import byte_spans, read_chunks, read_into, whole
from assets.text.table_rows import count_bytes


def chunks_of(inputs: RawInputs) -> Iterator[Chunk]:
    """Read the inputs of a task, whatever they are."""
    if inputs.stream is not None:
        return read_range(inputs.stream, inputs.source, inputs.patches)
    return read_group(inputs) if inputs.file_slice is None else read_slice(inputs)


def read_slice(inputs: RawInputs) -> Iterator[Chunk]:
    """Read a slice of one file, to the size that it stops at, and check it when it is read."""
    [file], left = inputs.files, inputs.cap
    file_slice = inputs.file_slice or whole(file)
    if not inputs.source.columns:
        [file] = with_content([file])
    most = inputs.cap.documents
    try:
        chunks = read_chunks(
            file, file_slice, inputs.source, inputs.part_bytes, most, inputs.patches
        )
        for chunk in chunks:
            yield chunk
            left = left.after(count_bytes(chunk.documents["text"]), chunk.documents.height)
            if left.is_spent():
                break
    except FileNotFoundError:
        raise removed(file) from None
    if not file.is_remote:
        check_unchanged(file, byte_spans(file, file_slice))


def read_group(inputs: RawInputs) -> Iterator[Chunk]:
    """Read small files into one chunk after the other, and check each when it is read."""
    builder = DocumentBuilder(most_bytes(inputs.part_bytes), inputs.cap.documents, inputs.patches)
    left = inputs.cap
    for file in with_content(inputs.files):
        try:
            for chunk in read_into(builder, file, inputs.source, inputs.part_bytes):
                yield chunk
                left = left.after(count_bytes(chunk.documents["text"]), chunk.documents.height)
        except FileNotFoundError:
            raise removed(file) from None
        check_unchanged(file, [(0, file.bytes)])
        if builder.is_full() or is_spent_by(left, builder):
            break
    if builder.has_files():
        yield builder.take()


def is_spent_by(cap: Cap, builder: DocumentBuilder) -> bool:
    """Return whether the texts that wait reach a cap of bytes; without one, they stay together.

    Counting makes a table of the documents of each file, which takes 0.3 ms.
    """
    return cap.num_bytes is not None and builder.text_bytes() >= cap.num_bytes
