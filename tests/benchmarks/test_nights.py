"""The table of nights: it counts parts by stage, and each night begins where the build ended."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from measured_run import Measured
from nights import HOME, STORE, copy, print_table, put_back


def test_a_night_is_undone_by_the_copy(tmp_path: Path) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept"
    for name in ("web/a.jsonl", "web/b.jsonl", "pipeline.yaml", f"{STORE}/part", f"{HOME}/run"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(name)
    copy(out, kept)
    same = (out / "web/b.jsonl").stat()

    (out / "web/a.jsonl").write_text("changed")
    (out / "web/new.jsonl").write_text("new")
    (out / "pipeline.yaml").unlink()
    (out / STORE / "another").write_text("part")
    os.utime(out / "web/a.jsonl", (1, 1))
    put_back(kept, out)

    files = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.*")}
    assert files == {name: name for name in ("web/a.jsonl", "web/b.jsonl", "pipeline.yaml")}
    assert sorted(path.name for path in (out / STORE).iterdir()) == ["part"]
    assert (out / "web/b.jsonl").stat() == same


def test_the_table_has_the_parts_and_the_shares_of_a_build(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measured(wall: float, cpu: float) -> Measured:
        return Measured(wall, cpu, None, 0, 0)

    print_table(
        {
            "from nothing": (measured(100, 200), {"raw": (1_000, 0), "mixed": (1, 0)}),
            "nothing new": (measured(10, 10), {"raw": (0, 1_000), "mixed": (0, 1)}),
            "new": (measured(13, 18), {"raw": (1, 1_000), "mixed": (1, 0)}),
        }
    )

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "computed + reused from nothing nothing new new",
        "raw 1,000 + 0 0 + 1,000 1 + 1,000",
        "mixed 1 + 0 0 + 1 1 + 0",
        "s wall 100.0 10.0 13.0",
        "of a build 100.0% 10.0% 13.0%",
        "beyond nothing new 90.0% 0.0% 3.0%",
        "s CPU 200.0 10.0 18.0",
        "of a build 100.0% 5.0% 9.0%",
        "beyond nothing new 95.0% 0.0% 4.0%",
    ]
