"""kill -9 of a whole run at random moments, then run again: same bytes, nothing done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import hashes, write_corpus

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("run_both_jobs.py")


def start(config: Path, store: Path) -> subprocess.Popen[str]:
    """Start both jobs in a process group of their own."""
    paths = {"TOKENMILL_CONFIG": str(config), "TOKENMILL_STORE": str(store)}
    process = subprocess.Popen(
        [sys.executable, str(DRIVER)],
        cwd=ROOT,
        env=os.environ | paths | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "working\n"
    return process


def published(store: Path) -> dict[Path, int]:
    """When each published part was published."""
    return {path: path.stat().st_mtime_ns for path in store.glob("*/*/_parts/[!.]*.json")}


@pytest.mark.parametrize(
    ("engine", "kills", "longest_seconds"), [("in_process", 8, 2.0), ("processes", 3, 8.0)]
)
def test_killed_at_random_moments_it_ends_the_same(
    tmp_path: Path, engine: str, kills: int, longest_seconds: float
) -> None:
    config = write_corpus(tmp_path, engine={"kind": engine, "workers": 2})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(config, whole).wait() == 0

    seen: dict[Path, int] = {}
    moments = random.Random(1)
    for _ in range(kills):
        process = start(config, killed)
        time.sleep(moments.uniform(0, longest_seconds))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = published(killed)
        assert all(now.get(path, when) == when for path, when in seen.items())
        seen |= now
    assert start(config, killed).wait() == 0

    final = published(killed)
    assert seen, "every kill came before the first part: the delays are too short"
    assert all(final.get(path, when) == when for path, when in seen.items())
    assert hashes(killed) == hashes(whole)
