"""Training frameworks over a corpus: killed, resumed with other ranks, every sample once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from format_folders import peer
from loader_corpus import every_sample, held_out, numbered_rows, write_phase

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "tests/trainer_job.py"
EXAMPLES = {
    "train_hugging_face.py": "transformers",
    "train_lightning.py": "lightning",
    "train_accelerate.py": "accelerate",
    "train_mesh.py": "torch",
}
BATCH, ACCUMULATE = 2, 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 rows, each of whose tokens is the row's number."""
    shards = [numbered_rows(1, 50), numbered_rows(51, 40)]
    return write_phase(tmp_path_factory.mktemp("corpus"), {"books": shards})


def train(example: str, ranks: int, steps: int, out: Path, store: Path, kill: int = 0) -> int:
    """Run an example in so many processes; return its exit code."""
    job = [str(JOB), example, str(out / f"seen-{ranks}"), str(kill), str(store)]
    job += ["--steps", str(steps), "--out", str(out / "checkpoints")]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(out / f"log-{ranks}", "w") as log:
        return subprocess.run(
            [*command, f"--nproc-per-node={ranks}", *job],
            env=os.environ | environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=240,
        ).returncode


def seen(out: Path, ranks: int, batches: int) -> list[int]:
    """The rows of the first batches of a run, step by step, as all ranks had them."""
    of_rank = [(out / f"seen-{ranks}.{rank}").read_text().splitlines() for rank in range(ranks)]
    rows = [[json.loads(line) for line in lines[:batches]] for lines in of_rank]
    return [row for step in zip(*rows, strict=True) for batch in step for row in batch]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_killed_training_goes_on_with_other_ranks_and_sees_every_sample_once(
    example: str, store: Path, tmp_path: Path
) -> None:
    peer(EXAMPLES[example])
    killed_in = 3 * ACCUMULATE + 1  # in the fourth step, after three whole ones
    assert train(example, 2, 8, tmp_path, store, kill=killed_in) != 0
    assert train(example, 1, 8, tmp_path, store) == 0, (tmp_path / "log-1").read_text()[-3000:]

    order = [int(row[0]) for batch in every_sample(store) for row in batch.tokens]
    before = seen(tmp_path, 2, 3 * ACCUMULATE)
    after = seen(tmp_path, 1, 5 * ACCUMULATE)
    assert before + after == order[: 3 * 2 * BATCH * ACCUMULATE + 5 * BATCH * ACCUMULATE]
    assert len((tmp_path / "seen-1.0").read_text().splitlines()) == 5 * ACCUMULATE


def test_the_trainer_prints_the_loss_on_what_is_held_out_by_source(
    store: Path, tmp_path: Path
) -> None:
    peer("transformers")
    held_out(store, {"notes": [numbered_rows(91, 3)]})
    command = [sys.executable, str(ROOT / "examples/train_hugging_face.py"), str(store)]
    options = ["--steps", "2", "--validate-every", "2", "--out", str(tmp_path / "checkpoints")]
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *options], env=os.environ | environment, capture_output=True, timeout=240
    )

    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert done.stdout.count(b"'eval_notes_loss'") == 1
