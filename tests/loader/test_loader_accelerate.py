"""Two real ranks under Accelerate and under DDP: every rank trains on its own samples."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from loader_corpus import held_out, numbered_rows, two_sources

from corpus_loader import CorpusLoader, LoaderOptions

pytest.importorskip("accelerate")

HELD = {"books": [numbered_rows(501, 5)], "web": [numbered_rows(601, 6)]}
VALIDATION = {"split": "validation"}
TESTS = Path(__file__).parents[1]
RUNS: dict[str, dict[str, Any]] = {
    "defaults": {"epochs": 2},
    "defaults, ranks given": {"ranks": True, "epochs": 2},
    "workers": {"workers": 2, "epochs": 2},
    "dispatched": {"config": {"dispatch_batches": True}, "epochs": 2},
    "padded": {"options": {"pad_last": True}, "epochs": 2},
    "resumed": {"state": 16, "epochs": 2},
    "resumed in the next epoch": {"state": 53, "ranks": True},
    "resumed, epoch forgotten": {"state": 53, "forgets_the_epoch": True},
    "not dispatched": {"config": {"dispatch_batches": False}},
    "split": {"config": {"split_batches": True}},
    "stateful": {"config": {"use_stateful_dataloader": True}},
    "documents": {"options": {"with_documents": True}},
    "short": {"options": {"drop_last": False}},
    "validation": {"what": VALIDATION, "options": {"pad_last": True}, "epochs": 2},
    "validation of web": {"what": VALIDATION | {"source": "web"}, "options": {"pad_last": True}},
    "validation, short": {"what": VALIDATION},
    "ddp": {"way": "ddp", "ranks": True, "workers": 1, "epochs": 2},
    "ddp, resumed": {"way": "ddp", "ranks": True, "state": 16, "epochs": 2},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number; 11 are held out."""
    return held_out(two_sources(tmp_path_factory.mktemp("corpus")), HELD)


@pytest.fixture(scope="module")
def seen(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What both ranks saw in each of RUNS, from one job: its start takes the longest."""
    out = tmp_path_factory.mktemp("job") / "seen"
    state_at = CorpusLoader(store).state_at
    asked = [
        {"store": str(store)} | run | ({"state": state_at(run["state"])} if "state" in run else {})
        for run in RUNS.values()
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"PYTHONPATH": str(TESTS.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, TESTS / "accelerate_job.py", out, json.dumps(asked)]
    ranks = [
        subprocess.Popen(command, env=os.environ | common | {"RANK": rank, "LOCAL_RANK": rank})
        for rank in ("0", "1")
    ]
    assert [rank.wait(timeout=240) for rank in ranks] == [0, 0]
    results = [json.loads(Path(f"{out}.{rank}.json").read_text()) for rank in (0, 1)]
    return dict(zip(RUNS, zip(*results, strict=True), strict=True))


def expected(store: Path, first: int, epochs: int, **options: Any) -> list[list[list[int]]]:
    """The steps of both ranks as two loaders give them."""
    ranks = [
        CorpusLoader(store, "general", rank, 2, 4, options=LoaderOptions(**options))
        for rank in (0, 1)
    ]
    steps: list[list[list[int]]] = [[], []]
    for rank, loader in enumerate(ranks):
        loader.load_state_dict(loader.state_at(first))
        for _ in range(epochs):
            steps[rank] += [batch.tokens[:, 0].tolist() for batch in loader]
    return steps


@pytest.mark.parametrize(
    ("run", "first", "epochs"),
    [
        ("defaults", 0, 2),
        ("defaults, ranks given", 0, 2),
        ("workers", 0, 2),
        ("dispatched", 0, 2),
        ("resumed", 16, 2),
        ("resumed in the next epoch", 53, 1),
        ("ddp", 0, 2),
        ("ddp, resumed", 16, 2),
    ],
)
def test_every_rank_trains_on_its_own_samples(
    seen: dict[str, list[Any]], store: Path, run: str, first: int, epochs: int
) -> None:
    ranks = seen[run]

    assert [rank["steps"] for rank in ranks] == expected(store, first, epochs)
    assert ranks[0]["states"] == ranks[1]["states"]
    cursors = [first] + [state["cursor"] for state in ranks[0]["states"]]
    assert all(before < after for before, after in pairwise(cursors))
    assert cursors[-1] % 37 == 0


def test_repeated_samples_are_marked_on_every_rank(seen: dict[str, list[Any]], store: Path) -> None:
    ranks = seen["padded"]

    assert [rank["steps"] for rank in ranks] == expected(store, 0, 2, pad_last=True)
    assert [rank["repeated"][4] for rank in ranks] == [
        [False, False, True, True],
        [False, False, False, True],
    ]
    epoch = [
        number
        for rank in ranks
        for step, repeated in zip(rank["steps"][:5], rank["repeated"][:5], strict=True)
        for number, is_repeated in zip(step, repeated, strict=True)
        if not is_repeated
    ]
    assert sorted(epoch) == [*range(1, 24), *range(101, 115)]


@pytest.mark.parametrize("run", ["defaults", "workers", "resumed"])
def test_a_dataset_that_accelerate_reads_does_not_guess_its_state(
    seen: dict[str, list[Any]], run: str
) -> None:
    assert all("batches are read ahead" in rank["error"] for rank in seen[run])


def test_ddp_with_the_counting_loader_has_one_state_on_all_ranks(
    seen: dict[str, list[Any]],
) -> None:
    assert [rank["own_state"]["cursor"] for rank in seen["ddp"]] == [74, 74]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("not dispatched", "dispatch_batches=False would split.*Leave the loader out of `prepare`"),
        ("split", "batch_size` is None"),  # of Accelerate
        ("stateful", "use_stateful_dataloader"),
        ("documents", "with_documents"),
        ("short", "drop_last is False"),
        ("validation, short", r"short in validation \(use LoaderOptions\(pad_last=True\)\)"),
        ("resumed, epoch forgotten", "state is of epoch 1, and Accelerate begins with 0"),
    ],
)
def test_what_accelerate_would_split_wrongly_is_refused_before_the_first_batch(
    seen: dict[str, list[Any]], run: str, message: str
) -> None:
    for rank in seen[run]:
        assert rank["steps"] == []
        assert re.search(message, rank["error"])


@pytest.mark.parametrize(
    ("run", "books", "epochs"), [("validation", True, 2), ("validation of web", False, 1)]
)
def test_validation_gives_each_row_of_its_sources_once_over_all_ranks(
    seen: dict[str, list[Any]], run: str, books: bool, epochs: int
) -> None:
    ranks = seen[run]
    rows = [
        (number, source)
        for rank in ranks
        for step in zip(rank["steps"], rank["sources"], rank["repeated"], strict=True)
        for number, source, is_repeated in zip(*step, strict=True)
        if not is_repeated
    ]

    of_books = [(number, 0) for number in range(501, 506) if books]
    assert sorted(rows) == sorted(
        epochs * [*of_books, *((number, int(books)) for number in range(601, 607))]
    )
    assert len(ranks[0]["steps"]) == len(ranks[1]["steps"])
