"""A small corpus in which every stage has parts of every kind, and builds without Dagster."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
from builders import open_corpus, sentence, write_corpus, write_jsonl

from assets.stages import STAGES
from resources.corpus import stops_on_error
from resources.materialize.materialization import (
    Committed,
    check_results,
    commit_rolled_back,
    conclude,
    publish_partitions,
    wrong_use_is_not_retried,
)
from resources.rolled_back_sources import rollback_of, with_rollbacks
from resources.source_faults import SourceFaults
from resources.stage import Stage, partition_names
from resources.store.records import Manifest

PASSAGE = " ".join(f"river{i} and bridge{i}" for i in range(30))
OWN = [" ".join(f"the {name}{i}" for i in range(100)) for name in ("valley", "meadow", "forest")]
QUIZ = {"name": "quiz", "where": "quiz/*.jsonl", "fields": ["question"], "id_field": "n"}
CONFIG: dict[str, Any] = {
    "filters": {
        "rules": {
            "length": {"min_chars": 20},
            "gopher_quality": {"min_words": 5, "min_stop_words": 1},
            "quality": {"min_score": 0.01, "min_percentile": 0},
        }
    },
    "classifier": {"good": ["prose"], "bad": ["notes"], "held_out": 0.3},
    "dedup": {
        "lines": {"min_count": 4},
        "paragraphs": {"min_count": 4},
        "substrings": {"min_words": 50},
        "decontamination": {"sets": [QUIZ]},
    },
    "annotations": [
        {
            **{"name": "liked", "where": "liked/*", "by": "meta.n", "drop": "likes < 1"},
            **{"columns": {"likes": "number"}, "sources": ["prose"], "min_matched": 0},
        },
        {"name": "about", "kind": "topics", "drop": "distance > 1.99"},
    ],
    "holdout": {"share": 0.2},
    "phases": [
        {"name": "main", "weights": {"prose": 0.75, "notes": 0.25}, "formats": ["parquet"]},
        {"name": "late", "budgets": {"prose": 500}, "seed": 7},
    ],
}


def write_inputs(folder: Path, **changes: Any) -> Any:
    """Write documents with a shared passage, shared lines, contaminated and broken records."""
    corpus = open_corpus(write_corpus(folder, **CONFIG | changes))
    page = "Home | News | About this site\n\n{}\n\nPrinted on the best paper\nfor its readers"
    pages: list[Any] = [{"text": page.format(sentence(200 + i))} for i in range(5)]
    write_jsonl(folder / "input/prose/c.jsonl", [*pages, {"text": f"{OWN[0]} {PASSAGE}."}, "{"])
    shared = [{"text": f"{own}: {PASSAGE.upper()}."} for own in OWN[1:]]
    write_jsonl(folder / "input/notes/m.jsonl", shared)
    likes = [{"n": str(n), "likes": n - 30} for n in range(30, 40)]
    write_jsonl(folder / "liked/a.jsonl", likes)
    quiz: list[Any] = [{"question": sentence(3, 23), "n": 0}, "{"]
    write_jsonl(folder / "quiz/a.jsonl", quiz)
    return corpus


def run_stage(corpus: Any, stage: Stage[Any, Any]) -> list[Manifest]:
    """Publish all partitions of a stage; raise the first error, and then publish none."""
    settings = corpus.settings.model_copy(update={"on_source_error": "stop"})
    done, faults = publish(replace(corpus, settings=settings), stage, {})
    for error in faults.failed.values():
        raise error
    return [each.manifest for each in done]


def build(corpus: Any, stages: Iterable[Stage[Any, Any]] = STAGES) -> None:
    """Publish stages in order, as a run without Dagster; raise dg.Failure as its last step does.

    A source that fails stays behind in the later stages, and the others go on.
    """
    earlier: dict[str, str] = {}
    for stage in stages:
        with wrong_use_is_not_retried():
            _, faults = publish(corpus, stage, earlier)
            num_partitions = len(partition_names(stage, corpus.settings))
            faults.raise_unless_survived(num_partitions, is_last_attempt=True)
        earlier |= {source: f"{stage.name}: {error}" for source, error in faults.failed.items()}
    if earlier:
        raise dg.Failure("\n".join(f"{source}: {why}" for source, why in earlier.items()))


def publish(
    corpus: Any, stage: Stage[Any, Any], earlier: Mapping[str, str]
) -> tuple[list[Committed], SourceFaults]:
    """Publish all partitions of a stage as its step does, and ask its blocking checks."""
    corpus = with_rollbacks(replace(corpus, behind=frozenset(earlier)))
    names = partition_names(stage, corpus.settings)
    holds = {source: str(hold) for source, hold in corpus.rollbacks.items()}
    faults = SourceFaults(stops_on_error(corpus), {**holds, **earlier})
    commit_rolled_back(corpus, stage, names, faults)
    planned = [name for name in names if rollback_of(corpus, stage, name) is None]
    done = publish_partitions(corpus, stage, planned, faults)
    assert [each for each in check_results(done) if not each.passed] == []
    context: Any = SimpleNamespace(log=logging.getLogger("tokenmill"))
    return conclude(context, stage, corpus, done), faults
