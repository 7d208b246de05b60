"""Encode text to token ids, exactly as `tokenizers` does.

`tokenizers` defines the ids. `fastokens` computes the same ids far faster (docs/tokenizer.md), and
is used if it agrees with `tokenizers` on a probe of hard texts and on documents of every part.
Text that spells a special token is plain text: `<|endoftext|>` in a document never becomes the id.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from assets.tokenized.tokenizer import unknown_id, without_spellings
from resources.settings.tokenizer import GPT2, PATTERNS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Implementations of byte-level BPE differ on such texts: digits, contractions, runs of blanks,
# scripts without blanks, emoji sequences, combining marks, special-token spellings, control
# characters.
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

Ids = NDArray[np.uint32]
Offsets = NDArray[np.int64]


class Encoder(Protocol):
    """Encoder of texts to (ids uint32, offsets int64 of length n + 1)."""

    name: str

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]: ...


class ReferenceEncoder:
    """Encoder that uses `tokenizers`: exact by definition, and slow.

    `tokenizer` is that of the file, `plain` the one that encodes text: no text spells a special
    token for it.
    """

    name = "tokenizers"

    def __init__(self, tokenizer_json: str) -> None:
        from tokenizers import Tokenizer

        self.tokenizer: Tokenizer = Tokenizer.from_str(tokenizer_json)
        self.plain_json = without_spellings(tokenizer_json)
        is_same = self.plain_json is tokenizer_json
        self.plain = self.tokenizer if is_same else Tokenizer.from_str(self.plain_json)
        for tokenizer in (self.tokenizer, self.plain):
            tokenizer.no_truncation()  # a file may ask for both; a document keeps all its tokens
            tokenizer.no_padding()
            tokenizer.encode_special_tokens = True

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        encodings = self.plain.encode_batch_fast(texts, add_special_tokens=False)
        ids = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        lengths = np.array([0, *map(len, ids)], np.int64)
        return np.concatenate([np.zeros(0, np.uint32), *ids]), np.cumsum(lengths)

    @cached_property
    def unknown_id(self) -> int | None:
        """The id of what the model cannot spell, None if it has none."""
        return unknown_id(self.tokenizer, self.plain_json)

    @cached_property
    def component_types(self) -> dict[str, str | None]:
        """Types of the tokenizer's decoder, model and normalizer."""
        content = json.loads(self.tokenizer.to_str())
        return {key: (content[key] or {}).get("type") for key in ("decoder", "model", "normalizer")}

    @property
    def is_byte_level(self) -> bool:
        """Check for byte-level BPE, whose entries write each byte as one character."""
        types = self.component_types
        return types["decoder"] == "ByteLevel" and types["model"] == "BPE"

    @cached_property
    def split_regex(self) -> str | None:
        """The regular expression that alone splits words; None if other steps change or span them.

        GPT-2's is built into ByteLevel.
        """
        content = json.loads(self.tokenizer.to_str())
        split = content["pre_tokenizer"] or {}
        *words, to_bytes = split.get("pretokenizers") or [split]
        is_plain = (
            self.is_byte_level
            and not content["model"]["ignore_merges"]
            and {"type": "ByteLevel", "add_prefix_space": False}.items() <= to_bytes.items()
            and content["normalizer"] is None
            and all(token["special"] for token in content["added_tokens"])
        )
        if not is_plain or to_bytes["use_regex"] is bool(words) or len(words) > 1:
            return None
        isolated = {"type": "Split", "behavior": "Isolated", "invert": False}
        if words and not isolated.items() <= words[0].items():
            return None
        regex: str | None = words[0]["pattern"].get("Regex") if words else PATTERNS[GPT2]
        return regex

    def decode(self, ids: Sequence[list[int]]) -> list[str]:
        """Decode the ids of each document to text."""
        return list(self.tokenizer.decode_batch(ids, skip_special_tokens=False))


class FastEncoder:
    """Encoder that uses `fastokens`, without the special tokens, so that no text can spell one."""

    name = "fastokens"

    def __init__(self, tokenizer_json: str) -> None:
        from fastokens import Tokenizer as FastTokenizer

        content = json.loads(tokenizer_json)
        plain = [token for token in content.get("added_tokens", []) if not token["special"]]
        dropped = dict.fromkeys(("post_processor", "truncation", "padding"))
        self.tokenizer = FastTokenizer.from_json_str(
            json.dumps(content | dropped | {"added_tokens": plain})
        )

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        ids, offsets = self.tokenizer.encode_batch_flat(texts)
        return np.frombuffer(ids, np.uint32), np.frombuffer(offsets, np.int64)


@dataclass(frozen=True)
class Encoders:
    """Fastest encoder that passed the probe, and the reference that it must agree with."""

    best: Encoder
    reference: ReferenceEncoder

    def exact_on(self, texts: list[str]) -> Encoder:
        """Choose the best encoder if it agrees with the reference on the texts, else the latter."""
        if self.best is self.reference or are_equal(self.best, self.reference, texts):
            return self.best
        warn_of_fallback(f"{self.best.name} differs from tokenizers on documents of this part")
        return self.reference


LOADING = threading.Lock()  # else threads that ask at the same time would each load


def load_encoders(tokenizer_json: str) -> Encoders:
    """Load the encoders of a tokenizer.json, once per process."""
    with LOADING:
        return _make_once(tokenizer_json)


@cache
def _make_once(tokenizer_json: str) -> Encoders:
    return make_encoders(tokenizer_json)


def make_encoders(tokenizer_json: str) -> Encoders:
    """Make the fast encoder, or only the reference if the two differ on the probe texts.

    The probe also spells every added token, since implementations differ in where they match them.
    """
    reference = ReferenceEncoder(tokenizer_json)
    added = (token.content for token in reference.tokenizer.get_added_tokens_decoder().values())
    texts = [*PROBE_TEXTS, *(f"a{content}b {content}  {content}" for content in added)]
    try:
        fast = FastEncoder(reference.plain_json)
        if are_equal(fast, reference, texts):
            return Encoders(fast, reference)
        warn_of_fallback("fastokens differs from tokenizers on the probe texts")
    except ValueError as error:
        warn_of_fallback(f"fastokens cannot encode with this tokenizer: {error}")
    return Encoders(reference, reference)


def are_equal(one: Encoder, other: Encoder, texts: list[str]) -> bool:
    """Check that two encoders give the same ids for every text."""
    pairs: list[tuple[Any, Any]] = list(zip(one.encode(texts), other.encode(texts), strict=True))
    return all(np.array_equal(left, right) for left, right in pairs)


def warn_of_fallback(reason: str) -> None:
    """Warn that the slow encoder is used, with the reason."""
    warnings.warn(f"{reason}: `tokenizers` is used, which is slow", stacklevel=3)
