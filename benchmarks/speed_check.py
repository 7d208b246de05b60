"""CPU seconds of builds, by stage, against those that are committed: exits with 1 if one is slow.

Builds the sample and 20 MB drawn from it, from nothing and again. Seconds are divided by those of a
fixed piece of work, so that the machine makes little difference. Both are the least of up to RUNS
runs: on a shared machine the same code takes up to 1.5 times as much for minutes. A row of over
SHORT seconds is slow from MOST times its ratio on. `--write` commits today's ratios.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from measured_run import ROOT, measure

RATIOS = Path(__file__).with_name("speed_ratios.json")
RUNS, MOST, SHORT, NEW = 4, 1.4, 0.3, 0.23
UNIT = "the fixed work"
COMMAND = (sys.executable, "-m", "pipeline_defs.commands.main")


def fixed_work() -> float:
    """Return the CPU seconds of work that no change of the project changes: some two."""
    began, numbers = time.process_time(), np.random.default_rng(1).integers(0, 1 << 40, 8_000_000)
    sum(number * number % 7 for number in range(16_000_000))
    pl.Series(numbers).sort()
    pa.compress(numbers.tobytes(), codec="zstd")
    return time.process_time() - began


def build(config: Path, store: Path) -> tuple[float, Counter[str]]:
    """Build into a store; return the CPU seconds of all, and those of each stage."""
    home, seconds = store.with_name("dagster"), Counter[str]()
    home.mkdir(parents=True, exist_ok=True)
    paths = {"TOKENMILL_CONFIG": config, "TOKENMILL_STORE": store, "DAGSTER_HOME": home}
    env = {name: str(path) for name, path in (paths | {"PYTHONPATH": ROOT}).items()}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling modules would be most of a start
    cpu = measure([*COMMAND, "build"], env).cpu
    summary = subprocess.check_output([*COMMAND, "summary", "--json"], env=os.environ | env)
    for stages in (*(found := json.loads(summary))["sources"].values(), found["global"]):
        seconds.update({stage: of_stage["cpu_seconds"] for stage, of_stage in stages.items()})
    return cpu, seconds


def measured() -> dict[str, float]:
    """Return the CPU seconds of each row, and those of the fixed work."""
    rows = {UNIT: fixed_work()}
    with tempfile.TemporaryDirectory() as name:
        enlarged, sample = Path(name, "enlarged"), ROOT / "resources/project/sample_data"
        enlarge = [sys.executable, "benchmarks/enlarge.py", sample, enlarged, "--bytes", "20000000"]
        subprocess.run(enlarge, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for size, folder in (("sample", ROOT), ("20 MB", enlarged)):
            config, store = folder / "pipeline.yaml", Path(name, size, "s")
            cpu, seconds = build(config, store)
            seconds["outside of stages"] = cpu - seconds.total()
            seconds["nothing new"], _ = build(config, store)
            rows |= {f"{size}: {row}": spent for row, spent in seconds.items()}
            rows[UNIT] = min(rows[UNIT], fixed_work())
    return rows


def ratios_of(rows: dict[str, float]) -> dict[str, float]:
    """Return the seconds of each row that is not short, divided by those of the fixed work."""
    return {row: spent / rows[UNIT] for row, spent in rows.items() if spent > SHORT and row != UNIT}


def times_of(rows: dict[str, float]) -> dict[str, float]:
    """Return how often each row takes its committed ratio, or NEW: half a second or so."""
    known = json.loads(RATIOS.read_text())
    return {row: ratio / known.get(row, NEW) for row, ratio in ratios_of(rows).items()}


rows = measured()
for _ in range(RUNS - 1):
    if "--write" not in sys.argv and max(times_of(rows).values()) <= MOST:
        break
    again = measured()
    rows = {row: min(spent, again.get(row, spent)) for row, spent in rows.items()}
if "--write" in sys.argv:
    ratios = {row: round(ratio, 3) for row, ratio in ratios_of(rows).items()}
    RATIOS.write_text(json.dumps(ratios, indent=1) + "\n")
print(f"{UNIT:<30} {rows[UNIT]:6.2f} s")
for row, times in times_of(rows).items():
    print(f"{row:<30} {rows[row]:6.2f} s, {times:5.2f} times")
if slow := [row for row, times in times_of(rows).items() if times > MOST]:
    sys.exit(f"Too slow: {', '.join(slow)}.")
