"""CPU seconds of builds, by stage, against those that are committed: exits with 1 if one is slow.

Builds the sample and 20 MB drawn from it, from nothing and again. Seconds are divided by those of a
fixed piece of work before and after, so that the machine makes little difference. A row of over
SHORT seconds is slow from MOST times its ratio on, in three runs. `--write` commits today's ratios.
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

RATIOS, MOST, SHORT, NEW = Path(__file__).with_name("speed_ratios.json"), 1.3, 0.3, 0.23
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


def measured() -> dict[str, tuple[float, float]]:
    """Return of each row the ratio to the fixed work, and the CPU seconds."""
    rows = dict[str, tuple[float, float]]()
    with tempfile.TemporaryDirectory() as name:
        enlarged, sample = Path(name, "enlarged"), ROOT / "resources/project/sample_data"
        enlarge = [sys.executable, "benchmarks/enlarge.py", sample, enlarged, "--bytes", "20000000"]
        subprocess.run(enlarge, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for size, folder in (("sample", ROOT), ("20 MB", enlarged)):
            config, store, before = folder / "pipeline.yaml", Path(name, size, "s"), fixed_work()
            cpu, seconds = build(config, store)
            seconds["outside of stages"] = cpu - seconds.total()
            seconds["nothing new"], _ = build(config, store)
            unit = (before + fixed_work()) / 2
            rows |= {f"{size}: {row}": (spent / unit, spent) for row, spent in seconds.items()}
    return {row: each for row, each in rows.items() if each[1] > SHORT}


def times_of(rows: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Return how often each row takes its committed ratio, or NEW: half a second or so."""
    known = json.loads(RATIOS.read_text())
    return {row: ratio / known.get(row, NEW) for row, (ratio, _) in rows.items()}


rows = measured()
for _ in range(2):  # the same code took 0.99 and 1.32 times its ratio within an hour
    if "--write" not in sys.argv and max(times_of(rows).values()) <= MOST:
        break
    rows = {row: min(each, rows.get(row, each)) for row, each in measured().items()}
if "--write" in sys.argv:
    RATIOS.write_text(json.dumps({row: round(each[0], 3) for row, each in rows.items()}, indent=1))
for row, times in times_of(rows).items():
    print(f"{row:<30} {rows[row][1]:6.2f} s, {times:5.2f} times")
if slow := [row for row, times in times_of(rows).items() if times > MOST]:
    sys.exit(f"Too slow: {', '.join(slow)}.")
