r"""Time and memory of the driver of each stage by the number of parts and sources.

    .venv/bin/python benchmarks/many_parts.py [--parts 1000 4000 16000] [--sources 1]

Builds a corpus of one short document a part, each stage in a process of its own, which hands the
parts to worker processes. Prints a Markdown table: CPU seconds and largest memory of that process
for each number of parts, and what the last numbers add: milliseconds and kilobytes a part, and the
exponent of time. With --sources many, the parts are spread over as many partitions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
PART_BYTES = 1024


def main() -> None:
    """Build for each number of parts, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", type=int, nargs="+", default=[1000, 4000, 16_000])
    parser.add_argument("--sources", type=int, default=1)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.stage:
        print(json.dumps(driver_of(args.stage)))
        return
    found = [costs(parts, args.sources) for parts in args.parts]
    heads = "".join(f" {parts:,} parts: s | MB |" for parts in args.parts)
    print(f"| stage |{heads} ms a part | kB a part | exponent |")
    print(f"|---|{'---:|' * (2 * len(args.parts) + 3)}")
    for stage in found[0]:
        cells = [
            f"{value:.{digits}f}"
            for of in found
            for value, digits in zip(of[stage], (1, 0), strict=True)
        ]
        (start, low), (end, high) = (of[stage] for of in found[-2:])
        first, last = args.parts[-2:]
        cells.append(f"{(end - start) / (last - first) * 1e3:.2f}")
        cells.append(f"{(high - low) / (last - first) * 1e3:.1f}")
        cells.append(f"{math.log(end / start) / math.log(last / first):.2f}")
        print(f"| {stage} | {' | '.join(cells)} |")


def costs(parts: int, sources: int) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and MB of the driver of each stage of a corpus of so many parts."""
    from assets.stages import used_stages
    from resources.settings.pipeline import load_settings

    with tempfile.TemporaryDirectory() as name:
        config = write_corpus(Path(name), parts, sources)
        environment = os.environ | {"TOKENMILL_CONFIG": str(config), "DAGSTER_HOME": name}
        found = {}
        for stage in used_stages(load_settings(config)):
            command = [sys.executable, __file__, "--stage", stage]
            ran = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            found[stage] = tuple(json.loads(ran.stdout))
        return found


def write_corpus(folder: Path, parts: int, sources: int) -> Path:
    """Write files of a document each, too large for two of them in a part; return the config."""
    names, chosen = [f"source-{index:05}" for index in range(sources)], random.Random(1)
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    sentences = [line for text in texts for line in text.split(". ") if 60 < len(line) < 200]
    for index in range(parts):
        text = ""
        while len(text) < 0.6 * PART_BYTES:
            words = chosen.choice(sentences).split()
            text += " ".join(chosen.sample(words, len(words))) + ". "
        path = folder / "input" / names[index % sources] / f"{index:07}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"text": text}) + "\n")
    config = {
        "store": "store",
        "part_bytes": PART_BYTES,
        "engine": {"kind": "processes", "workers": 2},
        "tokenizer": {"vocab_size": 2000},
        "sources": [{"name": name, "where": f"input/{name}"} for name in names],
        "phases": [{"name": "main", "weights": dict.fromkeys(names, 1.0)}],
    }
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def driver_of(name: str) -> tuple[float, float]:
    """Build a stage; return CPU seconds of this process, and MB more than before it."""
    from assets.stages import used_stages
    from pipeline_defs.load_corpus import load_corpus
    from resources.materialize.materialization import publish_partitions
    from resources.source_faults import SourceFaults
    from resources.stage import partition_names

    corpus = load_corpus()
    stage = used_stages(corpus.settings)[name]
    before = resource.getrusage(resource.RUSAGE_SELF)
    names = partition_names(stage, corpus.settings)
    publish_partitions(corpus, stage, names, SourceFaults(stops=True))
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, (after.ru_maxrss - before.ru_maxrss) / 1e3


if __name__ == "__main__":
    main()
