"""Folders of both splits in every format: the index of each names its own shards, on all nights."""

from builders import open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build
from prelude import Any, Counter, Path, json, pairwise, pl, pytest, re

from assets.stages import used_stages
from pipeline_defs.commands.main import main
from resources.settings.shards import FORMAT_NAMES

SPLITS = ("", "validation-")
INDEXES = {"mds": "index.json", "litdata": "index.json", "arrow": "state.json"}
SHARD = re.compile(r'"((?:shard|chunk|data)[\w.-]*\.(?:mds|bin|arrow))"')
Folders = dict[tuple[str, str], Path]  # by split and format


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Folders]:
    """The newest folders of a source after a first build, and after two with more documents.

    The second makes a generation of its own, the third absorbs both.
    """
    folder = tmp_path_factory.mktemp("nights")
    shards = {"target_bytes": 2048, "formats": list(FORMAT_NAMES)}
    buckets = {"mode": "pack", "sequence_length": 64, "window_tokens": 1024}
    config = write_corpus(folder, buckets=buckets, shards=shards, holdout={"share": 0.3})
    corpus, found = open_corpus(config), []
    for number, count in enumerate([12, 12, 120]):
        more = [{"text": sentence(900 + 20 * number + i, 40)} for i in range(count)]
        write_jsonl(folder / f"input/prose/z{number}.jsonl", more)
        build(corpus, used_stages(corpus.settings).values())
        found.append(folders_of(corpus))
    return found


def folders_of(corpus: Any) -> Folders:
    manifest = corpus.store.newest("sharded", "prose")
    index = next(part for part in manifest.parts if part.name == "index")
    folders = {}
    for file in index.files:
        if file.kind.endswith(".manifest.json"):
            path = corpus.store.path_of(manifest, file).parent
            name = path.name.rpartition("-")[0]
            split = name.rpartition("-")[0]
            folders[f"{split}-" if split else "", name.rpartition("-")[2]] = path
    return folders


def documents(folder: Path) -> Counter[str]:
    spans = pl.read_parquet(sorted(folder.glob("*.parquet")))["spans"].explode().struct.unnest()
    counts = spans.group_by("doc_id").agg(pl.col("length").sum())
    return Counter(dict(counts.iter_rows()))


@pytest.mark.parametrize("night", [0, 1, 2])
@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_the_index_of_a_split_names_its_own_shards(
    nights: list[Folders], night: int, name: str
) -> None:
    rows, shards = [], []
    for split in SPLITS:
        folder = nights[night][split, name]
        said = json.loads((folder / "manifest.json").read_bytes())
        names = {path.name for path in folder.iterdir()}
        assert {file["name"] for file in said["files"]} | {"manifest.json"} == names
        assert said.get("split", "") == split.rstrip("-")
        own = {file["name"] for file in said["files"] if "shard" in file}
        if name in INDEXES:
            assert set(SHARD.findall((folder / INDEXES[name]).read_text())) == own
        rows.append(said["rows"])
        shards.append({file["shard"] for file in said["files"] if "shard" in file})
        assert main(["verify", "--folder", str(folder)]) == 0
    assert shards[0] and shards[1] and not shards[0] & shards[1]
    assert rows == [documents_rows(nights[night][split, "parquet"]) for split in SPLITS]


def documents_rows(folder: Path) -> int:
    return pl.read_parquet(sorted(folder.glob("*.parquet"))).height


def test_what_is_held_out_stays_so_as_the_corpus_grows(nights: list[Folders]) -> None:
    found = [[documents(folders[split, "parquet"]) for split in SPLITS] for folders in nights]
    for trained, held in found:
        assert not trained.keys() & held.keys()
    for night, next_night in pairwise(found):
        for before, after in zip(night, next_night, strict=True):
            assert before.keys() < after.keys()
    assert any(path.stat().st_nlink > 1 for path in nights[1]["", "parquet"].iterdir())
    assert all(path.stat().st_nlink == 1 for path in nights[2]["", "parquet"].iterdir())


def test_documents_held_out_of_a_corpus_that_was_sharded_before_leave_its_files(
    tmp_path: Path,
) -> None:
    about: dict[str, Any] = {
        "buckets": {"mode": "buckets", "edges": [60]},
        "shards": {"target_bytes": 2048, "formats": ["parquet", "mds"], "rewrite_share": 0.9},
        "phases": [{"name": "main", "weighting": "natural"}],
    }
    folders = []
    for changes in ({}, {"holdout": {"share": 0.3}}):
        corpus = open_corpus(write_corpus(tmp_path, **about, **changes))
        build(corpus, used_stages(corpus.settings).values())
        folders.append(folders_of(corpus))
    before, after = folders
    trained, held = (documents(after[split, "parquet"]) for split in SPLITS)
    assert held and not trained.keys() & held.keys()
    assert trained + held == documents(before["", "parquet"])
