"""Sources that pipeline.yaml no longer has, whose documents are still in the store."""

from __future__ import annotations

from pipeline_defs.commands.life.state_chain import SOURCE_STAGES
from resources.corpus import Corpus
from resources.store.medium import medium_of
from resources.store.store import Partition


def removed_sources(corpus: Corpus) -> dict[str, list[Partition]]:
    """Return the partitions of the sources that were removed or renamed, by the name they had.

    Also those without a manifest: what a mixture draws from stays longer than that.
    """
    root, names = corpus.store.root, {*corpus.settings.source_names()}
    medium, found = medium_of(root), dict[str, list[Partition]]()
    for stage in SOURCE_STAGES:
        for name in medium.names(root / stage):
            if name not in names and medium.files_below(root / stage / name):
                found.setdefault(name, []).append(corpus.store.partition(stage, name))
    return found


def unbuilt_sources(corpus: Corpus) -> list[str]:
    """Return the sources of pipeline.yaml that have no document table yet.

    One of them may be the new name of a source that seems to be removed, or a slip of the pen.
    """
    store = corpus.store
    names = corpus.settings.source_names()
    return [name for name in names if not store.partition("raw", name).manifest_numbers()]
