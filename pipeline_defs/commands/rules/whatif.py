"""`corpus rules whatif`: count what other thresholds would keep, by the last run's decisions.

Only the columns that the rules use are read, a bounded number of rows at a time. The result is that
of a run with these thresholds.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

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
from corpus_loader.places.stage_names import FILTERED
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.rules.filtered_files import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    pick_sources,
    rules_config,
)
from pipeline_defs.commands.terminal import Json, check_one_given, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.limits import limit_text
from resources.store.records import Manifest
from resources.store.store import StoreError
from resources.tasks import GLOBAL

SIDES = ("now", "then")
AMOUNT = {"documents": pl.Int64, "bytes": pl.Int64}
KEPT: dict[str, Any] = {"source": pl.String, **AMOUNT, **dict.fromkeys(SIDES, pl.Struct(AMOUNT))}
BROKEN = pl.Struct(AMOUNT | {"alone": pl.Int64})
RULES: dict[str, Any] = {"rule": pl.String, **dict.fromkeys(SIDES, BROKEN)}
OVERLAPS: dict[str, Any] = {"rules": pl.List(pl.String), **dict.fromkeys(SIDES, pl.Int64)}
TOP_PAIRS = 10
FEW_LANGUAGES = 3  # whose limits fit into a cell
WHICH = Group("Sources", validator=check_one_given)


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
        print_json(result.as_json())
    else:
        show(result)
    return 0


@dataclass(frozen=True)
class WhatIf:
    """Replays of sources, and what they come to under the rules of the last run and the others.

    kept      documents and bytes of each source, then of `all`: all of them, kept now, kept then
    rules     documents and bytes that each rule breaks, and documents that only it breaks
    overlaps  documents that two rules break together, of the most frequent pairs
    """

    replays: list[Replay]
    kept: pl.DataFrame
    rules: pl.DataFrame
    overlaps: pl.DataFrame

    @property
    def total(self) -> dict[str, Any]:
        """The amounts of all sources."""
        return self.kept.drop("source").row(-1, named=True)

    def as_json(self) -> dict[str, Any]:
        """Return the numbers for programs; of each source its changes, filters and notes, too."""
        sources = nested(self.kept.head(-1), "source")
        for each in self.replays:
            sources[each.manifest.partition] |= {
                "changes": {n: {"now": a, "then": b} for n, (a, b) in changes_of(each).items()},
                "filters": {"rules": each.overlay},
                "notes": [*each.notes, *each.skipped.values()],
            }
        rules, overlaps = nested(self.rules, "rule"), nested(self.overlaps)
        return {"sources": sources, "total": self.total, "rules": rules, "overlaps": overlaps}


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
    kept = [(each.manifest.partition, each.before, each.after) for each in replays]
    return WhatIf(
        replays,
        kept=pl.DataFrame([kept_row(*row) for row in (*kept, (GLOBAL, before, after))], KEPT),
        rules=pl.DataFrame([broken_row(name, before, after) for name in names], RULES),
        overlaps=pl.DataFrame([(pair, *of) for pair, of in most_frequent], OVERLAPS, orient="row"),
    )


def kept_row(source: str, before: Tally, after: Tally) -> dict[str, Any]:
    """Return documents and bytes of a source: all, kept now, kept then."""
    now, then = ({"documents": each.kept, "bytes": each.kept_bytes} for each in (before, after))
    sizes = {"documents": before.documents, "bytes": before.bytes}
    return {"source": source, **sizes, "now": now, "then": then}


def broken_row(rule: str, before: Tally, after: Tally) -> dict[str, Any]:
    """Return the documents and bytes that a rule breaks, now and then."""
    now, then = (
        {"documents": of.broken[rule], "bytes": of.broken_bytes[rule], "alone": of.alone[rule]}
        for of in (before, after)
    )
    return {"rule": rule, "now": now, "then": then}


def changes_of(of_source: Replay) -> dict[str, tuple[Any, Any]]:
    """Return the thresholds that change, now and then, by rule."""
    now = {rule.name: rule for rule in of_source.now}
    then = {rule.name: rule for rule in of_source.then}
    return {
        name: (
            getattr(now.get(name), "threshold", None),
            getattr(then.get(name), "threshold", None),
        )
        for name in dict.fromkeys([*now, *then])
        if now.get(name) != then.get(name)
    }


def replay(corpus: Corpus, source: str, assignments: Sequence[str]) -> Replay:
    """Prepare the replay of a source, with its rules now and then; nothing is counted yet.

    A change that turns on a rule without a score in the decisions is skipped.
    """
    manifest = corpus.store.newest(FILTERED, source)
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
    kept = result.kept.head(len(result.replays) + (len(result.replays) > 1))
    shares = {f"{side}_share": share_of(side) for side in SIDES}
    print_frame("kept", kept.with_columns(**shares))
    changes = [changes_of(each) for each in result.replays]
    texts = [threshold_text(changes, name) for name in result.rules["rule"]]
    thresholds = pl.Series("threshold", texts, pl.String)
    print_frame("documents that a rule breaks", result.rules.with_columns(thresholds))
    print_frame("documents that two rules break", result.overlaps)
    for each, of_source in zip(result.replays, changes, strict=True):
        say(*each.notes, *each.skipped.values())
        if of_source:
            filters = json_text.dumps({"rules": each.overlay})
            say(f"To have this for {each.manifest.partition}, lay over its filters: {filters}")


def share_of(side: str) -> pl.Expr:
    """Return the share of documents that one side keeps."""
    return pl.col(side).struct["documents"] / pl.col("documents").clip(1)


def threshold_text(changes: Sequence[Mapping[str, tuple[Any, Any]]], name: str) -> str:
    """Return "0.2 -> 0.25" for a rule that changes, else an empty text."""
    pairs = (of_source[name] for of_source in changes if name in of_source)
    texts = {" -> ".join(map(limit_cell, pair)) for pair in pairs}
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
