"""Changes of the product that tests should notice: drawn, made, and noticed or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from mutations import (
    Mutation,
    Source,
    as_lines,
    changed_text,
    changes,
    draw,
    nearest_tests,
    try_out,
)

MODULE = '''"""Two in a docstring."""
def small(value: int, limit: int = 2, name: str = "a") -> bool:
    if value is not None and value < limit:
        print(f"{value + 1}")
    return name in (
        "a",
    )
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a module, one that uses it, and a test of each."""
    texts = {
        "pyproject.toml": "",
        "assets/small.py": "def is_small(value, limit=2):\n    return value < limit\n",
        "assets/user.py": "from assets.small import is_small\nprint('one')\n",
        "tests/test_user.py": "import assets.user\ndef test_nothing():\n    pass\n",
        "tests/test_sizes.py": "from assets.small import is_small\n"
        "def test_one():\n    assert is_small(1) and not is_small(3)\n",
    }
    for name, text in texts.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def small_change(before: str, after: str) -> Mutation:
    """A change of the module in the tree."""
    return Mutation(1, "assets/small.py", 2, "is_small", "limit", before, after)


def test_every_kind_of_change_is_found_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MODULE)
    source = Source(tmp_path / "a.py")
    found = {
        (function, kind, source.text[slice(*span)], new)
        for function, kind, span, new in changes(source)
    }
    assert found == {
        ("small", "number", "2", "3"),
        ("small", "default", '"a"', "'ax'"),
        ("small", "condition", "value is not None and value < limit",
         "(not (value is not None and value < limit))"),
        ("small", "and/or", "and", "or"),
        ("small", "comparison", "is not", "is"),
        ("small", "comparison", "<", ">="),
        ("small", "limit", "<", "<="),
        ("small", "call", 'print(f"{value + 1}")', "pass"),
        ("small", "comparison", "in", "not in"),
    }  # fmt: skip


def test_a_change_is_told_in_whole_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MODULE)
    source = Source(tmp_path / "a.py")
    first = MODULE.index("<")
    line, before, after = as_lines(source, (first, first + 1), ">=")
    assert (line, before) == (3, "    if value is not None and value < limit:")
    assert after == "    if value is not None and value >= limit:"


def test_a_seed_draws_the_same_changes(tree: Path) -> None:
    assert draw(tree, 4, 1) == draw(tree, 4, 1) != draw(tree, 4, 2)


def test_tests_that_import_a_module_themselves_come_first(tree: Path) -> None:
    tests = nearest_tests(tree, tree / "assets/small.py")
    assert tests == ["tests/test_sizes.py", "tests/test_user.py"]


def test_a_change_is_found_where_its_lines_are_by_now(tree: Path) -> None:
    (tree / "assets/small.py").rename(tree / "assets/moved.py")
    found = changed_text(tree, small_change("    return value < limit", "    return True"))
    assert found is not None and found[0] == tree / "assets/moved.py"
    assert found[1] == "def is_small(value, limit=2):\n    return True\n"
    assert changed_text(tree, small_change("    return value > limit", "")) is None


def test_a_change_is_caught_or_survives_and_is_undone(tree: Path) -> None:
    before = (tree / "assets/small.py").read_text()
    results = [
        try_out(tree, small_change("value < limit", after), ["tests/test_sizes.py"], 60)
        for after in ("value >= limit", "value <= limit")
    ]
    assert [each.result for each in results] == ["caught", "survived"]
    assert results[0].test == "tests/test_sizes.py::test_one"
    assert (tree / "assets/small.py").read_text() == before
