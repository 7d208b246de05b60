"""What the stages write, read whole by the formats' own readers: each gives the rows of Parquet."""

from builders import Build, open_corpus, write_corpus
from format_folders import peer
from prelude import Callable, Path, pl, pytest

from resources.settings.shards import FORMAT_NAMES

LENGTH = 64
Rows = list[list[int]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, build: Build) -> dict[str, Path]:
    """The newest folder of every format of a packed source, and those of what is held out."""
    changes = {
        "buckets": {"mode": "pack", "sequence_length": LENGTH},
        "shards": {"target_bytes": 2048, "formats": list(FORMAT_NAMES)},
        "holdout": {"share": 0.3},
    }
    corpus = open_corpus(write_corpus(tmp_path_factory.mktemp("corpus"), **changes))
    build(corpus)
    folder = corpus.store.partition("sharded", "prose").folder
    names = [f"{split}{name}" for name in FORMAT_NAMES for split in ("", "validation-")]
    return {name: next(folder.glob(f"{name}-*")) for name in names}


def read_arrow(folder: Path) -> Rows:
    return list(peer("datasets").load_from_disk(str(folder))["tokens"][:])


def read_litdata(folder: Path) -> Rows:
    litdata = peer("litdata")
    loader = litdata.TokensLoader(block_size=LENGTH)
    read = litdata.StreamingDataset(str(folder), item_loader=loader, shuffle=False)
    return [read[row].tolist() for row in range(len(read))]


def read_megatron(folder: Path) -> Rows:
    indexed = peer("megatron.core.datasets.indexed_dataset")
    pairs = [indexed.IndexedDataset(str(path)[:-4]) for path in sorted(folder.glob("*.idx"))]
    return [pair[row].tolist() for pair in pairs for row in range(len(pair))]


def read_webdataset(folder: Path) -> Rows:
    shards = [str(path) for path in sorted(folder.glob("*.tar"))]
    read = peer("webdataset").WebDataset(shards, shardshuffle=False).decode()
    return [sample["npy"].tolist() for sample in read]


def read_datatrove(folder: Path) -> Rows:
    dataset = peer("datatrove.utils.dataset")
    read = dataset.DatatroveFolderDataset(
        str(folder), seq_len=LENGTH - 1, token_size=2, filename_pattern="*.ds"
    )
    return [read[row]["input_ids"].tolist() for row in range(len(read))]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # webdataset, at a tar's end
@pytest.mark.parametrize(
    "read", [read_arrow, read_litdata, read_megatron, read_webdataset, read_datatrove]
)
@pytest.mark.parametrize("split", ["", "validation-"])
def test_a_reader_gives_the_rows_of_parquet(
    read: Callable[[Path], Rows],
    split: str,
    folders: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in (("HF_HUB_OFFLINE", "1"), ("LITDATA_DISABLE_VERSION_CHECK", "1")):
        monkeypatch.setenv(variable, value)
    rows = {
        each: pl.read_parquet(folders[f"{each}parquet"] / "*.parquet")["tokens"].to_list()
        for each in ("", "validation-")
    }

    found = read(folders[f"{split}{read.__name__.removeprefix('read_')}"])

    assert len(rows[""]) > LENGTH / 2 and found == rows[split]
    assert rows["validation-"] and all(row not in rows[""] for row in rows["validation-"])
