"""`corpus init`: write a commented pipeline.yaml for files of the user's own.

Kind, text field, id field and language of each source are proposed from its first records, which
are read as a build would read them. All proposals are written to the file, for the user to change.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import pyarrow as pa
import yaml
from cyclopts import Parameter

from assets.filtered.language.detect_language import detect_language
from assets.raw.chat_records import chat_text
from assets.raw.places.find_inputs import is_utf8
from assets.raw.readers.decompress import BrokenStream
from assets.raw.readers.formats import ENDINGS, foreign_endings, format_of, read_records
from assets.raw.readers.html_fields import plain_text
from assets.raw.readers.input_file import BEGINNING, InputFile
from assets.raw.readers.input_record import InputRecord, checked_size, encode_error, look_up
from assets.raw.readers.next_steps import next_step
from assets.raw.readers.read_tables import SEPARATORS
from assets.text.chat_messages import ChatError
from corpus_loader.places.url_secrets import shown
from pipeline_defs.commands.build.config import SCHEMA, schema_text
from pipeline_defs.commands.build.layouts import (
    AS_ASSUMED,
    MIN_SHARE,
    Fields,
    TableLayout,
    UnclearLayout,
    chat_field_of,
    html_of,
    share_with,
    table_columns,
    table_layout,
    text_field_of,
)
from pipeline_defs.commands.build.own_files import (
    STORE_NAME,
    Place,
    Project,
    places_of,
    project_of,
)
from pipeline_defs.commands.terminal import ONE_LINE, say
from resources.dagster_home import FOLDER, INSTANCE_FILE, PROJECT, SHIPPED
from resources.errors import UsageError
from resources.settings.filtering.filter_steps import LanguageConfig
from resources.settings.sources import Domain, SourceConfig
from resources.settings.tokenizer import CHATML_TOKENS, END_OF_DOCUMENT

CONFIG_NAME, WORKSPACE, SAMPLE = "pipeline.yaml", "workspace.yaml", "sample_data"
EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA}\n"
NUM_FILES, NUM_RECORDS = 3, 200  # that a build can read: looked at, of each source
MOST_FILES, MOST_RECORDS = 20, 2000  # tried for these
MOST_FAULTS = 3  # files
MOST_LANGUAGES = 3
ID_FIELDS = ("id", "_id", "uuid", "guid", "doc_id", "document_id", "identifier")
INNER_FIELDS = {"lang_field": "in_language.identifier", "license_field": "license.0.identifier"}
MESSAGES = "messages"  # text field of conversations, unless another is named
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
HTML_REMARKS = {
    "text": "HTML, of which the text is kept",
    "page": "pages in HTML, of which the main text is kept",
}
WITHOUT_FIELDS = {"txt", "warc", "xml", "subtitles", "ipynb"}
GITIGNORE = f"/{STORE_NAME}/\n/.dagster/*\n!/.dagster/dagster.yaml\n"
HEAD = """\
# The corpus in one file. `corpus config` lists every key; unknown ones are refused.
store: corpus_store                 # everything that is built is written to this folder

sources:
"""
TAIL = """
filters:
  presets: [balanced]               # limits by language and domain: `corpus rules presets`
  pii: {{}}                           # e-mail addresses, keys, ... become <EMAIL>, <KEY>, ...

tokenizer:
  vocab_size: 16000                 # trained on a sample of all sources; or path: tokenizer.json
  pattern: gpt4o                    # what is a word: `corpus tokenizer compare` shows others
{special_tokens}
buckets:
  mode: pack                        # whole documents side by side; or concat, decompose, buckets
  sequence_length: 2048

shards:
  formats: [parquet, megatron]      # megatron: what corpus_loader reads

phases:
  - name: general
    weighting: natural              # each source by its size; or weights: {{SOURCE: SHARE, ...}}
