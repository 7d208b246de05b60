"""Phases that continue an older mixture of a corpus that has grown: by tag and by fingerprint."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from sharded_corpus import BUCKETS, corpus_with, remove_rows, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from assets.mixed.mixture_files import mixture_of
from corpus_loader import CorpusLoader
from corpus_loader.mixture import Mixture
from pipeline_defs.commands.main import main as run
from pipeline_defs.commands.train.plan import plan_corpus

MAIN = {"budgets": {"prose": 40, "notes": 8}, "batch_samples": 2}
LATE = {"budgets": {"prose": 40, "notes": 24}, "batch_samples": 2}


def mixture(corpus: Any, phase: str) -> Mixture:
    """Return the mixture that `mixed` would write for a phase."""
    [task] = plan_mixed(corpus, phase).tasks
    return mixture_of(task.root, task.payload)


def with_phases(corpus: Any, **phases: dict[str, Any]) -> Any:
    """The same shards under other phases."""
    named = [{"name": name} | config for name, config in phases.items()]
    return open_corpus(write_corpus(corpus.config.parent, buckets=BUCKETS, phases=named))


def drawn(found: Mixture) -> list[tuple[str, int, int]]:
    """(source, epoch, row) of all samples of a phase, in its order."""
    order = found.order(found.seed)
    samples = order.samples(np.arange(len(order)))
    names = [found.sources[number].name for number in samples.source]
    return list(zip(names, samples.epoch.tolist(), samples.row.tolist(), strict=True))


def rows_of(corpus: Any, phase: str, data: str | None = None) -> list[bytes]:
    """The rows that a loader reads in an epoch of a phase."""
    loader = CorpusLoader(corpus.store.root, phase, batch_size=1, data=data)
    return [row.tobytes() for batch in loader for row in batch.tokens]


def nights(folder: Path, build: Build, **late: Any) -> tuple[Any, Any]:
    """(corpus of a first night, tagged v1; the same after a second, with a phase `late`)."""
    config: dict[str, Any] = {
        "buckets": {"mode": "pack", "sequence_length": 16},
        "shards": {"formats": ["megatron"], "target_bytes": 1024},
    }
    main = {"name": "main", "budgets": {"prose": 200, "notes": 100}, "batch_samples": 4}
    corpus = open_corpus(write_corpus(folder, **config, phases=[main]))
    build(corpus)
    build(corpus, "mixed")
    assert run(["tag", "v1"]) == 0
    texts = [{"text": sentence(900 + number, 40)} for number in range(3)]
    write_jsonl(folder / "input/prose/new.jsonl", texts)
    phases = [main, {"name": "late", "batch_samples": 4} | late]
    grown = open_corpus(write_corpus(folder, **config, phases=phases))
    write_jsonl(folder / "input/prose/new.jsonl", texts)
    build(grown)
    return corpus, grown


def test_a_grown_corpus_goes_on_in_the_order_of_a_tag(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    late = {
        "budgets": {"prose": 300, "notes": 150},
        "continues": {"phase": "main", "at": 8, "data": "v1"},
    }
    corpus, grown = nights(tmp_path, build, **late)
    build(grown, "mixed")

    first = rows_of(corpus, "main", "v1")[:8]
    found = CorpusLoader(corpus.store.root, "late").mixture
    then = rows_of(grown, "late")
    prose = next(source for source in found.sources if source.name == "prose")
    now = grown.store.newest("sharded", "prose")
    shards = [part for part in now.parts if "-shard-" in part.name]
    assert 0 < len(prose.shards) < len(shards)
    newer = sum(part.stats.rows_kept for part in shards if part.name.startswith("g0002"))
    [warning] = [text for text in found.warnings if "is drawn as in" in text]
    assert warning.startswith(
        f"'prose' is drawn as in the mixture that is continued: without {newer} rows of newer shard"
    )
    for source in found.sources:
        assert source.start + source.samples <= source.rows
    assert sum(source.start for source in found.sources) == 8
    assert max(Counter(first + then).values()) == 1


def test_a_fingerprint_names_the_older_mixture(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    build(corpus, "mixed")
    before = mixture(corpus, "main")
    late = LATE | {"continues": {"phase": "main", "data": before.fingerprint}}
    changed = with_phases(corpus, main=MAIN | {"seed": 7, "budgets": {"prose": 80}}, late=late)
    plain = with_phases(corpus, main=MAIN, late=LATE | {"continues": "main"})

    expected = mixture(plain, "late")
    changed = with_phases(corpus, main=MAIN | {"seed": 7, "budgets": {"prose": 80}}, late=late)
    found = mixture(changed, "late")
    assert found == expected
    rows = drawn(before) + drawn(found)
    assert len(rows) == len(set(rows)) == 14
    [source] = [s for s in plan_corpus(changed, ["late"]).phases["late"].sources.items()][:1]
    assert source[1].drawn_before == 40


def test_a_third_phase_knows_what_the_older_mixture_drew(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    lengths = [3, 5, 1, 9, 4, 7]
    write_sharded(corpus.store, "notes", [shard(300, lengths, None)], bucket="0-128")
    build(corpus, "mixed")
    before = mixture(corpus, "main")
    data = {"phase": "main", "data": before.fingerprint}
    phases: dict[str, Any] = {
        "main": MAIN,
        "late": {"budgets": {"prose": 24}, "continues": data},
        "last": {"budgets": {"notes": 12}, "continues": "late"},
    }
    found = mixture(with_phases(corpus, **phases), "last")

    [notes] = found.sources
    [main_notes] = [source for source in before.sources if source.name == "notes"]
    assert notes.start == main_notes.samples
    reached = notes.epochs * 29 - notes.realised_tokens
    assert reached == pytest.approx(main_notes.realised_tokens, abs=1e-4)


def test_shards_that_are_not_as_they_were_are_refused(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    build(corpus, "mixed")
    data = {"phase": "main", "data": mixture(corpus, "main").fingerprint}
    both = {"main": MAIN, "late": LATE | {"continues": data}}
    write_sharded(corpus.store, "notes", [shard(300, [8, 8, 8, 8])])
    with pytest.raises(MixError, match=r"'notes' were rewritten since, and a state .* no ledger"):
        mixture(with_phases(corpus, **both), "late")
    corpus.store.partition("sharded", "notes").manifest_path(1).unlink()
    with pytest.raises(MixError, match=r"rewritten since, and no kept state has them.*Leave the s"):
        mixture(with_phases(corpus, **both), "late")
    assert "shards of 'notes' were rewritten" in str(
        plan_corpus(with_phases(corpus, **both), ["late"]).phases["late"].faults
    )

    without = {"main": MAIN, "late": LATE | {"continues": data, "budgets": {"prose": 40}}}
    [prose] = mixture(with_phases(corpus, **without), "late").sources
    assert prose.start == 5


@pytest.mark.parametrize("before", [[], [1]])
def test_rows_that_were_removed_since_are_still_drawn(
    tmp_path: Path, build: Build, before: list[int]
) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    first = corpus.store.newest("sharded", "prose").parts[0].name
    if before:
        remove_rows(corpus.store, "prose", {first: before})
    build(corpus, "mixed")
    main = mixture(corpus, "main")
    data = {"phase": "main", "data": main.fingerprint}
    late = LATE | {"continues": data, "budgets": {"prose": 32}}
    then = mixture(with_phases(corpus, main=MAIN, late=late), "late")
    rows = drawn(main) + drawn(then)
    assert len(rows) == len(set(rows))
    assert then.warnings == ()

    remove_rows(corpus.store, "prose", {first: [*before, 2, 3]})
    now = mixture(with_phases(corpus, main=MAIN, late=late), "late")
    assert now.warnings == (
        "'prose' is drawn as in the mixture that is continued: without 0 rows of newer shards, and "
        "with 2 rows that were removed since",
    )
    assert replace(now, warnings=()) == then
    assert drawn(now) == drawn(then)


@pytest.mark.parametrize(
    ("first", "late", "reason"),
    [
        ({}, {"data": "v7"}, "data is 'v7', which is neither a tag nor the fingerprint"),
        ({}, {"data": "0" * 32}, "no mixture of phase 'main' has the fingerprint 00000"),
        ({}, {"at": 3}, "'late' continues 'main' of .*: position 3 is inside a block of 2"),
        ({"window_shards": 1}, {}, "which has window_shards 1 and one_bucket_batches False"),
        ({"one_bucket_batches": True}, {}, "which has window_shards None and one_bucket_bat"),
    ],
)
def test_mixtures_that_cannot_be_gone_on_with_are_refused(
    tmp_path: Path, build: Build, first: dict[str, Any], late: dict[str, Any], reason: str
) -> None:
    corpus = corpus_with(tmp_path, MAIN | first)
    build(corpus, "mixed")
    data = {"phase": "main", "data": mixture(corpus, "main").fingerprint} | late
    with pytest.raises(MixError, match=reason):
        mixture(with_phases(corpus, main=MAIN, late=LATE | {"continues": data}), "late")


def test_a_mixture_that_continues_another_does_not_know_every_source(
    tmp_path: Path, build: Build
) -> None:
    late = {"budgets": {"prose": 24}, "continues": "main"}
    corpus = corpus_with(tmp_path, MAIN, late)
    build(corpus, "mixed")
    data = {"phase": "late", "data": mixture(corpus, "late").fingerprint}
    last = {"budgets": {"prose": 8, "notes": 8}, "continues": data}
    with pytest.raises(MixError, match=r"does not say what that drew of \['notes'\]"):
        mixture(with_phases(corpus, main=MAIN, late=late, last=last), "last")
    alone = {"budgets": {"prose": 8}, "continues": data}
    [prose] = mixture(with_phases(corpus, main=MAIN, late=late, last=alone), "last").sources
    assert prose.start == 8
