"""The next command of `corpus build` goes on after failed sources: those of its own run."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
import msgspec
import pytest

from pipeline_defs.commands.build.dagster_commands import failed_sources_only
from resources.runs.run_notes import OpenNote, change_note, new_note
from resources.source_faults import FAILED_SOURCES_TAG


def fail_run(tags: dict[str, str]) -> str:
    """Run a job that fails, and return the id of the run."""

    @dg.op
    def work() -> None:
        raise ValueError

    @dg.job
    def job() -> None:
        work()

    with dg.DagsterInstance.get() as instance:
        return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False).run_id


@pytest.mark.parametrize("has_own_failed_sources", [True, False])
def test_a_run_beside_the_command_counts_for_nothing(
    tmp_path: Path, has_own_failed_sources: bool
) -> None:
    tags = [{FAILED_SOURCES_TAG: "prose"}, {}]
    begun = time.time()
    own = OpenNote(tmp_path, new_note(fail_run(tags[not has_own_failed_sources]), "own", (), ()))
    other = new_note(fail_run(tags[has_own_failed_sources]), "other", (), ())
    for index, place in enumerate(({"pid": 1}, {"host": "elsewhere"}, {"boot": "before"})):
        run_id = other.run_id if index == 0 else f"{index}"
        change_note(tmp_path, msgspec.structs.replace(other, run_id=run_id, **place))
    assert failed_sources_only(tmp_path, begun) is has_own_failed_sources
    assert not failed_sources_only(tmp_path, time.time())
    own.close()
