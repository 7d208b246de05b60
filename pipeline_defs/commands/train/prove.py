"""`corpus loader prove`: prove that trainings on the corpus can be killed (corpus_loader/prove).

corpus loader prove                                 each trainer that is installed, killed 12 times
corpus loader prove --trainer ddp --kills 100       one of them

Where only the loader is installed: `python -m corpus_loader.prove STORE`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

from cyclopts import Parameter

from pipeline_defs.commands.terminal import Json, Natural, Positive
from pipeline_defs.load_corpus import load_corpus


def prove(
    *,
    phase: Annotated[str, Parameter(help="Train on this phase.")] = "general",
    trainer: Annotated[
        list[str] | None,
        Parameter(help="ddp, hugging_face, lightning, accelerate, or module:function."),
    ] = None,
    kills: Annotated[Positive, Parameter(help="Kills of each trainer.")] = 12,
    seed: Annotated[Natural, Parameter(help="Of the plan.")] = 0,
    ranks: Annotated[Positive, Parameter(help="Most ranks of a start.")] = 4,
    json: Json = False,
) -> int:
    """Print a line for each trainer; return 1 if a sample was lost or learned twice, or worse."""
    options = {"phase": phase, "kills": kills, "seed": seed, "ranks": ranks}
    words = [f"--{name}={value}" for name, value in options.items()]
    words += [f"--trainer={name}" for name in trainer or ()] + ["--json"] * json
    store = str(load_corpus().store.root)
    return subprocess.call([sys.executable, "-m", "corpus_loader.prove", store, *words])
