"""Random access to the samples of a phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from corpus_loader.batch import Batch, Documents, find_documents
from corpus_loader.find_mixture import check_accepted
from corpus_loader.flat import Spans
from corpus_loader.mixture import Mixture
from corpus_loader.places.errors import CorpusError, repair
from corpus_loader.places.files import Files, Verify
from corpus_loader.places.local_files import Checks, LocalFiles
from corpus_loader.shards import Shards, find_live_rows
from corpus_loader.split import Last, Skipped, skipped

Dtype = Literal["stored", "int32", "int64"]


def check_data(data: object) -> None:
    """Raise CorpusError for what names no mixture."""
    if data is not None and not isinstance(data, str):
        raise CorpusError(f"data is {data!r:.100}; it must be a tag or a fingerprint")


@dataclass(frozen=True)
class LoaderOptions:
    """Options of a loader.

    with_documents: batches have `documents` (see batch.py);
    dtype: of tokens; "stored" is uint16 or uint32, as in the corpus;
    drop_last: leave out the last step of an epoch if it is short: at most world_size x batch_size
    - 1 samples; False, and for validation: split it evenly over the ranks;
    pad_last: fill that step up with repeated samples, which are marked (`Batch.is_repeated`);
    verify: time to check a file's sha256: "background", by two threads while it is already read, so
    that an epoch ends only when everything it used is checked; "first", before it is read; False,
    never. The size is always checked; of a remote corpus also every downloaded file;
    data: the tag whose mixture to read, or the fingerprint of one; None: the newest of the phase;
    skip: ranges (first, stop) of positions to leave out, such as those of a loss spike; the same on
    every rank, and given again when a state from before them is loaded;
    accept_takedown: train on although documents were taken down since, by those up to this number;
    cache, cache_bytes: folder and size of the local copies of a remote corpus.

    Raises CorpusError for a dtype or a `verify` that does not exist, and for `data` or `skip` of
    another type.
    """

    with_documents: bool = False
    dtype: Dtype = "stored"
    drop_last: bool = True
    pad_last: bool = False
    verify: Verify = "background"
    data: str | None = None
    cache: str | Path | None = None
    cache_bytes: int = 64 << 30
    skip: Sequence[tuple[int, int]] = ()
    accept_takedown: int = 0

    def __post_init__(self) -> None:
        """Refuse values outside of the choices, and of other types."""
        for name, values in (("dtype", get_args(Dtype)), ("verify", get_args(Verify))):
            value = getattr(self, name)
            if value not in values:
                raise CorpusError(f"{name} is {value!r}; it must be one of {values}")
        check_data(self.data)
        skipped(self.skip)
        check_accepted(self.accept_takedown)

    def last_of(self, part: str) -> Last:
        """Return what becomes of the last step of an epoch; of validation, nothing is left out."""
        if self.pad_last:
            return "pad"
        return "drop" if self.drop_last and part == "train" else "short"

    @property
    def skipped(self) -> Skipped:
        """The positions of `skip`."""
        return skipped(self.skip)


@dataclass(frozen=True)
class Lookup:
    """Places of the samples at some positions: numbers of shards, and rows in these."""

    positions: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint16]
    shards: list[int]
    rows: npt.NDArray[np.int64]

    def slice(self, first: int, stop: int) -> Lookup:
        """Slice the places [first, stop)."""
        part = slice(first, stop)
        return Lookup(self.positions[part], self.sources[part], self.shards[part], self.rows[part])

    def take(self, order: npt.NDArray[np.intp]) -> Lookup:
        """Return the same places in another order."""
        shards = [self.shards[number] for number in order.tolist()]
        return Lookup(self.positions[order], self.sources[order], shards, self.rows[order])


class Rows(NamedTuple):
    """Tokens of samples, and if wanted their documents; masks if a source has some, else none.

    Weights in hundredths are uint8.
    """

    tokens: list[memoryview]
    spans: list[Spans]
    masks: list[npt.NDArray[np.bool_] | npt.NDArray[np.uint8]]


class Reader:
    """Random access to the samples of a phase, in the order that a seed names."""

    def __init__(self, files: Files, mixture: Mixture, seed: int, options: LoaderOptions) -> None:
        self.mixture = mixture
        self.order = mixture.order(seed)
        self.with_documents = options.with_documents
        stored = mixture.token_dtype
        self.dtype = np.dtype(stored if options.dtype == "stored" else options.dtype)
        is_local = isinstance(files, LocalFiles)
        self.checks = files.checks if isinstance(files, LocalFiles) else Checks()
        max_bytes = None if is_local else options.cache_bytes
        self.shards = Shards(files, mixture, options.with_documents, max_bytes)
        rows = [source.rows for source in self.order.sources]
        self.first_live = np.cumsum([0, *rows], dtype=np.int64)  # row of each source
        self.live_rows = find_live_rows(files, mixture)
        self.has_loss_weights = mixture.has_loss_weights  # which looks at every shard
        self.loss_weights = np.array([each.loss_weight for each in mixture.sources], np.float32)

    def look_up(self, positions: npt.NDArray[np.int64]) -> Lookup:
        """Map positions (int64 [n]) to shards and rows."""
        samples = self.order.samples(positions)
        shard, row = self.live_rows.find(samples.row + self.first_live[samples.source])
        return Lookup(positions, samples.source, shard.tolist(), row)

    def read(self, lookup: Lookup, cursor: int) -> Batch:
        """Read samples as one batch; CorpusError if a file is missing, or known to be damaged."""
        self.checks.look()
        rows = self.rows(lookup)
        tokens, lengths = self.tokens(rows.tokens)
        length, documents, loss_mask = tokens.shape[1], None, None
        if self.with_documents:
            documents = self.documents(lookup, rows.spans, length)
        if self.shards.has_masks:
            loss_mask = np.zeros((len(rows.masks), length), np.bool_)
            for row, mask in zip(loss_mask, rows.masks, strict=True):
                row[: mask.size] = mask
            if documents is not None:
                documents.loss_mask[...] &= loss_mask
        loss_weights = None
        if self.has_loss_weights:
            loss_weights = np.repeat(self.loss_weights[lookup.sources][:, None], length, axis=1)
            for row, mask in zip(loss_weights, rows.masks, strict=False):
                row[: mask.size] *= mask if mask.dtype == np.bool_ else mask / np.float32(100)
                row[mask.size :] = 0
            if documents is not None:
                loss_weights *= documents.loss_mask
        return Batch(
            tokens=tokens,
            lengths=lengths,
            positions=lookup.positions,
            sources=lookup.sources,
            is_repeated=np.zeros(lengths.size, np.bool_),
            cursor=cursor,
            documents=documents,
            loss_mask=loss_mask,
            loss_weights=loss_weights,
        )

    def tokens(self, rows: list[memoryview]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Copy rows to tokens [rows, length], those of the shorter filled up, and int64 lengths."""
        stored = np.dtype(self.mixture.token_dtype).newbyteorder("<")
        length = self.mixture.sequence_length
        if length is not None:
            lengths = np.full(len(rows), length)
        else:
            lengths = np.array([len(row) for row in rows], np.int64)
            length = int(lengths.max(initial=0))
            filling = np.full(length, self.mixture.end_of_document_id, stored).data
            rows = [part for row in rows for part in (row, filling[len(row) :])]
        joined = np.frombuffer(bytearray().join(rows), stored).reshape(lengths.size, length)
        return joined.astype(self.dtype, copy=False), lengths

    def rows(self, lookup: Lookup) -> Rows:
        """Read the tokens and what else is wanted of samples: views of the open shards.

        If these are more than may be open at a time, they are read by groups: copies.
        """
        most = self.shards.max_open
        if len(lookup.shards) <= most:
            return self.views(lookup)
        rows = Rows([], [], [])
        for start in range(0, len(lookup.shards), most):
            group = self.views(lookup.slice(start, start + most))
            rows.tokens.extend(np.array(row).data for row in group.tokens)
            rows.spans.extend(documents.copy() for documents in group.spans)
            rows.masks.extend(group.masks)
            del group  # or its shards would stay open with those of the next
        return rows

    def views(self, lookup: Lookup) -> Rows:
        """`rows` of a group of samples."""
        opened = self.shards.get(lookup.shards)
        places = list[tuple[int, int]]()
        length = self.mixture.sequence_length
        if length is None or self.with_documents or self.shards.has_masks:
            places = list(zip(lookup.shards, lookup.rows.tolist(), strict=True))
        if length is None:
            rows = [opened[shard].row(row) for shard, row in places]
        else:  # without a call for each row
            tokens = {number: shard.tokens for number, shard in opened.items()}
            starts = zip(lookup.shards, (length * lookup.rows).tolist(), strict=True)
            rows = [tokens[shard][start : start + length] for shard, start in starts]
        spans = list[Spans]()
        masks = list[npt.NDArray[np.bool_] | npt.NDArray[np.uint8]]()
        if self.with_documents:
            spans = [opened[shard].documents(row) for shard, row in places]
        if self.shards.has_masks:
            masks = [
                opened[shard].learned(row, len(tokens_of_row))
                for (shard, row), tokens_of_row in zip(places, rows, strict=True)
            ]
        return Rows(rows, spans, masks)

    def documents(self, lookup: Lookup, spans: list[Spans], length: int) -> Documents:
        """Lay out the documents of samples; CorpusError if those of a row do not fit it."""
        try:
            return find_documents(spans, length)
        except ValueError as error:
            sizes = [int(row_spans.stored.sum(dtype=np.int64)) for row_spans in spans]
            worst = lookup.shards[sizes.index(max(sizes))]
            name = f"{self.shards.shards[worst].path}.spans"
            raise CorpusError(f"{name} is damaged ({error}). {repair(name)}") from error
