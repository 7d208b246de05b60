"""A stage of the flow: its place in the graph, and the functions that plan and compute it.

A stage knows neither Dagster nor a corpus: `resources/materialization.py` makes an asset of it,
`assets/stages.py` lists all of them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from resources.corpus import Corpus
from resources.store.records import Manifest, Numbers, Provenance
from resources.store.store import Keep
from resources.tasks import Outcome, Plan, Task, Work, run_tasks

Partitioning = Literal["source", "phase", "none"]
MetadataValue = str | int | float | Mapping[str, Any]  # a text is shown as Markdown
Metadata = Mapping[str, MetadataValue]


@dataclass(frozen=True)
class HistoryCheck:
    """A check of one number among the metadata of a stage, by partition.

    `has_jumped(corpus, number, earlier)`, the newest earlier number first, tells whether the number
    is conspicuous, and gives the facts to show for it.
    """

    name: str
    number: str
    description: str
    has_jumped: Callable[[Corpus, float, Sequence[float]], tuple[bool, Mapping[str, float]]]


@dataclass(frozen=True)
class WarningCheck:
    """A check that warns, and blocks nothing, if `conclude` has warnings."""

    name: str
    description: str


@dataclass(frozen=True)
class Conclusion:
    """Warnings and metadata of one partition that depend on all partitions of a run."""

    warnings: Sequence[str] = ()
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True)
class Stage(Generic[Provenance, Numbers]):
    """The complete description of a stage.

    name, code_version  raise the version when the stage's output changes
    description         one sentence, shown in the web UI
    partitions          one partition per source or per phase, or none
    after               the stages that it reads
    kinds               tools, shown in the web UI
    provenance, numbers types of the stage's own records in its manifests
    plan, work          plan the tasks of a partition; compute and publish the parts of one task
    run                 run the tasks, where one pass over them is not enough
    describe            metadata of a partition besides what every stage has
    conclude            warnings and metadata that need every partition of the run
    check               a check of a number that `describe` gives, besides those of every stage
    warning_check       a check that shows the warnings of `conclude`
    keep                folders of a partition that outlive its own manifests
    preload             modules to import before processes are forked
    warm_up             calls that compile, or load, every kernel that the settings need
    """

    name: str
    code_version: str
    description: str
    partitions: Partitioning
    after: tuple[Stage[Any, Any], ...]
    kinds: frozenset[str]
    provenance: type[Provenance]
    numbers: type[Numbers]
    plan: Callable[[Corpus, str], Plan]
    work: Work
    run: Callable[[Corpus, list[Task], Work], list[Outcome]] = run_tasks
    describe: Callable[[Corpus, Manifest[Provenance, Numbers]], Metadata] | None = None
    conclude: Callable[[Corpus, Manifest[Provenance, Numbers]], Conclusion] | None = None
    check: HistoryCheck | None = None
    warning_check: WarningCheck | None = None
    keep: Keep | None = None
    preload: tuple[str, ...] = ()
    warm_up: Callable[[Corpus], Iterable[Callable[[], object]]] | None = None
