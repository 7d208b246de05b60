"""Records about tokens, as manifests keep them from the stage `tokenizer` on."""

from __future__ import annotations

import msgspec
import polars as pl

from corpus_loader.places import stage_names
from resources.store.records import Manifest, StageRecords

NO_TOKENS = "no_tokens"  # why `tokenized` rejects a document
REJECTED = "rejected"  # kind of file: conversations that are not encoded, and why


class TokenFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokenizer of a source, and the form of its stored token ids; fields are keys of JSON.

    tokenizer_fingerprint               sha256 (hex) of the canonical tokenizer.json
    vocab_size                          largest id plus one
    token_dtype                         "uint16" or "uint32", the smallest that holds every id
    end_of_document, end_of_document_id the special token after every document
    begin_of_document_id                id before every document, None if there is none
    """

    tokenizer_fingerprint: str
    vocab_size: int
    token_dtype: str
    end_of_document: str
    end_of_document_id: int
    begin_of_document_id: int | None


class MarkedTokenFacts(TokenFacts, frozen=True, kw_only=True):
    """Token facts with the spelling of the begin token, None if there is none."""

    begin_of_document: str | None


class SampledParts(msgspec.Struct, frozen=True):
    """A source that a tokenizer was trained on, and the fingerprints of its parts of `deduped`."""

    source: str
    parts: tuple[str, ...]


class TokenizerProvenance(msgspec.Struct, frozen=True):
    """Documents that a tokenizer was trained on; unset if it was loaded, or by earlier versions."""

    sample: tuple[SampledParts, ...] | msgspec.UnsetType = msgspec.UNSET


class TextFit(msgspec.Struct, frozen=True, kw_only=True):
    """Fit of a tokenizer to texts of one language in one source, or to several, as counts.

    text_bytes, tokens   UTF-8 bytes, and the tokens that they take, marks left out
    unknown_tokens       of these, the unknown token: their text is lost
    byte_tokens          of these, single bytes of longer characters
    """

    source: str = ""
    language: str = ""
    text_bytes: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    byte_tokens: int = 0

    @property
    def bytes_per_token(self) -> float:
        """Text per token; there must be some."""
        return self.text_bytes / self.tokens

    def share(self, tokens: int) -> float:
        """Return a number of its tokens as a share of all."""
        return tokens / self.tokens


class TokenizerNumbers(MarkedTokenFacts, frozen=True, kw_only=True):
    """Numbers of the stage `tokenizer`; a loaded tokenizer has those of `MarkedTokenFacts` alone.

    entries_unfilled       entries of the wanted vocabulary that the sample had no pairs for
    sample_documents       documents drawn, by source
    sample_bytes           bytes drawn, by source
    sample_wanted_bytes    bytes that the config asks for, by source
    sample_takes_all_of    sources drawn in full
    served                 fit to the sample, with which later documents are compared
    switched_off           of a loaded tokenizer, what is random in its file and is not used
    """

    entries_unfilled: int | msgspec.UnsetType = msgspec.UNSET
    sample_documents: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    sample_bytes: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    sample_wanted_bytes: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    sample_takes_all_of: list[str] | msgspec.UnsetType = msgspec.UNSET
    served: list[TextFit] | msgspec.UnsetType = msgspec.UNSET
    switched_off: list[str] | msgspec.UnsetType = msgspec.UNSET


class TokenizedProvenance(MarkedTokenFacts, frozen=True, kw_only=True):
    """Inputs of the stage `tokenized`: the tokenizer, and the fingerprint of `deduped`.

    `has_loss_mask` is True of conversations, whose tokens have masks, and else left out, and
    `has_loss_weights` if these are weights.
    """

    deduped: str
    has_loss_mask: bool | msgspec.UnsetType = msgspec.UNSET
    has_loss_weights: bool | msgspec.UnsetType = msgspec.UNSET


class LanguageCounts(msgspec.Struct, frozen=True):
    """Characters of all texts, and by language bytes, characters and tokens without marks.

    Languages without unknown tokens, or without single bytes of longer characters, have no count.
    """

    text_chars: int = 0
    text_bytes_by_language: dict[str, int] = {}
    text_chars_by_language: dict[str, int] = {}
    text_tokens_by_language: dict[str, int] = {}
    unknown_tokens_by_language: dict[str, int] = {}
    byte_tokens_by_language: dict[str, int] = {}


class TokenizedNumbers(LanguageCounts, frozen=True):
    """Numbers of the stage `tokenized`: counts of text, and the result of the round trip.

    `round_trip_failed` has the first doc_ids that failed in a part, as keys, so that they add up.
    `fill_in_the_middle`, if the source uses it, counts documents rearranged as psm and as spm, and
    their special_tokens. `template_refusals`, of conversations, counts those that the chat template
    refused by what it said, the most frequent of each part.
    """

    round_trip_documents: int = 0
    round_trip_failures: int = 0
    round_trip_failed: dict[str, int] = {}
    fill_in_the_middle: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    template_refusals: dict[str, int] | msgspec.UnsetType = msgspec.UNSET


def token_bytes(tokens: pl.DataType) -> int:
    """Bytes of one token id in a list column."""
    return 2 if tokens == pl.List(pl.UInt16) else 4


TokenizedManifest = Manifest[TokenizedProvenance, TokenizedNumbers]

TOKENIZED = StageRecords(stage_names.TOKENIZED, "4", TokenizedProvenance, TokenizedNumbers)
TOKENIZER = StageRecords(stage_names.TOKENIZER, "4", TokenizerProvenance, TokenizerNumbers)
