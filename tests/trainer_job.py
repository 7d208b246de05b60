"""An example of examples/, which notes the samples of every batch and may be killed in a step.

    torchrun ... trainer_job.py EXAMPLE OUT KILL_IN_BATCH STORE ...

appends to OUT.RANK a line per batch that the model saw: the first token of each of its rows. Rank 0
kills itself in the backward pass after KILL_IN_BATCH batches, if that is not 0.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
example, out, kill_in_batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
RANK = os.environ["RANK"]
batches = 0


def note(module: nn.Module, args: Any, kwargs: Any = None) -> None:
    """Note the rows of a batch that enters an embedding of tokens, while the model learns."""
    global batches
    if not isinstance(module, nn.Embedding) or args[0].dim() != 2 or not module.training:
        return
    with open(f"{out}.{RANK}", "a") as file:
        file.write(json.dumps(args[0][:, 0].tolist()) + "\n")
    batches += 1
    if batches == kill_in_batch and RANK == "0":
        os.kill(os.getpid(), signal.SIGKILL)


nn.modules.module.register_module_forward_pre_hook(note)
torch.set_num_threads(1)
sys.path.insert(0, str(EXAMPLES))
sys.argv = [str(EXAMPLES / example), *sys.argv[4:]]
runpy.run_path(sys.argv[0], run_name="__main__")
