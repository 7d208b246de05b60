"""A small corpus in which every stage has parts of every kind, built without Dagster."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from builders import open_corpus, sentence, write_corpus, write_jsonl

from assets.stages import STAGES
from resources.materialize.materialization import manifest_of
from resources.stage import Stage
from resources.store.records import Manifest
from resources.store.store import typed
from resources.tasks import GLOBAL, group_by_partition

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
    quiz: list[Any] = [{"question": sentence(3, 23), "n": 0}, "{"]
    write_jsonl(folder / "quiz/a.jsonl", quiz)
    return corpus


def names_of(corpus: Any, stage: Stage[Any, Any]) -> list[str]:
    """Return the names of a stage's partitions."""
    names = {"source": corpus.settings.source_names(), "phase": corpus.settings.phase_names()}
    return list(names.get(stage.partitions, [GLOBAL]))


def run_stage(corpus: Any, stage: Stage[Any, Any]) -> list[Manifest]:
    """Plan, compute and commit all partitions of a stage, as `materialization.py` does."""
    folders = {name: corpus.store.partition(stage.name, name) for name in names_of(corpus, stage)}
    with ExitStack() as writers:
        plans = {name: stage.plan(corpus, name) for name in folders}
        for folder in folders.values():
            writers.enter_context(folder.writing(corpus.settings.keep_manifests, stage.keep))
        tasks = [task for plan in plans.values() for task in plan.tasks]
        done = list(chain.from_iterable(stage.run(corpus, tasks, stage.work)))
        for error in (outcome.error for outcome in done if outcome.error is not None):
            raise error
        outcomes = group_by_partition(done)
        manifests = {
            name: manifest_of(stage, name, plan, outcomes.get(name, []))
            for name, plan in plans.items()
        }
        for name, manifest in manifests.items():
            if stage.before_commit:
                stage.before_commit(corpus, typed(manifest, stage), plans[name])
        return [folders[name].commit(manifest) for name, manifest in manifests.items()]


def build(corpus: Any, stages: Iterable[Stage[Any, Any]] = STAGES) -> None:
    """Build stages in order."""
    for stage in stages:
        run_stage(corpus, stage)
