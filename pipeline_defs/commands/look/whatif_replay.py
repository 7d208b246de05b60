"""What other thresholds would keep, counted from the decisions of the last run.

Only the columns that the rules use are read, a bounded number of rows at a time. The result is that
of a run with these thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import polars as pl

from assets.filtered.rules.rules import Rule, rules_for
from assets.filtered.rules.threshold_replay import (
    Change,
    Overlay,
    Tally,
    changed_rules,
    count_masks,
    overlay_of,
    parse_change,
    tally,
)
from pipeline_defs.commands.look.decisions import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    rules_config,
)
from pipeline_defs.commands.look.whatif_show import (
    Amount,
    Broken,
    Kept,
    Overlap,
    RuleCounts,
    SourceKept,
    Thresholds,
    WhatIf,
)
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.records import Manifest
from resources.store.store import StoreError

TOP_PAIRS = 10


@dataclass
class Replay:
    """Replay of one source under the rules of its last run, and under the changed ones."""

    manifest: Manifest
    now: list[Rule]
    then: list[Rule]
    overlay: Overlay
    skipped: dict[str, str]  # changes that do not apply to the source, and why
    notes: list[str]
    before: Tally = field(default_factory=Tally)
    after: Tally = field(default_factory=Tally)


def what_if(corpus: Corpus, sources: Sequence[str], assignments: Sequence[str]) -> WhatIf:
    """Replay the decisions of some sources under changed thresholds."""
    replays = [replay(corpus, name, assignments) for name in sources]
    for assignment in assignments:
        if all(assignment in of_source.skipped for of_source in replays):
            reasons = [of_source.skipped[assignment] for of_source in replays]
            raise UsageError("\n".join(reasons))
    before, after = Tally(), Tally()
    for of_source in replays:
        count(corpus, of_source)
        before.add(of_source.before)
        after.add(of_source.after)
    return WhatIf(
        sources={of_source.manifest.partition: result_of(of_source) for of_source in replays},
        total=Kept(*totals(before, after)),
        rules=per_rule(replays, before, after),
        overlaps=overlaps(before, after),
    )


def result_of(of_source: Replay) -> SourceKept:
    """Return the amounts kept of one source, now and then, and the changes behind them."""
    return SourceKept(
        *totals(of_source.before, of_source.after),
        changes=changes_of(of_source),
        filters={"rules": of_source.overlay},
        notes=[*of_source.notes, *of_source.skipped.values()],
    )


def replay(corpus: Corpus, source: str, assignments: Sequence[str]) -> Replay:
    """Prepare the replay of a source, with its rules now and then; nothing is counted yet.

    A change that turns on a rule without a score in the decisions is skipped.
    """
    manifest = corpus.store.newest("filtered", source)
    refuse_first_failure(manifest)
    rules = rules_config(manifest)
    own = filter_data(corpus, manifest).custom
    has_pii = manifest.config.get("pii") is not None
    now = rules_for(rules, own, pii=has_pii)
    columns = score_columns(corpus, manifest) or {name for rule in now for name in rule.scores}
    if without_score(now, columns):
        raise StoreError(other_version(source, "a score is missing"))
    custom = [rule.name for rule in own if rule.column in columns]
    wanted: list[Change] = []
    skipped: dict[str, str] = {}
    for assignment in assignments:
        change = parse_change(assignment, custom)
        laid = changed_rules(rules, overlay_of(rules, [change]))
        if missing := without_score(rules_for(laid, own), columns):
            skipped[assignment] = no_score(assignment, source, missing[0])
        else:
            wanted.append(change)
    overlay = overlay_of(rules, wanted)
    then = rules_for(changed_rules(rules, overlay), own, pii=has_pii)
    return Replay(manifest, now, then, overlay, skipped, differences(corpus, manifest))


def without_score(rules: Sequence[Rule], columns: set[str]) -> list[Rule]:
    """Return the rules whose score is not among the columns."""
    return [rule for rule in rules if not columns.issuperset(rule.scores)]


def no_score(assignment: str, source: str, rule: Rule) -> str:
    """Explain why a change cannot be replayed for a source."""
    return (
        f"{assignment}: {rule.name} looks at {rule.score}, which the decisions of "
        f"filtered[{source}] do not hold: no rule used it when they were made. Switch the rule on "
        f"in pipeline.yaml and materialize `filtered` for {source!r} once."
    )


def refuse_first_failure(manifest: Manifest) -> None:
    """Raise StoreError if the decisions have no scores after the first broken rule."""
    if manifest.config.get("mode") == "first_failure":
        raise StoreError(
            f"filtered[{manifest.partition}] was made with mode: first_failure, so its decisions "
            "end at the first broken rule and no other threshold can be replayed. Set "
            "filters.mode to all and materialize `filtered` again."
        )


def score_columns(corpus: Corpus, manifest: Manifest) -> set[str] | None:
    """Return the columns of the decisions; None if there is no part."""
    files = decision_files(corpus, manifest)
    return set(pl.read_parquet_schema(files[0][0])) if files else None


def differences(corpus: Corpus, manifest: Manifest) -> list[str]:
    """Return a note if the filters in pipeline.yaml have changed since the decisions were made."""
    source = manifest.partition
    today = corpus.settings.filters_for(source).model_dump(mode="json")
    keys = different_keys(today, manifest.config)
    if not keys:
        return []
    return [
        f"pipeline.yaml has changed since filtered[{source}] was made ({', '.join(keys)}): "
        "the replay starts from the rules that made it"
    ]


def different_keys(one: Any, other: Any, prefix: str = "") -> list[str]:
    """Return the dotted paths at which two configs differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [prefix.rstrip(".")]
    keys = list(dict.fromkeys([*one, *other]))
    below = (different_keys(one.get(key), other.get(key), f"{prefix}{key}.") for key in keys)
    return list(chain(*below))


