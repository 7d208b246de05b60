"""Steps of `filters` besides rules: normalisation, lines, language, PII, word lists, fastText."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, field_validator

from resources.settings.frozen_model import FrozenModel


class WordsConfig(FrozenModel):
    """Lists of words that the rules of profanity and vocabulary use."""

    builtin_profanity: bool = Field(
        default=True, description="uses the lists that come with Tokenmill"
    )
    profanity_files: dict[Annotated[str, Field(pattern=r"^([a-z]{2,3}|\*)$")], str] = Field(
        default_factory=dict,
        description="further lists by language code (* for all), one word or phrase per line",
    )
    vocabulary_file: str | None = Field(
        default=None,
        description="JSON file {categories: {name: [terms]}}; null: the medical one of Tokenmill",
    )


class FasttextConfig(FrozenModel):
    """A user's own fastText classifier."""

    # A source may override one key of two: in the JSON schema neither is required.
    model_config = ConfigDict(json_schema_extra=lambda schema: schema.pop("required"))

    path: str = Field(description="model file (.bin or .ftz), relative to pipeline.yaml")
    label: str = Field(description="label whose probability is the score, such as __label__hq")


def _plain_code(name: object) -> object:
    return re.split("[-_]", name.strip().lower())[0] if isinstance(name, str) else name


# "en-US" and "EN" are en.
LanguageCode = Annotated[
    str,
    Field(pattern="^[a-z]{2,3}$"),
    BeforeValidator(_plain_code, json_schema_input_type=str),
]


class LanguageConfig(FrozenModel):
    """Detection of the language of a text; `rules.language` rejects documents by it."""

    backend: Literal["fasttext", "langdetect", "none"] = Field(
        default="fasttext",
        description="detector; none leaves lang and lang_score null (for code); scores of "
        "langdetect are near 1 or near 0.6, so that a usual min_score for it is 0.9",
    )
    reads: Literal["windows", "all"] = Field(
        default="windows",
        description="what fasttext reads. windows: start, middle and end; all: the whole text, up "
        "to 1.5 MB, as datatrove does",
    )
    min_score: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="minimum score of a detected language; below it the language is unknown",
    )
    allowed: tuple[str, ...] = Field(
        default=(),
        description="languages that the detector may return, others are unknown; empty: all",
    )
    min_chars: int = Field(
        default=1,
        ge=0,
        description="minimum number of characters of a text whose language is detected: see "
        "too_short",
    )
    too_short: Literal["unknown", "keep"] = Field(
        default="unknown",
        description="result for texts under min_chars. unknown: score 0; keep: score null, which "
        "breaks no rule, so that a declared language is kept",
    )
    expected: tuple[LanguageCode, ...] = Field(
        default=(),
        description="languages of a source's texts: those that are surely in another one are "
        "tagged, or rejected by rules.expected_language; `language` of the source sets it",
    )
    certain_score: float = Field(
        default=0.65, ge=0, le=1, description="minimum score for being surely in another language"
    )
    certain_chars: int = Field(
        default=100,
        ge=0,
        description="minimum number of characters for being surely in another language",
    )
    max_code_score: float | None = Field(
        default=0.5,
        ge=0,
        le=1,
        description="maximum code score of a text whose language is known: source code has words "
        "of a language, and is in none; null: any",
    )
    script_check: bool = Field(
        default=False,
        description="treats a language as unknown if the script of most letters is never used for "
        "it",
    )


LAST_END_MARK = 0x3FFFE  # the kernel's table of characters ends here; so do Unicode's marks


class C4Lines(FrozenModel):
    """Lines that C4 keeps (Raffel et al. 2020, and its reference code: c4_utils of TFDS)."""

    end_marks: tuple[str, ...] | None = Field(
        default=(".", "?", "!", '"'),
        description="characters of which a line must end in one, and not in '...'; null: any end "
        'is allowed. datatrove adds "\'"',
    )
    min_words: int = Field(
        default=5, ge=0, description="minimum number of words in a line; datatrove: 3; 0: off"
    )
    max_word_length: int = Field(
        default=1000, ge=0, description="maximum number of characters in a word; 0: off"
    )
    count_citations: bool = Field(
        default=False, description="counts citations as words of a line, as datatrove does"
    )
    javascript: bool = Field(default=True, description="removes lines with 'javascript', any case")
    policy: bool = Field(
        default=True,
        description="removes lines on terms of use, privacy policy, cookie policy or use of "
        "cookies",
    )
    citations: bool = Field(
        default=True, description="removes [1], [], [edit] and [citation needed] from lines"
    )

    @field_validator("end_marks")
    @classmethod
    def _are_characters(cls, marks: tuple[str, ...] | None) -> tuple[str, ...] | None:
        wrong = [mark for mark in marks or () if len(mark) != 1 or ord(mark) > LAST_END_MARK]
        if wrong:
            raise ValueError(f"c4.end_marks: {wrong=} are not single characters. Split them.")
        return marks


class RefinedWebLines(FrozenModel):
    """Lines that RefinedWeb drops (Penedo et al. 2023, appendix G.2; values: DCLM's config)."""

    max_uppercase: float = Field(
        default=0.5, ge=0, le=1, description="maximum share of capitals among a line's characters"
    )
    max_numeric: float = Field(
        default=0.999999,
        ge=0,
        le=1,
        description="maximum share of digits among a line's characters",
    )
    counters: bool = Field(default=True, description="removes lines such as '3.4k views'")
    min_words: int = Field(default=2, ge=0, description="minimum number of words in a line; 0: off")
    short_line_words: int = Field(
        default=10,
        ge=0,
        description="maximum number of words in a line that loses 'Sign-in' at its start, 'Read "
        "more...' at its end and 'items in cart' anywhere; 0: off",
    )


