"""Calls side by side: a slow one delays no other, and all are answered."""

import threading
from concurrent.futures import Future

import pytest

from resources import side_by_side
from resources.side_by_side import AT_ONCE, rounds


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "PROMPT_SECONDS", 0.1)
    monkeypatch.setattr(side_by_side, "LOOK_SECONDS", 0.01)


def results(ended: dict[str, Future[int]]) -> dict[str, int]:
    return {name: future.result() for name, future in ended.items()}


def test_a_slow_call_comes_in_a_round_of_its_own() -> None:
    go_on = threading.Event()
    found = rounds({"slow": lambda: go_on.wait(9) + 0, "b": lambda: 2, "a": lambda: 3})
    first = next(found)
    assert list(first) == ["b", "a"] and results(first) == {"b": 2, "a": 3}
    go_on.set()
    assert [results(ended) for ended in found] == [{"slow": 1}]


def test_the_first_round_may_be_empty() -> None:
    go_on = threading.Event()
    found = rounds({"slow": lambda: go_on.wait(9) + 0})
    assert next(found) == {}
    go_on.set()
    assert [results(ended) for ended in found] == [{"slow": 1}]
    assert list(rounds({})) == [{}]


def test_calls_begin_before_a_round_is_asked_for_and_errors_are_kept() -> None:
    begun = threading.Event()
    found = rounds({"a": begun.set, "b": lambda: 1 // 0})
    assert begun.wait(9)
    [ended] = found
    with pytest.raises(ZeroDivisionError):
        ended["b"].result()


def test_no_more_calls_run_at_once_than_a_server_may_like() -> None:
    running, most, lock = set[int](), list[int](), threading.Lock()

    def call() -> None:
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))
        threading.Event().wait(0.005)
        with lock:
            running.discard(threading.get_ident())

    names = [str(number) for number in range(3 * AT_ONCE)]
    assert sum(map(len, rounds(dict.fromkeys(names, call)))) == len(names)
    assert max(most) <= AT_ONCE
