"""Inventory of the files of a store, and of the records of its runs: who writes one declares it.

`corpus verify`, `corpus states gc`, `corpus takedown` and its proof walk it, and have no lists of
their own. A file that nobody declared fails a test; where there is one, a proof searches it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from corpus_loader.places.files import TAGS, TAKEDOWNS, TEMPORARY_PREFIX
from resources.store.disk import files_below
from resources.store.medium import DISK, medium_of
from resources.store.named_states import HOLDS
from resources.store.preview_files import PREVIEWS, REPORT, SUM
from resources.store.records import DOWNLOADS, FIND_INDEX, JOURNALS, MANIFESTS, RECORDS
from resources.store.scratch import LEASES, MARK, USERS

LOCK_NAME = ".run.lock"
ACCEPTED, PATCHES = "_accepted", "_patches"
TABLES, DIGESTS = "iceberg-", "digests.json"  # a folder for each table, and in it for each source
RUNS, NOTES, PICTURES = "tokenmill_runs", "runs", "pictures"  # in DAGSTER_HOME

NAMES = {  # what stands for names in patterns
    "STAGE": rf"(?P<stage>(?!({REPORT}|{RUNS}|{NOTES}|{PICTURES}|tables)/)[a-z][a-z_]*)",
    "PARTITION": r"(?P<partition>[A-Za-z0-9][\w.-]*)",
    "**/": "(?:.*/)?",
    "**": ".*",
    "*": rf"[^/._][^/]*(?<!{re.escape(FIND_INDEX)})",
}


@dataclass(frozen=True)
class DeclaredFiles:
    """The files of one writer.

    pattern  their paths below the store, or from RUNS on; " | " stands between two
    check    what `corpus verify` compares them with: the manifest that names them, what their
             reader expects, the digests beside them; nothing where nobody trusts them
    text     what removes texts of documents from them, if they have any: the next build and
             --purge with older states; the takedown, after which they are made again ("remade"), or
             without the record ("edited"); or that they were left by a killed writer
    """

    name: str
    pattern: str
    check: Literal["manifest", "reader", "digests", "nothing"] = "nothing"
    text: Literal["none", "states", "remade", "edited", "left"] = "none"


INVENTORY = (
    DeclaredFiles("temporaries", f"**/{TEMPORARY_PREFIX}** | **.damaged", text="left"),
    DeclaredFiles("locks", f"{LOCK_NAME} | STAGE/PARTITION/.lock | {LEASES}/* | {USERS}/*"),
    DeclaredFiles("mark of a scratch", MARK),
    DeclaredFiles("manifests", f"STAGE/PARTITION/{MANIFESTS}/*.json", "manifest", "states"),
    DeclaredFiles("records", f"STAGE/PARTITION/{RECORDS}/*.json", "manifest", "states"),
    DeclaredFiles(
        "copies", f"STAGE/PARTITION/{MANIFESTS}/.* | STAGE/PARTITION/{RECORDS}/.*", text="states"
    ),
    DeclaredFiles("parts", "STAGE/PARTITION/* | STAGE/PARTITION/*/*", "manifest", "states"),
    DeclaredFiles("find indexes", f"STAGE/PARTITION/*{FIND_INDEX}", "reader"),
    DeclaredFiles("previews", f"{PREVIEWS}/STAGE/PARTITION.md", text="remade"),
    DeclaredFiles("sums", f"{PREVIEWS}/STAGE/PARTITION{SUM}", text="remade"),
    DeclaredFiles("report", f"{PREVIEWS}/{REPORT}/*", text="remade"),
    DeclaredFiles("tags", f"{TAGS}/*.json", "reader"),
    DeclaredFiles("holds", f"{HOLDS}/PARTITION.json", "reader"),
    DeclaredFiles("consents", f"{ACCEPTED}/*.json"),
    DeclaredFiles("takedowns", f"{TAKEDOWNS}/*.json", "reader"),
    DeclaredFiles("patches", f"{PATCHES}/PARTITION/*.json", "reader", "edited"),
    DeclaredFiles("downloads", f"{DOWNLOADS}/*"),  # input files, which are the user's
    DeclaredFiles("answers", f"{JOURNALS}/*"),  # by digests of texts
    DeclaredFiles("tables", f"{TABLES}*/PARTITION/*/*", "digests", "remade"),
    DeclaredFiles("digests", f"{TABLES}*/PARTITION/{DIGESTS}", "reader", "remade"),
    DeclaredFiles("notes of runs", f"{RUNS}/*/{NOTES}/*"),
    DeclaredFiles("reports of runs", f"{RUNS}/*/STAGE/*"),
    DeclaredFiles("columns", f"{RUNS}/*/tables/STAGE/PARTITION.json", text="remade"),
    DeclaredFiles("errors", f"{RUNS}/*/frames.log", text="remade"),
    DeclaredFiles("pictures", f"{RUNS}/{PICTURES}/*"),
)


class StoredFile(NamedTuple):
    """A file that was found: its path as patterns have it, who declares it, and what it is of.

    `text` is that of the declaration, None if there is none.
    """

    name: str
    path: Path
    declared: DeclaredFiles | None = None
    text: str | None = None
    stage: str | None = None
    partition: str | None = None


def stored_files(root: Path, records: Path, *, with_stages: bool = False) -> Iterator[StoredFile]:
    """Yield the files of a store, those of stages only if asked for, and of its runs' `records`.

    Those in the scratch of an object store are among them, which may be there alone.
    """
    medium, found = medium_of(root), {name: root / name for name in DISK.sizes(root)}
    for top in {*medium.names(root), *DISK.names(root)} - found.keys():
        if with_stages or not re.fullmatch(NAMES["STAGE"], top):
            names = {*medium.files_below(root / top), *files_below(root / top)}
            found |= {f"{top}/{name}": root / top / name for name in names}
    for name in files_below(records.parent):
        if name.partition("/")[0] in (records.name, PICTURES):
            found[f"{RUNS}/{name}"] = records.parent / name
    for name, path in sorted(found.items()):
        yield next(declared_as(name, path), StoredFile(name, path))


def declared_as(name: str, path: Path) -> Iterator[StoredFile]:
    """Yield a file for each pattern that its name has: one, if the inventory is right."""
    for each in INVENTORY:
        for pattern in each.pattern.split(" | "):
            if found := expression_of(pattern).fullmatch(name):
                of = found.groupdict()
                yield StoredFile(name, path, each, each.text, of.get("stage"), of.get("partition"))


@cache
def expression_of(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern."""
    pieces = re.split(r"(STAGE|PARTITION|\*\*/|\*\*|\*)", pattern)
    return re.compile("".join(NAMES.get(piece) or re.escape(piece) for piece in pieces))


def remove_stored(root: Path, paths: Collection[Path]) -> None:
    """Remove files of a store, many at a time, and of the records beside it."""
    inside = {path for path in paths if path.is_relative_to(root)}
    medium_of(root).remove_all([*inside])
    DISK.remove_all([*{*paths} - inside])