class LinesConfig(FrozenModel):
    """Line-wise corrections, in this order; with all of them off, lines are only counted."""

    remove_gutenberg: bool = Field(
        default=False,
        description="removes Project Gutenberg's header and licence, up to the mark behind which a "
        "book starts and from the one at which it ends",
    )
    c4: C4Lines | None = Field(default=None, description="C4's line rules")
    refinedweb: RefinedWebLines | None = Field(default=None, description="RefinedWeb's line rules")
    remove_copyright: bool = Field(
        default=False, description="removes lines such as '© 2019 Acme. All rights reserved.'"
    )


class NormalizeConfig(FrozenModel):
    """Differences that `normalize_text` evens out."""

    nfc: bool = Field(default=True, description="composes characters to Unicode form NFC (UAX 15)")
    line_ends: bool = Field(default=True, description="turns CRLF, CR, VT, FF and NEL into LF")
    form_feeds: bool = Field(
        default=True, description="includes VT, FF and NEL in line_ends; false: CRLF and CR only"
    )
    control_characters: bool = Field(
        default=True,
        description="removes C0 and C1 controls except tabs and line ends, and U+FEFF, 200B, 2060",
    )
    soft_hyphens: bool = Field(
        default=True,
        description="removes U+00AD, which says where a word may be hyphenated, and shows nothing",
    )
    strip: bool = Field(
        default=True,
        description="removes blank lines at the start and white space at the end of the text",
    )
    mojibake: bool = Field(
        default=False,
        description="repairs UTF-8 that was read as Latin-1 or Windows-1252 (ftfy.fix_encoding)",
    )
    bidi_controls: bool = Field(
        default=True,
        description="removes bidirectional embeddings, overrides and isolates: U+202A-202E, "
        "2066-2069, which can show text in another order than it is stored",
    )
    bidi_marks: bool = Field(
        default=False,
        description="removes the direction marks U+200E, 200F and 061C, which text in Arabic and "
        "Hebrew needs at the edges of numbers and punctuation",
    )
    trailing_spaces: bool = Field(
        default=False,
        description="removes blanks at line ends (in Markdown two of them break the line)",
    )
    max_blank_lines: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="maximum number of blank lines in a row; longer runs are cut; null: no limit",
    )


# Keys that a domain sets differently, below the user's config. Code may hold decomposed text in
# string literals, where NFC would change the program, and form feeds are legal between the
# definitions of Python and C.
NORMALIZE_FOR: dict[str, dict[str, object]] = {
    "general": {},
    "code": {"nfc": False, "form_feeds": False},
    "medical": {},
}


_PLACEHOLDER = r"^(?:<[A-Za-z_ ]+>|\[[A-Za-z_ ]+\]|\{[A-Za-z_ ]+\})$"


PiiKind = Literal[
    "email",
    "ip",
    "phone",
    "ssn",
    "credit_card",
    "iban",
    "url_secret",
    "password",
    "api_key",
    "private_key",
    "national_id",
]


KINDS: tuple[PiiKind, ...] = get_args(PiiKind)
OPTIONAL_KINDS = frozenset({"national_id"})
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind not in OPTIONAL_KINDS)


PLACEHOLDERS: dict[PiiKind, str] = {
    "email": "<EMAIL>",
    "ip": "<IP_ADDRESS>",
    "phone": "<PHONE>",
    "ssn": "<SSN>",
    "credit_card": "<CREDIT_CARD>",
    "iban": "<IBAN>",
    "url_secret": "<SECRET>",
    "password": "<PASSWORD>",
    "api_key": "<KEY>",
    "private_key": "<PRIVATE_KEY>",
    "national_id": "<NATIONAL_ID>",
}
# What a config has by itself: without the optional kinds, since its fingerprint is made of it.
_DEFAULT_PLACEHOLDERS = {kind: PLACEHOLDERS[kind] for kind in DEFAULT_KINDS}


# Of 33,599 real documents (193 MB) the fullest has 43, and Linux's list of maintainers some 3,000
# addresses; a document with more is a list of values, whose search would take minutes.
MAX_VALUES = 10_000


class PiiConfig(FrozenModel):
    """Kinds of personal data that are searched for, and their placeholders."""

    kinds: tuple[PiiKind, ...] = Field(
        default=DEFAULT_KINDS, description="kinds that are searched for; national_id is an option"
    )
    action: Literal["redact", "tag"] = Field(
        default="redact",
        description="treatment of spans. redact: placeholders replace them; tag: they are listed "
        "and the text stays",
    )
    placeholders: dict[PiiKind, str] = Field(
        default=_DEFAULT_PLACEHOLDERS,
        description="replacement of each kind: letters, blanks and _ in <>, [] or {}; kinds left "
        "out keep the default",
    )

    @field_validator("placeholders")
    @classmethod
    def _complete(cls, placeholders: dict[PiiKind, str]) -> dict[PiiKind, str]:
        import polars as pl  # takes 0.6 s, which `corpus status` does not need

        wrong = pl.Series(placeholders.values(), dtype=pl.String)
        wrong = wrong.filter(~wrong.str.contains(_PLACEHOLDER))
        if len(wrong):
            raise ValueError(
                f"placeholders {wrong.to_list()} could be taken for personal data. Write them as "
                "letters in brackets, such as <EMAIL> or [EMAIL]."
            )
        return _DEFAULT_PLACEHOLDERS | placeholders
