"""Read YAML that may be hostile: bounded in bytes, in nodes after its aliases are expanded, and in
the digits of a number.

An alias costs four characters and repeats everything below its anchor: nine lines of nine
aliases each expand to 387,420,489 nodes, which reading shares but checking walks one by one.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from resources.settings.faults import KeyPath, node_lines
from resources.settings.named_files import read_named_file

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
    """Return what YAML says, and the line of every key path; YamlError names `path`."""
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
