"""`sources`: files of each source, their format and their kind of text.

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
        description="name of the source, its partition and its folder",
    )
    where: Annotated[tuple[NonEmpty, ...], BeforeValidator(_as_tuple)] = Field(
        min_length=1, description="files, folders, globs or http(s)/file URLs"
    )
    format: Literal["auto", FileFormat] = Field(
        "auto", description="file format; auto: by the file name"
    )
    text_field: str = Field("text", min_length=1, description="field of the text")
    id_field: str | None = Field(
        None, min_length=1, description="field of the record's own id, unique in the source"
    )
    lang_field: str = Field("lang", min_length=1, description="field of the language")
    license_field: str = Field("license", min_length=1, description="field of the licence")
    field_filter: Annotated[dict[str, Allowed], BeforeValidator(_parse_filter)] = Field(
        default_factory=dict,
        description="allowed values by dotted path; records with other values are left out",
    )
    language: str | None = Field(None, description="language of records that name none")
    domain: Literal["general", "code", "medical"] = Field(
        "general", description="kind of text, which sets defaults of the filters"
    )
    license: str | None = Field(None, description="licence of records that name none")
    text_documents: Literal["file", "blank_line"] = Field(
        "file",
        description="document in .txt files. file: the whole file; blank_line: lines up to a blank "
        "line",
    )
    max_text_bytes: int | None = Field(
        None, ge=1, description="size cap of the whole source, bytes of UTF-8 text"
    )
    allow_no_files: bool = Field(False, description="accepts that no file matches `where`")
    on_damage: Literal["keep", "drop"] = Field(
        "keep",
        description="documents of a compressed file that is cut or damaged. keep: all that can be "
        "read, with `damaged: true` in meta; drop: none of the file",
    )
    max_record_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1,
        le=2**31 - 1,
        description="bytes of the largest record; larger ones go to quarantine",
    )


class Source(SourceConfig):
    """A source of documents, with its overrides of the filters."""

    filters: dict[str, Any] = Field(
        default_factory=dict,
        description="overrides of `filters` for this source, merged key by key; null switches off",
    )