"""
CHAT_TOKENS = f"  special_tokens: {json.dumps([END_OF_DOCUMENT, *CHATML_TOKENS])}\n"


@dataclass(frozen=True)
class Proposal:
    """Source as it will be written to pipeline.yaml, from a look at its files.

    faults      why records cannot be read, by file: a build puts them into quarantine
    languages   of the texts that were looked at, the most frequent first, with their shares
    """

    place: Place
    formats: tuple[str, ...]
    faults: Mapping[str, str]
    domain: Domain = "general"
    table: TableLayout = AS_ASSUMED
    is_chat: bool = False
    text_field: str | None = None  # None: the format has no fields
    id_field: str | None = None
    inner_fields: Mapping[str, str] = field(default_factory=dict)  # as of Wikimedia Enterprise
    has_url: bool = False
    html: Literal["keep", "text", "page"] = "keep"
    languages: Mapping[str, float] = field(default_factory=dict)

    @property
    def language(self) -> str | None:
        """The language of most texts, if one has MIN_SHARE of them."""
        return next((name for name, share in self.languages.items() if share >= MIN_SHARE), None)


OfDomain = Annotated[
    Domain, Parameter(help="Kind of text of all these places, which sets the limits of rules.")
]


def init(
    *where: Annotated[
        str, Parameter(help="Files, folders, globs or URLs; a source each. Of a folder, its own.")
    ],
    into: Annotated[
        Path | None,
        Parameter(help="Folder of pipeline.yaml (default: the first place, if it is a folder)."),
    ] = None,
    domain: OfDomain = "general",
    sample: Annotated[
        bool, Parameter(help="Write the sample corpus, 2 MB, and its pipeline.yaml instead.")
    ] = False,
) -> int:
    """Look at the files and write pipeline.yaml, with what else a project needs."""
    if sample:
        return write_sample(where, into or Path())
    check_utf8(*where, str(into or ""))
    project = project_of(where, into)
    target = new_config(project.folder)
    places = places_of(project)
    check_found(project, places)
    proposals, unclear = proposals_of(places, domain)
    write_project(target, config_text(proposals))
    say(
        f"Wrote {target}:",
        *(f"  {each.place.name}: {', '.join(remarks(each))}" for each in proposals),
    )
    unread = (place for place in places if not place.files)
    notes = (f"{shown(each.where[0])}: {'; '.join(each.left_out) or 'no files'}" for each in unread)
    say(*(f"  left out: {each}" for each in [*unclear, *notes]), *project.notes)
    if any(place.left_out for place in places):
        say("To train on what is left out, convert it, or name its files in `where`.")
    say(f"Look it over, then run: corpus build --config {target}")
    return 0


def write_sample(where: Sequence[str], folder: Path) -> int:
    """Write the sample corpus and its pipeline.yaml."""
    if where:
        raise UsageError("--sample brings its own files. Leave out the others, or --sample.")
    target = new_config(folder)
    shutil.copytree(PROJECT / SAMPLE, folder / SAMPLE, dirs_exist_ok=True)
    write_project(target, (PROJECT / CONFIG_NAME).read_text("utf-8"))
    say(f"Wrote {target} and {folder / SAMPLE}. Run: corpus build --config {target}")
    return 0


def new_config(folder: Path) -> Path:
    """Return the place of a pipeline.yaml to write; UsageError if there is one."""
    target = folder / CONFIG_NAME
    if target.exists():
        raise UsageError(f"{target} is there already. Remove it, or edit it by hand.")
    return target


def write_project(config: Path, content: str) -> None:
    """Write pipeline.yaml, and before it what else a project needs and lacks."""
    (config.parent / FOLDER).mkdir(parents=True, exist_ok=True)
    shipped = {f"{FOLDER}/{INSTANCE_FILE}": SHIPPED, WORKSPACE: PROJECT / WORKSPACE}
    files = {name: path.read_text("utf-8") for name, path in shipped.items()}
    files |= {".gitignore": GITIGNORE, SCHEMA: schema_text(), config.name: EDITOR_LINE + content}
    for name, text in files.items():
        if name == SCHEMA or not (config.parent / name).exists():
            (config.parent / name).write_text(text, encoding="utf-8")


def check_utf8(*names: str) -> None:
    """Raise UsageError for a name of the command line in other bytes."""
    for name in names:
        if not is_utf8(name):
            raise UsageError(f"{name!a}: the name is not UTF-8. Rename it.")


def check_found(project: Project, places: Sequence[Place]) -> None:
    """Raise UsageError if nothing is to be read, or nothing of a place that the user named."""
    missing = [place for place in places if not place.files]
    wanted = [place for place in missing if not {*place.where} <= project.optional]
    if wanted or len(missing) == len(places):
        patterns = ", ".join(shown(place.where[0]) for place in wanted) or "*"
        reasons = "; ".join(each for place in wanted or missing for each in place.left_out)
        endings = ", ".join(dict.fromkeys([*ENDINGS, *foreign_endings()]))
        raise UsageError(
            f"{project.folder}: no file to read matches {patterns}. "
            f"{f'Left out: {reasons}. ' if reasons else ''}Formats: {endings}."
        )


def proposals_of(places: Iterable[Place], domain: Domain) -> tuple[list[Proposal], list[str]]:
    """Return proposals for places with files, and why there is none for others.

    UsageError if there is none at all.
    """
    found, unclear = list[Proposal](), list[str]()
    for place in places:
        try:
            found += [replace(propose(place), domain=domain)] if place.files else []
        except UsageError as error:
            unclear.append(str(error))
    if not found:
        raise UsageError("\n".join(unclear))
    return found, unclear


def propose(place: Place) -> Proposal:
    """Propose the keys of a source from its first files; UsageError if that cannot be done."""
    formats = tuple(sorted({file.format for file in place.files}))
    table = table_layout(place.files[0])
    keys = {"name": place.name, "where": place.where, "separator": table.separator}
    source = SourceConfig.model_validate(keys)
    source = source.model_copy(update={"column_names": table.column_names})
    records, faults = read_sample(place.files, source)
    if not records:
        is_empty = not any(file.bytes for file in place.files)
        which = f": {faults_text(faults)}" if faults else ": all are empty" if is_empty else ""
        steps = [*dict.fromkeys(map(next_step, faults.values()))]
        steps += [f"Left out: {'; '.join(place.left_out)}."] if place.left_out else []
        raise UsageError(
            f"{shown(place.where[0])}: {files_text(place, formats)} without one record{which}."
            f"{''.join(f' {step}' for step in steps if step[1:-1] not in which)}"
        )
    return described(Proposal(place, formats, faults, table=table), records)


def read_sample(
    files: Iterable[InputFile], source: SourceConfig
) -> tuple[list[Fields], dict[str, str]]:
    """Return the fields of the first records, and why some cannot be read, by file."""
    found: list[Fields] = []
    faults: dict[str, str] = {}
    num_read = 0
    for file in islice(files, MOST_FILES):
        before = len(found)
        try:
            found += islice(usable_fields(file, source, faults), NUM_RECORDS)
        except OSError as error:
            faults[file.name] = error.strerror or str(error)
        num_read += len(found) > before
        if num_read == NUM_FILES:
            break
    return found, faults


def usable_fields(
    file: InputFile, source: SourceConfig, faults: dict[str, str]
) -> Iterator[Fields]:
    """Yield the fields of records that a build reads; add the first fault of the others."""
    for record in islice(all_records(file, source), MOST_RECORDS):
        fault = fault_of(record, source)
        if fault:
            faults.setdefault(file.name, fault)
        elif record.fields is not None:
            yield record.fields


def fault_of(record: InputRecord, source: SourceConfig) -> str:
    """Return why a record cannot be read; "" if it can, or is to be left out."""
    if record.fields is None:
        return record.error
    try:
        checked_size(record, source.max_record_bytes)
    except UnicodeEncodeError as error:
        return encode_error(error)
    except ValueError as error:
        return str(error)
    return ""


def all_records(file: InputFile, source: SourceConfig) -> Iterator[InputRecord]:
    """Yield a file's records, whatever the name of its text field."""
    columns = format_of(file).columns
    if columns is None and file.format not in SEPARATORS:
        return read_records(file, source, BEGINNING)
    try:
        names = columns(file) if columns else table_columns(file, source)
    except (OSError, pa.ArrowException, BrokenStream):
        names = []
    # A reader of tables requires the name of a text column: any column will do.
    named = source.model_copy(update={"text_field": (names or ["text"])[0]})
    return read_records(file, named)


