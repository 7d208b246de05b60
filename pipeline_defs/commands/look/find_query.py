"""What `corpus find` searches for: patterns of texts, and of the addresses of their URLs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import polars as pl
from cyclopts import Parameter

from assets.deduped.document_files import read_kept, read_some
from assets.text.addresses import first_address_of, url_parts
from pipeline_defs.commands.look.find_index import TextPart
from pipeline_defs.commands.look.gram_blocks import strings_of
from pipeline_defs.commands.look.spellings import spellings
from pipeline_defs.commands.terminal import one_line
from resources.errors import UsageError
from resources.urls import parse_url

NOTHING = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String})


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Options: how the string is compared, and which documents are searched."""

    ignore_case: Annotated[
        bool,
        Parameter(
            help="Upper and lower case are the same, in all scripts, and so are composed and "
            "decomposed letters (NFC, NFD)."
        ),
    ] = False
    regex: Annotated[
        str | None,
        Parameter(help="Only documents that match this regular expression as well, shown there."),
    ] = None
    source: Annotated[tuple[str, ...], Parameter(help="Only this source; may be repeated.")] = ()
    url: Annotated[
        str | None,
        Parameter(
            help="Only this domain and those below it, as in example.org; or URLs with a pattern, "
            "as in 'example.org/blog/*'."
        ),
    ] = None


@dataclass(frozen=True)
class Query:
    """What is searched for.

    patterns    regular expressions, or literal strings, of which a document has all
    addresses   regular expression of the addresses of its URL (`Url.address`); None for any
    strings     what an index is asked for (gram_blocks.py); it is not used without any
    """

    patterns: Sequence[tuple[str, bool]]
    addresses: str | None
    strings: Sequence[bytes]

    @classmethod
    def of(cls, text: str, options: Options) -> Query:
        """Return the query of a command line; UsageError if it asks for nothing, or is no query."""
        patterns = [(spellings(text), False) if options.ignore_case else (text, True)]
        if options.regex is not None:
            check_regex(options.regex)
            case = "(?i)" if options.ignore_case else ""
            patterns = [*patterns[: bool(text)], (case + options.regex, False)]
        elif not text:
            raise UsageError("give a string of at least one character, or --regex")
        addresses = None if options.url is None else addresses_of(options.url)
        return cls(patterns, addresses, strings_of(text, ignore_case=options.ignore_case))

    def texts_of(self, part: TextPart) -> pl.DataFrame:
        """Read the ids and texts of a part that are searched."""
        may_match = part.rows_with(self.strings)
        if may_match is None and self.addresses is None:
            return read_kept(part.documents, ["doc_id", "text"])
        if may_match is not None and not may_match.any():
            return NOTHING
        known = read_kept(part.documents, ["doc_id", "url"])
        if may_match is not None:
            known = known.filter(may_match)
        if self.addresses is not None:
            addresses = url_parts(known["url"])["address"]
            known = known.filter(addresses.str.contains(self.addresses))
        return read_some(part.documents, known["doc_id"], ["doc_id", "text"])

    def find(self, texts: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that match, each with the place of the last pattern in bytes."""
        for pattern, is_literal in self.patterns:
            place = pl.col("text").str.find(pattern, literal=is_literal)  # null if not there
            texts = texts.with_columns(place=place).drop_nulls("place")
        return texts


def check_regex(regex: str) -> None:
    """Raise UsageError for what Polars reads as no regular expression, or as a too large one."""
    try:
        pl.select(pl.lit("").str.find(regex))
    except pl.exceptions.ComputeError as error:
        reason = one_line(str(error).removeprefix("invalid regular expression: "))
        raise UsageError(
            f"--regex {regex!r:.80} is none that Rust reads: {reason}. Look-around and back "
            "references are not known."
        ) from None


def addresses_of(url: str) -> str:
    """Return the pattern of the addresses that --url asks for."""
    if "/" not in url and "*" not in url:
        if not (domain := parse_url(url.strip()).domain):
            raise UsageError(f"--url {url!r:.80} is no domain, and no URL with * in it.")
        return rf"^(?:[^/]*\.)?{pl.escape_regex(domain)}(?:[:/].*)?$"
    address: str = pl.select(first_address_of(pl.lit(url.lower()))).item()
    return f"^{'.*'.join(map(pl.escape_regex, address.split('*')))}$"
