"""Steps of `filters` besides rules: normalisation, lines, language, PII, word lists, fastText."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, field_validator


class WordsConfig(BaseModel):
    """Lists of words that the rules of profanity and vocabulary look up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    builtin_profanity: bool = Field(
        default=True, description="whether the lists that come with Tokenmill are used"
    )
    profanity_files: dict[Annotated[str, Field(pattern=r"^([a-z]{2,3}|\*)$")], str] = Field(
        default_factory=dict,
        description="more lists by language code (* for all), one word or phrase per line",
    )
    vocabulary_file: str | None = Field(
        default=None,
        description="JSON file {categories: {name: [terms]}}; null: the medical one of Tokenmill",
    )


class FasttextConfig(BaseModel):
    """A user's own fastText classifier."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="model file (.bin or .ftz), relative to pipeline.yaml")
    label: str = Field(description="label whose probability is the score, such as __label__hq")


class LanguageConfig(BaseModel):
    """How the language of a text is detected; to reject documents by it, set `rules.language`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backend: Literal["fasttext", "langdetect", "none"] = Field(
        default="fasttext",
        description="detector; none leaves lang and lang_score null (code, for one); scores of"
        " langdetect are near 1 or near 0.6, so with it a usual min_score is 0.9",
    )
    min_score: float = Field(
        default=0.0, ge=0, le=1, description="below this score the language counts as unknown"
    )
    allowed: tuple[str, ...] = Field(
        default=(),
        description="languages the detector may answer, others are unknown; empty: all",
    )
    min_chars: int = Field(
        default=1,
        ge=0,
        description="texts with fewer characters are not judged: see too_short",
    )
    too_short: Literal["unknown", "keep"] = Field(
        default="unknown",
        description="texts under min_chars: unknown is score 0; keep is score null, which breaks no"
        " rule, so that a declared language stands",
    )
    script_check: bool = Field(
        default=False,
        description="a language never written in the script of most letters counts as unknown",
    )


LAST_END_MARK = 0x3FFFE  # the kernel's table of characters ends here; so do Unicode's marks


class C4Lines(BaseModel):
    """Which lines C4 keeps (Raffel et al. 2020, and the code that made it: c4_utils of TFDS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    end_marks: tuple[str, ...] | None = Field(
        default=(".", "?", "!", '"'),
        description="a line must end in one of these characters, and not in '...'; "
        'none: any end will do. datatrove adds "\'"',
    )
    min_words: int = Field(default=5, ge=0, description="words a line needs; datatrove: 3; 0: off")
    max_word_length: int = Field(
        default=1000, ge=0, description="characters a word may have; 0: off"
    )
    javascript: bool = Field(default=True, description="remove lines with 'javascript', any case")
    policy: bool = Field(
        default=True,
        description="remove lines on terms of use, privacy policy, cookie policy or use of cookies",
    )
    citations: bool = Field(
        default=True, description="remove [1], [], [edit] and [citation needed] from lines"
    )

    @field_validator("end_marks")
    @classmethod
    def _are_characters(cls, marks: tuple[str, ...] | None) -> tuple[str, ...] | None:
        wrong = [mark for mark in marks or () if len(mark) != 1 or ord(mark) > LAST_END_MARK]
        if wrong:
            raise ValueError(f"c4.end_marks: {wrong=} are not single characters. Split them.")
        return marks


class RefinedWebLines(BaseModel):
    """Which lines RefinedWeb drops (Penedo et al. 2023, appendix G.2; values: DCLM's config)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_uppercase: float = Field(
        default=0.5, ge=0, le=1, description="share of capitals among a line's characters"
    )
    max_numeric: float = Field(
        default=0.999999, ge=0, le=1, description="share of digits among a line's characters"
    )
    counters: bool = Field(default=True, description="remove lines such as '3.4k views'")
    min_words: int = Field(default=2, ge=0, description="words a line needs; 0: off")
    short_line_words: int = Field(
        default=10,
        ge=0,
        description="up to this many words, a line loses 'Sign-in' at its start, 'Read more...' "
        "at its end and 'items in cart' anywhere; 0: off",
    )


