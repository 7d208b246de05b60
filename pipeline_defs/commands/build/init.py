"""`corpus init`: write a commented pipeline.yaml for files of the user's own.

Text field, id field and language of each source are proposed from its first records, which are read
as a build would read them. All proposals are written to the file, for the user to change.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import polars as pl
import pyarrow as pa
import yaml
from cyclopts import Parameter

from assets.filtered.language.detect_language import detect_language
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.decompress import BrokenStream
from assets.raw.readers.formats import FORMATS, format_of, read_records
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.input_record import InputRecord
from corpus_loader.places.url_secrets import shown
from pipeline_defs.commands.terminal import ONE_LINE, say
from resources.errors import UsageError
from resources.settings.filtering.filter_steps import LanguageConfig
from resources.settings.sources import SourceConfig

CONFIG_NAME = "pipeline.yaml"
STORE_NAME = "corpus_store"
NUM_FILES, NUM_RECORDS = 3, 200  # looked at, of each source
MOST_SHOWN = 20  # names of fields
MIN_SHARE = 0.8  # of the records, for a proposal
TEXT_FIELDS = ("text", "content", "body", "raw_content", "article", "document", "markdown")
ID_FIELDS = ("id", "_id", "uuid", "guid", "doc_id", "document_id")
FORMAT_LIST = ", ".join(ending for each in FORMATS.values() for ending in each.endings)
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
WITHOUT_FIELDS = {"txt", "warc"}
Fields = Mapping[str, object]
HEAD = """\
# The corpus in one file. `corpus config` lists every key; unknown ones are refused.
store: corpus_store                 # everything that is built is written to this folder

sources:
"""
TAIL = """
filters:
  presets: [balanced]               # limits by language and domain: `corpus rules presets`
  pii: {}                           # e-mail addresses, keys, ... become <EMAIL>, <KEY>, ...

tokenizer:
  vocab_size: 16000                 # trained on a sample of all sources; or path: tokenizer.json

buckets:
  mode: pack                        # whole documents side by side; or concat, decompose, buckets
  sequence_length: 2048

shards:
  formats: [parquet, megatron]      # megatron: what corpus_loader reads

phases:
  - name: general
    weighting: natural              # each source by its size; or weights: {SOURCE: SHARE, ...}
"""


@dataclass(frozen=True)
class Proposal:
    """Source as it will be written to pipeline.yaml, from a look at its files."""

    name: str
    where: str
    num_files: int
    formats: tuple[str, ...]
    text_field: str | None = None  # None: the format has no fields
    id_field: str | None = None
    has_url: bool = False
    language: str | None = None
    language_share: float = 0.0


def init(
    folder: Annotated[Path, Parameter(help="Folder in which to write pipeline.yaml.")],
    where: Annotated[
        tuple[str, ...],
        Parameter(help="Files, folders, globs or URLs, relative to the folder (default: all)."),
    ] = (),
    /,
) -> int:
    """Look at the files and write pipeline.yaml."""
    target = folder / CONFIG_NAME
    if target.exists():
        raise UsageError(f"{target} is there already. Remove it, or edit it by hand.")
    if not where and not folder.is_dir():
        raise UsageError(f"{folder}: no such folder. Correct the name, or name files after it.")
    inputs = {pattern: inputs_of(folder, pattern) for pattern in where or patterns_in(folder)}
    missing = [pattern for pattern, files in inputs.items() if not files]
    if len(missing) == len(inputs) or (where and missing):
        wanted = ", ".join(map(shown, missing)) or "*"
        raise UsageError(f"{folder}: no file to read matches {wanted}. Formats: {FORMAT_LIST}.")
    matched = {pattern: files for pattern, files in inputs.items() if files}
    names = source_names(list(matched))
    proposals = [propose(*args) for args in zip(names, matched, matched.values(), strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(config_text(proposals), encoding="utf-8")
    say(f"Wrote {target}:", *(f"  {each.name}: {', '.join(remarks(each))}" for each in proposals))
    say(f"Look it over, then run: TOKENMILL_CONFIG={target} corpus build")
    return 0


def patterns_in(folder: Path) -> Iterator[str]:
    """Yield every visible folder, and a pattern for the files beside them."""
    visible = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if any(path.is_file() for path in visible):
        yield "*.*"
    for path in visible:
        if path.is_dir() and path.name != STORE_NAME:
            yield f"{path.name}/"


def source_names(patterns: Sequence[str]) -> list[str]:
    """Return a name for each pattern: its last word without a glob, made unique."""
    names: list[str] = []
    for pattern in patterns:
        path = urlsplit(pattern).path if "://" in pattern else pattern
        words = [word.partition(".")[0] for word in path.split("/") if not set(word) & set("*?[")]
        plain = [re.sub(r"[^A-Za-z0-9_-]+", "-", word).strip("-_") for word in words]
        name = next((word for word in reversed(plain) if word), "documents")
        taken = sum(re.sub(r"-\d+$", "", other) == name for other in names)
        names.append(f"{name}-{taken + 1}" if taken else name)
    return names


def inputs_of(folder: Path, where: str) -> list[InputFile]:
    """Return the files of a pattern; those of a URL are downloaded to the store, for the build."""
    keys = {"name": "source", "where": where, "allow_no_files": True}
    source = SourceConfig.model_validate(keys)
    return find_inputs(source, folder, folder / STORE_NAME / "_downloads").files


def propose(name: str, where: str, files: Sequence[InputFile]) -> Proposal:
    """Propose the keys of a source from its first files; UsageError if they have no record."""
    formats = tuple(sorted({file.format for file in files}))
    source = SourceConfig.model_validate({"name": name, "where": where})
    records = list(sample_records(files, source))
    if not records:
        raise UsageError(f"{shown(where)}: {files_text(len(files), formats)} without one record.")
    return described(Proposal(name, where, len(files), formats), records)


def sample_records(files: Iterable[InputFile], source: SourceConfig) -> Iterator[Fields]:
    """Yield the fields of the first records of the first files."""
    for file in islice(files, NUM_FILES):
        records = (entry.fields for entry in all_records(file, source))
        yield from islice((fields for fields in records if fields is not None), NUM_RECORDS)


def all_records(file: InputFile, source: SourceConfig) -> Iterator[InputRecord]:
    """Yield a file's records, whatever the name of its text field."""
    columns = format_of(file).columns
    if columns is None:
        return read_records(file, source)
    try:
        names = columns(file)
    except (OSError, pa.ArrowException, BrokenStream, pl.exceptions.PolarsError):
        names = []
    # A reader of tables requires the name of a text column: any column will do.
    named = source.model_copy(update={"text_field": (names or ["text"])[0]})
    return read_records(file, named)


