"""`corpus loader prove`: the proof of the corpus that a config names."""

from builders import open_corpus, write_corpus
from faults.killed_trainings import packed_corpus
from format_folders import peer
from prelude import Path, json, pytest

from pipeline_defs.commands.main import main


@pytest.mark.slow
def test_the_store_of_the_config_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    peer("torch")
    corpus = open_corpus(write_corpus(tmp_path))
    packed_corpus(corpus.store.root)
    monkeypatch.setattr("pipeline_defs.commands.train.prove.load_corpus", lambda: corpus)
    capfd.readouterr()

    code = main(["loader", "prove", "--trainer", "ddp", "--kills=1", "--ranks=1", "--json"])

    [line] = capfd.readouterr().out.splitlines()
    found = json.loads(line)
    assert (code, found["trainer"], found["kills"], found["ranks"]) == (0, "ddp", 1, "1")
    assert (found["lost"], found["twice"], found["hung"]) == (0, 0, 0)
