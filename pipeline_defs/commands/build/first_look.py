"""What a build would fail for and its plan does not tell: first records, and files that keys name.

Records are read and judged as a build does, the first ones of a few files at equal distances.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from assets.filtered.asset import check_filter_data
from assets.filtered.filtered_records import FILTERED
from assets.mixed.mixed_records import MIXED
from assets.raw.places.downloads import (
    HEADERS,
    ascii_url,
    filled,
    hidden,
    variables_of,
    version_of_answer,
)
from assets.raw.places.find_inputs import find_inputs
from assets.raw.raw_records import RAW
from assets.raw.readers.documents import NO_QUARANTINE, Chunk, DocumentBuilder
from assets.raw.readers.formats import format_of, read_records
from assets.raw.readers.input_file import BEGINNING, InputFile
from assets.raw.readers.input_record import MISSING, InputRecord, look_up
from assets.tokenized.chat_template_files import find_template
from assets.tokenized.tokenized_records import TOKENIZED, TOKENIZER
from assets.tokenized.tokenizer import TokenizerError
from assets.tokenized.tokenizer_asset import load_tokenizer
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import PARTIAL, Answer, open_url
from corpus_loader.places.transports import Interrupted
from corpus_loader.places.urls import Url
from pipeline_defs.commands.build.checks import Check, Remark
from pipeline_defs.commands.build.own_files import without_digests
from pipeline_defs.forecast.forecast import Forecast
from resources.corpus import Corpus
from resources.errors import InputError
from resources.settings.full_source import Source
from resources.settings.phases import PhaseConfig
from resources.settings.pipeline import SettingsError
from resources.settings.sources import web_places
from resources.store.disk import TEMPORARY_PREFIX
from resources.tasks import GLOBAL

NUM_FILES, NUM_RECORDS = 5, 50  # of each
READ_SECONDS = 10.0
MOST_SHOWN = 20  # names of fields


def check_for(corpus: Corpus, each: Forecast) -> Check | None:
    """Return the check of a partition that would be computed, None if there is nothing to check."""
    if not each.computed or each.is_blocked:
        return None
    if each.stage == RAW.name:
        source = corpus.settings.source(each.partition)
        files = dict.fromkeys(file for part in each.computed.values() for file in part.files)
        is_planned = files or not web_places(source)
        first = partial(check_first_records, source, [*files])
        return first if is_planned else partial(check_source, corpus, source)
    if each.stage == FILTERED.name and not each.is_exact:
        return partial(check_filters, corpus, each.partition)
    if each.stage == TOKENIZER.name and corpus.settings.tokenizer.path is not None:
        return partial(check_tokenizer, corpus, corpus.settings.tokenizer.path)
    if each.stage == TOKENIZED.name and corpus.settings.is_chat(each.partition):
        return partial(check_template, corpus)
    if each.stage == MIXED.name and not each.is_exact:
        return partial(check_phase, corpus.settings.phase(each.partition))
    return None


def check_named_files(corpus: Corpus, stages: Collection[str]) -> None:
    """Raise SettingsError for a file that the config names and one of the stages would refuse."""
    for name in corpus.settings.source_names() if FILTERED.name in stages else ():
        check_filters(corpus, name)
    path = corpus.settings.tokenizer.path if TOKENIZER.name in stages else None
    if path is not None and corpus.store.newest_or_none(TOKENIZER, GLOBAL) is None:
        try:
            check_tokenizer(corpus, path)
        except TokenizerError as error:
            raise SettingsError(str(error)) from error


def check_filters(corpus: Corpus, source: str) -> str:
    """Read the files that the filters of a source name."""
    files = check_filter_data(corpus, source, corpus.settings.filters_for(source))
    return counted(len(files), "file")


def check_tokenizer(corpus: Corpus, path: str) -> str:
    """Load and try the tokenizer of the config."""
    load_tokenizer(corpus.config.parent / path, corpus.settings.tokenizer)
    return f"{path} loads"


def check_template(corpus: Corpus) -> str:
    """Render a conversation by the chat template."""
    find_template(corpus.settings.tokenizer, corpus.config.parent)
    return "the chat template renders"


def check_phase(phase: PhaseConfig) -> str:
    """Raise Remark if a phase asks for tokens, of which there may be too few."""
    if phase.tokens or phase.budgets or phase.one_epoch_of:
        raise Remark("not yet known: whether its sources will have the tokens that it asks for")
    return "takes what is there"


def check_source(corpus: Corpus, source: Source) -> str:
    """Find the files of a source, and look at its first records; of URLs those of the first."""
    urls = web_places(source)
    with TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
        if urls and not sends_ranges(urls[0]):
            return "URLs are not read: the server sends whole files only"
        downloads = Path(folder, "copies") if urls else corpus.downloads
        first = source.model_copy(update={"where": tuple(urls[:1]) or source.where})
        files = find_inputs(first, corpus.config.parent, downloads, without_digests).files
        return f"{counted(len(files), 'file')}, {check_first_records(source, files)}"


def sends_ranges(url: Url) -> bool:
    """Return whether a server sends a part of a file, with what identifies its version."""
    if url.kind != "web":
        return False
    with first_byte(url) as answer:
        return answer.status == PARTIAL and version_of_answer(answer) is not None


@contextmanager
def first_byte(url: str) -> Iterator[Answer]:
    """Ask for the first byte of a file; secrets are in no error."""
    secrets, headers = variables_of(url), {**HEADERS, "Range": "bytes=0-0"}
    try:
        with open_url(ascii_url(filled(url, secrets)), headers, READ_SECONDS) as answer:
            yield answer
    except (CorpusError, Interrupted) as error:
        raise CorpusError(hidden(str(error), secrets)) from None


def counted(number: int, noun: str) -> str:
    """Return a number of things as text."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def check_first_records(source: Source, files: Sequence[InputFile]) -> str:
    """Look at the first records; InputError if none is a document, or a key fits none of them.

    Remark if no record passes the filter: later ones may.
    """
    chunks: list[Chunk] = []
    records: list[InputRecord] = []
    for file in files[:: max(1, -(-len(files) // NUM_FILES))]:
        some = [*islice(read_records(file, source, BEGINNING), NUM_RECORDS)]
        records += some
        chunks.append(judged(source, file, some))
        documents = chunks[-1].documents
        if documents.height and not (source.id_field and documents["id"].is_null().all()):
            return "the first records are documents"
    num_read = sum(chunk.rows_in - chunk.left_out.total() for chunk in chunks)
    bad = pl.concat((chunk.quarantine for chunk in chunks) if chunks else [NO_QUARANTINE])
    skipped = sum(chunk.skipped_by_filter for chunk in chunks)
    fields = [record.fields for record in records if record.fields is not None]
    names = dict.fromkeys(str(name) for each in fields for name in each)
    known = f"(fields: {', '.join(islice(names, MOST_SHOWN))})"
    seen = f"none of {counted(num_read, 'record')} looked at"
    if num_read and bad.height == num_read and source.max_bad_share is None:
        first = bad.row(0, named=True)
        error = first["error"].removesuffix(".")
        step = first["next_step"] if first["next_step"][1:-1] not in error else ""
        place = f"{first['file']}, {first['position']}"
        raise InputError(f"{seen} is a document: {place}: {error}. {step}".rstrip())
    if skipped and skipped + bad.height == num_read and not source.allow_no_files:
        for path in source.field_filter:
            if all(look_up(each, path, MISSING) is MISSING for each in fields):
                raise InputError(f"{seen} has {path!r} of `field_filter` {known}. Correct it.")
        raise Remark(f"not yet known: {seen} passes `field_filter`; others may.")
    if source.id_field and skipped + bad.height < num_read:
        fact = f"{seen} has an id in `id_field: {source.id_field}` {known}"
        raise InputError(f"{fact}. Correct the name, or leave the key out.")
    return f"{counted(num_read, 'record')} looked at"


def judged(source: Source, file: InputFile, records: Sequence[InputRecord]) -> Chunk:
    """Sort records of a file as a build does."""
    builder = DocumentBuilder()
    builder.start_file(source, file.name, format_of(file).unit)
    for record in records:
        builder.add(record)
    return builder.take()
