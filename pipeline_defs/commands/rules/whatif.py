"""`corpus rules whatif`: count what other thresholds would keep, by the last run's decisions.

Only the columns that the rules use are read, a bounded number of rows at a time. The result is that
of a run with these thresholds.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import polars as pl
from cyclopts import Group, Parameter

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
from pipeline_defs.commands.rules.filtered_files import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    pick_sources,
    rules_config,
)
from pipeline_defs.commands.terminal import (
    Json,
    Row,
    check_one_given,
    print_json,
    print_table,
    say,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.limits import limit_text
from resources.store.records import Manifest
from resources.store.store import StoreError

T = TypeVar("T")

TOP_PAIRS = 10
FEW_LANGUAGES = 3  # whose limits fit into a cell
WHICH = Group("Sources", validator=check_one_given)


class NowThen(msgspec.Struct, Generic[T], frozen=True):
    """Something under the rules of the last run, and under the changed ones."""

    now: T
    then: T


class Amount(msgspec.Struct, frozen=True):
    """Documents, and bytes of their texts."""

    documents: int
    bytes: int


class Kept(NowThen[Amount], frozen=True, kw_only=True):
    """All documents and bytes, and those that are kept."""

    documents: int
    bytes: int


class SourceKept(Kept, frozen=True, kw_only=True):
    """Amounts of a source, the thresholds that change, and the keys to lay over its filters."""

    changes: dict[str, NowThen[Any]]
    filters: dict[str, Overlay]
    notes: list[str]


class Broken(Amount, frozen=True):
    """Documents and bytes that a rule breaks, and documents that only it breaks."""

    alone: int


class Overlap(NowThen[int], frozen=True, kw_only=True):
    """Documents that two rules break together."""

    rules: tuple[str, str]


class WhatIf(msgspec.Struct, frozen=True):
    """Amounts by source and in total, documents by rule, and the most frequent pairs of rules."""

    sources: dict[str, SourceKept]
    total: Kept
    rules: dict[str, NowThen[Broken]]
    overlaps: list[Overlap]


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


def whatif(
    *,
    source: Annotated[
        tuple[str, ...], Parameter(group=WHICH, help="A source; may be repeated.")
    ] = (),
    all_: Annotated[
        bool, Parameter(name="--all", group=WHICH, help="Every source that has decisions.")
    ] = False,
    set_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            help="A rule (length.too_short) or its key (length.min_chars), and its threshold; "
            "off switches the rule off; lists: a,b,c. May be repeated.",
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Count what other thresholds would keep."""
    corpus = load_corpus()
    result = what_if(corpus, pick_sources(corpus, None if all_ else source), set_)
    if json:
        print_json(result)
    else:
        show(result)
    return 0


def what_if(corpus: Corpus, sources: Sequence[str], assignments: Sequence[str]) -> WhatIf:
    """Replay the decisions of some sources under changed thresholds."""
    replays = [replay(corpus, name, assignments) for name in sources]
    for assignment in assignments:
        if all(assignment in of_source.skipped for of_source in replays):
            raise UsageError("\n".join(of_source.skipped[assignment] for of_source in replays))
    before, after = Tally(), Tally()
    for of_source in replays:
        count(corpus, of_source)
        before.add(of_source.before)
        after.add(of_source.after)
    names = dict.fromkeys(rule.name for each in replays for rule in [*each.now, *each.then])
    pairs = {p: (before.pairs[p], after.pairs[p]) for p in {*before.pairs, *after.pairs}}
    most_frequent = sorted(pairs.items(), key=lambda item: (-max(item[1]), item[0]))[:TOP_PAIRS]
    return WhatIf(
        sources={of_source.manifest.partition: result_of(of_source) for of_source in replays},
        total=kept_of(before, after),
        rules={name: NowThen(broken_by(name, before), broken_by(name, after)) for name in names},
        overlaps=[Overlap(*counts, rules=pair) for pair, counts in most_frequent],
    )


def result_of(of_source: Replay) -> SourceKept:
    """Return the amounts kept of one source, now and then, and the changes behind them."""
    now = {rule.name: rule for rule in of_source.now}
    then = {rule.name: rule for rule in of_source.then}
    changes = {
        name: NowThen(*(getattr(side.get(name), "threshold", None) for side in (now, then)))
        for name in dict.fromkeys([*now, *then])
        if now.get(name) != then.get(name)
    }
    return SourceKept(
        **msgspec.structs.asdict(kept_of(of_source.before, of_source.after)),
        changes=changes,
        filters={"rules": of_source.overlay},
        notes=[*of_source.notes, *of_source.skipped.values()],
    )


def kept_of(before: Tally, after: Tally) -> Kept:
    """Return documents and bytes: all, kept now, kept then."""
    now, then = (Amount(each.kept, each.kept_bytes) for each in (before, after))
    return Kept(now, then, documents=before.documents, bytes=before.bytes)


