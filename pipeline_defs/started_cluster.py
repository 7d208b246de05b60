"""Compute on a Ray cluster that Dagster starts for a run: a resource of dagster-ray.

A code location of one's own names the cluster, since its description is Kubernetes':

    defs = build_defs(load_corpus(), KubeRayCluster(..., lifecycle=Lifecycle(connect=False)))

The resource starts a cluster and says where it is; this process's own driver connects to it. With
`cluster_sharing` by run, all steps of a run have one.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from pipeline_defs.load_corpus import at_address
from resources.corpus import Corpus

CLUSTER = "ray_cluster"


def resources_on(corpus: Corpus, cluster: Any) -> dict[str, Any]:
    """Return the resources of definitions whose parts are computed on a RayResource."""
    connects = cluster.lifecycle.connect
    if connects:
        raise ValueError(
            f"{type(cluster).__name__} connects this process to its cluster; the driver of "
            "`engine.kind: ray` is another one. Set lifecycle=Lifecycle(connect=False)."
        )

    @dg.resource(required_resource_keys={CLUSTER})
    def corpus_on_cluster(context: dg.InitResourceContext) -> Corpus:
        return at_address(corpus, getattr(context.resources, CLUSTER).ray_address)

    return {"corpus": corpus_on_cluster, CLUSTER: cluster}
