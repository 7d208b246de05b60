"""bucketed: documents become training sequences in length buckets."""

import dagster as dg

from assets.tokenized import token_bytes, tokenized
from assets.transforms.bucketed import assign_buckets, bucket_report
from pipeline_defs.partitions import SOURCES
from resources.corpus import Corpus, MadeBy, Plan, Task, part_task
from resources.records import PartRecord, Stats
from resources.stages import Stage, run_stage, stage_asset
from resources.store import read_arrow

BUCKETED = Stage("bucketed", code_version="1")


@stage_asset(BUCKETED, deps=[tokenized], partitions=SOURCES, kinds={"polars", "arrow"})
def bucketed(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Sequences by length bucket, each with the spans of the documents in it."""
    return run_stage(context, BUCKETED, plan_bucketed, bucket_part)


def plan_bucketed(corpus: Corpus, source: str) -> Plan:
    """One task per tokenized part."""
    manifest = corpus.store.newest("tokenized", source)
    config = corpus.settings.buckets
    dump = config.model_dump(mode="json")
    made_by = MadeBy(BUCKETED.name, BUCKETED.code_version, dump, spec={"config": config})
    tasks = [part_task(corpus, manifest, part, "tokens", made_by) for part in manifest.parts]
    return Plan(tasks, dump, manifest.about | {"tokenized": manifest.fingerprint})


def bucket_part(task: Task) -> list[PartRecord]:
    """Bucket one part; the report counts sequences, tokens and padding per bucket."""
    documents = read_arrow(task.spec["path"])
    sequences = assign_buckets(documents, task.spec["config"])
    report = bucket_report(sequences, task.spec["config"])
    writer = task.writer()
    writer.write_arrow("sequences", sequences)
    num_tokens = sum(bucket["tokens"] for bucket in report.values())
    stats = Stats(
        rows_in=documents.height,
        rows_kept=sequences.height,
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(sequences.schema["tokens"]),
        text_bytes=task.spec["text_bytes"],
        extra={
            "padding_tokens": sum(bucket["padding"] for bucket in report.values()),
            **{
                f"bucket_{measure}": {name: bucket[measure] for name, bucket in report.items()}
                for measure in ("sequences", "tokens", "padding")
            },
        },
    )
    return [writer.publish(stats)]
