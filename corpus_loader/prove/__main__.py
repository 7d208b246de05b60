"""Prove that trainings on a corpus can be killed, with the trainers that are installed here.

    python -m corpus_loader.prove corpus_store --trainer ddp --kills 12 --seed 0

Each trainer trains a tiny model for two epochs of a few samples. It is killed in steps, in saves
and while it starts, and started again with other numbers of ranks and other batches. In the end
each sample must have been learned once. A start that hangs is a fault, as is a model that sees
other documents of its row. `--trainer module:function` is a loop of your own (see training.py).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corpus_loader.places.errors import CorpusError
from corpus_loader.prove.plan import Request
from corpus_loader.prove.proof import Proof, Samples, prove
from corpus_loader.prove.ranks import forks

TRAINERS = {  # and a module that each imports; ranks are forked after that
    "ddp": "torch.distributed.checkpoint",
    "hugging_face": "transformers.trainer",
    "lightning": "lightning.pytorch",
    "accelerate": "accelerate",
}
COLUMNS = ("trainer", "kills", "restarts", "ranks", "learned", "lost", "twice", "hung", "failed")
LINE = "{:<24}" + "{:>9}" * (len(COLUMNS) - 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove, and print a line for each trainer; return 1 if something is wrong or missing."""
    given = vars(parse(arguments))
    asked, is_json = given.pop("trainer"), given.pop("json")
    names = asked or [*TRAINERS]
    missing = {name: package for name in names if (package := missing_package(name))}
    proofs = [Proof(name) for name in names if name not in missing]
    modules = [TRAINERS.get(proof.trainer, "torch") for proof in proofs]
    # The tracker of multiprocessing tells of semaphores that killed ranks left; it removes them.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")
    forks.set_forkserver_preload(["corpus_loader.prove.loops", *modules])
    say(*[LINE.format(*COLUMNS)] * (not is_json))
    with tempfile.TemporaryDirectory(prefix="corpus-prove-") as folder:
        for proof in proofs:
            is_own = proof.trainer not in TRAINERS
            loop = proof.trainer if is_own else f"corpus_loader.prove.loops:{proof.trainer}"
            prove(Request(**given), proof, loop, Path(folder))
            row = row_of(proof)
            say(json.dumps(row) if is_json else LINE.format(*row.values()))
    say(*(f"{name}: skipped, {package} is not installed" for name, package in missing.items()))
    say(*(fault for proof in proofs for fault in proof.faults))
    is_missing = bool(missing) and (asked or not proofs)
    return 1 if is_missing or not all(proof.is_good for proof in proofs) else 0


def missing_package(trainer: str) -> str:
    """Return the package that a trainer needs and this environment lacks, else nothing."""
    needed = ("torch", TRAINERS.get(trainer, "torch").partition(".")[0])
    return next((package for package in needed if find_spec(package) is None), "")


def row_of(proof: Proof) -> dict[str, Any]:
    """Return the cells of a proof, by column."""
    restarts, failed = proof.starts - proof.trainings, len(proof.faults) - proof.hung
    ranks = ",".join(map(str, sorted(proof.ranks)))
    samples = [sum(counts) for counts in zip(Samples(0, 0, 0), *proof.samples, strict=True)]
    cells = (proof.trainer, proof.kills, restarts, ranks, *samples, proof.hung, failed)
    return dict(zip(COLUMNS, cells, strict=True))


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line: the fields of Request, and trainers."""
    parser = argparse.ArgumentParser("python -m corpus_loader.prove", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("store", help="folder or URL of the corpus")
    parser.add_argument("--phase", default="general")
    parser.add_argument("--trainer", action="append", help=f"{', '.join(TRAINERS)}, or your own")
    parser.add_argument("--kills", type=positive, default=12, help="of each trainer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=positive, default=4, help="at most")
    parser.add_argument("--samples", type=positive, default=96, help="of an epoch, at most")
    parser.add_argument("--timeout", type=float, default=300, help="of a start, in seconds")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    """Read a whole number above 0."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CorpusError as error:
        sys.exit(str(error))
