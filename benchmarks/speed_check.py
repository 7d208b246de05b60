"""CPU seconds of builds, by stage, against those that are committed: exits with 1 if one is slow.

Builds the sample and 20 MB drawn from it, from nothing and again. Seconds are divided by those of a
fixed piece of work, so that the machine makes little difference. Both are the least of up to RUNS
runs. A row of over SHORT seconds is slow from MOST times its ratio on, or MOST times what the rows
take in the middle: a busy neighbour makes all of them slow, by up to 1.6 times for minutes
(correlation of `filtered` with other stages 0.9, with imports 0.8, with a loop 0.3). The middle
itself is slow from MOST_OF_ALL on. `--write` commits today's ratios.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from measured_run import ROOT, measure

RATIOS = Path(__file__).with_name("speed_ratios.json")
RUNS, MOST, MOST_OF_ALL, SHORT, NEW = 4, 1.4, 1.6, 0.3, 0.12
UNIT = "the fixed work"
COMMAND = (sys.executable, "-m", "pipeline_defs.commands.main")


def fixed_work() -> float:
    """Return the CPU seconds of work that no change of the project changes: some four."""
    before = os.times()
    imports = [sys.executable, "-c", "import dagster, numba, polars, pyarrow"]
    for process in [subprocess.Popen(imports) for _ in range(2)]:
        process.wait()
    after = os.times()
    user, system = "children_user", "children_system"
    return sum(getattr(after, name) - getattr(before, name) for name in (user, system))


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


def slow_rows(rows: dict[str, float]) -> list[str]:
    """Return the rows that are too slow, and "all" if most are."""
    times = times_of(rows)
    middle = median(times.values())
    of_all = ["all"] if middle > MOST_OF_ALL else []
    return of_all + [row for row, each in times.items() if each > MOST * max(1, middle)]


rows = measured()
for _ in range(RUNS - 1):
    if "--write" not in sys.argv and not slow_rows(rows):
        break
    again = measured()
    rows = {row: min(spent, again.get(row, spent)) for row, spent in rows.items()}
if "--write" in sys.argv:
    ratios = {row: round(ratio, 3) for row, ratio in ratios_of(rows).items()}
    RATIOS.write_text(json.dumps(ratios, indent=1) + "\n")
print(f"{UNIT:<30} {rows[UNIT]:6.2f} s")
for row, times in times_of(rows).items():
    print(f"{row:<30} {rows[row]:6.2f} s, {times:5.2f} times")
if slow := slow_rows(rows):
    sys.exit(f"Too slow: {', '.join(slow)}.")
