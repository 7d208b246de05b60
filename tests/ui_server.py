"""`corpus ui` as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import wait_for


@contextmanager
def running_ui(config: Path, home: Path, logs: Path | None = None) -> Iterator[str]:
    """Serve the UI of a corpus; yield its address."""
    names = {"TOKENMILL_CONFIG": str(config), "DAGSTER_HOME": str(home)}
    command = [sys.executable, "-m", "pipeline_defs.commands.main", "ui", "--port", "0"]
    log = (logs or config.parent) / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=config.parent, env=os.environ | names, stdout=output, stderr=output
        )
    try:
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text()), 300)
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, log.read_text()
