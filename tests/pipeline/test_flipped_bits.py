"""A flipped bit in any file that a stage reads stops what would be made of it, and is mended."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
import msgspec
import yaml
from builders import hashes, open_corpus, sentence, write_jsonl
from every_stage import build, run_stage, write_inputs
from prelude import Any, Path, pytest

from assets.deduped.evaluation_index_files import load_index
from assets.stages import BY_NAME, STAGES
from pipeline_defs.commands.life.repair import repair
from pipeline_defs.commands.life.verify import find_faults
from resources.stage import partition_names
from resources.store.records import Manifest
from resources.store.store import StoreError

pytestmark = pytest.mark.slow

SEED = 12
# The kinds of files that each stage reads of earlier ones. All others are for reports, commands,
# trainers, or the stage's own next run: see OWN.
READ = {
    "classifier": {"raw": ["documents"]},
    "quality_scale": {"raw": ["documents"], "classifier": ["model"]},
    "filtered": {
        "raw": ["documents"],
        "classifier": ["model"],
        "quality_scale": ["scale"],
    },
    "signatures": {
        "filtered": ["documents"],
        "evaluation": ["items", "ngrams", "filter"],
    },
    "band_index": {"signatures": ["keys"]},
    "duplicates": {
        "filtered": ["documents"],
        "signatures": ["signatures"],
        "band_index": ["pairs"],
    },
    "repeated": {
        "filtered": ["documents"],
        "signatures": ["contamination"],
        "duplicates": ["clusters"],
    },
    "substrings": {
        "filtered": ["documents"],
        "signatures": ["contamination"],
        "duplicates": ["clusters"],
    },
    "deduped": {
        "filtered": ["documents", "decisions"],
        "signatures": ["contamination"],
        "duplicates": ["clusters"],
        "repeated": ["repeated"],
        "substrings": ["spans"],
    },
    "tokenizer": {"deduped": ["filtered", "kept"]},
    "tokenized": {"deduped": ["filtered", "kept"], "tokenizer": ["tokenizer"]},
    "held_out": {"signatures": ["signatures"], "duplicates": ["clusters"]},
    "leakage": {
        "deduped": ["filtered", "kept"],
        "held_out": ["decisions"],
    },
    "annotation_models": {"deduped": ["filtered", "kept"]},
    "annotated": {
        "deduped": ["filtered", "kept"],
        "annotators": ["answers"],
        "annotation_models": ["model"],
    },
    "bucketed": {
        "tokenized": ["tokens"],
        "held_out": ["decisions"],
        "leakage": ["shares"],
        "annotated": ["annotations"],
    },
    "sharded": {"bucketed": ["sequences", "sequence_ids", "tokens-0", "tokens-1", "tokens-2"]},
    "mixed": {"sharded": ["megatron.bin", "megatron.idx", "megatron.spans", "ledger"]},
}
PAIRS = [
    pytest.param(reader, stage, kind, id=f"{reader}-reads-{stage}-{kind}")
    for reader, stages in READ.items()
    for stage, kinds in stages.items()
    for kind in kinds
]


@dataclass(frozen=True)
class Built:
    """A built corpus, and a copy of its store to restore folders from."""

    corpus: Any
    clean: Path

    def restore(self, *stages: str) -> None:
        """Put the folders of some stages back as they were."""
        for stage in stages:
            shutil.rmtree(self.corpus.store.root / stage, ignore_errors=True)
            if (self.clean / stage).exists():
                shutil.copytree(self.clean / stage, self.corpus.store.root / stage)

    def files(self, stage: str) -> dict[str, list[Path]]:
        """Return the files of a stage that its newest manifests name, by kind."""
        found: dict[str, list[Path]] = {}
        for name in partition_names(BY_NAME[stage], self.corpus.settings):
            manifest = self.corpus.store.newest(stage, name)
            for file in (file for part in manifest.parts for file in part.files):
                found.setdefault(file.kind, []).append(self.corpus.store.path_of(manifest, file))
        return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build a corpus with files of every stage and kind."""
    folder = tmp_path_factory.mktemp("built")
    corpus = write_inputs(folder)
    build(corpus)
    shutil.copytree(corpus.store.root, folder / "clean")
    whole = Built(corpus, folder / "clean")
    whole.restore(*BY_NAME)  # files that had two names are two files now: one is flipped at a time
    return whole


@pytest.fixture
def corpus(built: Built, tmp_path: Path) -> Any:
    """Copy the built corpus."""
    shutil.copytree(built.clean.parent, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "clean").rename(tmp_path / "store")
    return open_corpus(tmp_path / "pipeline.yaml")


def flip_bit(path: Path, seed: int = SEED) -> None:
    """Flip one bit of a file, chosen by seed."""
    content = bytearray(path.read_bytes())
    bit = random.Random(f"{seed} {path.name}").randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def parts_of(manifests: list[Manifest]) -> list[Any]:
    """Return what the manifests of a stage name, to compare."""
    return [(manifest.partition, msgspec.to_builtins(manifest.parts)) for manifest in manifests]


