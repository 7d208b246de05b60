"""`corpus rules calibrate`: propose limits that keep a share of a source of clean text.

The scores of the last run's decisions are read, one column at a time, and no text. The limits are
then replayed by `corpus rules whatif`, so that the counts are those of a run with them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from cyclopts import Parameter
from numpy.typing import NDArray

from assets.filtered.rules.calibration import (
    LEAST_DOCUMENTS,
    Floats,
    form_of,
    language_rows,
    propose_limits,
    widest,
)
from assets.filtered.rules.rules import LANGUAGE, Rule, rules_for
from assets.filtered.rules.threshold_replay import (
    CUSTOM,
    Change,
    changed_rules,
    overlay_of,
    rule_groups,
)
from pipeline_defs.commands.rules.filtered_files import (
    decision_files,
    filter_data,
    pick_sources,
    rules_config,
)
from pipeline_defs.commands.rules.whatif import WhatIf, plain, replay, show, what_if
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.filtering.rules import RulesConfig
from resources.settings.limits import EVERY_LANGUAGE
from resources.store.store import StoreError


def calibrate(
    *,
    source: Annotated[str, Parameter(help="A source of clean text.")],
    keep: Annotated[float, Parameter(help="Share of its documents to keep.")] = 0.95,
    all_rules: Annotated[
        bool, Parameter(help="Also rules that are off, if their scores are stored.")
    ] = False,
    json: Json = False,
) -> int:
    """Propose limits that keep a share of a source of clean text."""
    if not 0 < keep < 1:
        raise UsageError(f"--keep {keep:g} is no share of documents; give one such as 0.95")
    corpus = load_corpus()
    (name,) = pick_sources(corpus, [source])
    settings, found, notes = propose(corpus, name, keep, all_rules=all_rules)
    if json:
        told = {"source": name, "keep": keep, "settings": settings, "notes": notes}
        print_json(told | {"replay": found.as_json()})
        return 0
    show(found)
    say(*notes)
    changes = [part for setting in settings for part in ("--set", setting)]
    say(f"To change some: {shlex.join(['corpus', 'rules', 'whatif', '--source', name, *changes])}")
    return 0


def propose(
    corpus: Corpus, source: str, keep: float, *, all_rules: bool
) -> tuple[list[str], WhatIf, list[str]]:
    """Propose limits as settings of `corpus rules whatif`; return them, their replay and notes."""
    of_source = replay(corpus, source, ())
    manifest = of_source.manifest
    columns = Columns([path for path, _ in decision_files(corpus, manifest)])
    if columns.height < LEAST_DOCUMENTS:
        raise StoreError(
            f"filtered[{source}] has decisions about {columns.height:,} documents; limits need "
            f"{LEAST_DOCUMENTS}. Add clean text to the source and materialize `filtered` again."
        )
    rules, own = rules_config(manifest), filter_data(corpus, manifest).custom
    wanted = rules_for(with_all_rules(rules) if all_rules else rules, own)
    wanted = [rule for rule in wanted if form_of(rule) and rule.score in columns.names]
    fixed = [rule for rule in of_source.now if not form_of(rule)]
    groups = language_rows(columns.languages(), columns.height)
    limits = propose_limits(wanted, columns.scores, groups, columns.broken_by_any(fixed), keep)
    settings = []
    for rule in wanted:
        if (limit := limits.get(rule.name)) is not None:  # one where all languages have the same
            is_one = rule.group == CUSTOM or len(set(limit.values())) == 1
            value = plain(widest(limit, rule) if is_one else limit)
            settings.append(f"{rule.group}.{rule.field}={value}")
    found = what_if(corpus, [source], settings)
    return settings, found, notes_on(found, keep, fixed, columns)


class Columns:
    """Columns of a source's decisions, each read when it is asked for."""

    def __init__(self, paths: list[Path]) -> None:
        self.frame = pl.scan_parquet(paths) if paths else pl.LazyFrame()
        self.names = self.frame.collect_schema().names()
        self.height = int(self.frame.select(pl.len()).collect().item()) if paths else 0

    def scores(self, name: str) -> Floats:
        """Return a score, NaN where it is null."""
        column = self.frame.select(pl.col(name).cast(pl.Float64).fill_null(np.nan)).collect()
        return column.to_series().to_numpy()

    def languages(self) -> pl.Series | None:
        """Return the languages by which limits are chosen, if the decisions hold them."""
        if LANGUAGE not in self.names:
            return None
        return self.frame.select(LANGUAGE).collect().to_series()

    def broken_by_any(self, rules: Sequence[Rule]) -> NDArray[np.bool_]:
        """Mark the documents that break one of the rules."""
        broken = pl.any_horizontal(pl.lit(False), *(rule.broken for rule in rules))
        return (
            self.frame.select(pl.repeat(False, pl.len()) | broken).collect().to_series().to_numpy()
        )


def with_all_rules(rules: RulesConfig) -> RulesConfig:
    """Switch every rule with a number on."""
    off = [
        Change(name, key, 0)
        for name, model in rule_groups().items()
        for key, info in model.model_fields.items()
        if isinstance(info.json_schema_extra, dict)
        and form_of(Rule(name, "", 0, "above", key))
        and getattr(getattr(rules, name), key, None) is None
    ]
    return changed_rules(rules, overlay_of(rules, off))


def notes_on(found: WhatIf, keep: float, fixed: Sequence[Rule], columns: Columns) -> list[str]:
    """Explain where less is kept than asked, and why no language has limits of its own."""
    notes, total = [], found.total
    if LANGUAGE not in columns.names:
        notes.append(
            "The decisions hold no language (no rule has a limit by language), so all documents "
            f"share limits. To have them by language, give one rule a limit for {EVERY_LANGUAGE!r} "
            "and materialize `filtered` again."
        )
    if total["then"]["documents"] < keep * total["documents"]:
        shares = {rule.name: int(columns.broken_by_any([rule]).sum()) for rule in fixed}
        named = ", ".join(f"{name} {number:,}" for name, number in shares.items() if number)
        notes.append(
            f"Rules without a number reject too many documents to keep {keep:.1%}: {named}. "
            "Switch them off, or take these documents out of the source."
        )
    return notes
