"""Promises of README and docs: each sentence stands there, and a test holds it.

`promises.yaml` quotes a distinctive part of each sentence. `held` names the test that fails if it
is no longer true; `untested` says what there is instead.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROMISES = yaml.safe_load((ROOT / "tests/promises.yaml").read_text(encoding="utf-8"))
LONGEST_QUOTE = 100
TESTS = [test for quotes in PROMISES["held"].values() for test in quotes.values()]


@cache
def names_in(path: str) -> set[str]:
    """Names of the functions of a test file."""
    file = ROOT / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.parse("")
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", sorted({*PROMISES["held"], *PROMISES["untested"]}))
def test_every_sentence_stands_in_its_document(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    quotes = [*PROMISES["held"].get(page, {}), *PROMISES["untested"].get(page, {})]
    assert [quote for quote in quotes if quote not in text] == []
    assert [quote for quote in quotes if len(quote) > LONGEST_QUOTE] == []
    assert len(quotes) == len(set(quotes)), "a promise is either held or untested"


def test_every_promise_has_a_test_that_exists() -> None:
    missing = [test for test in TESTS if test.split("::")[1] not in names_in(test.split("::")[0])]
    assert missing == []


def test_what_is_untested_says_what_there_is_instead() -> None:
    notes = [note for quotes in PROMISES["untested"].values() for note in quotes.values()]
    assert [note for note in notes if not note or len(note) < 10] == []
