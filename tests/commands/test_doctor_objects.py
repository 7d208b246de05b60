"""`corpus doctor` tries what a store asks of an object store."""

from builders import write_corpus
from prelude import Path, pytest
from s3_server import s3_bucket
from verbs import Cli

from corpus_loader.places.objects import Objects


def test_a_store_on_objects_is_written_to_and_left_as_it_was(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus(tmp_path, store="s3://corpora/mine", scratch={"folder": "scratch"})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "1")
    with s3_bucket(monkeypatch):
        found = {row["check"]: row for row in cli.json("doctor")}
        assert found["s3://corpora/mine"]["state"] == "ok", found
        assert "clocks differ by" in found["s3://corpora/mine"]["text"]
        assert Objects("s3://corpora").list_objects() == []

        monkeypatch.setattr(Objects, "create", lambda *_: True)
        lost = cli.out("doctor", code=1)
    assert "fault    s3://corpora/mine: a second PUT replaced a new key" in lost
