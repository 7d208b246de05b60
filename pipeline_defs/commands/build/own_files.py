"""Files of the user's own for `corpus init`: what the places of a command line hold.

What should not be trained on is left out, with the reason: splits for tests and validation, what
another build has published, and formats without a reader.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from assets.raw.places.file_digests import FileDigest, FileStatus
from assets.raw.places.find_inputs import NO_READER, Inputs, LeftOut, find_inputs, is_readme
from assets.raw.places.hub_splits import README, evaluation_files, read_configs
from assets.raw.places.local_files import MAGIC, count_fixed, is_below
from assets.raw.readers.formats import split_compression, tell_format
from assets.raw.readers.input_file import InputFile
from pipeline_defs.commands.terminal import ONE_LINE
from resources.errors import InputError, UsageError
from resources.settings.sources import SourceConfig

STORE_NAME = "corpus_store"
BESIDE_FOLDERS = "*.*"  # the files of a folder whose folders are sources
MANIFEST = re.compile(r"(?P<store>.*)/[^/]+/[^/]+/_manifests/[0-9]+\.json")
ABOUT_FOLDER = "README.md, which is about its folder"
MOST_REASONS = 8  # in a remark


@dataclass(frozen=True)
class Project:
    """The folder of pipeline.yaml, and what a command line gives to read.

    patterns   as pipeline.yaml names them
    optional   those that may match nothing: nobody named them one by one
    notes      what the user may not expect
    """

    folder: Path
    patterns: list[str]
    optional: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """The files of a pattern that are read, `where` that matches just these, and what is not."""

    name: str
    where: tuple[str, ...]
    files: Sequence[InputFile]
    left_out: tuple[str, ...]


def project_of(where: Sequence[str], into: Path | None) -> Project:
    """Return what to read and where to write pipeline.yaml; UsageError if that is not clear.

    Without `into`, a first place that is a folder, or will be one, is that of pipeline.yaml. Other
    places may then be relative to it: they say what of it is read.
    """
    first, *others = where or (str(into or "."),)
    if into is not None or not is_folder(first, others):
        folder = into or Path()
        return expanded(folder, [placed(each, folder) for each in (first, *others)])
    folder = Path(first)
    if not others:
        return expanded(folder, ["."])
    patterns = [inner_or_placed(each, folder) for each in others]
    if not folder.is_dir():
        return Project(folder, patterns, notes=(f"{folder} is new, for pipeline.yaml only.",))
    top = os.path.abspath(folder)
    paths = [each for each in patterns if "://" not in each]
    inside = [each for each in paths if is_below(os.path.abspath(folder / each), top)]
    if inside:
        return Project(folder, patterns, notes=(f"Of {folder}, only {', '.join(inside)} is read.",))
    return Project(folder, [".", *patterns], frozenset("."))


def is_folder(place: str, others: Sequence[str]) -> bool:
    """Return whether a place is a folder, or one to be made for pipeline.yaml: others follow it."""
    if "://" in place or os.path.exists(place) or MAGIC.search(place):
        return os.path.isdir(place)
    if not others:
        raise UsageError(f"{place}: no such file or folder. Correct the name.")
    return tell_format(place)[0] is None


def inner_or_placed(place: str, folder: Path) -> str:
    """Return a place that is relative to a folder, or else to the working folder."""
    if "://" in place or not is_there(place, Path()):
        return place
    if not os.path.isabs(place) and is_there(place, folder) and not folder.samefile("."):
        raise UsageError(
            f"{place!r} is in {folder} and in the working folder. Write its whole path, or name "
            "the folder of pipeline.yaml with --into."
        )
    return placed(place, folder)


def is_there(place: str, folder: Path) -> bool:
    """Return whether a path or glob, relative to a folder, matches something."""
    is_path = os.path.lexists(folder / place)
    return is_path or next(glob.iglob(place, root_dir=folder, recursive=True), None) is not None


def placed(place: str, folder: Path) -> str:
    """Return a place of the command line as a pipeline.yaml in a folder names it."""
    if "://" in place:
        return place
    path, top = os.path.abspath(place), os.path.abspath(folder)
    name = os.path.relpath(path, top) if is_below(path, top) else path
    return f"{name.rstrip('/')}/" if os.path.isdir(path) and name != "." else name


def expanded(folder: Path, patterns: list[str]) -> Project:
    """Put a folder that is alone into patterns for its folders and for the files beside them."""
    top = folder / patterns[0]
    if len(patterns) > 1 or not top.is_dir():
        return Project(folder, patterns)
    start = "" if patterns[0] == "." else patterns[0]
    paths = sorted(path for path in top.iterdir() if not path.name.startswith("."))
    found = [f"{start}{BESIDE_FOLDERS}"] if any(path.is_file() for path in paths) else []
    found += [f"{start}{path.name}/" for path in paths if path.is_dir()]
    found = [pattern for pattern in found if pattern != f"{STORE_NAME}/"]  # what will be built
    return Project(folder, found, frozenset(found))


def places_of(
    project: Project, downloads: Path | None = None, most_entries: int = sys.maxsize
) -> list[Place]:
    """Return the files of each pattern, those that are left out with their reasons."""
    store = downloads or project.folder / STORE_NAME / "_downloads"
    found = {
        each: inputs_of(project.folder, each, store, most_entries) for each in project.patterns
    }
    aside = set_aside(project, found)
    names = source_names([named(project.folder, pattern) for pattern in found])
    return [
        place_of(name, pattern, inputs, aside)
        for name, (pattern, inputs) in zip(names, found.items(), strict=True)
    ]


def named(folder: Path, pattern: str) -> str:
    """Return the pattern that names a source: of the project's own folder, with its name."""
    return os.path.abspath(folder) if pattern == "." else pattern


