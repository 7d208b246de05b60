"""Regular files that a path, folder or glob names.

Links that leave the folder in which a pattern starts are followed only if asked for. Each real
folder is entered once, so that no loop of links is endless and no tree of links explodes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

from assets.raw.places.file_digests import FileDigest, FileStatus, status_of

LEAVES = "a link that leaves the folder: `follow_links: true` reads it"
BROKEN = "a broken link"
UNLISTED = "a folder with more entries than are looked at"
MAGIC = re.compile(r"[*?[]")
SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}
MatchedBy = Literal["named", "glob", "folder"]
MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
CLOSED = frozenset({errno.EACCES, errno.EPERM, errno.ENAMETOOLONG})  # others may pass: EMFILE


class Match(NamedTuple):
    """A file that an entry of `where` matches; one elsewhere has the digest of its version."""

    name: str
    matched_by: MatchedBy
    status: FileStatus
    digest: FileDigest | None = None


def remote_match(
    name: str, matched_by: MatchedBy, digest: FileDigest, place: str | None = None
) -> Match:
    """Return a file of another machine, of which only the version is known."""
    return Match(name, matched_by, FileStatus(place or name, digest.bytes, 0, 0, 0), digest)


class Found(NamedTuple):
    """A regular file that was found: how it was matched, and what its one stat says."""

    matched_by: MatchedBy
    status: FileStatus
    is_link: bool


@dataclass
class Search:
    """A search for files below one folder, and what it found and left out so far.

    root          the real path of the folder in which the pattern starts
    follow_links  enter and read links that leave it
    most_entries  of folders that are still looked at: the first that the file system gives
    files         the files that were found, by path: strings, as there may be a million of them
    left_out      the reason for each path that was matched and is not read
    """

    root: str
    follow_links: bool
    most_entries: int = sys.maxsize
    files: dict[str, Found] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def match(self, folder: str, segments: Sequence[str]) -> None:
        """Find what the segments of a glob match below a folder."""
        head, *rest = segments
        if head == "**":
            for below, entries in self.folders(folder):
                if rest:
                    self.match(below, rest)
                else:
                    self.add_files(entries, "glob")
        elif MAGIC.search(head):
            matches = re.compile(translate(head)).match
            for entry in self.entries(folder):
                is_shown = head.startswith(".") or not entry.name.startswith(".")
                if is_shown and matches(entry.name):
                    self.step(entry.path, rest, is_folder(entry), entry.is_symlink())
        elif os.path.lexists(path := os.path.join(folder, head)):
            self.step(path, rest, os.path.isdir(path), os.path.islink(path))

    def step(self, path: str, rest: Sequence[str], is_dir: bool, is_link: bool) -> None:
        """Go on with a path that the segments of a glob so far have matched."""
        if not is_dir:
            if not rest:
                self.add(path, "glob", is_link)
        elif self.may_follow(path, is_link):
            if rest:
                self.match(path, rest)
            else:
                self.add_folder(path)

    def add_folder(self, folder: str) -> None:
        """Add the files of a folder and of all folders below."""
        for _, entries in self.folders(folder):
            self.add_files(entries, "folder")

    def add_files(self, entries: Sequence[os.DirEntry[str]], matched_by: MatchedBy) -> None:
        """Add the visible files of a folder's entries."""
        for entry in entries:
            if not entry.name.startswith(".") and not is_folder(entry):
                self.add(entry.path, matched_by, entry.is_symlink())

    def add(self, path: str, matched_by: MatchedBy, is_link: bool) -> None:
        """Add a file, or the reason for which it is left out."""
        try:
            status = os.stat(path)
        except OSError as error:
            if error.errno not in MISSING:
                raise
            self.left_out[path] = BROKEN
            return
        if self.may_follow(path, is_link):
            if kind := special_kind(status.st_mode):
                self.left_out[path] = f"{kind}, not a regular file"
            elif matched_by == "glob" or path not in self.files:
                self.files[path] = Found(matched_by, status_of(path, status), is_link)

    def folders(self, folder: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """Yield a folder and all visible ones below, with what they hold.

        Those behind links come last, each only once.
        """
        waiting, links, entered = [folder], list[str](), set[str]()
        while waiting or links:
            is_link = not waiting
            current = waiting.pop() if waiting else links.pop(0)
            real = os.path.realpath(current)
            if real in entered or not (current == folder or self.may_follow(current, is_link)):
                continue
            entered.add(real)
            entries = self.entries(current)
            yield current, entries
            for entry in entries:
                if is_folder(entry) and not entry.name.startswith("."):
                    below = os.path.join(current, entry.name)
                    (links if entry.is_symlink() else waiting).append(below)

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder, sorted by name."""
        try:
            with os.scandir(folder) as entries:
                found = sorted(islice(entries, self.most_entries), key=attrgetter("name"))
        except OSError as error:
            if error.errno not in MISSING | CLOSED:
                raise
            self.left_out[folder] = f"a folder that cannot be listed ({error.strerror})"
            return []
        self.most_entries -= len(found)
        if not self.most_entries:
            self.left_out[folder] = UNLISTED
        return found

    def may_follow(self, path: str, is_link: bool) -> bool:
        """Return whether a path is no link, or one that may be followed; note it if not."""
        if not is_link or self.follow_links:
            return True
        is_inside = is_below(os.path.realpath(path), self.root)
        if not is_inside:
            self.left_out[path] = LEAVES
        return is_inside


def is_below(path: str, folder: str) -> bool:
    """Return whether a normal path is a folder or below it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def search(pattern: str, base: Path, follow_links: bool, most_entries: int = sys.maxsize) -> Search:
    """Find the files of a local pattern; it starts at the folder `base`.

    Raises OSError for a name that is too long, and ValueError for a named FIFO, socket or device.
    """
    literal = os.path.abspath(base / pattern)
    if Path(literal).exists():  # a name may hold the characters of a glob
        found = Search(os.path.realpath(literal), follow_links, most_entries)
        if os.path.isdir(literal):
            found.add_folder(literal)
        else:
            found.files[literal] = named_file(literal)
        return found
    parts = Path(pattern).parts + (("",) if pattern.endswith("/") else ())  # "*/": folders only
    num_fixed = count_fixed(parts)
    start = os.path.abspath(base.joinpath(*parts[:num_fixed]))
    found = Search(os.path.realpath(start), follow_links, most_entries)
    if parts[num_fixed:] and os.path.isdir(start):
        found.match(start, parts[num_fixed:])
    if os.path.islink(literal):
        found.left_out[literal] = BROKEN
    return found


def count_fixed(parts: Sequence[str]) -> int:
    """Count the parts of a path before the first that is a glob."""
    return next((n for n, part in enumerate(parts) if MAGIC.search(part)), len(parts))


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one; a broken link is none."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def named_file(path: str) -> Found:
    """Return the file of a path; ValueError for a FIFO, socket or device, read for ever."""
    status = os.stat(path)
    if kind := special_kind(status.st_mode):
        raise ValueError(f"{path} is {kind}. Name a regular file.")
    return Found("named", status_of(path, status), os.path.islink(path))


def special_kind(mode: int) -> str | None:
    """Return the kind of a file that is not a regular one; None if it is."""
    return None if stat.S_ISREG(mode) else SPECIAL.get(stat.S_IFMT(mode), "no file")
