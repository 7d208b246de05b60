"""A build from nothing with the ledgers and the tokenizer of a corpus, to compare the corpus with.

What the architecture lets depend on earlier builds is taken over: the order of ingest with the
documents that are held out, the ledgers of shards, the kept tokenizer and the scale of quality, and
what was asked for in the store itself: takedowns and patches.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from builders import open_corpus
from every_stage import build
from verbs import Cli

from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.stages import used_stages
from corpus_loader import CorpusLoader, LoaderOptions
from resources.stage import partition_names

KEPT = ("tokenizer", "quality_scale", "annotation_models")
IN_OTHER_FORMS = {"asked", "band_index", "sharded", "mixed"}  # in other files, or with other rows
OF_ROW_NUMBERS = {"duplicates all components"}  # digests by number of the ledger
Facts = dict[str, Any]


def build_all(corpus: Any) -> None:
    """Build all stages that the config uses, phases included."""
    build(corpus, used_stages(corpus.settings).values())


def build_from_nothing(corpus: Any, cli: Cli) -> Any:
    """Build what a corpus is now into a store of its own; return the corpus there."""
    folder, store = corpus.config.parent, corpus.store.root
    shutil.rmtree(fresh := folder / "fresh", ignore_errors=True)
    shutil.rmtree(folder / "fresh_home", ignore_errors=True)
    shutil.rmtree(ledgers := folder / "ledgers", ignore_errors=True)
    cli.out("shards", "ledger", str(ledgers))
    (folder / "ingested.json").write_text(cli.out("duplicates", "ledger"))
    for path in store.iterdir():
        if path.name in KEPT or (path.name.startswith("_") and path.name != "_previews"):
            shutil.copytree(path, fresh / path.name)
    content = yaml.safe_load(corpus.config.read_text()) | {"store": "fresh"}
    content["dedup"] = content.get("dedup", {}) | {"ledger": "ingested.json"}
    content["shards"] |= {"ledger": "ledgers"}
    config = folder / "fresh.yaml"
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    found = open_corpus(config, fresh)
    with pytest.MonkeyPatch.context() as patch:  # whose digests of inputs are its own
        patch.setenv("DAGSTER_HOME", str(folder / "fresh_home"))
        build_all(found)
    return found


def facts_of(corpus: Any) -> Facts:
    """Return what each part of the newest states has: hashes of its files, and its numbers."""
    facts: Facts = {}
    for name, stage in used_stages(corpus.settings).items():
        for partition in partition_names(stage, corpus.settings):
            for part in corpus.store.newest(name, partition).parts:
                if name in IN_OTHER_FORMS and not part.name.startswith("shard-"):
                    continue  # shards of phases are the same
                files = {file.kind: file.xxh3 for file in part.files}
                stats = msgspec.to_builtins(part.stats)
                facts[f"{name} {partition} {name_of(part.name, stats)}"] = files, stats
    return {name: of for name, of in facts.items() if name not in OF_ROW_NUMBERS} | dict(
        served(corpus)
    )


def name_of(part: str, stats: dict[str, Any]) -> str:
    """Return the name of a part; the source and name of a signed part for what is made of it.

    Parts of clusters and of what is held out are named by numbers of the ledger.
    """
    made_of = stats["extra"].get("source"), stats["extra"].get("part")
    return " ".join(made_of) if all(made_of) else part


def served(corpus: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the loader gives of each phase, and of what is held out: sample by sample."""
    splits: list[dict[str, Any]] = [{"phase": phase.name} for phase in corpus.settings.phases]
    if corpus.settings.holdout:
        splits.append({"split": "validation"})
    for split in splits:
        options = LoaderOptions(with_documents=True)
        loader = CorpusLoader(corpus.store.root, batch_size=1, options=options, **split)
        for place in range(loader.split.epoch_samples):
            batch = loader.samples([place])
            masks = () if batch.loss_mask is None else batch.loss_mask.tolist()
            documents = [each.tobytes().hex() for each in batch.documents.doc_ids]  # type: ignore[union-attr]
            source = loader.sources[batch.sources[0]]
            masks = masks if batch.loss_weights is None else batch.loss_weights.tolist()
            yield f"served {split} {place}", (source, batch.tokens.tolist(), masks, documents)


def shards_of(corpus: Any, only_whole: bool = False) -> Facts:
    """Return the hashes of all shards, or of those in generations of which no row is gone."""
    facts: Facts = {}
    for source in corpus.settings.source_names():
        partition = corpus.store.partition("sharded", source)
        parts = {part.name: part for part in partition.newest_manifest().parts}
        for generation in read_ledger(partition, parts[LEDGER]).ledger.generations:
            is_whole = not generation.removed and not generation.absent
            prefix = f"g{generation.number:04d}-"
            for name in parts if is_whole or not only_whole else ():
                if name.startswith(prefix):
                    files = {file.kind: file.xxh3 for file in parts[name].files}
                    facts[f"sharded {source} {name}"] = files
    return facts


def differences(found: Facts, expected: Facts) -> list[str]:
    """Return what is not the same, in the order of stages."""
    names = [*found, *(name for name in expected if name not in found)]
    return [name for name in names if found.get(name) != expected.get(name)]


def stale(corpus: Any, cli: Cli) -> list[str]:
    """Return in what a corpus differs from a build from nothing."""
    fresh = build_from_nothing(corpus, cli)
    shards = shards_of(corpus, only_whole=True)
    of_fresh = {name: files for name, files in shards_of(fresh).items() if name in shards}
    return differences(facts_of(corpus), facts_of(fresh)) + differences(shards, of_fresh)
