"""Print lines about a document."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text


def likeness(similarity: float | None) -> str:
    """Return a similarity as text; "-" if none was measured."""
    return "-" if similarity is None else f"{similarity:.3f}"


def print_lines(console: Console, lines: Mapping[str, str]) -> None:
    """Print each line after its name."""
    for name, line in lines.items():
        console.print(Text.assemble((f"{name}: ", "dim"), line))
