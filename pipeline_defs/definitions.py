"""Dagster code location: every asset, job, schedule and sensor of the corpus.

This is the only module that reads a config when it is imported.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import dagster as dg

import pipeline_defs.sqlite_records  # noqa: F401 - it sets up every connection to SQLite
from assets.stages import used_stages
from pipeline_defs.corpus_report import corpus_report_asset, disclosed, disclosure_asset
from pipeline_defs.executor import executor_for
from pipeline_defs.jobs import automation
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.observed_inputs import input_files
from pipeline_defs.partitions import partitions_of
from pipeline_defs.started_cluster import resources_on
from resources.corpus import Corpus
from resources.dagster_home import refuse_other_store
from resources.engine.step_process import in_step
from resources.materialize.materialization import stage_asset


def build_defs(corpus: Corpus, ray_cluster: Any = None) -> dg.Definitions:
    """Return the definitions over one corpus; `ray_cluster`: see started_cluster.py."""
    partitions = partitions_of(corpus.settings)
    used = used_stages(corpus.settings)
    assets = dg.Definitions(
        assets=[
            *(stage_asset(stage, partitions, corpus.settings) for stage in used.values()),
            corpus_report_asset(corpus),
            *(disclosure_asset(corpus) for _ in disclosed(corpus.settings)),
        ],
        executor=executor_for(corpus),
        resources=own_resources(corpus)
        if ray_cluster is None
        else resources_on(corpus, ray_cluster),
    )
    return dg.Definitions.merge(assets, input_files(corpus), automation(corpus))


def own_resources(corpus: Corpus) -> dict[str, dg.ResourceDefinition]:
    """Return the corpus as a resource: each process that executes steps makes its own of it."""

    @dg.resource
    @contextmanager
    def corpus_of_process(_: dg.InitResourceContext) -> Iterator[Corpus]:
        with in_step() as lease, corpus.store.session(lease) if lease else nullcontext():
            yield corpus

    return {"corpus": corpus_of_process}


corpus = load_corpus()
refuse_other_store(corpus.store.root)  # the process of every run loads this module
defs = build_defs(corpus)
gc.freeze()  # what is imported lasts: the garbage collector need not look at it again
