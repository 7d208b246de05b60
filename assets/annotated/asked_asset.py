"""asked: what language models answer about documents, over a network.

A part for each annotator and deduped part. An answer about a text is kept: it is taken over from
any part of the last run with the same question, so that a night costs the texts that are new. What
a run may not ask any more, the next one asks. The stage waits for a server, and so runs in the
process of the run: at most `parallel` requests of an annotator are in flight.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import polars as pl

from assets.annotated.annotated_records import ANSWERS, ASKED, AskedNumbers
from assets.annotated.ask.asking import Asking
from assets.annotated.ask.endpoint import Budget, Endpoint
from assets.annotated.ask.journal_files import Answer, Journal
from assets.annotated.ask.question import Question
from assets.annotated.asked_files import (
    MOST_FAILED,
    asked_name,
    prompt_of,
    question_digest,
    questions_of,
    unanswered_lines,
)
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from assets.text.document_ids import is_sampled
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.errors import InputError
from resources.run_tasks import all_at_once, run_tasks
from resources.settings.annotations import AskAnnotator
from resources.settings.conditions import schema_of
from resources.source_states import usable_states
from resources.stage import Check, MainTable, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import JOURNALS, Empty, PartRecord, Stats, fingerprint_of
from resources.tasks import GLOBAL, Outcome, Plan, Task, Work, tasks_of

KEY_DIGITS = 32
ASKED_COLUMNS = {
    "doc_id": "the document",
    "key": "digest of its text",
    "model": "model that answered, as the server names it; null: not asked yet",
    "reason": "why there is no answer",
    "*": "a number or label of the annotator",
}


@dataclass(frozen=True)
class AskInputs:
    """An annotator and its prompt, the documents of a part, and where answers may be already."""

    annotator: AskAnnotator
    prompt: str
    numbers: AskedNumbers
    documents: KeptDocuments
    earlier: tuple[PublishedFile, ...]
    journal: Path


def plan_asked(corpus: Corpus, partition: str) -> Plan:
    """Plan a task for each annotator that asks, and each deduped part of its sources."""
    names = corpus.settings.source_names()
    states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
    before = corpus.store.newest_or_none(ASKED, GLOBAL)
    known = {part.name: part for part in before.parts} if before else {}
    maker, tasks = tasks_of(corpus, ASKED, partition), list[Task[AskInputs]]()
    for annotator in corpus.settings.asking:
        prompt = prompt_of(corpus, annotator)
        question = question_digest(annotator, prompt)
        answered = [part for part in known.values() if part.stats.numbers.question == question]
        files = tuple(corpus.store.part_file(before, part, ANSWERS) for part in answered if before)
        for source in filter(annotator.annotates, states):
            for part in states[source].parts:
                name = asked_name(annotator.name, source, part.name)
                base = fingerprint_of(question, annotator.share, part.fingerprint)
                last = known[name].stats.numbers if name in known else AskedNumbers()
                run = last.run + bool(last.left) if last.base == base else 0
                numbers = AskedNumbers(annotator.name, question, base, run)
                documents = kept_documents(corpus.store, states[source], part)
                journal = journals_of(corpus) / f"{name}-{question}.jsonl"
                inputs = AskInputs(annotator, prompt, numbers, documents, files, journal)
                tasks.append(maker.task(name, (base, run), inputs, work_bytes=documents.bytes))
    return Plan(tasks, questions_of(corpus), Empty(), left_out)


def run_asked(corpus: Corpus, tasks: list[Task[AskInputs]], _: Work) -> list[Outcome]:
    """Ask about one part after the other, in this process, within the budget of each annotator."""
    settings = corpus.settings
    budgets = {each.name: Budget(each.max_requests, each.max_tokens) for each in settings.asking}
    alone = settings.engine.model_copy(update={"kind": "in_process", "workers": 1})
    here = replace(corpus, settings=settings.model_copy(update={"engine": alone}))
    ended = run_tasks(
        here, tasks, lambda task: ask_part(task, budgets[task.payload.annotator.name])
    )
    if not any(outcome.error for outcome in ended):
        shutil.rmtree(journals_of(corpus), ignore_errors=True)  # of questions that were changed
    return ended


def journals_of(corpus: Corpus) -> Path:
    """Return the folder with answers that are not published yet."""
    return corpus.store.root / JOURNALS


def ask_part(task: Task[AskInputs], budget: Budget | None = None) -> list[PartRecord]:
    """Publish the answers about the documents of a part that the sample has."""
    inputs, annotator = task.payload, task.payload.annotator
    documents = read_kept(inputs.documents, ["doc_id", "text"])
    keyed = documents.with_columns(key=pl.Series(map(key_of, documents["text"]), dtype=pl.String))
    sample = keyed.filter(is_sampled(keyed["key"], annotator.share, "ask"))
    earlier = earlier_answers(inputs, sample["key"])
    new = sample.join(earlier, on="key", how="anti")
    asking = Asking(
        question=Question(
            annotator.model,
            inputs.prompt,
            annotator.columns,
            annotator.pattern,
            annotator.parameters,
            annotator.max_chars,
        ),
        endpoint=Endpoint(annotator.endpoint, os.environ.get(annotator.api_key)),
        parallel=annotator.parallel,
        budget=budget or Budget(annotator.max_requests, annotator.max_tokens),
    )
    journal = Journal(inputs.journal)
    try:
        answers = asking.ask_all(dict(new.select("key", "text").iter_rows()), journal)
    except InputError as error:
        raise InputError(f"annotations: annotator {annotator.name!r}: {error}") from None
    found = pl.concat([earlier, table_of(annotator, answers)])
    table = sample.drop("text").join(found, on="key", how="left", maintain_order="left")
    record = publish(task, table, answers)
    journal.path.unlink(missing_ok=True)
    return [record]


def publish(task: Task[AskInputs], table: pl.DataFrame, answers: dict[str, Answer]) -> PartRecord:
    """Publish answers by document, and count them."""
    writer, numbers = task.writer(), task.payload.numbers
    writer.write_parquet(ANSWERS, table)
    is_open = table["model"].is_null() & table["reason"].is_null()
    counted = AskedNumbers(
        annotator=numbers.annotator,
        question=numbers.question,
        base=numbers.base,
        run=numbers.run,
        left=int(is_open.sum()),
        requests={numbers.annotator: len(answers)},
        tokens={numbers.annotator: sum(answer.tokens for answer in answers.values())},
        answered=dict(table["model"].drop_nulls().value_counts().sort("model").iter_rows()),
        failed=dict(table["reason"].drop_nulls().value_counts().sort("reason").iter_rows()),
    )
    return writer.publish(Stats(table.height, table.height, numbers=counted))


def earlier_answers(inputs: AskInputs, keys: pl.Series) -> pl.DataFrame:
    """Return the answers that earlier parts have for some keys, each once."""
    known = known_answers(inputs.earlier) if inputs.earlier else table_of(inputs.annotator, {})
    return known.filter(pl.col("key").is_in(keys.unique().implode()))


@lru_cache(maxsize=4)  # of annotators: else every part would read the files of all
def known_answers(files: tuple[PublishedFile, ...]) -> pl.DataFrame:
    """Return all answers of some files, each text's once; about 100 bytes of memory an answer."""
    is_known = pl.col("model").is_not_null() | pl.col("reason").is_not_null()
    tables = [pl.read_parquet(file.checked()).filter(is_known).drop("doc_id") for file in files]
    return pl.concat(tables).unique("key", keep="first", maintain_order=True)


