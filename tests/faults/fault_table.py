"""`make faults`: try every kind of fault, and print a table of what was tried and what was lost.

PYTHONPATH=tests .venv/bin/python -m faults.fault_table --seed 1 --kills 200 --kind kill
"""

import argparse
import random
import tempfile

from faults.fault_kinds import KINDS, attempt
from faults.fault_runs import ENGINES, make_site, run
from prelude import Counter, Path, sys, time


def main() -> int:
    """Run the trials; the exit code is 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kind", help="only this kind")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    clean = make_site(folder / "clean", ENGINES[0])
    assert run(clean).code == 0
    tried, lost = Counter[str](), Counter[str]()
    for kind, trials_of in KINDS.items():
        count = options.kills if kind == "kill" else max(2, options.kills // 10)
        trials = trials_of(clean, count, random.Random(options.seed))
        for number, trial in enumerate(trials if options.kind in (None, kind) else ()):
            start = time.monotonic()
            loss = attempt(trial, folder / f"{kind}-{number}", clean)
            tried[kind] += 1
            lost[kind] += loss is not None
            seconds = f"{time.monotonic() - start:.0f} s"
            write(f"{kind}: {trial.title} ({trial.engine}), {seconds}: {loss or 'nothing lost'}")
    write(f"\n{'kind':<24}{'tried':>8}{'lost':>8}")
    for kind, count in tried.items():
        write(f"{kind:<24}{count:>8}{lost[kind]:>8}")
    return int(any(lost.values()))


def write(line: str) -> None:
    """Write a line at once: all faults take more than an hour."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
