"""Commands in processes of their own, over a corpus whose hook keeps what it gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LONGEST_SECONDS = 240  # on a busy machine
KEEP = "import sys; open('told.jsonl', 'a').write(sys.stdin.read().replace('\\n', '') + '\\n')"
KEEPS = {"command": [sys.executable, "-c", KEEP]}  # `notify` of a corpus


def start(config: Path, *command: str, log: str = "out.log") -> subprocess.Popen[str]:
    """Start a command over a corpus; its output is in a file beside the config."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    with open(config.parent / log, "w") as out:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def start_raw(config: Path, *partitions: str) -> subprocess.Popen[str]:
    """Start the stage `raw` of a source, or of the partitions given, as the command line does."""
    what = ("-m", "pipeline_defs.definitions", "--select", "raw")
    of = partitions or ("--partition", "prose")
    return start(config, "dagster", "asset", "materialize", *what, *of)


def until(is_so: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    """Wait until something is so."""
    end = time.monotonic() + LONGEST_SECONDS
    while not (found := is_so()):
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.1)
    return found


def told(config: Path) -> list[dict[str, Any]]:
    """Return what the hook got."""
    path = config.parent / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
