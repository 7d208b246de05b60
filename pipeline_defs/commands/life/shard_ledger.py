"""`corpus shards ledger FOLDER`: the generations of every source, for another build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assets.sharded.exported_ledger_files import export_ledger
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.sharded.sharded_records import SHARDED
from pipeline_defs.load_corpus import load_corpus
from resources.store.disk import make_folder
from resources.store.store import StoreError


def ledger_of_shards(
    folder: Annotated[Path, Parameter(help="Folder to write to, for `shards.ledger`.")], /
) -> int:
    """Write the ledger of every source that is sharded into a folder."""
    corpus = load_corpus()
    num_sources = 0
    for source in corpus.settings.source_names():
        partition = corpus.store.partition(SHARDED.name, source)
        manifest = partition.newest_manifest()
        found = [part for part in manifest.parts if part.name == LEDGER] if manifest else []
        for part in found:
            make_folder(folder)
            published = read_ledger(partition, part)
            export_ledger(folder, source, published)
            generations = published.ledger.generations
            rows = sum(each.rows - each.removed - each.absent for each in generations)
            sys.stdout.write(f"{source}: {rows:,} sequences in {len(generations)} generations\n")
            num_sources += 1
    if not num_sources:
        raise StoreError(
            f"No source in {corpus.store} has a ledger of its shards. Materialize `sharded` first."
        )
    return 0