class LinesConfig(BaseModel):
    """Line-wise corrections, in this order; all off: texts stay, lines are counted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    c4: C4Lines | None = Field(default=None, description="C4's line rules")
    refinedweb: RefinedWebLines | None = Field(default=None, description="RefinedWeb's line rules")
    remove_copyright: bool = Field(
        default=False, description="remove lines such as '© 2019 Acme. All rights reserved.'"
    )


class NormalizeConfig(BaseModel):
    """What `normalize_text` evens out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nfc: bool = Field(default=True, description="compose characters to Unicode form NFC (UAX 15)")
    line_ends: bool = Field(default=True, description="turn CRLF, CR, VT, FF and NEL into LF")
    form_feeds: bool = Field(
        default=True, description="line_ends means VT, FF and NEL too; false: CRLF and CR only"
    )
    control_characters: bool = Field(
        default=True,
        description="remove C0 and C1 controls but tabs and line ends, and U+FEFF, U+200B, U+2060",
    )
    strip: bool = Field(
        default=True,
        description="remove blank lines at the start and white space at the end of the text",
    )
    mojibake: bool = Field(
        default=False,
        description="repair UTF-8 that was read as Latin-1 or Windows-1252 (ftfy.fix_encoding)",
    )
    bidi_controls: bool = Field(
        default=False, description="remove direction marks: U+200E, 200F, 202A-202E, 2066-2069"
    )
    trailing_spaces: bool = Field(
        default=False,
        description="remove blanks at line ends (in Markdown two of them break the line)",
    )
    max_blank_lines: int | None = Field(
        default=None, ge=1, le=100, description="cut runs of blank lines to so many; null: leave"
    )


# What a domain sets differently; the user's config goes over it. Code: source may hold decomposed
# text in string literals, where NFC would change what the program does, and form feeds are legal
# between the definitions of Python and C.
NORMALIZE_FOR: dict[str, dict[str, object]] = {
    "general": {},
    "code": {"nfc": False, "form_feeds": False},
    "medical": {},
}


_PLACEHOLDER = r"^(?:<[A-Za-z_ ]+>|\[[A-Za-z_ ]+\]|\{[A-Za-z_ ]+\})$"


PiiKind = Literal["email", "ip", "phone", "ssn", "credit_card", "iban", "api_key", "private_key"]


KINDS: tuple[PiiKind, ...] = get_args(PiiKind)


PLACEHOLDERS: dict[PiiKind, str] = {
    "email": "<EMAIL>",
    "ip": "<IP_ADDRESS>",
    "phone": "<PHONE>",
    "ssn": "<SSN>",
    "credit_card": "<CREDIT_CARD>",
    "iban": "<IBAN>",
    "api_key": "<KEY>",
    "private_key": "<PRIVATE_KEY>",
}


class PiiConfig(BaseModel):
    """Which personal data is looked for, and whether placeholders replace it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: tuple[PiiKind, ...] = Field(default=KINDS, description="kinds that are looked for")
    action: Literal["redact", "tag"] = Field(
        default="redact",
        description="redact: placeholders replace the spans; tag: the text stays, spans are listed",
    )
    placeholders: dict[PiiKind, str] = Field(
        default=PLACEHOLDERS,
        description="what replaces each kind: letters, blanks and _ in <>, [] or {}; "
        "kinds left out keep the default",
    )

    @field_validator("placeholders")
    @classmethod
    def _complete(cls, placeholders: dict[PiiKind, str]) -> dict[PiiKind, str]:
        wrong = pl.Series(placeholders.values(), dtype=pl.String)
        wrong = wrong.filter(~wrong.str.contains(_PLACEHOLDER))
        if len(wrong):
            raise ValueError(
                f"placeholders {wrong.to_list()} could be taken for personal data. Write them as "
                "letters in brackets, such as <EMAIL> or [EMAIL]."
            )
        return PLACEHOLDERS | placeholders