def described(proposal: Proposal, records: Sequence[Fields]) -> Proposal:
    """Add the fields and the languages of most records; UsageError if no field is the text."""
    try:
        chat_field = chat_field_of(records)
        text_field = chat_field or text_field_of(records)
    except UnclearLayout as error:
        raise UsageError(f"{shown(proposal.place.where[0])}: {error}.") from None
    texts = [*texts_of(records, text_field, is_chat=bool(chat_field))]
    has_fields = not set(proposal.formats) <= WITHOUT_FIELDS
    html = html_of(texts) if has_fields and not chat_field else "keep"
    return replace(
        proposal,
        is_chat=bool(chat_field),
        text_field=text_field if has_fields else None,
        id_field=id_field_of(records),
        inner_fields={
            key: path
            for key, path in INNER_FIELDS.items()
            if share_with(records, path) >= MIN_SHARE
        },
        has_url=share_with(records, "url") >= MIN_SHARE,
        html=html,
        languages=languages_of(texts if html == "keep" else [*map(plain_text, texts)]),
    )


def texts_of(records: Iterable[Fields], field: str, *, is_chat: bool) -> Iterator[str]:
    """Yield the texts of a field, or of its conversations; without those that have none."""
    for fields in records:
        try:
            text = chat_text(fields, field)[0] if is_chat else look_up(fields, field)
        except ChatError:
            continue
        if isinstance(text, str):
            yield text


def id_field_of(records: Sequence[Fields]) -> str | None:
    """Return the first usual name whose values identify every record; None if no name does."""
    for name in ID_FIELDS:
        values = [fields.get(name) for fields in records]
        known = {value for value in values if isinstance(value, str | int) and value != ""}
        if len(known) == len(records):
            return name
    return None