def count(corpus: Corpus, of_source: Replay) -> None:
    """Fill in the tallies; StoreError if the decisions contradict the rules that made them."""
    rules = [*of_source.now, *(rule for rule in of_source.then if rule not in of_source.now)]
    for paths in batches(decision_files(corpus, of_source.manifest), BATCH_ROWS):
        masks = count_masks(pl.scan_parquet(paths), rules).collect(engine="streaming")
        of_source.before.add(tally(masks, rules, of_source.now))
        of_source.after.add(tally(masks, rules, of_source.then))
    if of_source.before.contradicted:
        why = f"{of_source.before.contradicted:,} decisions are not what their own rules say"
        raise StoreError(other_version(of_source.manifest.partition, why))


def totals(before: Tally, after: Tally) -> tuple[int, int, Amount, Amount]:
    """Return documents and bytes: all, kept now, kept then."""
    now = Amount(before.kept, before.kept_bytes)
    return before.documents, before.bytes, now, Amount(after.kept, after.kept_bytes)


def changes_of(of_source: Replay) -> dict[str, Thresholds]:
    """Return the threshold now and then of every rule that changes; None: off."""
    now = {rule.name: rule for rule in of_source.now}
    then = {rule.name: rule for rule in of_source.then}
    return {
        name: Thresholds(
            getattr(now.get(name), "threshold", None), getattr(then.get(name), "threshold", None)
        )
        for name in dict.fromkeys([*now, *then])
        if now.get(name) != then.get(name)
    }


def per_rule(replays: Sequence[Replay], before: Tally, after: Tally) -> dict[str, RuleCounts]:
    """Count per rule: documents and bytes that it breaks, and documents that only it breaks."""
    rules = [rule for of_source in replays for rule in [*of_source.now, *of_source.then]]
    names = dict.fromkeys(rule.name for rule in rules)
    return {name: RuleCounts(broken_by(name, before), broken_by(name, after)) for name in names}


def broken_by(name: str, counts: Tally) -> Broken:
    """Return the documents and bytes that a rule breaks."""
    return Broken(counts.broken[name], counts.broken_bytes[name], counts.alone[name])


def overlaps(before: Tally, after: Tally) -> list[Overlap]:
    """Return the pairs of rules that break most documents together, the most frequent first."""
    pairs = sorted(
        {*before.pairs, *after.pairs},
        key=lambda pair: (-max(before.pairs[pair], after.pairs[pair]), pair),
    )
    return [Overlap(pair, before.pairs[pair], after.pairs[pair]) for pair in pairs[:TOP_PAIRS]]
