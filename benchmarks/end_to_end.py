"""Both jobs over a corpus, as users run them: MB/s per stage, Dagster's share, peak memory.

    .venv/bin/python benchmarks/end_to_end.py [pipeline.yaml]

Builds into a new temporary store with new Dagster records, so that nothing is reused. MB are UTF-8
text of the raw documents; memory is the proportional set size (shared pages counted once) summed
over all processes of a run, sampled every second.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
MODULE = "pipeline_defs.definitions"
SAMPLE_SECONDS = 1.0  # reading the shared share of every page costs the run some time


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=ROOT / "pipeline.yaml")
    config = parser.parse_args().config.absolute()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "dagster")
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        os.environ |= {
            "TOKENMILL_CONFIG": str(config),
            "TOKENMILL_STORE": str(Path(folder, "store")),
            "DAGSTER_HOME": str(home),
        }
        measured = {job: run_job(job) for job in ("build_corpus", "mix_corpus")}
        report(measured)


def run_job(job: str) -> tuple[float, int]:
    """(wall seconds, peak bytes) of one job."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", MODULE, "-j", job]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    peak = 0
    while process.returncode is None:
        peak = max(peak, memory_of(psutil.Process(process.pid)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAMPLE_SECONDS)
    seconds = time.perf_counter() - start
    if process.returncode:
        assert process.stderr is not None
        sys.exit(f"{job} failed:\n{process.stderr.read()[-5000:]}")
    return seconds, peak


def memory_of(process: psutil.Process) -> int:
    """Proportional set size of a process and all below it, in bytes."""
    total = 0
    try:
        for member in [process, *process.children(recursive=True)]:
            total += member.memory_full_info().pss
    except psutil.NoSuchProcess:
        pass
    return total


def report(measured: dict[str, tuple[float, int]]) -> None:
    """Print MB/s per stage and end to end, Dagster's share of the wall time, and peak memory."""
    from pipeline_defs.commands.look.summary import GLOBAL_STAGES, SOURCE_STAGES, summarize
    from pipeline_defs.load_corpus import load_corpus

    corpus = load_corpus()
    summary = summarize(corpus)
    workers = corpus.settings.engine.num_workers()
    text_mb = sum(stages["raw"].bytes for stages in summary.sources.values()) / 1e6
    seconds = dict.fromkeys([*SOURCE_STAGES, *GLOBAL_STAGES], 0.0)
    for stages in [*summary.sources.values(), summary.global_]:
        for stage, numbers in stages.items():
            seconds[stage] += numbers.cpu_seconds
    print(f"{'stage':<12}{'CPU seconds':>14}{'MB/s per core':>18}")
    for stage, spent in seconds.items():
        speed = f"{text_mb / spent:.1f}" if spent else "-"
        print(f"{stage:<12}{spent:>14.1f}{speed:>18}")
    wall = sum(time for time, _ in measured.values())
    is_global = summary.global_.keys()
    work = sum(spent / (1 if s in is_global else workers) for s, spent in seconds.items())
    print(f"text {text_mb:.1f} MB, {workers} workers")
    for job, (job_seconds, peak) in measured.items():
        print(f"{job}: {job_seconds:.1f} s wall, peak memory {peak / 1e6:.0f} MB")
    print(f"end to end: {text_mb / wall:.1f} MB/s")
    print(f"Dagster and start-up: about {max(0.0, 1 - work / wall):.0%} of {wall:.1f} s")


if __name__ == "__main__":
    main()
