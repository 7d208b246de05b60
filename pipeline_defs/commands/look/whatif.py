"""`corpus whatif`: what other thresholds would keep, from the decisions of the last run.

Only the columns that the rules look at are read, a bounded number of rows at a time; the result is
exactly what a run with these thresholds would give, without one.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from assets.filtered.filter_data import FilterData
from assets.filtered.filter_files import FilterFileError, load_filter_data
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
from pipeline_defs.commands.look.whatif_show import plot, show
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.filters import FilterConfig
from resources.settings.rules import RulesConfig
from resources.store.records import Manifest, required_file, to_json
from resources.store.store import StoreError

BATCH_ROWS = 2_000_000  # bounds memory: some 100 bytes a row
TOP_PAIRS = 10


@dataclass
class Replay:
    """One source under the rules of its last run, and under the changed ones."""

    manifest: Manifest
    now: list[Rule]
    then: list[Rule]
    overlay: Overlay
    skipped: dict[str, str]  # changes that do not apply to the source, and why
    notes: list[str]
    before: Tally = field(default_factory=Tally)
    after: Tally = field(default_factory=Tally)


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--source", action="append", metavar="S", help="a source; may be repeated")
    which.add_argument("--all", action="store_true", help="every source that has decisions")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a rule (length.too_short) or its key (length.min_chars), and its threshold; "
        "off switches the rule off; lists: a,b,c",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw now and then")


def run(options: Namespace) -> int:
    """Replay, print, draw."""
    corpus = load_corpus()
    found = what_if(corpus, pick_sources(corpus, options.source), options.set)
    if options.plot:
        write_text(options.plot, plot(found))
    if options.json:
        sys.stdout.write(to_json(found).decode())
    else:
        show(found)
    return 0


def pick_sources(corpus: Corpus, names: Sequence[str] | None) -> list[str]:
    """The sources named, each once; of none named, all that have decisions."""
    known = corpus.settings.source_names()
    for name in names or []:
        if name not in known:
            raise UsageError(unknown_name("source", name, known))
    if names:
        return list(dict.fromkeys(names))
    found = [name for name in known if corpus.store.partition("filtered", name).manifest_numbers()]
    if not found:
        raise StoreError(
            f"{corpus.store.root}: nothing is filtered here. Materialize `filtered` first."
        )
    return found


def what_if(corpus: Corpus, sources: Sequence[str], assignments: Sequence[str]) -> dict[str, Any]:
    """What `corpus whatif --json` prints."""
    replays = [replay(corpus, name, assignments) for name in sources]
    for assignment in assignments:
        if all(assignment in each.skipped for each in replays):
            raise UsageError("\n".join(each.skipped[assignment] for each in replays))
    before, after = Tally(), Tally()
    for each in replays:
        count(corpus, each)
        before.add(each.before)
        after.add(each.after)
    return {
        "sources": {
            each.manifest.partition: {
                **totals(each.before, each.after),
                "changes": changes_of(each),
                "filters": {"rules": each.overlay},
                "notes": [*each.notes, *each.skipped.values()],
            }
            for each in replays
        },
        "total": totals(before, after),
        "rules": per_rule(replays, before, after),
        "overlaps": overlaps(before, after),
    }


def replay(corpus: Corpus, source: str, assignments: Sequence[str]) -> Replay:
    """The rules of a source now and then; nothing is counted yet.

    A change that turns on a rule without a score in the decisions is skipped.
    """
    manifest = corpus.store.newest("filtered", source)
    refuse_first_failure(manifest)
    rules = rules_config(manifest)
    own = filter_data(corpus, manifest).custom
    now = rules_for(rules, own)
    columns = score_columns(corpus, manifest) or {rule.score for rule in now}
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
    then = rules_for(changed_rules(rules, overlay), own)
    return Replay(manifest, now, then, overlay, skipped, differences(corpus, manifest))


def without_score(rules: Sequence[Rule], columns: set[str]) -> list[Rule]:
    """The rules whose score is not among the columns."""
    return [rule for rule in rules if rule.score not in columns]


def no_score(assignment: str, source: str, rule: Rule) -> str:
    """Why a change cannot be replayed for a source."""
    return (
        f"{assignment}: {rule.name} looks at {rule.score}, which the decisions of "
        f"filtered[{source}] do not hold: no rule used it when they were made. Switch the rule on "
        f"in pipeline.yaml and materialize `filtered` for {source!r} once."
    )


def other_version(source: str, why: str) -> str:
    """What to do about decisions that this version does not understand."""
    return (
        f"filtered[{source}] was made by another version of the rules ({why}). "
        f"Materialize `filtered` for {source!r} again."
    )


def refuse_first_failure(manifest: Manifest) -> None:
    """StoreError if the decisions hold no scores after the first broken rule."""
    if manifest.config.get("mode") == "first_failure":
        raise StoreError(
            f"filtered[{manifest.partition}] was made with mode: first_failure, so its decisions "
            "end at the first broken rule and no other threshold can be replayed. Set "
            "filters.mode to all and materialize `filtered` again."
        )


def rules_config(manifest: Manifest) -> RulesConfig:
    """The rules that made a manifest's decisions; StoreError if this version has others."""
    try:
        return RulesConfig.model_validate(manifest.config["rules"])
    except (KeyError, ValidationError) as error:
        raise StoreError(other_version(manifest.partition, str(error))) from None