def described(proposal: Proposal, records: Sequence[Fields]) -> Proposal:
    """Add the fields and the language of most records to a proposal; UsageError without a text."""
    text_field = text_field_of(records)
    if text_field is None:
        names = list(dict.fromkeys(name for fields in records for name in fields))
        some = ", ".join(names[:MOST_SHOWN]).translate(ONE_LINE)
        raise UsageError(
            f"{shown(proposal.where)}: no field holds text in most records (fields: {some}). "
            "Write pipeline.yaml by hand: `corpus config` lists its keys."
        )
    texts = [text for fields in records if isinstance(text := fields.get(text_field), str)]
    language, share = language_of(texts)
    return replace(
        proposal,
        text_field=None if set(proposal.formats) <= WITHOUT_FIELDS else text_field,
        id_field=id_field_of(records),
        has_url=share_with(records, "url") >= MIN_SHARE,
        language=language if share >= MIN_SHARE else None,
        language_share=share,
    )


def text_field_of(records: Sequence[Fields]) -> str | None:
    """Return the first usual name with text in most records, else the field with most text."""
    for name in TEXT_FIELDS:
        if share_with(records, name) >= MIN_SHARE:
            return name
    sizes: Counter[str] = Counter()
    for fields in records:
        sizes.update({name: len(value) for name, value in fields.items() if isinstance(value, str)})
    likely = (name for name, _ in sizes.most_common() if share_with(records, name) >= MIN_SHARE)
    return next(likely, None)


def share_with(records: Sequence[Fields], name: str) -> float:
    """Return the share of the records in which a field holds a text."""
    return sum(
        bool(isinstance(fields.get(name), str) and fields[name]) for fields in records
    ) / len(records)


def id_field_of(records: Sequence[Fields]) -> str | None:
    """Return the first usual name whose values identify every record; None if no name does."""
    for name in ID_FIELDS:
        values = [fields.get(name) for fields in records]
        known = {value for value in values if isinstance(value, str | int) and value != ""}
        if len(known) == len(records):
            return name
    return None


def language_of(texts: Sequence[str]) -> tuple[str | None, float]:
    """Return the most frequent language of the texts and its share of them."""
    answers = detect_language(pl.Series(texts, dtype=pl.String), LanguageConfig())["lang"]
    known = Counter(answers.drop_nulls().to_list()).most_common(1)
    return (known[0][0], known[0][1] / len(texts)) if known else (None, 0.0)


def remarks(proposal: Proposal) -> Iterator[str]:
    """Yield remarks on a source: its files, fields and language."""
    yield files_text(proposal.num_files, proposal.formats)
    if proposal.text_field is not None:
        yield f"text in `{proposal.text_field.translate(ONE_LINE)}`"
    if proposal.id_field is not None:
        yield f"ids in `{proposal.id_field}`"
    if shown(proposal.where) != proposal.where:
        yield "its URL has a user, password or query: keep secrets in netrc or a variable, ${NAME}"
    if proposal.has_url:
        yield "URLs in `url`"
    yield f"language {proposal.language}" if proposal.language else "several languages, or unknown"


def files_text(count: int, formats: Sequence[str]) -> str:
    """Return the number of files and their formats as text."""
    return f"{count:,} {'file' if count == 1 else 'files'} ({', '.join(formats)})"


def config_text(proposals: Sequence[Proposal]) -> str:
    """Return the text of pipeline.yaml: the sources, then the keys that are changed most often."""
    sources = "".join(source_text(proposal) for proposal in proposals)
    return HEAD + sources + TAIL


def source_text(proposal: Proposal) -> str:
    """Return one source as YAML, with comments."""
    lines = [f"  # {', '.join(remarks(proposal))}", f"  - name: {scalar(proposal.name)}"]
    lines.append(f"    where: {scalar(proposal.where)}")
    if proposal.text_field not in (None, "text"):
        lines.append(f"    text_field: {scalar(str(proposal.text_field))}")
    if proposal.id_field is not None:
        lines.append(
            f"    id_field: {scalar(proposal.id_field)}   # of records with one id, one stays"
        )
    if proposal.language is not None:
        lines.append(
            f"    language: {proposal.language}   # of {proposal.language_share:.0%} of the texts "
            "looked at; for records that name none"
        )
        if proposal.has_url or "warc" in proposal.formats:
            lines.append("    require_language: true   # false: other languages are only tagged")
    return "\n".join(lines) + "\n"


def scalar(text: str) -> str:
    """Return a text as YAML on one line, quoted if needed: names of fields are untrusted."""
    if PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).strip()
