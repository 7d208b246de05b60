"""Faults of Dagster's records in PostgreSQL; tests/servers has those that need a server."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import dagster as dg
import pytest
from documented import ROOT

from pipeline_defs.commands.unexpected_errors import records_fault


def test_a_missing_package_is_named_with_its_extra(
    dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "deploy/dagster.yaml", dagster_home)
    monkeypatch.setitem(sys.modules, "dagster_postgres", None)
    with pytest.raises(Exception, match="dagster_postgres") as raised:
        dg.DagsterInstance.get()
    assert "pip install 'tokenmill[postgres]'" in (records_fault(raised.value) or "")


def test_other_errors_are_none_of_the_records() -> None:
    assert records_fault(ValueError("a bug")) is None
