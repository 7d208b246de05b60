"""`corpus build --dry-run` and `corpus explain`: what the next run would compute, and why.

They read the store and the input files, and run nothing: a run may hold the lock meanwhile.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from assets.raw.raw_records import RAW
from assets.stages import BY_NAME, ancestors, used_stages
from pipeline_defs.commands.answers import print_rows
from pipeline_defs.commands.build.checks import Check, Finding, brief_retries, run_checks
from pipeline_defs.commands.build.doctor import ask, asked_places, root_of
from pipeline_defs.commands.build.first_look import check_for
from pipeline_defs.commands.terminal import ONE_LINE, Json, print_json, say
from pipeline_defs.forecast.forecast import NEW, Forecast, forecast, totals
from pipeline_defs.forecast.reasons import SHORT, inputs_of
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.sources import web_places
from resources.stage import Stage
from resources.store.records import Manifest, fingerprint_of
from resources.tasks import GLOBAL

STEP_SECONDS = 0.4  # a step with nothing to compute (docs/architecture.md)
MOST_REASONS = 4  # shown of one partition of a stage
# "part", "stage/part", "stage/partition/part", and as errors have it: "stage[partition] part name"
NAME = re.compile(r"(?:(\w+)(?:[/\[]([\w-]+)\]?)?(?:/| part ))?([\w.-]+)")


def print_forecast(corpus: Corpus, sources: Sequence[str], last: str, *, json: bool) -> int:
    """Print what a run up to a stage would do, of all sources or some.

    The exit code is 2 if a run would fail: its causes are the last lines, of standard error.
    """
    used = used_stages(corpus.settings)
    wanted = used.keys() & {last, *ancestors(used[last])}
    others = set(corpus.settings.source_names()) - set(sources) if sources else set()
    with brief_retries():
        foreseen = forecast(corpus, unreachable(corpus, others))
        among = [each for each in foreseen if each.stage in wanted and each.partition not in others]
        forecasts = looked_into(corpus, among)
    workers = corpus.settings.engine.num_workers()
    faults = [f"{title_of(each)}: {each.fault}" for each in forecasts if each.fault]
    seconds = sum(each.cpu_seconds for each in forecasts) / workers + STEP_SECONDS * len(wanted)
    if json:
        stages = [as_record(each) for each in forecasts]
        print_json({"stages": stages, "workers": workers, "seconds": round(seconds, 1)})
    elif not faults or any(each.computed or each.reused for each in forecasts):
        print_stages(forecasts)
        say(f"About {seconds:,.1f} s on {workers} workers. Nothing was run or written.")
    sys.stderr.write("".join(f"{fault.translate(ONE_LINE)}\n" for fault in faults))
    return 2 if faults else 0


def unreachable(corpus: Corpus, others: Set[str]) -> dict[str, str]:
    """Return why the place of a source cannot be reached, by source.

    URLs of a source that is built are not requested: their files count as unchanged.
    """
    built = {
        source.name
        for source in corpus.settings.sources
        if web_places(source) and corpus.store.partition(RAW.name, source.name).manifest_numbers()
    }
    sources = [each for each in corpus.settings.sources if each.name not in built | others]
    asked = [(source, place) for source in sources for place in asked_places(source)]
    checks: dict[str, Check] = {
        root_of(place): partial(ask, place, source) for source, place in asked
    }
    faults = {each.check: each.text for each in run_checks(checks) if each.state == "fault"}
    return {
        source.name: f"source {source.name!r}, {root}: {faults[root]}"
        for source, place in asked
        if (root := root_of(place)) in faults
    }


def looked_into(corpus: Corpus, forecasts: Sequence[Forecast]) -> list[Forecast]:
    """Add to forecasts what first records and named files tell: faults, and what is not known."""
    checks = {title_of(each): check for each in forecasts if (check := check_for(corpus, each))}
    found = {look.check: look for look in run_checks(checks)}
    looks = [found.get(title_of(each), Finding("", "ok", "")) for each in forecasts]
    return [
        replace(
            each,
            fault=look.text if look.state == "fault" else each.fault,
            note=look.text if look.state == "warning" else each.note,
        )
        for each, look in zip(forecasts, looks, strict=True)
    ]


def title_of(each: Forecast) -> str:
    """Return the name of a partition of a stage."""
    return f"{each.stage}[{each.partition}]"


def print_stages(forecasts: Sequence[Forecast]) -> None:
    """Print the numbers of each stage, and why parts would be computed."""
    rows = ({"stage": stage} | numbers_of(each) for stage, each in totals(forecasts).items())
    print_rows("the next run, in parts", rows)
    for each in forecasts:
        say(*lines_of(each))
    measured = [each.stage for each in forecasts if each.computed and not each.is_measured_here]
    if measured:
        say(
            "CPU seconds are those of the last runs on this store; of "
            f"{', '.join(dict.fromkeys(measured))} those of docs/performance.md."
        )


def as_record(each: Forecast) -> dict[str, Any]:
    """Return a forecast for programs: its parts as numbers and reasons."""
    names = ("stage", "partition", "is_exact", "read_bytes", "written_bytes", "is_measured_here")
    return {name: getattr(each, name) for name in (*names, "note", "fault")} | {
        "compute": len(each.computed),
        "reuse": each.reused,
        "drop": len(each.gone),
        "cpu_seconds": round(each.cpu_seconds, 3),
        "reasons": [*reasons_of(each)],
    }


def numbers_of(each: Forecast) -> dict[str, Any]:
    """Return the columns of a stage."""
    computed = f"{'' if each.is_exact else 'about '}{len(each.computed):,}"
    parts = {"compute": computed, "reuse": each.reused, "drop": len(each.gone)}
    sizes = {"read_MB": each.read_bytes / 1e6, "write_MB": each.written_bytes / 1e6}
    return parts | sizes | {"CPU_s": each.cpu_seconds}


def reasons_of(each: Forecast) -> Iterator[dict[str, Any]]:
    """Yield the reasons of a partition's parts with an example, the most frequent first."""
    counts = Counter(part.why for part in each.computed.values())
    for why, count in counts.most_common():
        example = next(part.name for part in each.computed.values() if part.why == why)
        yield {"why": why, "parts": count, "example": example}


