"""Find out whether a row of a shard is removed."""

from __future__ import annotations

from pathlib import Path

from assets.mixed.removed_row_files import removed_of
from resources.corpus import Corpus


def is_removed(corpus: Corpus, stem: Path, row: int) -> bool:
    """Return whether a row of the newest shards is removed; `stem` is their path without suffix.

    Of a copied shard, or one that only an older manifest names, it is not known: False.
    """
    for source in corpus.settings.source_names():
        manifest = corpus.store.partition("sharded", source).newest_manifest()
        for part in manifest.parts if manifest else ():
            file = part.file("megatron.bin")
            if manifest is None or file is None:
                continue
            path = corpus.store.path_of(manifest, file).with_suffix("")
            if path.resolve() == stem.resolve():
                removed = removed_of(manifest).get(part.name)
                return removed is not None and row in removed.read(corpus.store.root)
    return False
