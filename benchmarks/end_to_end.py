"""`corpus build` over a corpus from nothing, as users run it, and datatrove on some of the same.

    .venv/bin/python benchmarks/end_to_end.py [pipeline.yaml] [--datatrove MEGABYTES]

Builds into a new temporary store with new Dagster records, so that nothing is reused; a corpus of
any size comes from enlarge.py. MB are UTF-8 text of the raw documents. CPU seconds are those of
every process. The first useful work is the first part begun. Memory is sampled every three seconds:
that of the largest process, and that of all together with shared pages counted once (PSS).
datatrove's pipeline (benchmarks/datatrove_chain.py) runs with as many workers and the tokenizer of
the build.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measured_run import ROOT, Measured, measure

MODULE = "pipeline_defs.commands.main"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", nargs="?", type=Path, default=ROOT / "pipeline.yaml")
    parser.add_argument("--datatrove", type=float, default=0, metavar="MEGABYTES")
    args = parser.parse_args()
    sys.path[:0] = [str(ROOT)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, home = folder / "store", folder / "dagster"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        os.environ |= {
            "TOKENMILL_CONFIG": str(args.config.absolute()),
            "TOKENMILL_STORE": str(store),
            "DAGSTER_HOME": str(home),
            "PYTHONPATH": str(ROOT),
        }
        built = measure([sys.executable, "-m", MODULE, "build"], {}, store)
        text_mb = report_stages(built)
        ours = report("corpus build", built, text_mb)
        print(f"  first useful work after {built.first_work:.1f} s")
        if args.datatrove:
            theirs = report("datatrove", *run_datatrove(folder / "datatrove", args.datatrove))
            print(f"corpus build / datatrove: {ours / theirs:.0f} times the MB per wall second")


def report_stages(built: Measured) -> float:
    """Print MB/s of every stage; return the MB of text."""
    from pipeline_defs.corpus_tables import newest_tables
    from pipeline_defs.load_corpus import load_corpus

    stages = newest_tables(load_corpus())["stages"]
    text_mb = stages.filter(stage="raw")["bytes"].sum() / 1e6
    sums = stages.select("stage", "cpu_seconds").group_by("stage", maintain_order=True).sum()
    seconds = dict(sums.iter_rows())
    print(f"{'stage':<14}{'CPU seconds':>14}{'MB/s per core':>16}{'share':>8}")
    others = built.cpu - sum(seconds.values())
    for stage, spent in [*seconds.items(), ("start, Dagster", others)]:
        if spent:
            print(f"{stage:<14}{spent:>14.1f}{text_mb / spent:>16.1f}{spent / built.cpu:>8.1%}")
    return text_mb


def report(name: str, run: Measured, text_mb: float) -> float:
    """Print the costs of a run; return its MB per wall second."""
    print(f"{name}: {text_mb:.1f} MB of text in {run.wall:.1f} s wall, {run.cpu:.1f} s CPU")
    print(f"  {text_mb / run.wall:.2f} MB/s wall, {text_mb / run.cpu:.2f} MB per CPU second")
    if run.together:
        largest, together = run.largest / 1e6, run.together / 1e6
        print(f"  memory: largest process {largest:,.0f} MB, all together {together:,.0f} MB")
    return text_mb / run.wall


def run_datatrove(folder: Path, megabytes: float) -> tuple[Measured, float]:
    """Run datatrove's pipeline on some documents of the corpus; return its costs and their MB."""
    from assets.tokenized.tokenizer_asset import STAGE as TOKENIZER
    from pipeline_defs.load_corpus import load_corpus
    from resources.store.records import required_file
    from resources.tasks import GLOBAL

    corpus = load_corpus()
    made = corpus.store.newest(TOKENIZER, GLOBAL)
    tokenizer = corpus.store.path_of(made, required_file(made, made.parts[0], "tokenizer"))
    workers = corpus.settings.engine.num_workers()
    text_bytes = write_sample(folder / "input", megabytes * 1e6, workers)
    script = str(ROOT / "benchmarks/datatrove_chain.py")
    options = ["--tokenizer", str(tokenizer), "--workers", str(workers)]
    run = measure([sys.executable, script, str(folder), *options], {}, folder)
    return run, text_bytes / 1e6


def write_sample(folder: Path, num_bytes: float, num_files: int) -> int:
    """Write documents of every source, as raw published them, into a file per worker."""
    import polars as pl

    folder.mkdir(parents=True)
    texts = pl.DataFrame({"text": list(sample_texts(num_bytes))}).with_row_index("id")
    documents = texts.select(pl.col("id").cast(pl.String), "text")
    for number in range(num_files):
        chosen = documents.gather_every(num_files, number)
        chosen.write_parquet(folder / f"{number}.parquet")
    return int(texts["text"].str.len_bytes().sum())


def sample_texts(num_bytes: float) -> Iterator[str]:
    """Yield texts of every source, as many bytes of each as its share of the corpus."""
    import polars as pl

    from assets.raw.asset import STAGE as RAW
    from pipeline_defs.load_corpus import load_corpus
    from resources.store.records import required_file

    corpus = load_corpus()
    newest = [corpus.store.newest(RAW, name) for name in corpus.settings.source_names()]
    total = sum(manifest.stats.bytes for manifest in newest)
    for manifest in newest:
        left = num_bytes * manifest.stats.bytes / total
        for part in manifest.parts:
            file = required_file(manifest, part, "documents")
            for text in pl.read_parquet(corpus.store.path_of(manifest, file))["text"]:
                if left <= 0:
                    break
                left -= len(text.encode())
                yield text


if __name__ == "__main__":
    main()