def lines_of(each: Forecast) -> Iterator[str]:
    """Yield a line per reason of a partition."""
    title = title_of(each)
    listed = list(reasons_of(each))
    for reason in listed[:MOST_REASONS]:
        parts = "1 part" if reason["parts"] == 1 else f"{reason['parts']:,} parts"
        yield f"{title}: {parts} ({reason['example']}): {'; '.join(reason['why'])}"
    if len(listed) > MOST_REASONS:
        yield f"{title}: {len(listed) - MOST_REASONS:,} more reasons: `corpus explain PART`"
    if each.note:
        yield f"{title}: {each.note}"


def explain(
    part: Annotated[str, Parameter(help="Name of a part, or stage[/partition]/part.")],
    /,
    *,
    json: Json = False,
) -> int:
    """Explain a part in every stage that has one of that name."""
    found = NAME.fullmatch(part)
    if found is None:
        raise UsageError(f"{part!r:.80} is no name of a part. Give part or stage[/partition]/part.")
    stage, partition, name = found.groups()
    corpus = load_corpus()
    stages = used_stages(corpus.settings)
    if stage is not None:
        check_name("stage", stage, stages)
    states: list[dict[str, Any]] = []
    known: set[str] = set()
    with brief_retries():
        forecasts = forecast(corpus)
    for each in forecasts:
        if stage in (None, each.stage) and partition in (None, each.partition):
            manifest = corpus.store.partition(each.stage, each.partition).newest_manifest()
            names = {*each.computed, *(part.name for part in (manifest.parts if manifest else ()))}
            known |= names - {NEW}
            if name in names:
                states.append(state_of(corpus, stages[each.stage], each, manifest, name))
    check_name("part", name, sorted({*known, *(state["part"] for state in states)}))
    if json:
        print_json(states)
    else:
        for state in states:
            show_part(state)
    return 0


def state_of(
    corpus: Corpus, stage: Stage[Any, Any], each: Forecast, manifest: Manifest | None, name: str
) -> dict[str, Any]:
    """Return a part of a partition as it is published, and what the next run would do to it."""
    published = [part for part in manifest.parts if part.name == name] if manifest else []
    action = "dropped: its input is gone" if name in each.gone else "reused"
    if name in each.computed:
        action = "computed" if each.is_exact else "computed, as far as can be told"
    return {
        **{"stage": each.stage, "partition": each.partition, "part": name},
        "is_published": bool(published),
        "fingerprint": published[0].fingerprint if published else "",
        "files": [file.path for part in published for file in part.files],
        "made_of": ingredients(corpus, stage, manifest, name) if manifest and published else {},
        "next_run": action,
        "why": each.computed[name].why if name in each.computed else (),
    }


def ingredients(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, name: str
) -> dict[str, str]:
    """Return what a published part was made of, by name."""
    config = fingerprint_of(manifest.config)[:SHORT]
    found = {"code version": manifest.code_version, "config": config}
    found |= {key: str(value) for key, value in inputs_of(manifest.provenance, stage).items()}
    for earlier in (BY_NAME[name] for name in stage.after):
        then = manifest.provenance.get(earlier.name)
        if isinstance(then, str):
            place = GLOBAL if earlier.partitions == "none" else manifest.partition
            found[f"{earlier.name}[{place}]"] = then[:SHORT]
            now = corpus.store.partition(earlier.name, place).newest_manifest()
            for part in now.parts if now is not None and now.fingerprint == then else ():
                if part.name == name:
                    found[f"{earlier.name}[{place}] part {name}"] = part.fingerprint[:SHORT]
    return found


def show_part(state: Mapping[str, Any]) -> None:
    """Print a part for people."""
    say("{stage}[{partition}] part {part}".format_map(state))
    if state["is_published"]:
        say(f"  published, fingerprint {state['fingerprint']}")
        say(*(f"  file {path}" for path in state["files"]))
        say(*(f"  made of {name}: {value}" for name, value in state["made_of"].items()))
    else:
        say("  not published")
    say(f"  next run: {state['next_run']}", *(f"  because {reason}" for reason in state["why"]))
