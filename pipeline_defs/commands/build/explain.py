"""`corpus explain`: what a part was made of, and what the next run would do to it, and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from assets.stages import BY_NAME, used_stages
from pipeline_defs.commands.terminal.options import Json
from pipeline_defs.commands.terminal.output import ONE_LINE, print_json
from pipeline_defs.forecast.forecast import NEW, Forecast, forecast
from pipeline_defs.forecast.reasons import SHORT, inputs_of
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.stage import Stage
from resources.store.records import Manifest, fingerprint_of
from resources.tasks import GLOBAL

# "part", "stage/part", "stage/partition/part", and as errors have it: "stage[partition] part name"
NAME = re.compile(r"(?:(\w+)(?:[/\[]([\w-]+)\]?)?(?:/| part ))?([\w.-]+)")


class PartState(msgspec.Struct, frozen=True):
    """A part as it is published, its ingredients, and what the next run would do to it."""

    stage: str
    partition: str
    part: str
    is_published: bool
    fingerprint: str
    files: tuple[str, ...]
    made_of: dict[str, str]
    next_run: str
    why: tuple[str, ...]


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
    if stage is not None and stage not in stages:
        raise UsageError(unknown_name("stage", stage, stages))
    foreseen = [
        each
        for each in forecast(corpus)
        if stage in (None, each.stage) and partition in (None, each.partition)
    ]
    states = [state for each in foreseen for state in states_of(corpus, stages, each, name)]
    if not states:
        raise UsageError(unknown_name("part", name, known_names(corpus, foreseen)))
    if json:
        print_json(states)
    else:
        for state in states:
            show(state)
    return 0


def known_names(corpus: Corpus, foreseen: Sequence[Forecast]) -> list[str]:
    """Return the names of all parts, published or to be computed."""
    names = {name for each in foreseen for name in each.computed}
    for each in foreseen:
        manifest = newest_of(corpus, each)
        names |= {part.name for part in manifest.parts} if manifest else set()
    return sorted(names - {NEW})


def newest_of(corpus: Corpus, each: Forecast) -> Manifest | None:
    """Return the newest manifest of a forecast's partition."""
    return corpus.store.partition(each.stage, each.partition).newest_manifest()


def states_of(
    corpus: Corpus, stages: dict[str, Stage[Any, Any]], each: Forecast, name: str
) -> Iterator[PartState]:
    """Yield the state of the part of that name in a partition, if there is one."""
    manifest = newest_of(corpus, each)
    published = [part for part in manifest.parts if part.name == name] if manifest else []
    computed = each.computed.get(name)
    if not published and computed is None:
        return
    why = computed.why if computed else ()
    action = "reused"
    if computed:
        action = "computed" if each.is_exact else "computed, as far as can be told"
    elif name in each.gone:
        action = "dropped: its input is gone"
    made_of: dict[str, str] = {}
    if manifest is not None and published:
        made_of = ingredients(corpus, stages[each.stage], manifest, name)
    yield PartState(
        each.stage,
        each.partition,
        name,
        bool(published),
        published[0].fingerprint if published else "",
        tuple(file.path for part in published for file in part.files),
        made_of,
        action,
        why,
    )


def ingredients(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, name: str
) -> dict[str, str]:
    """Return what a published part was made of, by name."""
    found = {
        "code version": manifest.code_version,
        "config": fingerprint_of(manifest.config)[:SHORT],
    }
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


def show(state: PartState) -> None:
    """Print a part for people."""
    lines = [f"{state.stage}[{state.partition}] part {state.part}"]
    if state.is_published:
        lines.append(f"  published, fingerprint {state.fingerprint}")
        lines += [f"  file {path}" for path in state.files]
        lines += [f"  made of {name}: {value}" for name, value in state.made_of.items()]
    else:
        lines.append("  not published")
    lines.append(f"  next run: {state.next_run}")
    lines += [f"  because {reason}" for reason in state.why]
    sys.stdout.write("".join(f"{line.translate(ONE_LINE)}\n" for line in lines))
