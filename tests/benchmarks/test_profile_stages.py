"""The profile of stages runs, and the table of docs/performance.md is one that it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

from builders import write_corpus

ROOT = Path(__file__).resolve().parents[2]
BETWEEN = re.compile(r"<!-- benchmarks/profile_stages.py -->\n(.*)<!-- end -->", re.DOTALL)


def cells_of(text: str) -> list[list[str]]:
    """Cells of the first table of a text."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_has_the_columns_and_stages_that_the_program_prints(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/profile_stages.py"), str(config)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed = cells_of(done.stdout)
    found = BETWEEN.search((ROOT / "docs/performance.md").read_text(encoding="utf-8"))
    assert found is not None
    documented = cells_of(found[1])
    assert printed[:2] == documented[:2]
    assert [row[0] for row in printed] == [row[0] for row in documented]
    assert {len(row) for row in documented} == {len(printed[0])}
    shares = [float(row[2].rstrip("%")) for row in printed[2:-1]]
    assert 95 <= sum(shares) <= 105
    assert all(float(row[1]) > 0 for row in printed[2:])