def languages_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the languages of texts, the most frequent first, with their shares."""
    answers = detect_language(pl.Series(texts, dtype=pl.String), LanguageConfig())["lang"]
    known = Counter(answers.drop_nulls().to_list()).most_common()
    return {name: count / len(texts) for name, count in known}


def remarks(proposal: Proposal) -> Iterator[str]:
    """Yield remarks on a source: its files, fields and language, and what is not read."""
    place = proposal.place
    yield files_text(place, proposal.formats)
    if proposal.text_field is not None:
        what = "conversations" if proposal.is_chat else "text"
        yield f"{what} in `{proposal.text_field}`"
    if proposal.html != "keep":
        yield HTML_REMARKS[proposal.html]
    if proposal.table.separator is not None:
        yield f"fields between {proposal.table.separator!r}"
    if proposal.table.column_names is not None:
        yield "no header: the first row is a record"
    if proposal.id_field is not None:
        yield f"ids in `{proposal.id_field}`"
    if [*map(shown, place.where)] != [*place.where]:
        yield "its URL has a user, password or query: keep secrets in netrc or a variable, ${NAME}"
    if proposal.has_url:
        yield "URLs in `url`"
    yield language_remark(proposal)
    if proposal.faults:
        yield f"cannot be read: {faults_text(proposal.faults)}"
    if place.left_out:
        yield f"left out: {'; '.join(place.left_out)}"


def language_remark(proposal: Proposal) -> str:
    """Return what is known of the languages of a source."""
    found = ", ".join(
        f"{name} {share:.0%}" for name, share in islice(proposal.languages.items(), MOST_LANGUAGES)
    )
    if proposal.language:
        is_all = proposal.languages[proposal.language] == 1
        return f"language {proposal.language}{'' if is_all else f' ({found} of the texts)'}"
    return f"several languages ({found}), none is declared" if found else "language unknown"


def files_text(place: Place, formats: Sequence[str]) -> str:
    """Return the number of files and their formats as text."""
    count = len(place.files)
    return f"{count:,} {'file' if count == 1 else 'files'} ({', '.join(formats)})"


def faults_text(faults: Mapping[str, str]) -> str:
    """Return the first of the files with records that cannot be read, and why, as text."""
    first = (f"{name} ({fault})" for name, fault in islice(faults.items(), MOST_FAULTS))
    more = ["..."] if len(faults) > MOST_FAULTS else []
    return "; ".join([*first, *more]).translate(ONE_LINE)


def config_text(proposals: Sequence[Proposal]) -> str:
    """Return the text of pipeline.yaml: the sources, then the keys that are changed most often."""
    sources = "".join(source_text(proposal) for proposal in proposals)
    has_chats = any(proposal.is_chat for proposal in proposals)
    return HEAD + sources + TAIL.format(special_tokens=CHAT_TOKENS if has_chats else "")


def source_text(proposal: Proposal) -> str:
    """Return one source as YAML, with comments."""
    place = proposal.place
    comment = ", ".join(remarks(proposal)).translate(ONE_LINE)
    lines = [f"  # {comment}", f"  - name: {scalar(place.name)}"]
    if len(place.where) == 1:
        lines.append(f"    where: {scalar(place.where[0])}")
    else:
        lines += ["    where:", *(f"      - {scalar(pattern)}" for pattern in place.where)]
    return "\n".join([*lines, *field_lines(proposal), *kind_lines(proposal)]) + "\n"


def field_lines(proposal: Proposal) -> Iterator[str]:
    """Yield the keys on the fields of records."""
    table = proposal.table
    if proposal.is_chat:
        yield "    kind: chat   # the assistant's messages are learned"
    if proposal.text_field not in (None, MESSAGES if proposal.is_chat else "text"):
        yield f"    text_field: {scalar(str(proposal.text_field))}"
    for key, path in proposal.inner_fields.items():
        yield f"    {key}: {path}"
    if proposal.html != "keep":
        yield f"    html: {proposal.html}   # page: main text; text: all, without tags; keep: as is"
    if table.separator is not None:
        yield f"    separator: {scalar(table.separator)}"
    if table.column_names is not None:
        yield f"    column_names: {json.dumps(table.column_names)}"
    if proposal.id_field is not None:
        yield f"    id_field: {scalar(proposal.id_field)}   # of records with one id, one stays"


def kind_lines(proposal: Proposal) -> Iterator[str]:
    """Yield the keys on the kind and the language of texts."""
    if proposal.domain != "general":
        yield f"    domain: {proposal.domain}   # sets the limits of rules"
    if proposal.language is None:
        return
    share = proposal.languages[proposal.language]
    yield (
        f"    language: {proposal.language}   # of {share:.0%} of the texts looked at; for records "
        "that name none"
    )
    if proposal.has_url or "warc" in proposal.formats:
        yield "    require_language: true   # false: other languages are only tagged"
    else:
        yield "    # require_language: true   # rejects others, which are only tagged"


def scalar(text: str) -> str:
    """Return a text as YAML on one line, quoted if needed: names of fields are untrusted."""
    if PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).strip()
