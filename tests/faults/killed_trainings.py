"""`make faults`: many kills of the proof of the training side, on a small corpus.

PYTHONPATH=tests .venv-peers/bin/python -m faults.killed_trainings --kills 250 --trainer ddp
"""

import subprocess
import tempfile

from loader_corpus import numbered_rows, write_phase
from prelude import Path, os, sys

ROOT = Path(__file__).resolve().parents[2]


def packed_corpus(folder: Path) -> Path:
    """150 rows of two sources, two thirds of which have two documents."""
    packed = [[[number] * 3, [number] * 5] for number in range(1, 101)]
    sources = {"books": [packed[:60], packed[60:]], "web": [numbered_rows(101, 50)]}
    return write_phase(folder, sources)


def command(store: Path, *options: str) -> list[str]:
    """The command of the proof."""
    return [sys.executable, "-m", "corpus_loader.prove", str(store), *options]


def environment() -> dict[str, str]:
    """Variables with which it finds the loader, and loops of tests."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        words = command(packed_corpus(Path(folder)), *sys.argv[1:])
        sys.exit(subprocess.call(words, env=environment()))
