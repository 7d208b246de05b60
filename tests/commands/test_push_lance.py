"""`corpus push FILE.lance` writes a dataset of Lance, which its own reader opens at any row.

Lance is not safe to fork, and says so at each fork of a process that has imported it: here only
processes of their own do.
"""

import subprocess
from importlib.util import find_spec

from builders import Build, open_corpus, records, sentence, write_corpus, write_jsonl
from prelude import Any, Path, assert_frame_equal, os, pl, pytest, sys
from verbs import Cli

from pipeline_defs.commands.share.pushed_files import corpus_files

READ = """
import sys
import lance
import polars as pl
found, rows = lance.dataset(sys.argv[1]), [int(row) for row in sys.argv[3:]]
pl.DataFrame(found.take(rows) if rows else found.to_table()).write_parquet(sys.argv[2])
"""
WRITE = """
import sys
import lance
import pyarrow as pa
lance.write_dataset(pa.table({"n": [1]}), sys.argv[1])
"""


def published(corpus: Any, stage: str, what: Any) -> pl.DataFrame:
    manifests = [corpus.store.newest(stage, name) for name in ("prose", "notes")]
    files = [*corpus_files(corpus.store, what, manifests)]
    return pl.concat(file.read() for file in files)


def python(*words: str, code: int = 0) -> str:
    """Run Python in a process of its own; return what it prints as errors."""
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    return ended.stderr


def push(*words: str, code: int = 0) -> str:
    return python("-m", "pipeline_defs.commands.main", "push", *words, code=code)


def read(path: str, *rows: int) -> pl.DataFrame:
    python("-c", READ, path, f"{path}.parquet", *map(str, rows))
    return pl.read_parquet(f"{path}.parquet")


@pytest.mark.peers
def test_any_row_is_read_back_and_nothing_is_left_of_earlier_pushes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    if find_spec("lance") is None and os.environ.get("TOKENMILL_PEERS") != "1":
        pytest.skip("lance is not installed")
    shards = {"target_bytes": 4096, "formats": ["megatron", "parquet"]}
    names = ("prose", "notes")
    sources = [{"name": n, "where": f"input/{n}/*", "license": "CC0-1.0"} for n in names]
    config = write_corpus(tmp_path, shards=shards, sources=sources)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    corpus = open_corpus(config)
    build(corpus)
    for stage, what in (("sharded", "shards"), ("deduped", "documents")):
        path = str(tmp_path / f"{what}.lance")
        push(path, "--what", what)
        expected = published(corpus, stage, what)
        assert_frame_equal(read(path), expected)
        some = [expected.height - 1, 0, 7]
        assert_frame_equal(read(path, *some), expected[some])
    write_jsonl(tmp_path / "input/prose/night.jsonl", records(sentence(950), sentence(951)))
    build(open_corpus(config), "raw", "filtered")  # half a night
    push(path)
    assert_frame_equal(read(path), expected)
    (tmp_path / "input/prose/night.jsonl").unlink()
    build(open_corpus(config))
    gone = expected["doc_id"][0]
    cli.out("takedown", "--doc", gone, "--reason", "asked")
    assert "has documents of takedown 1 (asked)" in push(path, code=1)
    build(open_corpus(config))
    push(path)
    assert read(path).height == expected.height - 1
    assert not [f for f in Path(path).rglob("*") if f.is_file() and gone.encode() in f.read_bytes()]

    python("-c", WRITE, str(tmp_path / "own.lance"))
    assert "was not written by `corpus push`" in push(str(tmp_path / "own.lance"), code=2)
