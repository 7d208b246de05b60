"""Commands and examples of README and docs, read from the Markdown."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ON_THE_SAMPLE = {"README.md", "tutorial.md"}  # tests/test_command_blocks.py runs their blocks
FENCE = re.compile(
    r'^(<!-- not run: [^\n]+ -->\n)?```(\w*)(?: title="\S+")?\n(.*?)^```$', re.M | re.S
)
VARIABLE = re.compile(r"^\w+=\S* ")
COMMAND = re.compile(r"^(?:\.venv/bin/)?(corpus|dagster|make|python) ")


class Block(NamedTuple):
    """A fenced block: why no test runs it ("" if one does), its language, its text."""

    not_run: str
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line, and whether it is only mentioned in a sentence."""

    words: tuple[str, ...]
    is_mention: bool

    def __str__(self) -> str:
        return shlex.join(self.words)


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in their order."""
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    return [
        Block(marker.removeprefix("<!-- not run: ").removesuffix(" -->\n"), language, text)
        for marker, language, text in fences
    ]


def blocks(language: str) -> list[tuple[str, str]]:
    """Fenced blocks of a language, with the name of their page."""
    found = [(page.name, block) for page in PAGES for block in blocks_of(page)]
    return [(page, block.text) for page, block in found if block.language == language]


def commands(program: str) -> list[Command]:
    """Command lines of a program, each once, in the order of the pages."""
    lines = [(line, mention) for page in PAGES for line, mention in lines_of(page)]
    found = (as_command(line, mention) for line, mention in lines)
    return list(dict.fromkeys(command for command in found if command.words[:1] == (program,)))


def lines_of(page: Path) -> list[tuple[str, bool]]:
    """Lines that may be commands: of blocks, indented or after `$ `; and code inside sentences."""
    text = page.read_text(encoding="utf-8")
    fences = [] if page.name in ON_THE_SAMPLE else blocks_of(page)
    shells = [block for block in fences if block.language in ("", "sh") and not block.not_run]
    in_fences = "\n".join(block.text for block in shells)
    in_fences = re.sub(r"\\\n *", "", in_fences)
    prose = FENCE.sub("", text)
    indented = re.findall(r"^    (\S.*)$", prose, re.M)
    mentions = [re.sub(r"\s+", " ", code) for code in re.findall(r"`([^`]+)`", prose)]
    own_lines = [line.strip().removeprefix("$ ") for line in in_fences.splitlines()] + indented
    return [(line, False) for line in own_lines] + [(line, True) for line in mentions]


def as_command(line: str, is_mention: bool) -> Command:
    """Split a line into words, without comments, variables and the path of the program."""
    line = VARIABLE.sub("", line).partition(" > ")[0]
    if not COMMAND.match(line):
        return Command((), is_mention)
    text = re.split(r"\s{2,}", line)[0] if not re.search(r"\s#", line) else line
    words = shlex.split(text, comments=True)
    return Command((Path(words[0]).name, *words[1:]), is_mention)