def table_of(annotator: AskAnnotator, answers: dict[str, Answer]) -> pl.DataFrame:
    """Return answers as a table: key, the annotator's columns, model and reason."""
    schema = {"key": pl.String(), **schema_of(annotator.columns)}
    rows = [
        {"key": key, **answer.values, "model": answer.model, "reason": answer.reason}
        for key, answer in answers.items()
    ]
    return pl.DataFrame(rows, {**schema, "model": pl.String(), "reason": pl.String()})


def key_of(text: str) -> str:
    """Return the digest of a text by which its answer is known."""
    return sha256(text.encode()).hexdigest()[:KEY_DIGITS]


STAGE = Stage(
    *ASKED.fields(),
    description="What language models answer about documents: each text is asked about once.",
    group="annotate",
    partitions="none",
    after=(stage_names.DEDUPED,),
    outlook=Outlook("new"),
    kinds=frozenset({"parquet"}),
    settings=lambda settings: [(each.saying(), each.share) for each in settings.asking],
    plan=plan_asked,
    work=ask_part,
    run=all_at_once(run_asked),
    is_used=lambda settings: bool(settings.asking),
    main_table=MainTable(ANSWERS, ASKED_COLUMNS),
    describe=lambda *_: dict.fromkeys(("annotator", "question", "base", "run")),
    checks=(
        Check(
            "texts_answered",
            f"every text of the share is asked about, and {1 - MOST_FAILED:.0%} have an answer",
            lambda _, manifest, __: "\n".join(unanswered_lines(manifest)),
        ),
    ),
)
