"""Ledgers for another build: `corpus duplicates ledger` and `corpus shards ledger FOLDER`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins

from assets.bucketed.previous_holdout import held_out_documents
from assets.sharded.exported_ledger_files import export_ledger
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.sharded.sharded_records import SHARDED
from corpus_loader.places.stage_names import BAND_INDEX
from pipeline_defs.commands.terminal import print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.store.disk import make_folder
from resources.store.store import StoreError
from resources.tasks import GLOBAL


def ledger_of_build() -> int:
    """Print the ingest order as JSON, with the documents that are held out of training."""
    corpus = load_corpus()
    ledger = corpus.store.newest(BAND_INDEX, GLOBAL).provenance["ledger"]
    held_out = held_out_documents(corpus)
    keys = ("source", "part", "generations", "files")
    exported = [{key: record[key] for key in keys if record.get(key)} for record in ledger]
    for record in exported:
        if (of_part := held_out.get((record["source"], record["part"]))) is not None:
            record |= to_builtins(of_part)
    print_json(exported)
    return 0


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
            say(f"{source}: {rows:,} sequences in {len(generations)} generations")
            num_sources += 1
    if not num_sources:
        raise StoreError(
            f"No source in {corpus.store} has a ledger of its shards. Materialize `sharded` first."
        )
    return 0
