"""What `auto` takes: the default of `map_parts`, or what was measured on this machine."""

import os
from pathlib import Path

import pytest

from resources.auto_choice import choice_file, keep_measured, measured_choice
from resources.run_tasks import map_with_progress
from resources.settings.engine import EngineConfig
from tests.engine.engine_workers import Part, process_of

AUTO = EngineConfig(workers=3)


def kind_for(work_bytes: int) -> str:
    return measured_choice(AUTO, work_bytes).kind


def test_without_a_measurement_auto_stays() -> None:
    assert measured_choice(AUTO, 1 << 40) == AUTO


def test_a_measurement_decides_from_its_bytes_on() -> None:
    keep_measured(1000)
    assert [kind_for(999), kind_for(1000)] == ["in_process", "processes"]
    assert measured_choice(AUTO, 1000).workers == 3


def test_processes_that_never_pay_are_never_taken() -> None:
    keep_measured(None)
    assert kind_for(1 << 60) == "in_process"


@pytest.mark.parametrize("kind", ["in_process", "processes", "ray"])
def test_an_engine_by_name_is_taken_whatever_was_measured(kind: str) -> None:
    keep_measured(1000)
    named = EngineConfig(kind=kind)  # type: ignore[arg-type]
    assert measured_choice(named, 1) == measured_choice(named, 1 << 40) == named


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"cores": 1}', f'{{"cores": {(os.cpu_count() or 1) + 1}, "process_bytes": 1}}'],
    ids=["empty", "broken", "cut", "of another machine"],
)
def test_a_file_that_is_broken_or_of_another_machine_is_as_none(content: str) -> None:
    keep_measured(1)
    choice_file().write_text(content)
    assert kind_for(1000) == "auto"


@pytest.mark.parametrize(("measured", "is_here"), [(2, True), (1, False), (None, True)])
def test_parts_are_computed_where_the_measurement_says(
    tmp_path: Path, measured: int | None, is_here: bool
) -> None:
    keep_measured(measured)
    parts = [Part("part-0", tmp_path, work_bytes=1)]
    [ended] = map_with_progress(process_of, parts, EngineConfig())
    process, _ = ended.value()
    assert (process == os.getpid()) == is_here
