"""`python -m corpus_loader.prove`: trainers that are killed lose nothing, wrong ones are found."""

import subprocess

import numpy as np
from faults.killed_trainings import command, environment, packed_corpus
from format_folders import peer
from prelude import Any, Path, pytest
from tables import cases

from corpus_loader.prove.plan import plan_start
from corpus_loader.prove.proof import Samples, judge

PACKAGES = {"ddp": "torch", "hugging_face": "transformers", "lightning": "lightning"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 rows in two sources."""
    return packed_corpus(tmp_path_factory.mktemp("corpus"))


def prove(store: Path, *options: str) -> tuple[int, list[str]]:
    """Run the kit; return its exit code and the lines that it prints."""
    words = command(store, *options)
    done = subprocess.run(words, env=environment(), text=True, capture_output=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def row(lines: list[str]) -> dict[str, str]:
    """The line of the first trainer, by column."""
    return dict(zip(lines[0].split(), lines[1].split(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["ddp", "hugging_face", "lightning", "accelerate"])
def test_a_training_that_is_killed_twelve_times_learns_every_sample_once(
    trainer: str, store: Path
) -> None:
    peer("torch"), peer(PACKAGES.get(trainer, trainer))

    code, lines = prove(store, "--trainer", trainer, "--kills", "12", "--seed", "0")

    found = row(lines)
    learned, restarts = int(found.pop("learned")), int(found.pop("restarts"))
    assert learned > 150 and restarts >= 12, lines
    assert len(found.pop("ranks").split(",")) > 1
    assert found == dict(trainer=trainer, kills="12", lost="0", twice="0", hung="0", failed="0"), (
        "\n".join(lines)
    )
    assert (code, len(lines)) == (0, 2)


@pytest.mark.slow
@cases("""
    loop    | column | reason
    ahead   | lost   |
    behind  | twice  |
    leaking | failed | the model sees other documents of a row
    stuck   | hung   | in stuck
""")
def test_a_loop_that_is_wrong_is_found(
    loop: str, column: str, reason: str, store: Path, tmp_path: Path
) -> None:
    peer("torch")
    patience = ["--timeout", "20"] if loop == "stuck" else []

    code, lines = prove(store, "--trainer", f"wrong_loops:{loop}", "--kills", "2", *patience)

    assert code == 1
    assert int(row(lines)[column]) > 0, "\n".join(lines)
    assert (reason or "") in "\n".join(lines)


def test_a_trainer_that_is_not_installed_is_named(store: Path, monkeypatch: Any) -> None:
    from corpus_loader.prove import __main__ as kit

    said: list[str] = []
    monkeypatch.setattr(kit, "find_spec", lambda name: None)
    monkeypatch.setattr(kit, "say", lambda *lines: said.extend(lines))
    assert kit.main([str(store)]) == 1
    assert said[1:] == [f"{name}: skipped, torch is not installed" for name in kit.TRAINERS]


@cases("""
    times              | cursor | dropped | learned | lost | twice
    [[1, 1], [0, 0]]   | 2      | 0       | 2       | 0    | 0
    [[1, 0], [0, 0]]   | 2      | 0       | 1       | 1    | 0
    [[1, 0], [0, 0]]   | 2      | 1       | 1       | 0    | 0
    [[0, 1], [1, 0]]   | 3      | 1       | 2       | 1    | 0
    [[1, 2], [0, 0]]   | 2      | 0       | 2       | 0    | 1
    [[1, 1], [1, 0]]   | 2      | 0       | 3       | 0    | 1
    [[1, 0.5], [0, 0]] | 2      | 1       | 2       | 1    | 0
""")
def test_samples_are_judged_by_the_place_of_the_loader(
    times: list[list[float]], cursor: int, dropped: int, learned: int, lost: int, twice: int
) -> None:
    assert judge(np.array(times), cursor, dropped) == Samples(learned, lost, twice)


def test_starts_are_drawn_from_their_key() -> None:
    starts = [plan_start(str(number), 4) for number in range(200)]

    assert starts == [plan_start(str(number), 4) for number in range(200)]
    assert {start.ranks for start in starts} == {1, 2, 3, 4}
    assert {start.accumulate for start in starts} == {1, 2, 3}
    assert all(0 <= start.killer < start.ranks for start in starts)
    assert any(start.kill_at == 1 for start in starts)
