"""Tables that are made once per process, or by a run's server for all its forks."""

import subprocess

from prelude import pytest, sys

from resources import made_once as module
from resources.made_once import made_once, make_tables

MAKE_ALL = """
from pathlib import Path
import assets.stages
from resources import made_once

made_once.make_tables("assets")
print(len(made_once._makers))
print([path.read_text() for path in Path("/proc/self/task").glob("*/comm")])
"""


def test_a_package_has_its_tables_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_makers", [])
    made: list[str] = []

    def maker_in(name: str) -> None:
        def make() -> int:
            made.append(name)
            return len(made)

        make.__module__ = name
        assert made_once(make).__module__ == name

    for name in ("assets.filtered.pii.phones", "assets.filtered_again", "assets.tokenized"):
        maker_in(name)
    assert made == []
    for _ in range(2):
        make_tables("assets.filtered")
    assert made == ["assets.filtered.pii.phones"]


def test_no_table_starts_threads_of_polars_which_a_fork_would_lack() -> None:
    process = subprocess.run(
        [sys.executable, "-c", MAKE_ALL], capture_output=True, text=True, check=True
    )
    number, threads = process.stdout.splitlines()
    assert int(number) >= 5
    assert "polars-0" not in threads
