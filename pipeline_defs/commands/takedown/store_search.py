"""Search files of the store for marks of documents: ids, texts and passages, in every form.

A file is read as what its suffix says and, where that is no table, as bytes: as text, as ids of
16 bytes at any place, and as token ids at any place, of which the tokenizers of the store make
text. No
reader of a format is trusted to show all that a file has. The sections of documents rearranged for
filling in the middle are put back in order first.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.marks import Found, find_doc_ids, find_ids, find_passages, find_texts
from assets.text.takedown_files import Wanted, hash_of, is_url_wanted, parts_in
from assets.tokenized.encoders import ReferenceEncoder
from assets.tokenized.fill_in_the_middle import in_text_order
from assets.tokenized.token_spellings import spellings_of
from corpus_loader.places.stage_names import BUCKETED, MIXED, SHARDED, TOKENIZED, TOKENIZER
from resources.corpus import Corpus
from resources.store.medium import medium_of
from resources.store.preview_files import SUFFIX
from resources.store.store import newest_first
from resources.tasks import GLOBAL
from resources.urls import domains_above

TOKEN_STAGES = (TOKENIZED, BUCKETED, SHARDED, MIXED)
BLOCK_TOKENS = 1 << 22
BLOCK_BYTES = 64 << 20
WORD_JOINER = "\u2060"  # in excerpts
OVERLAP = 4096  # tokens or bytes that two blocks share: more than a passage takes
Bytes = NDArray[np.uint8]
Fill = tuple[int, int, int]


class Seen(NamedTuple):
    """A takedown, by its place, and what of it was found: an id, a text, a passage or a URL.

    digest     of its mark; b"" of a URL
    document   the doc_id of the row of a table in which it is; "" where no row tells
    """

    takedown: int
    kind: str
    digest: bytes = b""
    document: str = ""


@dataclass(frozen=True)
class Spelling:
    """A tokenizer of the store: the type of its ids, its marks, and the bytes of its ids.

    `fills` are its ids of prefix, middle and suffix, as documents were rearranged with them.
    `spelled` is None for one that is not byte-level: its ids are decoded by itself, slowly.
    """

    dtype: str
    is_mark: Bytes
    fills: frozenset[Fill]
    spelled: tuple[Bytes, NDArray[np.int64]] | None
    encoder: ReferenceEncoder

    def in_order(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return ids with the sections of rearranged documents in the order of their texts."""
        around = np.flatnonzero(self.is_mark)
        for fill in self.fills:
            ids = in_text_order(ids, fill, np.setdiff1d(around, fill))
        return ids

    def texts(self, ids: NDArray[Any]) -> Iterator[str]:
        """Yield the texts between the marks of ids."""
        from assets.text.kernels.marked_places import spell

        if self.spelled is not None:
            content = spell(ids.astype(np.uint32), self.spelled, self.is_mark)
            yield from filter(None, content.tobytes().decode("utf-8", "replace").split("\0"))
            return
        known = ids < len(self.is_mark)
        known[known] = self.is_mark[ids[known]] == 0
        for run in np.split(ids, np.flatnonzero(~known)):
            yield self.encoder.decode([run[run < len(self.is_mark)].tolist()])[0]


def spellings(corpus: Corpus) -> list[Spelling]:
    """Return all tokenizers of the kept states."""
    found: dict[str, Spelling] = {}
    for manifest in newest_first(corpus.store.partition(TOKENIZER, GLOBAL)):
        part = manifest.parts[0]
        numbers = part.stats.numbers
        if (fingerprint := numbers["tokenizer_fingerprint"]) not in found:
            file = corpus.store.part_file(manifest, part, TOKENIZER)
            encoder = ReferenceEncoder(file.checked().read_text(encoding="utf-8"))
            is_mark = np.zeros(numbers["vocab_size"], np.uint8)
            ids = (numbers.get("begin_of_document_id"), numbers["end_of_document_id"])
            fills = fills_of(corpus, fingerprint)
            is_mark[[each for each in (*ids, *chain(*fills)) if each is not None]] = 1
            of_ids = spellings_of(encoder)
            spelled = None if of_ids is None else (of_ids.data, of_ids.edges)
            found[fingerprint] = Spelling(numbers["token_dtype"], is_mark, fills, spelled, encoder)
    return list(found.values())


