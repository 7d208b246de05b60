"""Cost of a night: the parts that it computes by stage, and its share of a build from nothing.

    .venv/bin/python benchmarks/enlarge.py CORPORA OUT --bytes 1000000000
    .venv/bin/python benchmarks/nights.py CORPORA OUT

Builds OUT from nothing with `corpus build`, then with nothing new, then after each kind of night of
enlarge.py. Every night starts from the first build: a copy of its store and records is put back,
and of the input files that the night changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from enlarge import Night, change
from measured_run import ROOT, Measured, measure

STORE, HOME = "corpus_store", "dagster_home"
KEPT = "kept"  # beside OUT: its copy from after the build


def main() -> None:
    """Build, change and build; print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="what OUT was made of")
    parser.add_argument("out", type=Path, help="folder that enlarge.py made")
    parser.add_argument("--nights", nargs="*", choices=get_args(Night), default=get_args(Night))
    args = parser.parse_args()
    out = args.out.absolute()
    os.environ |= {"TOKENMILL_CONFIG": str(out / "pipeline.yaml"), "DAGSTER_HOME": str(out / HOME)}
    kept = out.with_name(f"{out.name}-{KEPT}")
    for folder in (out / STORE, out / HOME, kept):
        if folder.exists():
            sys.exit(f"{folder} is there: remove it, so that the build is from nothing.")
    runs = {"from nothing": build(out)}
    copy(out, kept)
    os.sync()
    runs["nothing new"] = build(out)
    for night in args.nights:
        put_back(kept, out)
        print(change(args.corpora, out, night), flush=True)
        os.sync()  # of the copies: else the first flush of the night would wait for gigabytes
        runs[night] = build(out)
    print_table(runs)


Parts = dict[str, tuple[int, int]]  # computed and reused, by stage


def build(out: Path) -> tuple[Measured, Parts]:
    """Run `corpus build`; return its costs, and its parts."""
    command = [sys.executable, "-m", "pipeline_defs.commands.main", "build"]
    measured = measure(command, {"PYTHONPATH": str(ROOT)})
    print(f"{out.name}: {measured.wall:.1f} s wall, {measured.cpu:.1f} s CPU", flush=True)
    return measured, parts_of_last_run()


def parts_of_last_run() -> Parts:
    """Return the numbers of parts in the reports of the newest run."""
    sys.path[:0] = [str(ROOT)]
    from assets.stages import used_stages
    from pipeline_defs.load_corpus import load_corpus
    from resources.run_reports import all_reused, read_report
    from resources.runs.run_notes import read_notes
    from resources.stage import partition_names

    corpus = load_corpus()
    is_unchanged = bool(read_notes(corpus.store.root)[0].unchanged_at)
    counts: Parts = {}
    for stage in used_stages(corpus.settings).values():
        names = partition_names(stage, corpus.settings)
        reports = [read_report(corpus.store.root, stage.name, name) for name in names]
        reports = [all_reused(each) for each in reports] if is_unchanged else reports
        counts[stage.name] = (
            sum(report.parts_computed for report in reports),
            sum(report.parts_reused for report in reports),
        )
    return counts


def copy(folder: Path, target: Path) -> None:
    """Copy a folder with its times; blocks are shared where the file system can."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(folder), str(target)], check=True)


def put_back(kept: Path, out: Path) -> None:
    """Undo a night: all of the store and records, and the input files that differ."""
    for name in (STORE, HOME):
        shutil.rmtree(out / name)
        copy(kept / name, out / name)
    for file in inputs_of(out):
        if not (kept / file).exists():
            (out / file).unlink()
    for file in inputs_of(kept):
        old, new = kept / file, out / file
        if not new.exists() or old.stat().st_mtime_ns != new.stat().st_mtime_ns:
            shutil.copy2(old, new)


def inputs_of(folder: Path) -> Iterator[Path]:
    """Yield the files that are not of the store and the records, relative to the folder."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in (STORE, HOME):
            yield relative


def print_table(runs: dict[str, tuple[Measured, Parts]]) -> None:
    """Print parts computed + reused by stage and run, then times as shares of the first run's.

    The third line of times is without those of the run with nothing new.
    """
    whole, idle = runs["from nothing"][0], runs["nothing new"][0]
    print(f"{'computed + reused':<21}" + "".join(f"{name:>15}" for name in runs))
    for stage in runs["from nothing"][1]:
        cells = (parts.get(stage, (0, 0)) for _, parts in runs.values())
        print(f"{stage:<21}" + "".join(f"{f'{new:,} + {old:,}':>15}" for new, old in cells))
    for name, unit in (("wall", "s wall"), ("cpu", "s CPU")):
        seconds = [getattr(measured, name) for measured, _ in runs.values()]
        print(f"{unit:<21}" + "".join(f"{each:>15.1f}" for each in seconds))
        shares = (each / getattr(whole, name) for each in seconds)
        print(f"{'  of a build':<21}" + "".join(f"{share:>15.1%}" for share in shares))
        added = ((each - getattr(idle, name)) / getattr(whole, name) for each in seconds)
        print(f"{'  beyond nothing new':<21}" + "".join(f"{share:>15.1%}" for share in added))


if __name__ == "__main__":
    main()
