"""`corpus push iceberg`: write tables, in the store, over what is published."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from pipeline_defs.commands.share.iceberg_folders import STAGES, IcebergFolder, TableName
from pipeline_defs.commands.share.pushed_files import What, forbidden_state
from pipeline_defs.commands.terminal import say
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.store.records import StoreError
from resources.store.scratch import place_of

TABLES: dict[What | None, tuple[TableName, ...]] = {
    None: ("filtered", "decisions", "shards"),
    "documents": ("deduped_copy",),
    "decisions": ("decisions",),
    "shards": ("shards",),
}


def push_iceberg(corpus: Corpus, what: What | None, sources: Sequence[str], *, is_dry: bool) -> int:
    """Write the tables that are asked for, of some sources or all."""
    if is_dry:
        raise UsageError("Tables send nothing: --dry-run goes with hf://owner/name")
    names = corpus.settings.source_names()
    for name in sources:
        check_name("source", name, names)
    for source in sources or names:
        for name in TABLES[what]:
            newest = corpus.store.newest_or_none(STAGES[name], source)
            if newest and (found := forbidden_state(corpus.store, newest)):
                raise StoreError(f"{newest.stage}[{source}] has {found}. Run: corpus build")
            table = IcebergFolder(corpus.store, name, source)
            say(f"{place_of(table.folder)}: {write_table(table)}.")
    return 0


def write_table(table: IcebergFolder) -> str:
    """Write a table anew, without states that are not kept any more; return what it has."""
    if find_spec("pyiceberg") is None:
        raise UsageError("Tables are written by pyiceberg: pip install 'tokenmill[iceberg]'")
    from pipeline_defs.commands.share.iceberg_tables import IcebergTable

    return IcebergTable(table.store, table.name, table.source).write()
