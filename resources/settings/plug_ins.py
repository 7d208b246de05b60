"""Readers, rules, annotators and writers of other packages, which name them as entry points.

    [project.entry-points."tokenmill.formats"]
    json_lines = "my_package.writer:JSON_LINES"

None but a reader is used because it is installed: pipeline.yaml names what it wants. A reader is
used where it is named, and for files with an ending that only it has. The output depends on the
code of a plug-in, so its name, version and the digest of its files belong to fingerprints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar

from resources.store.disk import add_files

Kind = Literal["readers", "rules", "annotators", "formats"]

KINDS: tuple[Kind, ...] = ("readers", "rules", "annotators", "formats")
NAME = re.compile(r"[a-z][a-z0-9_]*")  # a part of names of files and folders
T = TypeVar("T")


class PlugInError(ValueError):
    """A plug-in that is missing or wrong; the message names it and what to do."""


@cache
def plug_ins(kind: Kind) -> dict[str, EntryPoint]:
    """Return the entry points of a kind, by name; PlugInError for a name that two packages have."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"tokenmill.{kind}"):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise PlugInError(
                f"{package_of(other)} and {package_of(entry)} both add {entry.name!r} to "
                f"tokenmill.{kind}. Uninstall one of them."
            )
    return found


def check_plug_in(kind: Kind, name: str, built_in: Sequence[str] = ()) -> str:
    """Return a name that is built in or that an installed package adds; PlugInError else."""
    if name in built_in:
        return name
    if name not in plug_ins(kind):
        names = ", ".join([*built_in, *sorted(plug_ins(kind))]) or "none"
        raise PlugInError(
            f"{name!r} is not one of the {kind} here: {names}. Correct the name, or install the "
            f"package that adds it as an entry point of tokenmill.{kind}"
        )
    if not NAME.fullmatch(name):
        raise PlugInError(f"{name!r}: the name of a plug-in must match {NAME.pattern}")
    return name


def load_plug_in(kind: Kind, name: str, expected: type[T]) -> T:
    """Import what a plug-in adds; PlugInError if it is missing, fails, or is of another type."""
    entry = plug_ins(kind)[check_plug_in(kind, name)]
    try:
        loaded = entry.load()
    except Exception as error:
        raise PlugInError(
            f"{entry.value} of {package_of(entry)} (tokenmill.{kind}: {name}) cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(loaded, expected):
        raise PlugInError(
            f"{entry.value} of {package_of(entry)} (tokenmill.{kind}: {name}) is a "
            f"{type(loaded).__name__}; it must be a {expected.__name__}"
        )
    return loaded


def with_identity(kind: Kind, name: str) -> str:
    """Return a name for fingerprints: that of a plug-in with its package and digest."""
    entry = plug_ins(kind).get(name)
    return name if entry is None else f"{name} of {package_of(entry)} {digest_of(entry)}"


def all_identities() -> list[str]:
    """Return the names, packages and digests of all plug-ins, for nodes of a cluster to compare."""
    return [f"{kind}: {with_identity(kind, name)}" for kind in KINDS for name in plug_ins(kind)]


def package_of(entry: EntryPoint) -> str:
    """Return the name and version of the package that adds an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


@cache  # a fingerprint of every part asks for it; and what is imported stays as it was
def digest_of(entry: EntryPoint) -> str:
    """Return the sha256 of the files of a plug-in's top-level modules, as 64 hex digits."""
    digest = hashlib.sha256()
    for name in modules_of(entry):
        spec = find_spec(name)  # none: importing it fails, with the reason
        folders = [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
        for folder in folders:  # several of a namespace
            add_files(digest, folder, folder.rglob("*"))
        if spec and spec.origin and not folders:
            add_files(digest, Path(spec.origin).parent, [Path(spec.origin)])
    return digest.hexdigest()


def modules_of(entry: EntryPoint) -> list[str]:
    """Return the top-level modules of the package that adds an entry point, the entry's first.

    An editable install lists them in top_level.txt alone (of setuptools), if at all.
    """
    own, package = entry.module.partition(".")[0], entry.dist
    names = set(((package and package.read_text("top_level.txt")) or "").split())
    for file in (package and package.files) or ():
        if file.suffix == ".py" and not file.name.startswith("__editable__"):
            names.add(file.parts[0].removesuffix(".py"))
    return [own, *sorted(name for name in names - {own} if name.isidentifier())]
