"""Text to token ids, exactly as `tokenizers` gives them.

`tokenizers` is the definition. `fastokens` gives the same ids about 50 times faster (76 MB/s a core
against 1.9); it is used where a probe of hard texts proves it equal for the tokenizer at hand.
Text that spells a special token is plain text: `<|endoftext|>` in a document never becomes the id.
"""

from __future__ import annotations

import json
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from assets.transforms.tokenizer import read_tokenizer, vocabulary_size

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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


class Encoder(Protocol):
    """Encodes texts to (ids uint32, offsets int64 of length n + 1)."""

    name: str

    def encode(self, texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]: ...


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
