"""Text to token ids: train or load a byte-level BPE, and encode exactly as `tokenizers` does.

`tokenizers` is the definition. `fastokens` gives the same ids about 50 times faster (76 MB/s a core
against 1.9); it is used where a probe of hard texts proves it equal for the tokenizer at hand.
Text that spells a special token is plain text: `<|endoftext|>` in a document never becomes the id.
"""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from corpus_loader.permutation import derive_key, mix64

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_DOCUMENT = "<|endoftext|>"
UINT16_VOCABULARY = 1 << 16
NUM_BYTES = 256  # tokens that byte-level BPE starts from

# Where byte-level BPE implementations differ: digits, contractions, runs of blanks, scripts without
# blanks, emoji sequences, combining marks, special-token spellings, control characters.
PROBE_TEXTS = (
    "",
    " ",
    "Hello world's 3.14159  and\t\ttabs\n\n\nnew lines \r\n mixed",
    "I'LL we've DON'T l'été 1234567890 1,000,000.50 0x1F a_b __init__",
    "def f(x):\n    return x[0]\n\n\n        # deep   \n",
    "你好，世界。今日はカタカナと漢字。 안녕하세요 Привет мир مرحبا بالعالم שלום ไทย हिन्दी",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u0301\u0302 \u200b\u200d\ufeff \u00a0\u2003\u3000",
    "<|endoftext|> a<|endoftext|>b <s> </s> [PAD] <unk>",
    "\x00\x01\x7f\x85\u2028\u2029 ÿ \U0010ffff",
    "a" * 300 + " " * 300 + "ab" * 150 + "\n" * 50,
)


class TokenizerError(ValueError):
    """The tokenizer cannot be used as configured."""


class TokenizerConfig(BaseModel):
    """One tokenizer for the whole corpus: trained on a sample of it, or loaded from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        default=None,
        description="tokenizer.json to load, relative to pipeline.yaml; default: train one",
    )
    vocab_size: int = Field(
        default=32_000, ge=260, le=1 << 24, description="entries to train, special tokens included"
    )
    min_frequency: int = Field(
        default=2, ge=1, description="how often a pair must occur to be merged"
    )
    special_tokens: tuple[str, ...] = Field(
        default=(END_OF_DOCUMENT,), description="ids 0, 1, ... of a trained tokenizer"
    )
    end_of_document: str = Field(
        default=END_OF_DOCUMENT, description="the special token appended to every document"
    )
    sample_bytes: int = Field(
        default=10_000_000,
        ge=1,
        description="UTF-8 bytes of the seeded sample that a training reads",
    )
    seed: int = Field(default=0, ge=0, description="which documents the sample takes")

    @model_validator(mode="after")
    def check_special_tokens(self) -> Self:
        """A trained tokenizer has its end token, every special token once, and room for bytes."""
        if self.path is not None:
            return self
        tokens = self.special_tokens
        if len(set(tokens)) < len(tokens) or "" in tokens:
            raise ValueError(f"special_tokens must differ and not be empty, got {list(tokens)}")
        if self.end_of_document not in tokens:
            raise ValueError(
                f"end_of_document {self.end_of_document!r} is not among special_tokens "
                f"{list(tokens)}; add it there"
            )
        if self.vocab_size < NUM_BYTES + len(tokens):
            raise ValueError(
                f"vocab_size {self.vocab_size} has no room for {NUM_BYTES} bytes and "
                f"{len(tokens)} special tokens"
            )
        return self


class Encoder(Protocol):
    """Encodes texts to (ids uint32, offsets int64 of length n + 1)."""

    name: str

    def encode(self, texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]: ...


def is_sampled(doc_ids: pl.Series, share: float, seed: int) -> pl.Series:
    """Boolean per document: whether the seeded sample of that share of all documents takes it.

    Depends on the document alone, so that the sample does not change with order or partition, and
    needs one pass; the sample's size comes out near the wanted share.
    """
    head = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    keys = mix64(head.to_numpy() ^ np.uint64(derive_key(seed, "tokenizer sample")))
    return pl.Series("is_sampled", keys.astype(np.float64) < share * 2.0**64)


def train_bpe(texts: Iterable[list[str]], config: TokenizerConfig) -> str:
    """Train byte-level BPE (GPT-2's split) and return its canonical tokenizer.json."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=list(config.special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return canonical_json(tokenizer.to_str())


def canonical_json(tokenizer_json: str) -> str:
    """The same tokenizer with sorted keys and no layout: what the fingerprint is taken of."""
    try:
        content = json.loads(tokenizer_json)
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"not a tokenizer.json: it is no JSON ({error}). Check tokenizer.path."
        ) from None
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def tokenizer_fingerprint(tokenizer_json: str) -> str:
    """sha256 (hex) of the canonical JSON."""
    return hashlib.sha256(canonical_json(tokenizer_json).encode()).hexdigest()