def fills_of(corpus: Corpus, tokenizer_fingerprint: str) -> frozenset[Fill]:
    """Return the ids by which kept states of `tokenized` rearranged documents with a tokenizer."""
    names = medium_of(corpus.store.root).names(corpus.store.root / TOKENIZED)
    fills = (
        manifest.config["fill_in_the_middle"]
        for name in names
        for manifest in newest_first(corpus.store.partition(TOKENIZED, name))
        if "fill_in_the_middle" in manifest.config
        and manifest.provenance["tokenizer_fingerprint"] == tokenizer_fingerprint
    )
    return frozenset((fill["prefix_id"], fill["middle_id"], fill["suffix_id"]) for fill in fills)


@dataclass(frozen=True)
class Search:
    """A search for what some takedowns mean.

    owners   the place of the takedown that has the hash of a URL or a domain
    urls     URLs by doc_id, of the documents in which something was found
    """

    wanted: Wanted
    spellings: Sequence[Spelling]
    owners: Mapping[str, int]
    urls: dict[str, str] = field(default_factory=dict)

    def file(self, path: Path, stage: str) -> Counter[Seen]:
        """Search a file of a stage."""
        if path.suffix == ".parquet":
            return self.frame(pl.read_parquet(path))
        if path.suffix == ".arrow":
            return self.frame(read_arrow(path))
        seen: Counter[Seen] = Counter()
        if path.suffix == SUFFIX:  # a preview: its punctuation is escaped
            shown = unescape(path.read_text()).replace(WORD_JOINER, "")
            data = np.frombuffer(shown.encode(), np.uint8)
            return self.ids(data) + self.texts(pl.Series(re.split(r"[|\n]", shown)))
        for block in blocks_of(path):
            seen += self.ids(block)
            seen += self.texts(pl.Series([block.tobytes().decode("utf-8", "replace")]))
        if stage in TOKEN_STAGES and path.suffix != ".json":
            content = np.fromfile(path, np.uint8)
            for spelling in self.spellings:
                width = np.dtype(spelling.dtype).itemsize
                for start in range(width):
                    whole = content[start : start + (len(content) - start) // width * width]
                    seen += self.tokens(whole.view(spelling.dtype), [spelling])
        return seen

    def frame(self, frame: pl.DataFrame) -> Counter[Seen]:
        """Search the columns of a table; rows of one with doc_ids tell the document."""
        seen: Counter[Seen] = Counter()
        doc_ids = frame["doc_id"] if frame.schema.get("doc_id") == pl.String else None
        for column in frame:
            is_string = column.dtype == pl.String
            if is_string and doc_ids is not None:
                seen += self.strings(column.fill_null(""), doc_ids)
            else:
                seen += self.column(column.drop_nulls())
            if column.name == "url" and is_string:
                seen += self.wanted_urls(column, doc_ids)
        if doc_ids is not None and frame.schema.get("url") == pl.String:
            found = pl.Series(sorted({each.document for each in seen}), dtype=pl.String)
            rows = frame.filter(pl.col("doc_id").is_in(found.implode())).drop_nulls("url")
            self.urls.update(rows.select("doc_id", "url").iter_rows())
        return seen

    def strings(self, values: pl.Series, doc_ids: pl.Series) -> Counter[Seen]:
        """Search strings of documents."""
        seen: Counter[Seen] = Counter()
        if values.name == "doc_id":
            kinds = {"id": find_doc_ids(values, self.wanted.ids)}
        else:
            data = np.frombuffer("\n".join(values.to_list()).encode(), np.uint8)
            seen += self.ids(data)
            kinds = {
                "text": find_texts(values, self.wanted.texts),
                "passage": find_passages(values, self.wanted.passages),
            }
        for kind, found in kinds.items():
            seen += Counter(Seen(f.owner, kind, f.digest, doc_ids[f.row]) for f in found)
        return seen

    def wanted_urls(self, urls: pl.Series, doc_ids: pl.Series | None) -> Counter[Seen]:
        """Search URLs."""
        rows = is_url_wanted(urls, self.wanted).arg_true().to_list()
        documents = rows if doc_ids is None else doc_ids[rows].to_list()
        found = zip(urls[rows], documents, strict=True)
        return Counter(
            Seen(self.owner_of(url), "url", b"", "" if doc_ids is None else document)
            for url, document in found
        )

    def owner_of(self, url: str) -> int:
        """Return the place of a takedown that means a URL."""
        for form in self.wanted.forms:
            for host, address in parts_in(form, pl.Series("url", [url])).iter_rows():
                keys = (address, *domains_above(host or ""))
                for key in map(hash_of, keys):
                    if key in self.owners:
                        return self.owners[key]
        return 0

    def column(self, values: pl.Series) -> Counter[Seen]:
        """Search a column, and what is in its lists and structs."""
        dtype = values.dtype
        if dtype == pl.Struct:
            return self.frame(values.struct.unnest())
        if dtype in (pl.List, pl.Array):
            inner = values.explode().drop_nulls()
            if inner.dtype in (pl.UInt16, pl.UInt32, pl.Int32, pl.Int64):
                return self.tokens(inner.to_numpy(), self.spellings)
            return self.column(inner)
        if dtype in (pl.Categorical, pl.Enum):
            values, dtype = values.unique().cast(pl.String), pl.String()
        if dtype == pl.Binary:
            content = b"\n".join(values.to_list())
            data = np.frombuffer(content, np.uint8)
            return self.ids(data) + self.texts(pl.Series([content.decode("utf-8", "replace")]))
        if dtype == pl.String and len(values):
            data = np.frombuffer("\n".join(values.to_list()).encode(), np.uint8)
            return self.ids(data) + self.texts(values)
        return Counter()

    def texts(self, texts: pl.Series) -> Counter[Seen]:
        """Search texts."""
        return counted(find_texts(texts, self.wanted.texts), "text") + counted(
            find_passages(texts, self.wanted.passages), "passage"
        )

    def ids(self, data: Bytes) -> Counter[Seen]:
        """Search bytes for ids."""
        return counted(find_ids(data, self.wanted.ids), "id") if len(data) else Counter()

    def tokens(self, ids: NDArray[Any], spellings: Sequence[Spelling]) -> Counter[Seen]:
        """Search the texts of token ids."""
        seen: Counter[Seen] = Counter()
        for spelling in spellings:
            ordered = spelling.in_order(ids)
            for start in range(0, max(1, len(ids)), BLOCK_TOKENS):
                block = ordered[start : start + BLOCK_TOKENS + OVERLAP]
                seen += self.texts(pl.Series([*spelling.texts(block)], dtype=pl.String))
        return seen


def counted(found: Sequence[Found], kind: str) -> Counter[Seen]:
    """Count the marks that were found, by takedown."""
    return Counter(Seen(each.owner, kind, each.digest) for each in found)


def read_arrow(path: Path) -> pl.DataFrame:
    """Read an Arrow file, or a stream of batches as `datasets` writes it."""
    with open(path, "rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return pl.read_ipc(path) if is_file else pl.read_ipc_stream(path)


def blocks_of(path: Path) -> Iterator[Bytes]:
    """Yield a file in blocks that overlap; what is packed by gzip is unpacked."""
    rest = b""
    with open(path, "rb") as file:
        unpack = zlib.decompressobj(wbits=31) if path.suffix == ".gz" else None
        while content := file.read(BLOCK_BYTES if unpack is None else BLOCK_BYTES >> 5):
            block = rest + (content if unpack is None else unpack.decompress(content))
            yield np.frombuffer(block, np.uint8)
            rest = block[-OVERLAP:]
