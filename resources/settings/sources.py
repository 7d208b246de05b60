"""`sources`: files of each source, their format and their kind of text.

Frozen and closed (`extra="forbid"`), so that a misspelt option is an error and not a silent
default. Two short forms are accepted: one string for `where`, and `path = value` text for
`field_filter`.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetPydanticSchema,
    field_serializer,
    model_validator,
)

from corpus_loader.places.url_secrets import identity, key_of, shown
from corpus_loader.places.urls import Url
from resources.settings.faults import KeyPath, dotted
from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import NAME, ONE_OR_MORE, NonEmpty, as_tuple
from resources.settings.plug_ins import check_plug_in

Domain = Literal["general", "web", "code", "reference", "science", "books", "medical"]
Scalar = str | int | float | bool
FILE_FORMATS = (
    *("auto", "jsonl", "json", "csv", "tsv", "parquet", "arrow", "txt", "md", "html"),
    *("warc", "wet", "tar", "zip", "xml"),
    *("subtitles", "ipynb", "mbox", "epub"),
)
WITHOUT_MESSAGES = (
    *("txt", "md", "html", "warc", "wet", "xml", "subtitles", "ipynb", "mbox", "epub"),
)
FileFormat = Annotated[
    str, AfterValidator(lambda name: check_plug_in("readers", name, FILE_FORMATS))
]
PARSED = Annotated[NonEmpty, AfterValidator(Url)]
Place = Annotated[Url, GetPydanticSchema(lambda _, handler: handler(PARSED))]
Allowed = Annotated[tuple[Scalar, ...], Field(min_length=1)]
CONDITION = re.compile(r"\s*(?P<path>[^=!<>\"'\s]+)\s*==?\s*(?P<value>.*?)\s*", re.DOTALL)
DATABASE = "db"  # key of a Redis URL that tells streams apart, and is no secret
STREAMS = ("redis", "kafka")  # kinds of places
HUB_KEYS = ("config", "split", "revision")
STREAM_KEYS = ("stream_field", "max_entries")
ZSTD_WINDOW_LOG = 27  # the limit of `zstd -d`
BARE_WORD = re.compile(r"[^=<>\"'\s]+")


def _joined(value: object) -> object:
    """Join a list of languages with commas, which is the other way to write it."""
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
        return ",".join(value)
    return value


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
        return {path: as_tuple(allowed) for path, allowed in value.items()}
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    wanted: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        path, allowed = _condition(text)
        wanted[path] = (*wanted.get(path, ()), allowed)
    return wanted


# In the JSON schema: the forms that a key of pipeline.yaml may have.
FILTER = BeforeValidator(
    _parse_filter, json_schema_input_type=dict[str, Scalar | Allowed] | str | tuple[str, ...]
)
LANGUAGES = BeforeValidator(_joined, json_schema_input_type=str | tuple[str, ...] | None)


def usable_places(places: tuple[Url, ...]) -> tuple[Url, ...]:
    """Return `where`.

    ValueError if a URL of an object store or the hub has a secret, and if streams are among files.
    """
    streams = [place for place in places if place.kind in STREAMS]
    if streams and len(streams) < len(places):
        raise ValueError(
            f"{shown(streams[0])} is a stream, and other entries are files. Make a source of each"
        )
    for place in (each for each in places if each.user or "=" in each.query):
        if place.kind == "hub":
            raise ValueError(
                f"{shown(place)}: a URL of the hub has no user and no query. The token comes from "
                "the environment (HF_TOKEN), or from the file that `hf auth login` writes"
            )
        if place.kind in ("object", "hdfs"):
            raise ValueError(
                f"{shown(place)}: a URL of an object store, or of hdfs, has no user and no query. "
                "Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) "
                "or from the machine's role"
            )
    return places


def usable_separator(separator: str | None) -> str | None:
    """Return a separator of fields; ValueError if it is not one ASCII character of a line."""
    if separator is not None and (
        len(separator) != 1 or not separator.isascii() or separator in '\r\n"'
    ):
        raise ValueError(
            f"separator {separator!r} is not one ASCII character other than a quote or a line end. "
            "Convert the files to one that is"
        )
    return separator


class InputPlaces(FrozenModel):
    """Places of the input files of a source, or of an evaluation set.

    As JSON, which goes into fingerprints and manifests, `where` has no secrets, and the keys that
    only say how files are reached are left out.
    """

    name: str = Field(
        pattern=NAME,
        description="name of the source, its partition and its folder",
    )
    where: Annotated[tuple[Place, ...], ONE_OR_MORE, AfterValidator(usable_places)] = Field(
        min_length=1,
        repr=False,
        description="files, folders, globs, the same on object stores (s3, gs, az) and hdfs, "
        "datasets of the Hugging Face hub (hf://owner/name), files of Common Crawl "
        "(cc://CC-MAIN-2024-10?segments=0-9&kind=wet), http(s)/file URLs, or streams "
        "(redis://host/stream, kafka://brokers/topic); ${NAME} in the URL of a stream or of "
        "http(s) is an environment variable",
    )
    format: FileFormat = Field(
        default="auto",
        description=f"file format: {', '.join(FILE_FORMATS[1:])}, or one that a package adds; "
        "auto: by the file name",
    )
    identity_query: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE] = Field(
        default=(),
        exclude=True,
        description="keys of a URL's query that tell its files apart; other keys are secrets or "
        "change with time, and are recorded nowhere",
    )
    base_url: NonEmpty = Field(
        default="https://data.commoncrawl.org/",
        exclude=True,
        description="URL or folder of a mirror of Common Crawl, for entries cc:// of `where`",
    )
    config: str | None = Field(
        default=None,
        min_length=1,
        exclude=True,
        description="configuration of hf:// datasets; null: their default one",
    )
    split: str | None = Field(
        default=None,
        min_length=1,
        exclude=True,
        description="split of hf:// datasets; null: train",
    )
    revision: str | None = Field(
        default=None,
        min_length=1,
        exclude=True,
        description="branch, tag or commit of hf:// datasets; null: main. The commit that it is "
        "at the time of a build is recorded",
    )
    follow_links: bool = Field(
        default=False,
        exclude=True,
        description="reads links that leave the folder in which `where` starts",
    )
    max_download_bytes: int = Field(
        default=64 << 30,
        ge=1,
        exclude=True,
        description="bytes of the largest file that is read from an http(s) URL",
    )
    requests_per_second: float = Field(
        default=0.0,
        ge=0.0,
        allow_inf_nan=False,
        exclude=True,
        description="most requests to a host that a machine sends for the content of this source's "
        "files; 0: no limit. A pause that a server asks for (429, 503) is made anyway",
    )

    @model_validator(mode="after")
    def check_hub_keys(self) -> Self:
        """Refuse keys that nothing in `where` uses."""
        unused = [key for key in HUB_KEYS if getattr(self, key) is not None]
        if unused and all(place.kind != "hub" for place in self.where):
            raise ValueError(
                f"{', '.join(unused)}: `where` names no dataset of the hub. Name one, as "
                "hf://owner/name, or remove the key"
            )
        return self

    @field_serializer("where", when_used="json")
    def identities(self, where: tuple[Url, ...]) -> list[str]:
        """Return `where` as it is recorded: URLs without their secrets."""
        return [identity_of(place, self.identity_query) for place in where]


def web_places(inputs: InputPlaces) -> list[Url]:
    """Return the entries of `where` whose files are behind http(s) URLs."""
    on_web = ("web", "crawl") if Url(inputs.base_url).kind == "web" else ("web",)
    return [place for place in inputs.where if place.kind in on_web]


def is_elsewhere(inputs: InputPlaces) -> bool:
    """Return whether a source is on other machines, which may be slow to answer."""
    return any("://" in place for place in inputs.where)


def identity_of(place: Url, keys: Collection[str]) -> str:
    """Return the identity of an entry of `where`: a URL without its secrets, a path as it is."""
    if place.kind in STREAMS:
        return identity(place, (*keys, DATABASE))
    return identity(place, keys) if place.kind == "web" else str(place)


def url_faults(inputs: Iterable[tuple[KeyPath, InputPlaces]]) -> Iterator[tuple[KeyPath, str]]:
    """Yield (key path, message) of URLs that only their secrets tell apart, and of useless keys."""
    first: dict[str, tuple[KeyPath, Url]] = {}
    for path, places in inputs:
        urls = {(*path, "where", i): url for i, url in enumerate(places.where) if url.kind == "web"}
        pairs = (pair for url in urls.values() for pair in url.query.split("&"))
        known = sorted({key_of(pair) for pair in pairs if "=" in pair})
        for index, key in enumerate(places.identity_query):
            if key not in known:
                yield (
                    (*path, "identity_query", index),
                    f"no URL of `where` has the key {key!r}; they have: {', '.join(known) or '-'}",
                )
        for place, url in urls.items():
            name = identity(url, places.identity_query)
            other_place, other = first.setdefault(name, (place, url))
            if other != url:
                yield place, same_file(name, dotted(other_place), url, other)


def same_file(name: str, place: str, url: Url, other: Url) -> str:
    """Say that two URLs have one identity, by the keys that differ and not by their values."""
    pairs = (set(each.query.split("&")) for each in (url, other))
    keys = sorted({key_of(pair) for pair in set.symmetric_difference(*pairs) if "=" in pair})
    differs = f"its query ({', '.join(keys)})" if keys else "what is not recorded"
    return (
        f"{name} is the same file as {place}, from which it differs only in {differs}. List the "
        "keys that tell the files apart in `identity_query` of both, or remove one"
    )


class SourceConfig(InputPlaces):
    """One source of documents, as `pipeline.yaml` declares it."""

    kind: Literal["text", "chat"] = Field(
        "text",
        description="what a record is. text: the text of `text_field`; chat: a conversation, the "
        "list of messages in `text_field` (messages, unless another is named), of which the "
        "assistant's are learned",
    )
    text_field: str = Field(
        "text",
        min_length=1,
        description="field of the text, or of messages; as of the next three, its name or a dotted "
        "path",
    )
    id_field: str | None = Field(
        None, min_length=1, description="field of the record's own id, unique in the source"
    )
    lang_field: str = Field("lang", min_length=1, description="field of the language")
    license_field: str = Field("license", min_length=1, description="field of the licence")
    columns: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE] | None = Field(
        None,
        min_length=1,
        description="fields of a record that are read, the others are left out; of Parquet only "
        "these columns are read. null: all",
    )
    separator: Annotated[str | None, AfterValidator(usable_separator)] = Field(
        None,
        description="character between the fields of CSV and TSV files; null: a comma, and a tab",
    )
    quoting: Literal["standard", "none"] = Field(
        "standard",
        description="quotes in CSV and TSV files. standard: a field in double quotes may hold "
        "separators and line ends (RFC 4180); none: quotes are characters as others",
    )
    column_names: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE] | None = Field(
        None,
        min_length=1,
        description="names of the columns of CSV and TSV files without a header, whose first row "
        "is a record; null: the first row has the names",
    )
    zstd_window_log: int = Field(
        ZSTD_WINDOW_LOG,
        ge=ZSTD_WINDOW_LOG,
        le=31,
        description="largest window of zst files, as in `zstd --long=31`; each file that is being "
        "read may take 2 to the power of it in memory: raise it for files that you trust",
    )
    html: Literal["keep", "text", "page"] = Field(
        "keep",
        description="HTML in the field of the text (not of WARC, whose pages are text already). "
        "text: tags and scripts are removed and entities decoded; page: the main text of a whole "
        "page is taken, as of WARC; a text without a tag or entity stays",
    )
    notebook_outputs: int = Field(
        0,
        ge=0,
        description="characters of each text output of a Jupyter notebook that are kept; what is "
        "left out of outputs is counted",
    )
    quotes: Literal["fold", "keep"] = Field(
        "fold",
        description="quoted lines of mail, behind `>`. fold: they and the line that introduces "
        "them are left out, and counted in meta",
    )
    stream_field: str | None = Field(
        None,
        min_length=1,
        description="field of the entries of a Redis stream that holds the record as JSON. Without "
        "it, that is a single field `json` or `data`; else an entry's fields are the record",
    )
    field_filter: Annotated[dict[str, Allowed], FILTER] = Field(
        default_factory=dict,
        description="allowed values by dotted path; records with other values are left out",
    )
    language: Annotated[str | None, LANGUAGES] = Field(
        None,
        description="language of records that name none; or the languages of a mixed source, of "
        "which the detector finds each record's",
    )
    require_language: bool = Field(
        False,
        exclude=True,
        description="rejects texts that are surely in another language than `language`; false: "
        "they are tagged only",
    )
    domain: Domain = Field(
        "general", description="kind of text, which sets defaults of the filters"
    )
    license: str | None = Field(None, description="licence of records that name none")
    redistribute: bool | None = Field(
        None,
        exclude=True,
        description="whether `corpus push` may send texts of this source. null: if each document "
        "has a licence that is known to allow it; true: you have checked that you may",
    )
    text_documents: Literal["file", "blank_line"] = Field(
        "file",
        description="document in .txt files. file: the whole file; blank_line: lines up to a blank "
        "line",
    )
    max_text_bytes: int | None = Field(
        None, ge=1, description="size cap of the whole source, bytes of UTF-8 text"
    )
    max_documents: int | None = Field(
        None, ge=1, description="cap of the whole source, documents; reading stops there"
    )
    max_entries: int | None = Field(
        None,
        ge=1,
        exclude=True,
        description="entries that a run takes of a stream at most (Kafka: of a partition); the "
        "next run goes on behind them",
    )
    max_bad_share: float | None = Field(
        None,
        ge=0,
        le=1,
        exclude=True,
        description="share of the records that may be in quarantine; above it the source fails in "
        "`raw`, and later stages keep its last good state. Also that of the conversations that a "
        "chat template may refuse in `tokenized` (null: 0.05)",
    )
    max_shrink: float | None = Field(
        0.3,
        ge=0,
        le=1,
        exclude=True,
        description="share of the documents of the last good state that may be missing from "
        "today's input, and 20 of them always; beyond it the source fails and keeps that state, "
        "until `corpus build --accept-shrink` takes the new one. null: any share. Even then no "
        "source becomes empty by itself",
    )
    allow_no_files: bool = Field(
        False, description="accepts that no file matches `where`, or that a stream is empty"
    )
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

    @model_validator(mode="before")
    @classmethod
    def name_messages(cls, given: Any) -> Any:
        """Name the field of messages in a source of conversations that names none."""
        if isinstance(given, dict) and given.get("kind") == "chat":
            return {"text_field": "messages"} | given
        return given

    @model_validator(mode="after")
    def check_kind(self) -> Self:
        """Refuse conversations in formats that have none, and HTML in them."""
        if self.kind == "chat" and self.format in WITHOUT_MESSAGES:
            raise ValueError(
                f"kind: chat reads records with a list of messages, which {self.format} has not. "
                "Write JSON lines or Parquet, or leave `kind` out"
            )
        if self.kind == "chat" and self.html != "keep":
            raise ValueError("`html` is for `kind: text`. Leave it out, or convert the files")
        return self

    @model_validator(mode="after")
    def check_tables(self) -> Self:
        """Refuse keys of CSV files in a source of another format, and names without the text."""
        is_plain = self.separator is None and self.quoting == "standard" and not self.column_names
        if not is_plain and self.format not in ("auto", "csv", "tsv", "zip"):
            raise ValueError(
                f"separator, quoting, column_names: they are of CSV and TSV files, and the format "
                f"is {self.format}. Remove them, or correct `format`"
            )
        names = self.column_names or (self.text_field,)
        if {self.text_field, self.text_field.partition(".")[0]}.isdisjoint(names):
            raise ValueError(
                f"column_names: {self.text_field!r} of text_field is missing. Name the column of "
                "the text so, or correct `text_field`"
            )
        return self

    @model_validator(mode="after")
    def check_stream_keys(self) -> Self:
        """Refuse keys that only streams use."""
        unused = [key for key in STREAM_KEYS if getattr(self, key) is not None]
        if unused and not self.is_stream:
            raise ValueError(f"{', '.join(unused)}: `where` names no stream. Remove the key")
        return self

    @model_validator(mode="after")
    def check_columns(self) -> Self:
        """Refuse `columns` without a field that another key names."""
        named = {"text_field": self.text_field, "id_field": self.id_field}
        named |= {f"field_filter {path}": path for path in self.field_filter}
        columns = self.columns or tuple(filter(None, named.values()))
        for key, path in named.items():
            if path and path not in columns and path.partition(".")[0] not in columns:
                raise ValueError(f"columns: {path!r} of {key} is missing. Add it")
        return self

    @property
    def read_columns(self) -> tuple[str, ...] | None:
        """Return the fields to read, those that hold what a dotted path names with them."""
        if self.columns is None:
            return None
        holders = [column.partition(".")[0] for column in self.columns]
        return tuple(dict.fromkeys((*self.columns, *holders)))

    @property
    def is_stream(self) -> bool:
        """Return whether the source is made of streams."""
        return any(place.kind in STREAMS for place in self.where)

    @property
    def declared_language(self) -> str | None:
        """Return the language of records that name none."""
        return None if self.language and "," in self.language else self.language
