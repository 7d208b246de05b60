"""Read the files that a user names: pipeline.yaml, word lists, tokenizers, ledgers.

Each is read whole, so each has a bound. What is no regular file is refused before it is opened: a
pipe without a writer would hang, and a device such as /dev/zero never ends.

YAML may be hostile: it is bounded in nodes after its aliases are expanded, too, and in the digits
of a number. An alias costs four characters and repeats everything below its anchor: nine lines of
nine aliases each expand to 387,420,489 nodes, which reading shares but checking walks one by one.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import yaml

from resources.settings.faults import KeyPath, node_lines


class NamedFileError(ValueError):
    """A file that cannot be read whole; the message names it and what to do."""


def check_named_file(path: Path, most_bytes: int) -> None:
    """Refuse what is no regular file, or larger than `most_bytes`."""
    try:
        status = path.stat()
    except OSError as error:
        raise NamedFileError(f"{path}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise NamedFileError(f"{path}: {kind_of(status.st_mode)}; name a regular file")
    if status.st_size > most_bytes:
        raise NamedFileError(
            f"{path}: {status.st_size:,} bytes, and at most {most_bytes:,} are read; name a "
            "smaller file"
        )


def read_named_file(path: Path, most_bytes: int) -> bytes:
    """Return a file's content; NamedFileError for what `check_named_file` refuses."""
    check_named_file(path, most_bytes)
    try:
        with open(path, "rb", opener=open_at_once) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise NamedFileError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise NamedFileError(f"{path}: grows beyond {most_bytes:,} bytes; name another file")
    return content


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, should it have become a pipe since it was looked at."""
    return os.open(path, flags | os.O_NONBLOCK)


def kind_of(mode: int) -> str:
    """Name what a path is that is no regular file."""
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")


MOST_BYTES = 1 << 20  # PyYAML reads 100 to 200 KB a second
MOST_NODES = 200_000  # 1 MB without aliases has fewer, unless it is all brackets
MOST_DIGITS = 400  # of a number: 1:59:59:... is base 60, and costs the square of its length
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class YamlError(ValueError):
    """A file that is no YAML, or more than its bounds; the message names file, line and fault."""


def read_yaml(path: Path) -> tuple[object, dict[KeyPath, int]]:
    """Return a file's content, and the line of every key path.

    Raises YamlError, and NamedFileError for a file that cannot be read.
    """
    return parse_yaml(read_named_file(path, MOST_BYTES), str(path))


def parse_yaml(encoded: bytes, path: str) -> tuple[object, dict[KeyPath, int]]:
    """Return the content of YAML, and the line of every key path; YamlError names `path`."""
    if len(encoded) > MOST_BYTES:
        raise YamlError(f"{path}: {len(encoded):,} bytes of YAML, over {MOST_BYTES:,}")
    try:
        loader = yaml.SafeLoader(encoded.decode())
        root = loader.get_single_node()
        if root is None:
            return None, {}
        check_size(root, {})
        lines = dict(node_lines(root, ()))  # before construction, which lays merges over the nodes
        return loader.construct_document(root), lines
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: cannot be read ({error}). Save it as UTF-8.") from None
    except RecursionError:
        raise YamlError(f"{path}: not valid YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a 13th month
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise YamlError(f"{path}{line}: not valid YAML: {problem}") from None


def check_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of nodes at and below a node, each alias counted as what it repeats.

    `sizes` has those of nodes seen before, and 0 for those around this one. Raises
    yaml.MarkedYAMLError at the node that is too large, contains itself, or is too long a number.
    """
    size = sizes.get(id(node))
    if size == 0:
        raise refused(node, "an alias inside of what it repeats; remove it")
    if size is None:
        sizes[id(node)] = 0
        size = 1 + sum(check_size(below, sizes) for below in nodes_below(node))
        sizes[id(node)] = size
    if size > MOST_NODES:
        raise refused(node, f"over {MOST_NODES:,} values, with aliases expanded; use fewer aliases")
    if node.tag in NUMBERS and len(node.value) > MOST_DIGITS:
        raise refused(node, f"a number of {len(node.value):,} characters; quote it, or correct it")
    return size


def nodes_below(node: yaml.Node) -> list[yaml.Node]:
    """Return the items of a sequence, or the keys and values of a mapping."""
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [below for pair in node.value for below in pair]
    return []


def refused(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    """Return an error at the place of a node."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
