"""Read the two files of proxy runs: their mixtures, and what was measured of each.

The files are those of olmix (arXiv 2602.12237): CSV with a row for each run, named in `run` or
`run_id`; `name` and `index` are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from assets.mixed.mixture_swarm import Domains, Floats
from resources.errors import UsageError, unknown_name
from resources.settings.named_files import NamedFileError, read_named_file

MOST_BYTES = 64 << 20
RUN_COLUMNS = ("run", "run_id")
OTHER_COLUMNS = ("name", "index")
TOLERANCE = 0.01  # of the ratios of a run, which olmix takes so, too


class RunTable(NamedTuple):
    """Numbers by run, the columns that they are of, and the file with its SHA-256."""

    numbers: dict[str, list[float]]
    columns: list[str]
    path: Path
    sha256: str

    def array(self, runs: Iterable[str], columns: Iterable[str]) -> Floats:
        """Return the numbers of some runs and columns [runs, columns]."""
        places = [self.columns.index(column) for column in columns]
        return np.array([[self.numbers[run][place] for place in places] for run in runs])


def read_table(path: Path) -> RunTable:
    """Read a table of runs; UsageError names what is no number, or twice there."""
    try:
        content = read_named_file(path, MOST_BYTES)
        table = pl.read_csv(BytesIO(content), infer_schema=False)
    except (NamedFileError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"{error}" if str(path) in str(error) else f"{path}: {error}") from None
    named = [column for column in RUN_COLUMNS if column in table.columns]
    if not named:
        columns = ", ".join(table.columns)
        raise UsageError(f"{path}: no column `run` with the names of runs; it has {columns}")
    runs = table[named[0]].to_list()
    table = table.select(pl.exclude(*RUN_COLUMNS, *OTHER_COLUMNS))
    if not table.columns:
        raise UsageError(f"{path}: no column but the names of runs")
    numbers: dict[str, list[float]] = {}
    for run, row in zip(runs, table.iter_rows(named=True), strict=True):
        if run is None or run in numbers:
            raise UsageError(f"{path}: run {run!r} is there twice, or has no name")
        numbers[run] = [number_of(cell, f"{path}: {key!r} of {run}") for key, cell in row.items()]
    return RunTable(numbers, table.columns, path, hashlib.sha256(content).hexdigest())


def number_of(cell: str | None, what: str) -> float:
    """Return the number in a cell; UsageError for none."""
    try:
        number = float(cell or "")
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise UsageError(f"{what} is {cell!r}, no number. Correct it, or leave the run out")
    return number


def ratios_of(table: RunTable, domains: Domains) -> Floats:
    """Return the shares of the sources [N, D] of all runs; UsageError if they do not fit."""
    for column in table.columns:
        if column not in domains.names:
            unknown = unknown_name("source", column, domains.names)
            raise UsageError(f"{table.path}: {unknown}: the columns are the sources of the phase")
    if missing := [name for name in domains.names if name not in table.columns]:
        raise UsageError(
            f"{table.path}: no column for {missing[0]!r}, a source of the phase. If it came after "
            "the runs, draw new ones with `corpus mix swarm --refit`"
        )
    shares: Floats = table.array(table.numbers, domains.names)
    for run, of_run in zip(table.numbers, shares, strict=True):
        if abs(of_run.sum() - 1) > TOLERANCE or of_run.min() < 0:
            raise UsageError(
                f"{table.path}: the ratios of {run} sum to {of_run.sum():g}, and the lowest is "
                f"{of_run.min():g}; they must be 0 or more and sum to 1"
            )
        if np.abs(domains.spread(domains.varied(of_run)) - of_run).max() > TOLERANCE:
            raise UsageError(
                f"{table.path}: {run} has another ratio of the sources that stay than the phase: "
                "give the --refit of `mix swarm`, and the phase the weights of then"
            )
    shares /= shares.sum(axis=1, keepdims=True)
    num_runs, num_varied = len(shares), domains.parts.shape[1]
    rank = np.linalg.matrix_rank(domains.varied(shares), 1e-3) if num_runs else 0
    if num_runs < num_varied + 2 or rank < num_varied:
        raise UsageError(
            f"{table.path}: {num_runs} runs, in which {rank} of {num_varied} shares differ "
            f"independently; {num_varied + 2} runs or more are needed, and caps that leave room"
        )
    return shares


def metrics_of(table: RunTable, ratios: RunTable) -> Floats:
    """Return the metrics [N, M] of the runs of a table of ratios; UsageError if they do not fit."""
    for one, other in ((ratios, table), (table, ratios)):
        if lacking := [run for run in one.numbers if run not in other.numbers]:
            raise UsageError(
                f"{other.path}: no row for {lacking[0]!r}, which {one.path} has "
                f"({len(lacking)} in all). Train it, or leave it out of both"
            )
    losses = table.array(ratios.numbers, table.columns)
    for name, column in zip(table.columns, losses.T, strict=True):
        if column.min() <= 0 or np.ptp(column) == 0:
            raise UsageError(
                f"{table.path}: metric {name!r} is from {column.min():g} to {column.max():g}; it "
                "must be above 0 and differ, the lower the better: of an accuracy give 1 less it"
            )
    return losses
