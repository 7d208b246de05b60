"""`corpus states manifest` shows people what programs read in one line."""

from builders import open_corpus, write_corpus
from prelude import Path, json, pytest
from verbs import Cli

from resources.store.records import Manifest, PartRecord, Stats, to_json

MANIFEST = ("states", "manifest")


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Manifest]:
    """Commit two manifests of a partition."""
    corpus = open_corpus(write_corpus(tmp_path))
    parts = tuple(PartRecord(f"p{n}", "f", (), Stats()) for n in range(3))
    made = [Manifest("raw", "prose", f"{n}", "1", {}, parts, Stats()) for n in range(2)]
    for each in made:
        corpus.store.partition("raw", "prose").commit(each)
    monkeypatch.setattr("pipeline_defs.commands.states.manifest.load_corpus", lambda: corpus)
    return made


def test_the_newest_or_a_numbered_one_is_printed_indented(
    manifests: list[Manifest], cli: Cli
) -> None:
    assert cli.out(*MANIFEST, "raw", "prose") == to_json(manifests[1]).decode()
    shown = json.loads(cli.out(*MANIFEST, "raw", "prose", "--number", "1", "--parts", "2"))
    assert shown["fingerprint"] == "0" and [part["name"] for part in shown["parts"]] == ["p0", "p1"]


def test_without_a_place_every_partition_is_listed(manifests: list[Manifest], cli: Cli) -> None:
    assert ["raw", "prose", "2"] in map(str.split, cli.out(*MANIFEST).splitlines())
    [newest] = cli.json(*MANIFEST)
    assert newest == {"stage": "raw", "partition": "prose", "number": 2}


def test_a_manifest_that_is_not_kept_is_answered_with_those_that_are(
    manifests: list[Manifest], cli: Cli
) -> None:
    said = cli.err(2, *MANIFEST, "raw", "prose", "--number", "7")
    assert "no manifest 7; kept are: 1, 2" in said
    assert "raw[notes] is not materialized" in cli.err(1, *MANIFEST, "raw", "notes")
