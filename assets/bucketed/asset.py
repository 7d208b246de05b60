"""Asset `bucketed`: training sequences, made of the documents of one window after another.

A sequence is published as the spans of its documents. Its tokens stay where `tokenized` wrote them:
those files get second names here, and the shards are gathered from them. To write them once more
took 1.8 of 66 CPU seconds of a build of 1 GB, and half a gigabyte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl
from msgspec import UNSET, structs
from msgspec.structs import asdict

from assets.bucketed.bucketed_records import (
    BUCKETED,
    SEQUENCE_IDS,
    TOKENS,
    TOO_LONG,
    BucketedManifest,
    BucketedProvenance,
    ClassFacts,
    layout_of,
)
from assets.bucketed.document_chunks import LEFT_OUT
from assets.bucketed.document_groups import WindowGroups, groups_of_source
from assets.bucketed.make_sequences import make_sequences
from assets.bucketed.previous_holdout import count_released
from assets.bucketed.report import (
    held_out,
    long_counts,
    readable,
    report_markdown,
    shares,
    warnings_of,
)
from assets.bucketed.sequences import PLACE_COLUMNS, ROW_COLUMNS, count_empty, sequence_ids
from assets.tokenized.chat_template_files import usable_tokenized
from assets.tokenized.tokenized_records import NO_TOKENS, token_bytes
from corpus_loader.places import stage_names
from resources.content_windows import content_windows
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.reused_array import reused_array
from resources.settings.buckets import (
    LONG,
    BucketConfig,
    BucketLayout,
    check_count,
)
from resources.settings.pipeline import Settings
from resources.stage import Check, Conclusion, MainTable, Metadata, Outlook, Stage, not_zero
from resources.store.mapped_files import map_arrow, read_arrow
from resources.store.published import PublishedFile, copied_ahead
from resources.store.records import (
    FileRecord,
    PartRecord,
    Stats,
    add_counts,
    as_json_object,
    required_file,
)
from resources.tasks import Plan, Task, TaskMaker, tasks_of

BUCKETED_COLUMNS = {
    "bucket": "number of its bucket",
    **{name: meaning for name, meaning in ROW_COLUMNS.items() if name != "tokens"},
    **PLACE_COLUMNS,
}
MOST_MAPPED = 1000  # files; Linux maps 65,530 a process, and each of its threads has a window


@dataclass(frozen=True)
class WindowInputs:
    """Input of one task: the tokenized parts of a window, and the token to pad with.

    `files` and `records` are those of the parts' tokens, `columns` what is read of them.
    """

    files: list[PublishedFile]
    records: list[FileRecord]
    config: BucketConfig
    padding: int
    text_bytes: int
    columns: tuple[str, ...] = ("doc_id", "tokens")
    groups: WindowGroups = field(default_factory=WindowGroups)
    counted: str = ""
    class_tokens: dict[str, int] = field(default_factory=dict)

    def tables(self, columns: Sequence[str]) -> list[pl.DataFrame]:
        """Read columns of the tokenized parts, mapped if they are in few files."""
        table_of = map_arrow if len(self.files) <= MOST_MAPPED else read_arrow
        return [table_of(file.checked(), [*columns]) for file in copied_ahead(self.files)]

    def tokens_by_class(self) -> dict[str, int]:
        """Count the tokens of the documents of each class."""
        return self.groups.tokens_by_class(self.tables(("doc_id", "tokens")))


def plan_bucketed(corpus: Corpus, source: str) -> Plan:
    """Plan one task per window of consecutive tokenized parts, named after the first of them.

    The borders depend on the parts near them alone: a part that comes or goes changes one window.
    """
    manifest, config = usable_tokenized(corpus, source), corpus.settings.buckets
    of_source = groups_of_source(corpus, source)
    is_chat, is_split = manifest.provenance.has_loss_mask is True, "reasoning" in manifest.config
    columns = ("doc_id", "tokens", *(("loss_mask",) if is_chat else ()))
    columns += ("turns",) if is_split else ()
    long = {LONG: config.long_conversations} if is_chat and config.mode != "buckets" else {}
    dump = config.model_dump(mode="json", exclude={LONG}) | long
    maker, tasks = tasks_of(corpus, BUCKETED, source), list[Task[WindowInputs]]()
    names = [part.name for part in manifest.parts]
    tokens = [part.stats.tokens for part in manifest.parts]
    for window in content_windows(names, tokens, config.window_tokens):
        parts = manifest.parts[window]
        files = [required_file(manifest, part, "tokens") for part in parts]
        groups = of_source.of_window(corpus, source, names[window])
        inputs = WindowInputs(
            files=[corpus.store.file_of(manifest, file) for file in files],
            records=files,
            config=config,
            padding=manifest.provenance.end_of_document_id,
            text_bytes=sum(part.stats.text_bytes for part in parts),
            columns=columns,
            groups=groups,
        )
        made_of = [dump, [part.fingerprint for part in parts], *groups.made_of]
        work_bytes = sum(file.bytes for file in files)
        tasks.append(maker.task(parts[0].name, made_of, inputs, work_bytes=work_bytes))
    if of_source.are_counted:
        tasks = in_large_classes(corpus, source, maker, tasks)
    classes = config.classes and ClassFacts(
        config.classes.score, config.classes.limits, config.classes.label or UNSET
    )
    provenance = BucketedProvenance(
        **asdict(manifest.provenance), tokenized=manifest.fingerprint, classes=classes or UNSET
    )
    group_names = {*of_source.classes, *(name for t in tasks for name in t.payload.groups.names)}
    layout = BucketLayout(config, tuple(sorted(group_names)))
    return Plan(tasks, layout.dump() | long, provenance)


def in_large_classes(
    corpus: Corpus, source: str, maker: TaskMaker, tasks: Sequence[Task[WindowInputs]]
) -> list[Task[WindowInputs]]:
    """Give each window a group for each class that has `min_tokens` in all windows of the source.

    Windows that the last run has counted are not read. Raises UsageError for too many classes.
    """
    config, last = corpus.settings.buckets, corpus.store.newest_or_none(BUCKETED, source)
    numbers = [part.stats.numbers for part in last.parts] if last else []
    known = {n.counted: n.class_tokens for n in numbers if isinstance(n.class_tokens, dict)}
    counts = [
        known[task.fingerprint] if task.fingerprint in known else task.payload.tokens_by_class()
        for task in tasks
    ]
    least = config.classes.min_tokens if config.classes else 0
    large = [name for name, tokens in add_counts(counts).items() if tokens >= least]
    try:
        check_count(config, len(large) + corpus.settings.holds_out)
    except ValueError as error:
        raise UsageError(f"source {source!r}: {error}") from None
    in_classes = list[Task[WindowInputs]]()
    for task, tokens in zip(tasks, counts, strict=True):
        inputs, made_of = task.payload, (task.fingerprint, large)
        names = tuple(sorted([*inputs.groups.names, *large]))
        groups = replace(inputs.groups, names=names)
        inputs = replace(inputs, groups=groups, counted=task.fingerprint, class_tokens=tokens)
        in_classes.append(maker.task(task.name, made_of, inputs, work_bytes=task.work_bytes))
    return in_classes


def bucket_window(task: Task[WindowInputs]) -> list[PartRecord]:
    """Make the sequences of one window."""
    inputs = task.payload
    tables = inputs.tables(inputs.columns)
    groups, found = inputs.groups.of_documents(tables), inputs.groups.left_out(tables)
    is_left_out = found.is_left_out if found else None
    sequences, numbers = make_sequences(
        tables, inputs.config, inputs.padding, reused_array, groups, is_left_out
    )
    if inputs.counted:
        numbers = structs.replace(numbers, class_tokens=inputs.class_tokens, counted=inputs.counted)
    writer = task.writer()
    writer.write_arrow("sequences", sequences.drop("tokens"))
    for number, (record, file) in enumerate(zip(inputs.records, inputs.files, strict=True)):
        writer.link_file(f"{TOKENS}-{number}", record, source=file.brought())
    ids = sequence_ids(sequences, BucketLayout(inputs.config, inputs.groups.names))
    writer.write_arrays(SEQUENCE_IDS, ids, sequences["num_tokens"].to_numpy())
    documents, num_tokens = len(groups.of_documents), sum(numbers.bucket_tokens.values())
    left_out = {
        NO_TOKENS: count_empty(tables, is_left_out),
        TOO_LONG: long_counts(numbers).get(LEFT_OUT, 0),
        **(found.reasons if found else {}),
    }
    stats = Stats(
        rows_in=documents,
        rows_kept=documents - sum(left_out.values()),
        rejected={reason: count for reason, count in left_out.items() if count},
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(sequences.schema["tokens"]),
        text_bytes=inputs.text_bytes,
        numbers=numbers,
    )
    return [writer.publish(stats)]


def describe_bucketed(corpus: Corpus, manifest: BucketedManifest) -> Metadata:
    """Report padding, documents cut, sequences by bucket and histograms."""
    if not manifest.parts:
        return {}
    numbers = manifest.stats.numbers
    held = held_out(numbers)
    return {
        **({"held_out": as_json_object(held)} if held else {}),
        **report_markdown(numbers, layout_of(manifest)),
        **shares(numbers, manifest.stats.rows_in),
        "long_conversations": sum(long_counts(numbers).values()),
        "document_lengths": readable(numbers.document_lengths),
        "sequence_documents": readable(numbers.sequence_documents),
    }


def warn_of_buckets(corpus: Corpus, manifest: BucketedManifest) -> Conclusion:
    """Warn of sequences that waste space, and of documents that are no longer held out."""
    if not manifest.parts:
        return Conclusion()
    numbers, layout = manifest.stats.numbers, layout_of(manifest)
    warnings = warnings_of(numbers, layout.config)
    if layout.config.classes and not layout.groups:
        classes = layout.config.classes
        lack = f"its filters store no {classes.score!r}"
        if classes.is_counted:
            lack = "its documents lack the label or score, or no class has `min_tokens`"
        warnings.append(
            f"{lack} (`buckets.classes`), so that its documents are in no class, and `upsample` "
            "draws them all alike"
        )
    if long := sum(long_counts(numbers).values()):
        warnings.append(
            f"{long:,} conversations are longer than a sequence: "
            f"{long_counts(numbers).get(LEFT_OUT, 0):,} are left out, the others are cut behind "
            "the last answer that fits. Raise buckets.sequence_length, or choose with "
            "buckets.long_conversations"
        )
    if released := count_released(corpus, manifest.partition):
        warnings.append(
            f"documents that were held out for validation are not any more: {released:,}, since "
            "pipeline.yaml has no `holdout`. `holdout: {share: 0}` keeps them held out, and holds "
            "out no more"
        )
    return Conclusion([f"source {manifest.partition!r}: {warning}" for warning in warnings])


def settings_of_buckets(settings: Settings) -> dict[str, object]:
    """Return the settings of sequences, and the documents that are left out of them."""
    drops = {each.name: each.drop for each in settings.annotations if each.drop}
    return settings.buckets.model_dump(mode="json") | ({"annotations": drops} if drops else {})


STAGE = Stage(
    *BUCKETED.fields(),
    description="Training sequences by bucket, each with the spans of the documents in it.",
    group="train",
    partitions="source",
    after=(
        *(stage_names.ANNOTATED, stage_names.TOKENIZED),
        *(stage_names.HELD_OUT, stage_names.LEAKAGE),
    ),
    outlook=Outlook(
        "window",
        steady=(stage_names.HELD_OUT, stage_names.LEAKAGE),  # what is decided stays
        cpu_per_mb=0.0007,
        first_seconds=1.2,
    ),
    kinds=frozenset({"arrow", "numba"}),
    settings=settings_of_buckets,
    plan=plan_bucketed,
    work=bucket_window,
    main_table=MainTable("sequences", BUCKETED_COLUMNS),
    describe=describe_bucketed,
    checks=(
        Check(
            "conversations_fit",
            "no conversation is longer than a sequence, so that none is cut or left out",
            lambda _, manifest, __: not_zero(sum(long_counts(manifest.stats.numbers).values())),
        ),
    ),
    conclude=warn_of_buckets,
)