def broken_by(name: str, counts: Tally) -> Broken:
    """Return the documents and bytes that a rule breaks."""
    return Broken(counts.broken[name], counts.broken_bytes[name], counts.alone[name])


def replay(corpus: Corpus, source: str, assignments: Sequence[str]) -> Replay:
    """Prepare the replay of a source, with its rules now and then; nothing is counted yet.

    A change that turns on a rule without a score in the decisions is skipped.
    """
    manifest = corpus.store.newest("filtered", source)
    rules = rules_config(manifest)
    own = filter_data(corpus, manifest).custom
    has_pii = manifest.config.get("pii") is not None
    now = rules_for(rules, own, pii=has_pii)
    files = decision_files(corpus, manifest)
    in_force = {name for rule in now for name in rule.scores}
    columns = set(pl.read_parquet_schema(files[0][0])) if files else in_force
    if not columns >= in_force:
        raise StoreError(other_version(source, "a score is missing"))
    custom = [rule.name for rule in own if rule.column in columns]
    wanted: list[Change] = []
    skipped: dict[str, str] = {}
    for assignment in assignments:
        change = parse_change(assignment, custom)
        laid = rules_for(changed_rules(rules, overlay_of(rules, [change])), own)
        if missing := [rule for rule in laid if not columns.issuperset(rule.scores)]:
            skipped[assignment] = no_score(assignment, source, missing[0])
        else:
            wanted.append(change)
    overlay = overlay_of(rules, wanted)
    then = rules_for(changed_rules(rules, overlay), own, pii=has_pii)
    return Replay(manifest, now, then, overlay, skipped, differences(corpus, manifest))


def no_score(assignment: str, source: str, rule: Rule) -> str:
    """Explain why a change cannot be replayed for a source."""
    return (
        f"{assignment}: {rule.name} looks at {rule.score}, which the decisions of "
        f"filtered[{source}] do not hold: no rule used it when they were made. Switch the rule on "
        f"in pipeline.yaml and materialize `filtered` for {source!r} once."
    )


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


def show(result: WhatIf) -> None:
    """Print the result for people."""
    kept = ((name, *kept_row(amounts)) for name, amounts in with_total(result).items())
    print_table("kept", ("source",), ("documents", "now", "then", "MB", "MB now", "MB then"), kept)
    broken: list[Row] = []
    for name, counts in result.rules.items():
        sides = (counts.now, counts.then)
        sizes = (f"{side.bytes / 1e6:,.1f}" for side in sides)
        documents, alone = ((getattr(s, key) for s in sides) for key in ("documents", "alone"))
        broken.append((name, threshold_text(result, name), *documents, *sizes, *alone))
    numbers = ("now", "then", "MB now", "MB then", "alone now", "alone then")
    print_table("documents that a rule breaks", ("rule", "threshold"), numbers, broken)
    pairs = ((*each.rules, each.now, each.then) for each in result.overlaps)
    print_table("documents that two rules break", ("rule", "and rule"), ("now", "then"), pairs)
    for name, source in result.sources.items():
        say(*source.notes)
        if source.changes:
            filters = json_text.dumps(msgspec.to_builtins(source.filters))
            say(f"To have this for {name}, lay over its filters: {filters}")


def with_total(result: WhatIf) -> dict[str, Kept]:
    """Return the sources' amounts, and their sum if there are several."""
    total = {"all": result.total} if len(result.sources) > 1 else {}
    return {**result.sources, **total}


def kept_row(amounts: Kept) -> list[str]:
    """Return the cells of one source: all, now and then, in documents and in MB."""
    cells = []
    for unit, scale, digits in (("documents", 1, 0), ("bytes", 1e6, 1)):
        whole = getattr(amounts, unit)
        cells.append(f"{whole / scale:,.{digits}f}")
        for side in (amounts.now, amounts.then):
            part = getattr(side, unit)
            cells.append(f"{part / scale:,.{digits}f} ({part / max(1, whole):.1%})")
    return cells


def threshold_text(result: WhatIf, name: str) -> str:
    """Return "0.2 -> 0.25" for a rule that changes, else an empty text."""
    changes = [source.changes.get(name) for source in result.sources.values()]
    texts = {f"{limit_cell(each.now)} -> {limit_cell(each.then)}" for each in changes if each}
    return texts.pop() if len(texts) == 1 else "differs by source" if texts else ""


def plain(threshold: Any) -> str:
    """Return a threshold as people write it."""
    return "off" if threshold is None else limit_text(threshold)


def limit_cell(limit: Any) -> str:
    """Return a limit as people write it; of many languages, the least and the largest."""
    if not isinstance(limit, Mapping) or len(limit) <= FEW_LANGUAGES:
        return plain(limit)
    numbers = [number for number in limit.values() if number is not None]
    return f"{min(numbers):g} to {max(numbers):g}" if numbers else "off"
