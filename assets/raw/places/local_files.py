"""Regular files that a path, folder or glob names.

Links that leave the folder in which a pattern starts are followed only if asked for. Each real
folder is entered once, so that no loop of links is endless and no tree of links explodes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

LEAVES = "a link that leaves the folder: `follow_links: true` reads it"
BROKEN = "a broken link"
MAGIC = re.compile(r"[*?[]")
SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}
MatchedBy = Literal["named", "glob", "folder"]


@dataclass
class Search:
    """A search for files below one folder, and what it found and left out so far.

    root          the real path of the folder in which the pattern starts
    follow_links  enter and read links that leave it
    files         how each file was matched, by path
    left_out      the reason for each path that was matched and is not read
    """

    root: Path
    follow_links: bool
    files: dict[Path, MatchedBy] = field(default_factory=dict)
    left_out: dict[Path, str] = field(default_factory=dict)

    def match(self, folder: Path, segments: Sequence[str]) -> None:
        """Find what the segments of a glob match below a folder."""
        head, *rest = segments
        if head == "**":
            for below in self.folders(folder):
                if rest:
                    self.match(below, rest)
                else:
                    self.add_files(below, "glob")
        elif MAGIC.search(head):
            for entry in self.entries(folder):
                is_shown = head.startswith(".") or not entry.name.startswith(".")
                if is_shown and fnmatchcase(entry.name, head):
                    self.step(folder / entry.name, rest)
        elif os.path.lexists(folder / head):
            self.step(folder / head, rest)

    def step(self, path: Path, rest: Sequence[str]) -> None:
        """Go on with a path that the segments of a glob so far have matched."""
        if not path.is_dir():
            if not rest:
                self.add(path, "glob")
        elif self.may_follow(path):
            if rest:
                self.match(path, rest)
            else:
                self.add_folder(path)

    def add_folder(self, folder: Path) -> None:
        """Add the files of a folder and of all folders below."""
        for below in self.folders(folder):
            self.add_files(below, "folder")

    def add_files(self, folder: Path, matched_by: MatchedBy) -> None:
        """Add the visible files directly in a folder."""
        for entry in self.entries(folder):
            if not entry.name.startswith(".") and not is_folder(entry):
                self.add(folder / entry.name, matched_by)

    def add(self, path: Path, matched_by: MatchedBy) -> None:
        """Add a file, or the reason for which it is left out."""
        if not path.exists():
            self.left_out[path] = BROKEN
        elif self.may_follow(path):
            if kind := special_kind(path):
                self.left_out[path] = f"{kind}, not a regular file"
            elif matched_by == "glob" or path not in self.files:
                self.files[path] = matched_by

    def folders(self, folder: Path) -> Iterator[Path]:
        """Yield a folder and all visible ones below: those behind links last, each only once."""
        waiting, links, entered = [folder], list[Path](), set[str]()
        while waiting or links:
            current = waiting.pop() if waiting else links.pop(0)
            real = os.path.realpath(current)
            if real in entered or not (current == folder or self.may_follow(current)):
                continue
            entered.add(real)
            yield current
            for entry in self.entries(current):
                if not entry.name.startswith(".") and is_folder(entry):
                    (links if entry.is_symlink() else waiting).append(current / entry.name)

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """List a folder, sorted by name."""
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.left_out[folder] = f"a folder that cannot be listed ({error.strerror})"
            return []

    def may_follow(self, path: Path) -> bool:
        """Return whether a path is no link, or one that may be followed; note it if not."""
        if not path.is_symlink() or self.follow_links:
            return True
        is_inside = Path(os.path.realpath(path)).is_relative_to(self.root)
        if not is_inside:
            self.left_out[path] = LEAVES
        return is_inside


def search(pattern: str, base: Path, follow_links: bool) -> Search:
    """Find the files of a local pattern; it starts at the folder `base`.

    Raises OSError for a name that is too long, and ValueError for a named FIFO, socket or device.
    """
    literal = Path(os.path.abspath(base / pattern))
    if literal.exists():  # a name may hold the characters of a glob
        found = Search(Path(os.path.realpath(literal)), follow_links)
        if literal.is_dir():
            found.add_folder(literal)
        else:
            check_regular(literal)
            found.files[literal] = "named"
        return found
    parts = Path(pattern).parts + (("",) if pattern.endswith("/") else ())  # "*/": folders only
    num_fixed = next((n for n, part in enumerate(parts) if MAGIC.search(part)), len(parts))
    start = Path(os.path.abspath(base.joinpath(*parts[:num_fixed])))
    found = Search(Path(os.path.realpath(start)), follow_links)
    if parts[num_fixed:] and start.is_dir():
        found.match(start, parts[num_fixed:])
    if literal.is_symlink():
        found.left_out[literal] = BROKEN
    return found


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one; a broken link is none."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def check_regular(path: Path) -> None:
    """Raise ValueError for a FIFO, socket or device, which could be read for ever."""
    if kind := special_kind(path):
        raise ValueError(f"{path} is {kind}. Name a regular file.")


def special_kind(path: Path) -> str | None:
    """Return the kind of a file that is not a regular one; None if it is."""
    mode = path.stat().st_mode
    return None if stat.S_ISREG(mode) else SPECIAL.get(stat.S_IFMT(mode), "no file")