def recompute(built: Built, stage: str) -> list[Any]:
    """Compute a stage as if it had never run."""
    shutil.rmtree(built.corpus.store.root / stage)
    load_index.cache_clear()  # it was read before the file was damaged
    return parts_of(run_stage(built.corpus, BY_NAME[stage]))


def published(built: Built, stage: str) -> list[Any]:
    """Return the parts of a stage as the clean build published them."""
    names = partition_names(BY_NAME[stage], built.corpus.settings)
    return parts_of([built.corpus.store.newest(stage, name) for name in names])


@pytest.mark.parametrize(("reader", "stage", "kind"), PAIRS)
def test_a_flipped_bit_is_named_before_anything_is_made_of_it(
    built: Built, reader: str, stage: str, kind: str
) -> None:
    victims = [path for path in built.files(stage)[kind] if path.stat().st_size]
    for path in victims:  # not all are read: of signatures, those of candidates are
        flip_bit(path)
    try:
        with pytest.raises((ValueError, StoreError)) as caught:
            recompute(built, reader)
        assert any(str(victim) in str(caught.value) for victim in victims)
        assert "`corpus verify --repair`" in str(caught.value)
        assert list(built.corpus.store.root.glob(f"{reader}/*/_manifests/*.json")) == []
    finally:
        built.restore(stage, reader)


@pytest.mark.parametrize("reader", [stage.name for stage in STAGES])
def test_no_other_kind_of_file_changes_what_a_stage_makes(built: Built, reader: str) -> None:
    clean = published(built, reader)
    earlier = [stage.name for stage in STAGES[: list(BY_NAME).index(reader)]]
    for stage in earlier:
        for kind, paths in built.files(stage).items():
            if kind not in READ.get(reader, {}).get(stage, []):
                for path in paths:
                    flip_bit(path)
    try:
        assert recompute(built, reader) == clean
    finally:
        built.restore(*earlier, reader)


# Files that a stage reads of its own last run: (stage, kind, numbers of the new sentences).
# Clusters that no new document joins are not read.
OWN = [
    ("band_index", "entries", [1000]),
    ("band_index", "entries", range(1000, 1200)),
    ("band_index", "pairs", range(1000, 1200)),
    ("duplicates", "digests", [1000]),
    ("duplicates", "clusters", [20]),
]


@pytest.mark.parametrize(("stage", "kind", "new"), OWN)
def test_a_flipped_bit_in_the_last_run_of_a_stage_is_named(
    corpus: Any, built: Built, stage: str, kind: str, new: Sequence[int]
) -> None:
    victims = Built(corpus, built.clean).files(stage)[kind]
    texts = [{"text": sentence(number, 40)} for number in new]
    write_jsonl(corpus.config.parent / "input/prose/z.jsonl", texts)
    earlier = list(BY_NAME)[: list(BY_NAME).index(stage)]
    build(corpus, [BY_NAME[name] for name in earlier if name != "classifier"])
    for path in victims:
        flip_bit(path)

    with pytest.raises((ValueError, StoreError), match="`corpus verify --repair`") as caught:
        run_stage(corpus, BY_NAME[stage])

    assert any(str(path) in str(caught.value) for path in victims)
    assert corpus.store.partition(stage, "all").manifest_numbers() == [1]


def test_damaged_shards_are_not_kept_when_a_format_is_added(corpus: Any, built: Built) -> None:
    before = hashes(corpus.store.root / "sharded")
    for path in Built(corpus, built.clean).files("sharded")["megatron.bin"]:
        flip_bit(path)
    content = yaml.safe_load(corpus.config.read_text())
    content["shards"] |= {"formats": ["parquet", "megatron", "mds"]}
    corpus.config.write_text(yaml.safe_dump(content))

    run_stage(open_corpus(corpus.config), BY_NAME["sharded"])

    after = hashes(corpus.store.root / "sharded")
    assert {path for path in before if before[path] != after[path]} == set()


def test_a_bit_in_every_kind_of_file_is_mended(corpus: Any, built: Built) -> None:
    before = hashes(corpus.store.root)
    here = Built(corpus, built.clean)
    for stage in STAGES:
        for kind, paths in here.files(stage.name).items():
            flip_bit(random.Random(f"{SEED} {kind}").choice(paths))
    assert len(find_faults(corpus.store).faults) >= 30

    lines = repaired(corpus)

    assert [line for line in lines if line.startswith("not ")] == []
    assert find_faults(corpus.store).faults == []
    assert hashes(corpus.store.root) == before


def repaired(corpus: Any) -> list[str]:
    """Repair faulty parts; return a line per partition."""
    with dg.DagsterInstance.ephemeral() as instance:
        return list(repair(corpus, find_faults(corpus.store).faults, instance))
