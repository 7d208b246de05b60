"""`corpus shards path` on a store with a few published files."""

from builders import open_corpus, write_corpus
from prelude import Any, Path, pytest

from pipeline_defs.commands.main import main
from resources.store.records import Manifest, Stats
from resources.store.store import PartWriter


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store in which prose is sharded twice, the second time without MDS."""
    corpus = open_corpus(write_corpus(tmp_path))
    publish(corpus, "sharded", "prose", "11111111", ["mds", "parquet"])
    publish(corpus, "sharded", "prose", "22222222", ["megatron", "parquet"])
    publish(corpus, "mixed", "main", "33333333", [])
    monkeypatch.setattr("pipeline_defs.commands.train.path.load_corpus", lambda: corpus)
    root: Path = corpus.store.root
    return root


def publish(corpus: Any, stage: str, partition: str, state: str, formats: list[str]) -> None:
    writer = PartWriter(corpus.store.partition(stage, partition), "shard-00000", state * 4)
    writer.write_text("mixture", "json", "{}")
    for name in formats:
        temporary, final = writer.new_file_in(f"{name}-{state}", f"shard.{name}")
        temporary.write_bytes(b"rows")
        writer.add_file(f"{name}.{name}", temporary, final, 1)
    part = writer.publish(Stats())
    manifest = Manifest(stage, partition, state * 4, "1", {}, (part,), Stats())
    corpus.store.partition(stage, partition).commit(manifest)


def test_the_newest_folder_is_printed_alone(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["shards", "path", "--source", "prose", "--format", "megatron"])

    assert (code, capsys.readouterr().out) == (0, f"{store}/sharded/prose/megatron-22222222\n")


def test_every_format_without_one_named(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["shards", "path", "--source", "prose"])

    folder = f"{store}/sharded/prose"
    lines = f"megatron\t{folder}/megatron-22222222\nparquet\t{folder}/parquet-22222222\n"
    assert (code, capsys.readouterr().out) == (0, lines)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--source", "prose", "--format", "mds"], 1, "formats there: megatron, parquet. Add mds"),
        (["--source", "prose", "--format", "megatorn"], 2, "did you mean megatron?"),
        (["--source", "prosa"], 2, "did you mean prose?"),
        (["--source", "notes"], 1, "sharded[notes] is not materialized"),
        (["--phase", "main"], 1, "Add one to the phase's formats in pipeline.yaml"),
        (["--phase", "late", "--format", "mds"], 1, "mixed[late] is not materialized"),
    ],
)
@pytest.mark.usefixtures("store")
def test_what_there_is_instead(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shards", "path", *arguments]) == code
    assert said in capsys.readouterr().err
