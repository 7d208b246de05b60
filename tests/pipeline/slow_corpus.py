"""A corpus of which one part takes a minute, and commands over it in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from builders import write_corpus

ROOT = Path(__file__).resolve().parents[2]
MODULE = ["-m", "pipeline_defs.definitions"]
JOB = ["-m", "dagster", "job", "execute", *MODULE, "-j", "build_corpus"]
BUILD = ["-m", "pipeline_defs.commands.main", "build"]
# A part that takes a minute inside one call, as of Polars or a kernel: it listens to no signal.
RULES = """
import time
from pathlib import Path
import polars as pl
from assets.filtered.rules.custom import CustomRule

HERE = Path(__file__).parent

def slowly(texts):
    if len(texts) > 5 and (HERE / "slow").exists():
        (HERE / "store/filtered/prose/.tmp-unfinished").touch()
        (HERE / "reached").touch()
        time.sleep(60)
    return texts.str.len_chars()

RULES = [CustomRule("slow", pl.col("text").map_batches(slowly, pl.UInt32), minimum=1)]
"""


def start(config: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    with open(config.with_name("output"), "ab") as output:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def write_slow_corpus(folder: Path, kind: str, steps: str = "in_process") -> Path:
    """A corpus of which one part of `filtered` takes a minute."""
    filters = {"rules": {"length": {"min_chars": 20}}, "custom": "rules.py"}
    engine = {"kind": kind, "steps": steps, "workers": 2}
    config = write_corpus(folder, engine=engine, filters=filters)
    (folder / "rules.py").write_text(RULES)
    (folder / "slow").touch()
    return config


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a file is there."""
    while not path.exists():
        assert process.poll() is None, (path.parent / "output").read_text()[-3000:]
        time.sleep(0.02)
