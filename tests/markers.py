"""Tell the tests of pure functions, and those that need other projects' readers, from the rest."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
STARTERS = {  # what runs stages or commands, or starts processes, threads and servers
    "dagster",
    "http",
    "moto",
    "multiprocessing",
    "pipeline_defs",
    "resources.engine.map_parts",
    "signal",
    "socket",
    "subprocess",
    "threading",
}
RUNNING_FIXTURES = {"build", "corpus", "dagster_build"}
ASK_FOR_A_READER = {"importorskip", "peer"}


@cache
def syntax_of(file: Path) -> list[ast.AST]:
    """Every node of a file's syntax tree."""
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@cache
def imported(file: Path) -> frozenset[str]:
    """Modules that a test file imports anywhere, itself or through the helpers in tests/."""
    names: set[str] = set()
    for node in syntax_of(file):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    helpers = [FOLDER / f"{name}.py" for name in names]
    return frozenset(names).union(*(imported(file) for file in helpers if file.is_file()))


@cache
def starts_something(file: Path) -> bool:
    """Check that a test file imports what runs stages, or asks for another project's reader."""
    names = {name for module in imported(file) for name in (module, module.split(".")[0])}
    in_engine = any(name.startswith("resources.engine.map_parts.") for name in names)
    return in_engine or bool(names & STARTERS) or needs_peers(file)


def is_fast(file: Path, fixtures: set[str]) -> bool:
    """Check that a test starts nothing, and needs no corpus."""
    return not (fixtures & RUNNING_FIXTURES or starts_something(file))


@cache
def needs_peers(file: Path) -> bool:
    """Check that a test file asks for a package that `make peers` installs."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in syntax_of(file)}
    return bool(names & ASK_FOR_A_READER)
