"""Files that belong to a configuration and split of a dataset on the Hugging Face hub.

They follow from `configs` in the metadata of README.md, else from the names of files and folders,
by the conventions of the hub: data/train-00000-of-00010.parquet, test/, dev.jsonl. Where neither
says anything, every data file is of the split `train`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from assets.raw.places.object_files import match
from resources.errors import InputError
from resources.settings.named_files import YamlError, parse_yaml

README = "README.md"
TRAIN = "train"
NAME_FILES = "Name the files in `where`, as hf://owner/name/*.parquet"
ONLY_CONFIG = "default"
NO_DATA = frozenset(
    {README, "config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json"}
)
FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
CONFIGS = re.compile(r"^configs[ \t]*:.*?(?=^[^\s#\-\]}]|\Z)", re.DOTALL | re.MULTILINE)
SHARD = re.compile(r"data/(?P<split>\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*\.[^/]*")
KEYWORDS = {
    TRAIN: ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
BESIDE = r"[-._ 0-9]"  # what separates a split's name from the rest of a file's or folder's
NAMES = {
    split: re.compile(rf"(?:.*{BESIDE})?(?:{'|'.join(keywords)})(?:{BESIDE}.*)?")
    for split, keywords in KEYWORDS.items()
}


class _SplitFiles(msgspec.Struct):
    split: str
    path: str | list[str]


class _Config(msgspec.Struct):
    config_name: str | int | float | bool
    data_files: str | list[str | _SplitFiles] | None = None
    data_dir: str | None = None
    default: bool = False


class _Card(msgspec.Struct):
    configs: list[_Config] | None = None


class Split(NamedTuple):
    """A configuration and split of a dataset; None is the default one."""

    config: str | None
    split: str | None


def split_paths(paths: Iterable[str], readme: bytes, wanted: Split) -> list[str]:
    """Return which of the data files of a repository belong to a configuration and split.

    Raises InputError with the names that there are for an unknown one.
    """
    config = _chosen(read_configs(readme), wanted.config)
    return _of_split(_splits(config, paths), config, wanted.split)


def evaluation_files(paths: Sequence[str], readme: bytes) -> dict[str, str]:
    """Return the split of each file of a dataset that is there to test or validate.

    Without `configs` in README.md, names tell that only beside files of the split `train`.
    """
    configs = read_configs(readme)
    split_of, trained = dict[str, str](), set[str]()
    for config in configs or [_Config(ONLY_CONFIG)]:
        splits = _splits(config, paths)
        evaluated = {name for name in splits if _keyword_of(name) not in (None, TRAIN)}
        if configs or TRAIN in splits:
            split_of |= {path: name for name in evaluated for path in splits[name]}
        trained |= {path for name in {*splits} - evaluated for path in splits[name]}
    return {path: name for path, name in split_of.items() if path not in trained}


def _splits(config: _Config, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the data files of each split of a configuration."""
    data = [path for path in paths if is_data(path)]
    if config.data_files is None:
        folder = _folder(config)
        below = [path[len(folder) :] for path in data if path.startswith(folder)]
        splits = by_convention(below)
        return {name: [folder + path for path in of_split] for name, of_split in splits.items()}
    return {
        name: [path for path in data if any(match(p, path.split("/")) for p in patterns)]
        for name, patterns in _patterns(config).items()
    }


def is_data(path: str) -> bool:
    """Return whether a file of a repository is neither hidden nor about the repository."""
    *folders, name = path.split("/")
    is_special = name.startswith(".") or any(each.startswith((".", "__")) for each in folders)
    return name not in NO_DATA and not is_special


def read_configs(readme: bytes) -> list[_Config]:
    """Return the configurations that README.md lists; of its metadata only these are parsed."""
    card = FRONT_MATTER.match(readme.decode("utf-8", "replace"))
    block = CONFIGS.search(card[1]) if card else None
    if block is None:
        return []
    try:
        content, _ = parse_yaml(block[0].encode(), README)
        return msgspec.convert(content, _Card).configs or []
    except YamlError as error:
        raise InputError(f"{error}. {NAME_FILES}") from None
    except msgspec.ValidationError as error:
        fault = f"`configs` of {README} cannot be read: {error}. {NAME_FILES}"
        raise InputError(fault) from None


def by_convention(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each split by the names of shards, else of folders, else of files."""
    shards: dict[str, list[str]] = {}
    for path in paths:
        if shard := SHARD.fullmatch(path):
            shards.setdefault(shard["split"], []).append(path)
    folders, file = slice(None, -1), slice(-1, None)
    return shards or _by_keyword(paths, folders) or _by_keyword(paths, file) or {TRAIN: [*paths]}


def _by_keyword(paths: Sequence[str], of_path: slice) -> dict[str, list[str]]:
    found = {}
    for split, pattern in NAMES.items():
        of_split = [path for path in paths if any(map(pattern.fullmatch, path.split("/")[of_path]))]
        if of_split:
            found[split] = of_split
    return found


def _keyword_of(name: str) -> str | None:
    return next((split for split, pattern in NAMES.items() if pattern.fullmatch(name)), None)


def _chosen(configs: Sequence[_Config], wanted: str | None) -> _Config:
    known = {str(config.config_name): config for config in configs or [_Config(ONLY_CONFIG)]}
    defaults = [config for name, config in known.items() if config.default or name == ONLY_CONFIG]
    if wanted is None and (len(known) == 1 or len(defaults) == 1):
        return (defaults or [*known.values()])[0]
    if wanted in known:
        return known[wanted]
    fault = "has no default one" if wanted is None else f"has no {wanted!r}"
    raise InputError(
        f"`config`: the dataset {fault}; its configurations: {', '.join(sorted(known))}"
    )


def _of_split(splits: Mapping[str, list[str]], config: _Config, wanted: str | None) -> list[str]:
    name = wanted or TRAIN
    if name not in splits:
        raise InputError(
            f"`split`: configuration {config.config_name!r} has no split {name!r}; its splits: "
            f"{', '.join(sorted(splits))}"
        )
    return splits[name]


def _patterns(config: _Config) -> dict[str, list[list[str]]]:
    """Return the segments of the globs of each split."""
    files = [config.data_files] if isinstance(config.data_files, str) else config.data_files or []
    splits: dict[str, list[str]] = {}
    for each in files:
        name, path = (TRAIN, each) if isinstance(each, str) else (each.split, each.path)
        splits.setdefault(name, []).extend([path] if isinstance(path, str) else path)
    elsewhere = [path for paths in splits.values() for path in paths if "://" in path]
    if elsewhere:
        raise InputError(
            f"configuration {config.config_name!r} has files outside of the repository "
            f"({elsewhere[0][:200]}). List the files in `where`"
        )
    folder = _folder(config)
    return {
        name: [(folder + path.removeprefix("./")).strip("/").split("/") for path in paths]
        for name, paths in splits.items()
    }


def _folder(config: _Config) -> str:
    """Return the folder of a configuration's files with its last slash; "" for the repository."""
    folder = posixpath.normpath(config.data_dir or ".").strip("/")
    return "" if folder == "." else f"{folder}/"
