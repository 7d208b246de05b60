"""A stage of the flow: its place in the graph, and the functions that plan and compute it.

A stage knows neither Dagster nor a corpus: `materialize/materialization.py` makes an asset of it,
`assets/stages.py` lists all of them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from resources.corpus import Corpus
from resources.profiles import Judgement, Profile
from resources.settings.pipeline import Settings
from resources.store.records import (
    Manifest,
    Numbers,
    PartRecord,
    Provenance,
    StageRecords,
    compression_in_fingerprints,
    fingerprint_of,
)
from resources.store.store import Keep
from resources.tasks import GLOBAL, Plan, RunStage, Work

Partitioning = Literal["source", "phase", "none"]
Group = Literal["ingest", "curate", "deduplicate", "annotate", "tokenize", "train"]


@dataclass(frozen=True)
class Table:
    """A table among the metadata of a partition: names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float, ...]]


MetadataValue = str | int | float | Mapping[str, Any] | Table  # a text is shown as Markdown
Metadata = Mapping[str, MetadataValue | None]  # None hides a value that every stage has


@dataclass(frozen=True)
class MainTable:
    """The table of a stage that people look at first: the kind of its files, and its columns.

    `columns` gives the meaning of each column, those that only some configs add included; a name
    with `*` is that of several columns.
    """

    kind: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Check:
    """A check of the partitions of a stage, beside those that every stage has; it blocks none.

    finds    what is wrong with a manifest, given the warnings of `conclude` on it; "" if nothing is
    refuses  whether such a partition fails after it was committed: later stages are not to read it,
             and ask the same. Else the check warns
    """

    name: str
    description: str
    finds: Callable[[Corpus, Manifest[Any, Any], Sequence[str]], str]
    refuses: bool = False


def any_warnings(_: Corpus, __: Manifest[Any, Any], warnings: Sequence[str]) -> str:
    """Return the warnings of a partition, for a check that it has none."""
    return "\n".join(warnings)


def not_zero(number: int) -> str:
    """Return a number for a check that it is 0."""
    return f"{number:,}" if number else ""


@dataclass(frozen=True)
class DriftCheck:
    """A check of what a run adds against what earlier runs of the partition added.

    `profile(corpus, manifest, parts)` reads the numbers of parts, `judge(profile, earlier)`
    compares them with those of earlier runs, the newest first. `states(corpus, manifest, before)`
    compares the whole state with the one before, and gives a line per drift.
    """

    profile: Callable[[Corpus, Manifest[Any, Any], Sequence[PartRecord[Any]]], Profile]
    judge: Callable[[Profile, Sequence[Profile]], Judgement]
    states: Callable[[Corpus, Manifest[Any, Any], Manifest[Any, Any]], Sequence[str]] | None = None


@dataclass(frozen=True)
class Conclusion:
    """Warnings and metadata of one partition that depend on all partitions of a run."""

    warnings: Sequence[str] = ()
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True)
class InputVersions:
    """The observable asset of inputs from outside, and the version of them in a manifest."""

    asset: str
    version: Callable[[Manifest[Any, Any]], str]


@dataclass(frozen=True)
class Outlook:
    """What is expected of a stage before its inputs are there.

    parts          what a part is made of: the part of its name (`same`), a window of parts, named
                   after the first (`window`), all that is new (`new`), or everything (`all`)
    reaches_all    a change of it changes every part of the stages behind it
    steady         earlier stages whose changes change no part that is there
    is_kept        whether it stays as it is, once it is there, while documents come and go
    cpu_per_mb     CPU seconds a MB of real text, in builds of 30, 97 and 168 MB on two cores
    first_seconds  those of its first calls in a new process, which loads kernels and libraries
    """

    parts: Literal["same", "window", "new", "all"] = "all"
    reaches_all: bool = False
    steady: tuple[str, ...] = ()
    is_kept: Callable[[Settings], bool] = lambda _settings: False
    cpu_per_mb: float = 0.01
    first_seconds: float = 0.0


@dataclass(frozen=True)
class Stage(StageRecords[Provenance, Numbers]):
    """The complete description of a stage: its records, which other stages know too, and the rest.

    description         one sentence, shown in the web UI
    group               the act of the flow that it belongs to
    partitions          one partition per source or per phase, or none
    after               names of the stages that it reads
    settings            the settings that its output depends on, for the UI: a change of them makes
                        it stale, like a new code version
    kinds               tools, shown in the web UI
    plan, work          plan the tasks of a partition; compute and publish the parts of one task
    is_used             tell whether a config has work for the stage; if not, no graph has it
    main_table          the table whose columns and first rows are shown, if it has one
    run                 run the tasks, where one pass over them is not enough, and yield the
                        outcomes of each partition when it has all of them
    inputs              the inputs from outside whose changes make it stale
    stays_rolled_back   True if a run leaves it as it is for a source that is rolled back
    describe            metadata of a partition besides what every stage has
    conclude            warnings and metadata that need every partition of the run
    checks              checks of its own
    before_commit       raise StoreError for a manifest that is not to be committed
    drift               a check of what each run adds against what earlier runs added
    keep                folders of a partition that outlive its own manifests
    preload             modules to import before processes are forked
    warm_up             calls that compile, or load, every kernel that the settings need and that is
                        not compiled when it is imported
    outlook             its work to come, for `corpus build --dry-run` and `corpus estimate`
    flags               flags of the asset's run config, with their meaning; a run sets none by
                        itself, and `plan` finds those that are set in `corpus.flags`
    """

    description: str
    group: Group
    partitions: Partitioning
    after: tuple[str, ...]
    kinds: frozenset[str]
    plan: Callable[[Corpus, str], Plan]
    work: Work
    settings: Callable[[Settings], Any] = lambda _settings: None
    is_used: Callable[[Settings], bool] = lambda _settings: True
    main_table: MainTable | None = None
    run: RunStage | None = None
    inputs: InputVersions | None = None
    stays_rolled_back: bool = False
    describe: Callable[[Corpus, Manifest[Provenance, Numbers]], Metadata] | None = None
    conclude: Callable[[Corpus, Manifest[Provenance, Numbers]], Conclusion] | None = None
    checks: tuple[Check, ...] = ()
    before_commit: Callable[[Corpus, Manifest[Provenance, Numbers], Plan], None] | None = None
    drift: DriftCheck | None = None
    keep: Keep | None = None
    preload: tuple[str, ...] = ()
    warm_up: Callable[[Corpus], Iterable[Callable[[], object]]] | None = None
    outlook: Outlook = Outlook()
    flags: Mapping[str, str] = field(default_factory=dict)

    def version_under(self, settings: Settings) -> str:
        """Return code version and settings as Dagster's code version: one for all partitions."""
        written_as = compression_in_fingerprints(settings.compression)
        return f"{self.code_version}-{fingerprint_of(self.settings(settings), *written_as)[:8]}"


def partition_names(stage: Stage[Any, Any], settings: Settings) -> list[str]:
    """Return the names of a stage's partitions: sources, phases, or the one of all."""
    match stage.partitions:
        case "source":
            return settings.source_names()
        case "phase":
            return settings.phase_names()
        case "none":
            return [GLOBAL]
