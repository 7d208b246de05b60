"""Whatever goes out after a night that stopped half-way is the state before it, and says so."""

from builders import Build, open_corpus, records, sentence, write_corpus, write_jsonl
from hub_server import hub_server
from prelude import Any, Path, json, pytest
from verbs import Cli

SHARE = Path(__file__).parents[2] / "pipeline_defs/commands/share"


def test_what_is_published_and_what_is_looked_at_after_half_a_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli, capsys: Any
) -> None:
    licensed = [{"name": n, "where": f"input/{n}/*", "license": "MIT"} for n in ("prose", "notes")]
    config = write_corpus(tmp_path, sources=licensed)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    corpus = open_corpus(config)
    assert "No complete state" in cli.err(1, "disclose", "--form", "json")
    build(corpus)
    build(corpus, "mixed")
    cli.out("states", "tag", "v1")
    with hub_server(monkeypatch):
        form, size = (cli.out(*words) for words in (("disclose", "--form", "json"), HUB))
        write_jsonl(tmp_path / "input/prose/c.jsonl", records(sentence(900), sentence(901)))
        build(corpus, "raw", "filtered", "signatures", "band_index", "duplicates", "deduped")
        for more in ((), ("--state", "v1")):
            assert cli.out("disclose", "--form", "json", *more) == form
            assert cli.out(*HUB, *more) == size
    capsys.readouterr()
    line = "without newer deduped of prose, filtered of prose, raw of prose. To complete it"
    cli.out("disclose", "--form", "hf")
    assert line in cli.out("summary")
    assert line in json.loads(cli.out("summary", "--json"))["incomplete"]


HUB = ("push", "hf://acme/corpus", "--dry-run")


def test_nothing_that_is_shared_reads_the_newest_of_a_stage_by_itself() -> None:
    for path in SHARE.glob("**/*.py"):
        found = [
            each
            for each in (".newest(", ".newest_or_none(", ".newest_manifest(")
            if each in path.read_text()
        ]
        assert not found, f"{path.name}: ask state_to_publish for manifests"
