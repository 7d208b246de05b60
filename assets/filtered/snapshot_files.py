"""Snapshots of robots.txt and ai.txt that a user gives: JSON lines, each with its hash."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from assets.filtered.opt_out import newest_files
from resources.urls import parse_url

NAMES = ("robots.txt", "ai.txt")
MOST_TEXT_BYTES = 500 * 1024  # RFC 9309: what follows may be ignored


class Snapshot(msgspec.Struct, frozen=True):
    """A file of a site as it was on a date; `sha256` is that of the text in UTF-8."""

    url: str
    date: datetime.date
    sha256: str
    text: str


def read_snapshots(paths: Iterable[Path]) -> dict[str, tuple[str, ...]]:
    """Return the newest texts of each host; ValueError that names a wrong line."""
    snapshots: dict[tuple[str, str], dict[str, str]] = {}
    for path in paths:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        place, date, text = checked(line)
                    except (ValueError, msgspec.MsgspecError) as error:
                        raise ValueError(f"{path}: line {number}: {error}") from error
                    snapshots.setdefault(place, {})[date] = text
    return dict(newest_files(snapshots))


def checked(line: bytes) -> tuple[tuple[str, str], str, str]:
    """Return host and name of the file of a snapshot, its date and its text."""
    snapshot = msgspec.json.decode(line, type=Snapshot)
    content = snapshot.text.encode()
    if (found := hashlib.sha256(content).hexdigest()) != snapshot.sha256.lower():
        raise ValueError(
            f"the sha256 of its text is {found}, not {snapshot.sha256!r:.80}: the snapshot is not "
            "as it was taken. Take it again."
        )
    url = parse_url(snapshot.url)
    name = url.path.rpartition("/")[2].lower()
    if name not in NAMES or not url.host:
        raise ValueError(f"{snapshot.url!r:.200} is no URL of a robots.txt or an ai.txt")
    return (
        (url.domain, name),
        snapshot.date.isoformat(),
        content[:MOST_TEXT_BYTES].decode(errors="ignore"),
    )
