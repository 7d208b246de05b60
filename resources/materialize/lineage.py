"""Tell OpenLineage of each step, if the environment says where: OPENLINEAGE_URL, for example.

A step is a run of the job of its stage, within the run of Dagster. Partitions are data sets: of
each that it materialized the version is the fingerprint of its manifest. Whatever becomes of an
event, the step goes on.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from resources.store.medium import medium_of
from resources.tasks import GLOBAL


def with_lineage(
    context: dg.AssetExecutionContext, events: Iterable[Any]
) -> Generator[Any, None, None]:
    """Yield the events of a step, and tell of its start and end."""
    outputs: dict[str, str] = {}
    tell(context, "START", outputs)
    try:
        for event in events:
            if isinstance(event, dg.AssetMaterialization):
                version = (event.tags or {})["dagster/data_version"]
                outputs[f"{event.asset_key.to_user_string()}/{event.partition or GLOBAL}"] = version
            yield event
    except BaseException:
        tell(context, "FAIL", outputs)
        raise
    tell(context, "COMPLETE", outputs)


def tell(context: dg.AssetExecutionContext, state: str, outputs: Mapping[str, str]) -> None:
    """Send an event; why it was not sent is a line of the run's log."""
    if not any(name.startswith("OPENLINEAGE_") for name in os.environ):
        return
    try:
        from openlineage.client import OpenLineageClient, event_v2
        from openlineage.client.facet_v2 import dataset_version_dataset, parent_run

        root = str(context.resources.corpus.store)
        space = root if "://" in root else f"file://{root}"
        version_of = dataset_version_dataset.DatasetVersionDatasetFacet
        parent = parent_run.ParentRunFacet(
            run=parent_run.Run(context.run.run_id), job=parent_run.Job(space, context.job_name)
        )
        name = context.asset_key.to_user_string()
        own = uuid.uuid5(uuid.UUID(context.run.run_id), f"{name}/{context.retry_number}")
        client = OpenLineageClient()
        client.emit(
            event_v2.RunEvent(
                eventTime=datetime.now(UTC).isoformat(),
                eventType=event_v2.RunState[state],
                producer="urn:tokenmill",
                run=event_v2.Run(str(own), facets={"parent": parent}),
                job=event_v2.Job(space, name),
                inputs=[event_v2.InputDataset(space, each) for each in inputs_of(context)],
                outputs=[
                    event_v2.OutputDataset(space, each, facets={"version": version_of(of)})
                    for each, of in outputs.items()
                ],
            )
        )
        client.close()
    except Exception as error:  # noqa: BLE001 - of any transport; none fails a run
        context.log.warning(f"OpenLineage was not told of {state}: {type(error).__name__}")


def inputs_of(context: dg.AssetExecutionContext) -> list[str]:
    """Return the partitions that a step reads: those of its own names, or all of a stage."""
    root, found = context.resources.corpus.store.root, list[str]()
    is_partitioned = context.assets_def.partitions_def is not None
    own = list(context.partition_keys) if is_partitioned else [GLOBAL]
    for key in context.job_def.asset_layer.asset_graph.get(context.asset_key).parent_keys:
        name = key.to_user_string()
        there = medium_of(root).names(root / name)
        found += [f"{name}/{each}" for each in [n for n in own if n in there] or there or own]
    return found
