"""What a user declares about one source: where its files are, how to read them, what they are.

Frozen and closed (`extra="forbid"`), so that a misspelt option is an error and not a silent
default. Two short forms are accepted: one string for `where`, and `path = value` text for
`field_filter`.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Scalar = str | int | float | bool
FileFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "txt", "warc"]
NonEmpty = Annotated[str, Field(min_length=1)]
Allowed = Annotated[tuple[Scalar, ...], Field(min_length=1)]
CONDITION = re.compile(r"\s*(?P<path>[^=!<>\"'\s]+)\s*==?\s*(?P<value>.*?)\s*", re.DOTALL)
BARE_WORD = re.compile(r"[^=<>\"'\s]+")


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str | int | float | bool) else value


def _condition(text: str) -> tuple[str, Scalar]:
    match = CONDITION.fullmatch(text)
    if match is not None:
        try:
            return match["path"], msgspec.json.decode(match["value"], type=Scalar)
        except msgspec.DecodeError:
            if BARE_WORD.fullmatch(match["value"]):
                return match["path"], match["value"]
    raise ValueError(
        f'field_filter {text!r} is not of the form `meta.name = "value"`. It knows `=` only; quote '
        "a value that is not one word with double quotes, and write one list item per condition."
    )


def _parse_filter(value: object) -> object:
    if isinstance(value, dict):
        return {path: _as_tuple(allowed) for path, allowed in value.items()}
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    wanted: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        path, allowed = _condition(text)
        wanted[path] = (*wanted.get(path, ()), allowed)
    return wanted


class SourceConfig(BaseModel):
    """One source of documents, as `pipeline.yaml` declares it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="Name of the source; also its partition and folder name.",
    )
    where: Annotated[tuple[NonEmpty, ...], BeforeValidator(_as_tuple)] = Field(
        min_length=1, description="Files, folders, globs or http(s)/file URLs."
    )
    format: Literal["auto", FileFormat] = Field(
        "auto", description="File format; auto tells it from the file name."
    )
    text_field: str = Field("text", min_length=1, description="Field that holds the text.")
    id_field: str | None = Field(
        None, min_length=1, description="Field with the record's own id, unique in the source."
    )
    lang_field: str = Field("lang", min_length=1, description="Field that holds the language.")
    license_field: str = Field("license", min_length=1, description="Field with the licence.")
    field_filter: Annotated[dict[str, Allowed], BeforeValidator(_parse_filter)] = Field(
        default_factory=dict,
        description="Keep only records where each dotted path has one of its allowed values.",
    )
    language: str | None = Field(None, description="Language of records that name none.")
    domain: Literal["general", "code", "medical"] = Field(
        "general", description="Kind of text; picks the quality rules."
    )
    license: str | None = Field(None, description="Licence of records that name none.")
    text_documents: Literal["file", "blank_line"] = Field(
        "file", description="In .txt files a document is the file, or ends at a blank line."
    )
    max_text_bytes: int | None = Field(
        None, ge=1, description="Size cap of the whole source, bytes of UTF-8 text."
    )
    allow_no_files: bool = Field(False, description="Accept that no file matches `where`.")
    max_record_bytes: int = Field(
        64 * 1024 * 1024, ge=1, le=2**31 - 1, description="Larger records go to quarantine."
    )


class Source(SourceConfig):
    """A source of documents, with what it wants different from the rest of the file."""

    filters: dict[str, Any] = Field(
        default_factory=dict,
        description="overrides of `filters` for this source, merged key by key; null switches off",
    )