def filter_data(corpus: Corpus, manifest: Manifest) -> FilterData:
    """The lists and custom rules that a manifest's config names."""
    try:
        config = FilterConfig.model_validate(manifest.config)
        return load_filter_data(config, corpus.config.parent)
    except (ValidationError, FilterFileError) as error:
        raise StoreError(other_version(manifest.partition, str(error))) from None


def decision_files(corpus: Corpus, manifest: Manifest) -> list[tuple[Path, int]]:
    """(path, rows) of every part's decisions; StoreError if one is missing."""
    records = [required_file(manifest, part, "decisions") for part in manifest.parts]
    files = [(corpus.store.path_of(manifest, file), file.rows) for file in records]
    for path, _ in files:
        if not path.is_file():
            raise StoreError(f"{path}: missing. Materialize `filtered` again to restore it.")
    return files


def score_columns(corpus: Corpus, manifest: Manifest) -> set[str] | None:
    """Columns of the decisions; None if there is no part."""
    files = decision_files(corpus, manifest)
    return set(pl.read_parquet_schema(files[0][0])) if files else None


def differences(corpus: Corpus, manifest: Manifest) -> list[str]:
    """A note if pipeline.yaml says something else today than when the decisions were made."""
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
    """Dotted paths at which two configs differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [prefix.rstrip(".")]
    keys = list(dict.fromkeys([*one, *other]))
    below = (different_keys(one.get(key), other.get(key), f"{prefix}{key}.") for key in keys)
    return list(chain(*below))


def count(corpus: Corpus, each: Replay) -> None:
    """Fill in the tallies; StoreError if the decisions contradict the rules that made them."""
    rules = list(dict.fromkeys([*each.now, *each.then]))
    for paths in batches(decision_files(corpus, each.manifest), BATCH_ROWS):
        masks = count_masks(pl.scan_parquet(paths), rules).collect(engine="streaming")
        each.before.add(tally(masks, rules, each.now))
        each.after.add(tally(masks, rules, each.then))
    if each.before.contradicted:
        why = f"{each.before.contradicted:,} decisions are not what their own rules say"
        raise StoreError(other_version(each.manifest.partition, why))


def batches(files: Sequence[tuple[Path, int]], max_rows: int) -> Iterator[list[Path]]:
    """Runs of files with at most `max_rows` rows together, or of one file."""
    batch: list[Path] = []
    rows = 0
    for path, num_rows in files:
        if batch and rows + num_rows > max_rows:
            yield batch
            batch, rows = [], 0
        batch.append(path)
        rows += num_rows
    if batch:
        yield batch


def totals(before: Tally, after: Tally) -> dict[str, Any]:
    """Documents and bytes, all and kept."""
    return {
        "documents": before.documents,
        "bytes": before.bytes,
        "now": {"documents": before.kept, "bytes": before.kept_bytes},
        "then": {"documents": after.kept, "bytes": after.kept_bytes},
    }


def changes_of(each: Replay) -> dict[str, Any]:
    """Threshold now and then of every rule that changes; null: off."""
    now = {rule.name: rule for rule in each.now}
    then = {rule.name: rule for rule in each.then}
    return {
        name: {side: getattr(rules.get(name), "threshold", None) for side, rules in sides}
        for name in dict.fromkeys([*now, *then])
        if now.get(name) != then.get(name)
        for sides in [(("now", now), ("then", then))]
    }


def per_rule(replays: Sequence[Replay], before: Tally, after: Tally) -> dict[str, Any]:
    """Per rule: documents and bytes that it breaks, and documents that only it breaks."""
    names = dict.fromkeys(rule.name for each in replays for rule in [*each.now, *each.then])
    return {
        name: {
            side: {
                "documents": counts.broken[name],
                "bytes": counts.broken_bytes[name],
                "alone": counts.alone[name],
            }
            for side, counts in (("now", before), ("then", after))
        }
        for name in names
    }


def overlaps(before: Tally, after: Tally) -> list[dict[str, Any]]:
    """The pairs of rules that break most documents together, the most frequent first."""
    pairs = sorted(
        {*before.pairs, *after.pairs},
        key=lambda pair: (-max(before.pairs[pair], after.pairs[pair]), pair),
    )
    return [
        {"rules": list(pair), "now": before.pairs[pair], "then": after.pairs[pair]}
        for pair in pairs[:TOP_PAIRS]
    ]


def write_text(path: Path, content: str) -> None:
    """Write a file that the user named; UsageError if it cannot be."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
