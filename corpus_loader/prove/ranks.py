"""The processes of a start of a training: run, killed at a moment that is planned, watched.

Ranks are forked from a server that has imported the trainer, and never used it: a start takes a
second or two instead of ten.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pkgutil import resolve_name
from typing import Any, Literal

from corpus_loader.prove.plan import Job, Start

End = Literal["ended", "killed", "hung", "failed"]
FILE_CALLS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.copyfile"}
RESULT, LOG = "result.json", "log.txt"
forks = get_context("forkserver")


def run_ranks(job: Job, start: Start) -> End:
    """Run all ranks of a start until they end, hang, or are killed."""
    from torch.distributed import TCPStore

    # Where ranks meet, as under torchrun: none needs a port that another process may take.
    meeting = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    reader, writer = forks.Pipe(duplex=False)
    run = partial(run_rank, job, start, meeting.port, writer)
    ranks = [forks.Process(target=run, args=(rank,)) for rank in range(start.ranks)]
    try:
        for rank in ranks:
            rank.start()
        return watch(ranks, reader, start, job.request.timeout)
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()


def watch(ranks: Sequence[BaseProcess], reader: Any, start: Start, timeout_seconds: float) -> End:
    """Wait for the end of all ranks, or kill the first of them at its moment."""
    latest = time.monotonic() + timeout_seconds
    while running := [rank.sentinel for rank in ranks if rank.is_alive()]:
        ready = connection.wait([reader, *running], max(0, latest - time.monotonic()))
        if reader in ready:
            time.sleep(start.pause_seconds)
            ranks[start.killer].kill()
            time.sleep(start.gap_seconds)
            return "killed"
        if not ready:
            return "hung"
        if any(rank.exitcode for rank in ranks):
            break
    return "failed" if any(rank.exitcode for rank in ranks) else "ended"


def run_rank(job: Job, start: Start, port: int, writer: Any, rank: int) -> None:
    """Train one rank, and write what is learned in the end."""
    with (job.folder / LOG).open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    faulthandler.dump_traceback_later(0.9 * job.request.timeout)
    os.environ |= environment(start, port, rank)
    import torch

    from corpus_loader.prove.training import Training
    from corpus_loader.trainers.leaks import check_leak

    torch.set_num_threads(1)
    events = count(1)

    def note() -> None:
        """Count an event, and tell when it is the one."""
        if next(events) == start.kill_at and rank == start.killer:
            writer.send(None)

    def hear(name: str, args: tuple[Any, ...]) -> None:
        """Note a call on a file of a checkpoint, before it is done."""
        if name in FILE_CALLS and str(args[0]).startswith(str(job.folder)):
            note()

    note()
    sys.addaudithook(hear)
    training = Training(job, start, rank, note)
    model, cursor = resolve_name(job.loop)(training)
    if rank == 0:
        check_leak(model, training.form)
        learned = {"times": model.ledger.times.tolist(), "cursor": training.numbers(cursor)}
        draft = job.folder / "result.new"
        draft.write_text(json.dumps(learned))
        draft.replace(job.folder / RESULT)


def environment(start: Start, port: int, rank: int) -> dict[str, str]:
    """Return the variables that torchrun sets for a rank."""
    own = {"RANK": rank, "LOCAL_RANK": rank, "MASTER_PORT": port, "TORCHELASTIC_RESTART_COUNT": 0}
    numbers = own | dict.fromkeys(["WORLD_SIZE", "LOCAL_WORLD_SIZE"], start.ranks)
    agent = {"TORCHELASTIC_RUN_ID": "prove", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    place = {"MASTER_ADDR": "127.0.0.1", "CUDA_VISIBLE_DEVICES": ""}
    return {name: str(number) for name, number in numbers.items()} | agent | place
