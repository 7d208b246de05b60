"""`corpus rules calibrate`: propose limits that keep a share of a source of clean text.

The scores of the last run's decisions are read, one column at a time, and no text. The limits are
then replayed over the same decisions, as `corpus rules whatif` does, so that the counts are those
of a run with them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
import yaml
from cyclopts import Parameter
from numpy.typing import NDArray

from assets.filtered.passages import sample_keys
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
    Overlay,
    Value,
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
from pipeline_defs.commands.rules.whatif import Kept, Replay, count, kept_of, plain, replay
from pipeline_defs.commands.terminal import Json, Row, print_json, print_table, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.filtering.rules import RulesConfig
from resources.settings.limits import EVERY_LANGUAGE
from resources.store.store import StoreError

FEW_LANGUAGES = 3  # whose limits fit into a cell
EXAMPLES = 3  # documents named per rule


class Removed(msgspec.Struct, frozen=True):
    """Limit of a rule now and then, and what it removes then.

    alone      documents that no other rule removes
    examples   ids of documents
    """

    now: Any
    then: Any
    documents: int
    bytes: int
    alone: int
    examples: list[str]


class LanguageKept(msgspec.Struct, frozen=True):
    """Documents of a language, and those kept now and then."""

    documents: int
    now: int
    then: int


class Calibration(msgspec.Struct, frozen=True):
    """Proposed limits of a source.

    keep       share that was asked for
    filters    keys to lay over the source's filters
    settings   the same for `corpus rules whatif --set`
    """

    source: str
    keep: float
    kept: Kept
    languages: dict[str, LanguageKept]
    rules: dict[str, Removed]
    filters: dict[str, Overlay]
    settings: list[str]
    notes: list[str]


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
    result = propose(corpus, name, keep, all_rules=all_rules)
    if json:
        print_json(result)
    else:
        show(result)
    return 0


def propose(corpus: Corpus, source: str, keep: float, *, all_rules: bool) -> Calibration:
    """Propose limits for a source, and count what each of them removes."""
    of_source = replay(corpus, source, ())
    manifest = of_source.manifest
    paths = [path for path, _ in decision_files(corpus, manifest)]
    columns = Columns(paths)
    if columns.height < LEAST_DOCUMENTS:
        raise StoreError(
            f"filtered[{source}] has decisions about {columns.height:,} documents; limits need "
            f"{LEAST_DOCUMENTS}. Add clean text to the source and materialize `filtered` again."
        )
    rules, own = rules_config(manifest), filter_data(corpus, manifest).custom
    wanted = rules_for(with_all_rules(rules) if all_rules else rules, own)
    wanted = [rule for rule in wanted if form_of(rule) and rule.score in columns.names]
    fixed = [rule for rule in of_source.now if not form_of(rule)]
    is_lost = columns.broken_by_any(fixed)
    groups = language_rows(columns.languages(), columns.height)
    limits = propose_limits(wanted, columns.scores, groups, is_lost, keep)
    proposed: dict[tuple[str, str], Value] = {}
    for rule in wanted:
        if (limit := limits.get(rule.name)) is not None:  # one where all languages have the same
            is_one = rule.group == CUSTOM or len(set(limit.values())) == 1
            proposed[rule.group, rule.field] = widest(limit, rule) if is_one else dict(limit)
    changes = [Change(*key, limit) for key, limit in proposed.items()]
    of_source.overlay = overlay_of(rules, changes)
    has_pii = manifest.config.get("pii") is not None
    of_source.then = rules_for(changed_rules(rules, of_source.overlay), own, pii=has_pii)
    count(corpus, of_source)
    kept = kept_of(of_source.before, of_source.after)
    notes = [*of_source.notes, *notes_on(kept, keep, fixed, columns)]
    return Calibration(
        source=source,
        keep=keep,
        kept=kept,
        languages=kept_by_language(of_source, columns, groups),
        rules=removed_by(of_source, columns),
        filters={"rules": of_source.overlay},
        settings=[f"{group}.{key}={plain(limit)}" for (group, key), limit in proposed.items()],
        notes=notes,
    )


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


def removed_by(of_source: Replay, columns: Columns) -> dict[str, Removed]:
    """Count what each rule removes under the proposed limits, and name examples."""
    then = {rule.name: rule for rule in of_source.then}
    flags = columns.frame.select(
        "doc_id", *(rule.broken.alias(name) for name, rule in then.items())
    )
    broken = flags.filter(pl.any_horizontal(pl.exclude("doc_id"))).collect(engine="streaming")
    broken = broken.with_columns(sample_keys(broken["doc_id"], 0)).sort("key", "doc_id")
    now = {rule.name: rule.threshold for rule in of_source.now}
    tally = of_source.after
    return {
        name: Removed(
            now=now.get(name),
            then=then[name].threshold if name in then else None,
            documents=tally.broken[name],
            bytes=tally.broken_bytes[name],
            alone=tally.alone[name],
            examples=broken.filter(name)["doc_id"].head(EXAMPLES).to_list() if name in then else [],
        )
        for name in dict.fromkeys([*now, *then])
    }


def kept_by_language(
    of_source: Replay, columns: Columns, groups: Mapping[str, NDArray[np.int64]]
) -> dict[str, LanguageKept]:
    """Count the documents of each language, and those kept now and then; the rest is `*`."""
    then, now = (~columns.broken_by_any(rules) for rules in (of_source.then, of_source.now))
    return {
        lang: LanguageKept(len(rows), int(now[rows].sum()), int(then[rows].sum()))
        for lang, rows in groups.items()
        if len(rows)
    }


def notes_on(kept: Kept, keep: float, fixed: Sequence[Rule], columns: Columns) -> list[str]:
    """Explain where less is kept than asked, and why no language has limits of its own."""
    notes = []
    if LANGUAGE not in columns.names:
        notes.append(
            "The decisions hold no language (no rule has a limit by language), so all documents "
            f"share limits. To have them by language, give one rule a limit for {EVERY_LANGUAGE!r} "
            "and materialize `filtered` again."
        )
    if kept.then.documents < keep * kept.documents:
        shares = {rule.name: int(columns.broken_by_any([rule]).sum()) for rule in fixed}
        named = ", ".join(f"{name} {number:,}" for name, number in shares.items() if number)
        notes.append(
            f"Rules without a number reject too many documents to keep {keep:.1%}: {named}. "
            "Switch them off, or take these documents out of the source."
        )
    return notes


def show(result: Calibration) -> None:
    """Print the result for people."""
    kept: list[Row] = []
    rules: list[Row] = []
    for lang, counts in result.languages.items():
        shares = (f"{n:,} ({n / counts.documents:.1%})" for n in (counts.now, counts.then))
        name = lang if lang != EVERY_LANGUAGE else "others" if len(result.languages) > 1 else "all"
        kept.append((name, counts.documents, *shares))
    print_table("documents kept", ("language",), ("documents", "now", "then"), kept)
    for name, removed in result.rules.items():
        share = f"{removed.documents / max(1, result.kept.documents):.2%}"
        limits = (limit_cell(removed.now), limit_cell(removed.then))
        amounts = (removed.documents, share, f"{removed.bytes / 1e6:,.2f}", removed.alone)
        rules.append((name, *limits, *amounts))
    title = f"limits that keep {result.keep:.1%} of {result.source}"
    print_table(title, ("rule", "now", "then"), ("removes", "share", "MB", "alone"), rules)
    examples = {name: removed.examples for name, removed in result.rules.items()}
    named = [f"  {name}: {' '.join(ids)}" for name, ids in examples.items() if ids]
    if named:
        say("Removed documents, for `corpus trace`:", *named)
    filters = yaml.safe_dump(msgspec.to_builtins(result.filters), sort_keys=False, width=1000)
    replay = ["corpus", "rules", "whatif", "--source", result.source]
    replay += [part for setting in result.settings for part in ("--set", setting)]
    say(*result.notes, f"To have these limits, lay this over the filters of {result.source}:")
    say(*filters.rstrip().split("\n"), f"To replay them: {shlex.join(replay)}")


def limit_cell(limit: Any) -> str:
    """Return a limit as people write it; of many languages, the least and the largest."""
    if not isinstance(limit, Mapping) or len(limit) <= FEW_LANGUAGES:
        return plain(limit)
    numbers = [number for number in limit.values() if number is not None]
    return f"{min(numbers):g} to {max(numbers):g}" if numbers else "off"