def read_tokenizer(tokenizer_json: str, end_of_document: str) -> tuple[Tokenizer, int]:
    """(tokenizer, id of the end-of-document token); TokenizerError if either is missing.

    Truncation and padding, which a file may ask for, are off: a document keeps all its tokens.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(tokenizer_json)
    except Exception as error:  # the package raises bare Exception for every kind of bad file
        raise TokenizerError(
            f"not a tokenizer.json that `tokenizers` can read: {error}. Check tokenizer.path."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    added = tokenizer.get_added_tokens_decoder()
    special = {token.content: token_id for token_id, token in added.items() if token.special}
    if end_of_document not in special:  # any other token can be spelled by a document's text
        raise TokenizerError(
            f"the tokenizer has no special token {end_of_document!r} for tokenizer.end_of_document."
            f" Name one of its special tokens there, {list(special)}, or add it to the file."
        )
    return tokenizer, special[end_of_document]


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """The largest id plus one: more than the number of entries where ids have gaps."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values())) + 1


def token_dtype(vocab_size: int) -> pl.DataType:
    """UInt16 where every id fits, else UInt32."""
    return pl.UInt16() if vocab_size <= UINT16_VOCABULARY else pl.UInt32()


class ReferenceEncoder:
    """`tokenizers` itself: exact by definition, about 2 MB/s a core."""

    name = "tokenizers"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokenizer.encode_special_tokens = True

    def encode(self, texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        lengths = np.fromiter((len(e.ids) for e in encodings), np.int64, len(encodings))
        ids = [np.array(e.ids, np.uint32) for e in encodings]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return (np.concatenate(ids) if ids else np.zeros(0, np.uint32)), offsets


class FastEncoder:
    """`fastokens` on the tokenizer without its special tokens, so that no text can spell one."""

    name = "fastokens"

    def __init__(self, tokenizer_json: str) -> None:
        from fastokens import Tokenizer as FastTokenizer

        content = json.loads(tokenizer_json)
        plain = [token for token in content.get("added_tokens", []) if not token["special"]]
        dropped = dict.fromkeys(("post_processor", "truncation", "padding"))
        self.tokenizer = FastTokenizer.from_json_str(
            json.dumps(content | dropped | {"added_tokens": plain})
        )

    def encode(self, texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        ids, offsets = self.tokenizer.encode_batch_flat(texts)
        return np.frombuffer(ids, np.uint32), np.frombuffer(offsets, np.int64)


LOADING = threading.Lock()  # threads that ask at once would each load: half a second of CPU


def load_encoder(tokenizer_json: str, end_of_document: str) -> tuple[Encoder, int, int]:
    """The encoder, loaded once per process: see `make_encoder`."""
    with LOADING:
        return make_encoder(tokenizer_json, end_of_document)


@cache
def make_encoder(tokenizer_json: str, end_of_document: str) -> tuple[Encoder, int, int]:
    """(fastest exact encoder, end-of-document id, ids of the vocabulary); once per process."""
    tokenizer, end_id = read_tokenizer(tokenizer_json, end_of_document)
    reference = ReferenceEncoder(tokenizer)
    return fast_if_equal(tokenizer_json, reference), end_id, vocabulary_size(tokenizer)


def fast_if_equal(tokenizer_json: str, reference: ReferenceEncoder) -> Encoder:
    """The fast encoder if it gives the reference's ids on the probe texts, else the reference.

    The probe spells every added token too: implementations differ in where they match them.
    """
    added = (token.content for token in reference.tokenizer.get_added_tokens_decoder().values())
    texts = [*PROBE_TEXTS, *(f"a{content}b {content}  {content}" for content in added)]
    try:
        fast = FastEncoder(tokenizer_json)
        fast_ids, fast_offsets = fast.encode(texts)
    except ValueError as error:
        warnings.warn(f"fastokens cannot encode with this tokenizer: {error}", stacklevel=2)
        return reference
    ids, offsets = reference.encode(texts)
    if np.array_equal(ids, fast_ids) and np.array_equal(offsets, fast_offsets):
        return fast
    warnings.warn("fastokens differs from tokenizers on the probe texts: not used", stacklevel=2)
    return reference


def append_end_of_document(
    ids: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], end_id: int, dtype: pl.DataType
) -> pl.Series:
    """A List series of each document's ids followed by the end-of-document id."""
    numpy_dtype = np.uint16 if dtype == pl.UInt16 else np.uint32
    new_offsets = offsets + np.arange(offsets.size)
    values = np.empty(ids.size + offsets.size - 1, numpy_dtype)
    is_end = np.zeros(values.size, bool)
    is_end[new_offsets[1:] - 1] = True
    values[~is_end] = ids
    values[is_end] = end_id
    lists = pa.LargeListArray.from_arrays(pa.array(new_offsets, pa.int64()), pa.array(values))
    return pl.Series("tokens", lists, dtype=pl.List(dtype))


def encode_documents(
    documents: pl.DataFrame, tokenizer_json: str, end_of_document: str
) -> pl.DataFrame:
    """Token ids of each document, its end-of-document id last.

    In: doc_id String, text String. Out, same order: doc_id, tokens List(UInt16 or UInt32).
    """
    encoder, end_id, vocab_size = load_encoder(tokenizer_json, end_of_document)
    ids, offsets = encoder.encode(documents["text"].to_list())
    tokens = append_end_of_document(ids, offsets, end_id, token_dtype(vocab_size))
    return pl.DataFrame({"doc_id": documents["doc_id"], "tokens": tokens})
