"""A fresh process returns what a function says, with seeds of its own, or fails as a machine."""

from prelude import pytest, sys

from resources.engine.fresh_process import call_in_fresh_process


def add(one: int, other: int) -> int:
    sys.stdout.write("what a function prints is no part of its result")
    return one + other


def hash_of(text: str) -> int:
    return hash(text)


def fail() -> None:
    raise ValueError("of its own")


def test_a_result_comes_back() -> None:
    assert call_in_fresh_process(add, 2, 3) == 5


def test_hashes_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    one = call_in_fresh_process(hash_of, "text")
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert call_in_fresh_process(hash_of, "text") != one


def test_an_error_there_is_no_result() -> None:
    with pytest.raises(RuntimeError, match="for fail ended with 1: ValueError: of its own"):
        call_in_fresh_process(fail)
