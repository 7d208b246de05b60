"""`corpus push iceberg`: write tables, in the store, over what is published."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from pipeline_defs.commands.share.iceberg_folders import STAGES, IcebergFolder, TableName
from pipeline_defs.commands.share.published_state import state_to_publish
from pipeline_defs.commands.share.pushed_files import What
from pipeline_defs.commands.terminal import say
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.scratch import place_of

TABLES: dict[What | None, tuple[TableName, ...]] = {
    None: ("filtered", "decisions", "shards"),
    "documents": ("deduped_copy",),
    "decisions": ("decisions",),
    "shards": ("shards",),
}


def push_iceberg(
    corpus: Corpus, what: What | None, sources: Sequence[str], tag: str | None, *, is_dry: bool
) -> int:
    """Write the tables that are asked for, of some sources or all, up to a state."""
    if is_dry:
        raise UsageError("Tables send nothing: --dry-run goes with hf://owner/name")
    state = state_to_publish(corpus, tag, sources)
    for source in state.sources:
        for name in TABLES[what]:
            table = IcebergFolder(corpus.store, name, source)
            newest, _ = state.manifests[STAGES[name], source]
            say(f"{place_of(table.folder)}: {write_table(table, newest)}.")
    return 0


def write_table(table: IcebergFolder, newest: int | None = None) -> str:
    """Write a table anew, without states that are not kept any more; return what it has.

    `newest` is the number of the newest state that it gets, by default the one that it has.
    """
    if find_spec("pyiceberg") is None:
        raise UsageError("Tables are written by pyiceberg: pip install 'tokenmill[iceberg]'")
    from pipeline_defs.commands.share.iceberg_tables import IcebergTable

    return IcebergTable(table.store, table.name, table.source).write(newest)
