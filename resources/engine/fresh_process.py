"""Call a function in a process of its own, which shares nothing with this one: no state, no seeds.

What users bring (rules in Python, tokenizers) is called here and there before it is used. Python
orders sets and hashes texts in another way in each process, so a rule that calls `hash` gives other
scores in the next run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import msgspec

SEED = "PYTHONHASHSEED"
Answer = TypeVar("Answer")


def call_in_fresh_process(function: Callable[..., Answer], *arguments: object) -> Answer:
    """Return what a function of a module returns there; arguments and result become JSON.

    RuntimeError if the process fails, which is no fault of what it was asked.
    """
    with tempfile.TemporaryDirectory(prefix="tokenmill-") as folder:
        answer = Path(folder) / "answer"
        command = [function.__module__, function.__qualname__, str(answer)]
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        seed = "1" if os.environ.get(SEED) != "1" else "2"
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "resources.engine.fresh_process", *command],
            input=msgspec.json.encode(arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, SEED: seed},
            check=False,
        )
        if ran.returncode or not answer.exists():
            said = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise RuntimeError(
                f"a second process for {function.__qualname__} ended with {ran.returncode}: {said}"
            )
        result: Answer = msgspec.json.decode(answer.read_bytes())
    return result


def main(module: str, name: str, answer: str) -> None:
    """Call a function with the arguments in stdin, and write its result to a file."""
    function = getattr(import_module(module), name)
    result = function(*msgspec.json.decode(sys.stdin.buffer.read()))
    Path(answer).write_bytes(msgspec.json.encode(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
