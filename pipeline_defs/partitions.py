"""Partitions: one per source for the stages up to `sharded`, one per phase for `mixed`.

Read from pipeline.yaml when the code location loads; a mistake there is refused here.
"""

import dagster as dg

from pipeline_defs.load_corpus import load_corpus

CORPUS = load_corpus()
SOURCES = dg.StaticPartitionsDefinition(CORPUS.settings.source_names())
PHASES = dg.StaticPartitionsDefinition(CORPUS.settings.phase_names())
