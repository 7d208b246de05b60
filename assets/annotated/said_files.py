"""What annotators of kind file and ask say: the files of their answers, and answers by document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assets.annotated.annotated_records import ANNOTATORS, ANSWERS, ASKED
from assets.annotated.asked_files import asked_name, questions_of
from assets.deduped.document_files import KeptDocuments, read_kept, read_kept_ids
from assets.deduped.minhash.meta_fields import column_of, field_values
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.settings.annotations import AskAnnotator, FileAnnotator, Teacher
from resources.settings.conditions import schema_of
from resources.settings.pipeline import Settings
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, StageRecords, required_file
from resources.store.store import Store, StoreError
from resources.tasks import GLOBAL

Said = list[tuple[PublishedFile, str]]  # files, and the sha256 of each
Made = Mapping[str, Manifest[Any, Any]]  # by stage


def reading_of(settings: Settings) -> dict[str, Any]:
    """Return the settings that answers depend on, by annotator."""
    return {each.name: each.reading() for each in settings.file_annotators}


def newest_answers(corpus: Corpus) -> dict[str, Manifest[Any, Any]]:
    """Return the answers that annotators have, by stage.

    Raises StoreError if they were made under another config.
    """
    configs = ((ANNOTATORS, reading_of(corpus.settings)), (ASKED, questions_of(corpus)))
    return {stage.name: newest_under(corpus, stage, config) for stage, config in configs if config}


def newest_under(
    corpus: Corpus, stage: StageRecords[Any, Any], config: Mapping[str, Any]
) -> Manifest[Any, Any]:
    """Return the newest state of a stage; StoreError if it was made under another config."""
    manifest = corpus.store.newest(stage, GLOBAL)
    check_made_under(manifest, config=config, section="annotations")
    return manifest


def files_of(
    store: Store, manifest: Manifest[Any, Any], parts: Iterable[PartRecord], kind: str
) -> Said:
    """Return the files of a kind of some parts, and their digests."""
    records = [required_file(manifest, part, kind) for part in parts]
    return [(store.file_of(manifest, record), record.sha256) for record in records]


def answers_of(store: Store, annotator: Teacher, made: Made, source: str) -> Callable[[str], Said]:
    """Return a function that gives the files of an annotator's answers for a deduped part."""
    if isinstance(annotator, FileAnnotator):
        manifest = made[ANNOTATORS.name]
        own = (part for part in manifest.parts if part.stats.numbers.annotator == annotator.name)
        files = files_of(store, manifest, own, ANSWERS)
        return lambda _: files
    asked = made[ASKED.name]
    named = {part.name: part for part in asked.parts}

    def answers_about(deduped: str) -> Said:
        if part := named.get(asked_name(annotator.name, source, deduped)):
            return files_of(store, asked, [part], ANSWERS)
        raise StoreError(
            f"asked[{GLOBAL}] has no answers of the annotator {annotator.name!r} about part "
            f"{deduped} of the source {source!r}. Materialize asked first."
        )

    return answers_about


def join_answers(
    documents: KeptDocuments, annotator: Teacher, answers: Sequence[PublishedFile]
) -> tuple[pl.DataFrame, int]:
    """Return doc_id and what the answers say of each document, and how many they know."""
    columns = list(annotator.columns)
    if isinstance(annotator, AskAnnotator):
        [asked] = answers
        found = pl.read_parquet(asked.checked(), columns=["doc_id", *columns])
        ids = read_kept_ids(documents).to_frame()
        table = ids.join(found, on="doc_id", how="left", maintain_order="left")
        return table, int(table[columns[0]].count())
    by = annotator.by
    table = read_kept(documents, [*{"doc_id": 0, column_of(by): 0}])
    keyed = table.select("doc_id", key=field_values(table, by))
    found = answers_to(keyed["key"], annotator, answers)
    joined = keyed.join(found, on="key", how="left", maintain_order="left")
    return joined.drop("key", "is_known"), int(joined["is_known"].count())


def answers_to(
    keys: pl.Series, annotator: FileAnnotator, answers: Sequence[PublishedFile]
) -> pl.DataFrame:
    """Return the answers to some keys, each once: that of the first file which has it.

    Columns: key, those of the annotator, and is_known, true.
    """
    schema = {"key": pl.String(), **schema_of(annotator.columns)}
    is_asked = pl.col("key").is_in(keys.drop_nulls().unique().implode())
    tables = (pl.scan_parquet(file.checked()).filter(is_asked) for file in answers)
    found = pl.concat([pl.DataFrame(schema=schema), *(table.collect() for table in tables)])
    unique = found.unique("key", keep="first", maintain_order=True)
    return unique.with_columns(is_known=pl.lit(True))