def inputs_of(folder: Path, where: str, downloads: Path, most_entries: int) -> Inputs:
    """Return the files of a pattern; those of a URL are downloaded to the store, for the build."""
    keys = {"name": "source", "where": where, "allow_no_files": True}
    source = SourceConfig.model_validate(keys)
    return find_inputs(source, folder, downloads, without_digests, most_entries=most_entries)


def without_digests(files: Sequence[FileStatus]) -> list[FileDigest]:
    """Return the sizes of files that need not be read: only a build compares their bytes."""
    return [FileDigest(file.bytes, "") for file in files]


def set_aside(project: Project, found: Mapping[str, Inputs]) -> dict[str, str]:
    """Return why a file that has a reader should not be trained on, by its place."""
    aside: dict[str, str] = {}
    groups: dict[str, set[str]] = {}  # places by the folder in which the names of splits count
    for pattern, inputs in found.items():
        places = {file.place for file in inputs.files if not file.is_remote}
        aside |= published_files(places)
        if pattern.endswith(BESIDE_FOLDERS):
            aside |= {place: ABOUT_FOLDER for place in places if is_readme(place)}
        root = fixed_folder(os.path.abspath(project.folder / pattern))
        is_of_many = pattern in project.optional and pattern.endswith("/")
        for each in {root, os.path.dirname(root) if is_of_many else root}:
            groups.setdefault(each, set()).update(places)
    for root, places in groups.items():
        below = {os.path.relpath(place, root): place for place in sorted(places)}
        splits = evaluation_files([*below], readme_of(root)) if os.path.isdir(root) else {}
        aside |= {below[path]: f"split {split}" for path, split in splits.items()}
    return aside


def fixed_folder(pattern: str) -> str:
    """Return the folder in which a glob starts; a path itself."""
    if os.path.exists(pattern):
        return pattern
    parts = Path(pattern).parts
    return os.path.join(*parts[: count_fixed(parts)])


def readme_of(folder: str) -> bytes:
    """Return the README.md of a folder if its `configs` can be read; else nothing."""
    try:
        content = Path(folder, README).read_bytes()
        read_configs(content)
    except (OSError, InputError):
        return b""
    return content


def published_files(places: Iterable[str]) -> dict[str, str]:
    """Return the files that are in stores of Tokenmill, which the manifests among them tell."""
    stores = {match["store"] for match in map(MANIFEST.fullmatch, places) if match}
    return {
        place: f"published by another build, in {os.path.basename(store)}"
        for place in places
        for store in stores
        if is_below(place, store)
    }


def place_of(name: str, pattern: str, inputs: Inputs, aside: Mapping[str, str]) -> Place:
    """Return the place of a pattern, with globs that match the files to be read and no other."""
    kept = [file for file in inputs.files if file.place not in aside]
    reasons = Counter(aside[file.place] for file in inputs.files if file.place in aside)
    reasons.update(map(reason_of, inputs.left_out))
    is_folder = pattern.endswith(("/", BESIDE_FOLDERS)) or pattern == "."
    dropped = [file.name for file in inputs.files if file.place in aside]
    others = [*dropped, *(each.name for each in inputs.left_out)]
    names = [file.name for file in kept]
    globs = dict.fromkeys(narrowed(names, dropped, others, is_folder)) if dropped else {}
    return Place(
        name,
        (*globs,) or (pattern,),
        kept,
        tuple(counted(number, reason) for reason, number in reasons.most_common(MOST_REASONS)),
    )


def counted(number: int, reason: str) -> str:
    """Return the number of files, or folders, and why they are not read."""
    noun = "folder" if reason.startswith("a folder ") else "file"
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural} ({reason.removeprefix('a folder ')})".translate(ONE_LINE)


def reason_of(each: LeftOut) -> str:
    """Return in a few words why a file is not read."""
    if each.reason == NO_READER:
        return (
            f"no reader for {os.path.splitext(each.name)[1].lower() or 'names without an ending'}"
        )
    return ABOUT_FOLDER if is_readme(each.name) else each.reason


def narrowed(
    kept: Sequence[str], dropped: Sequence[str], others: Sequence[str], is_folder: bool
) -> Iterator[str]:
    """Yield globs that match the one files and none of the others; of a folder, folders too."""
    mixed = {str(parent) for name in dropped for parent in PurePath(name).parents}
    for name in kept:
        whole = [str(parent) for parent in PurePath(name).parents if str(parent) not in mixed]
        if is_folder and whole:
            yield f"{whole[-1]}/"
            continue
        likely = likely_globs(name)[0 if is_folder else 1 :]
        fits = (each for each in likely if not any(fnmatchcase(other, each) for other in others))
        yield next(fits, name)


def likely_globs(name: str) -> tuple[str, str]:
    """Return globs for a file and its like: with its ending, and with other digits."""
    folder, _, last = glob.escape(name).rpartition("/")
    inner, _ = split_compression(last)
    ending = os.path.splitext(inner)[1] + last[len(inner) :]
    start = f"{folder}/" if folder else ""
    return f"{start}*{ending}", f"{start}{re.sub('[0-9]+', '*', last)}"


def source_names(patterns: Sequence[str]) -> list[str]:
    """Return a name for each pattern: its last word without a glob, made unique."""
    names: list[str] = []
    for pattern in patterns:
        path = urlsplit(pattern).path if "://" in pattern else pattern
        words = [word.partition(".")[0] for word in path.split("/") if not set(word) & set("*?[")]
        plain = [re.sub(r"[^A-Za-z0-9_-]+", "-", word).strip("-_") for word in words]
        name = next((word for word in reversed(plain) if word), "documents")
        taken = sum(re.sub(r"-\d+$", "", other) == name for other in names)
        names.append(f"{name}-{taken + 1}" if taken else name)
    return names
