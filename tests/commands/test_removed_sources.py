"""`corpus states gc` removes what is left of a source that pipeline.yaml no longer has."""

import yaml
from builders import open_corpus, sentence, write_jsonl
from every_stage import run_stage
from prelude import Any, Callable, Path, pytest
from verbs import Cli

from assets.filtered.asset import STAGE as FILTERED
from assets.raw.asset import STAGE as RAW
from pipeline_defs.commands.main import main
from pipeline_defs.commands.states.tag import make_tag
from resources.store.named_states import Rollback, create, read_rollbacks, rollback_path

Told = Callable[..., Any]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Told:
    """Build sources `web` and `old`, and return what `gc` says of the sources that are given."""
    for name in ("web", "old"):
        write_jsonl(tmp_path / f"in/{name}/a.jsonl", [{"text": sentence(i)} for i in range(3)])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    corpus = configured(tmp_path, "web", "old")
    run_stage(corpus, RAW)
    run_stage(corpus, FILTERED)

    def gc(sources: tuple[str, ...], *words: str) -> Any:
        configured(tmp_path, *sources)
        return cli.json("states", "gc", *words)

    return gc


def configured(folder: Path, *sources: str) -> Any:
    """A corpus of some sources."""
    config = {
        "store": "store",
        "sources": [{"name": name, "where": f"in/{name}"} for name in sources],
        "phases": [{"name": "main", "weighting": "natural"}],
    }
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(config))
    return open_corpus(folder / "pipeline.yaml")


def places(folder: Path) -> list[str]:
    """The partitions that are in the store."""
    return sorted(f"{p.parent.name}/{p.name}" for p in (folder / "store").glob("[!_]*/*"))


def test_a_removed_source_is_named_and_removed_when_asked_for(told: Told, tmp_path: Path) -> None:
    create(rollback_path(tmp_path / "store", "old"), Rollback("old", "1", "", ()))
    named = told(("web",))
    assert [*named["removed_sources"]] == ["old"]
    assert {each["partition"] for each in named["partitions"]} == {"old"}
    assert len(places(tmp_path)) == 4

    removed = told(("web",), "--delete")
    assert removed["is_deleted"]
    assert places(tmp_path) == ["filtered/web", "raw/web"]
    assert not read_rollbacks(tmp_path / "store")
    assert told(("web",))["removed_sources"] == {}


def test_a_slip_in_the_name_of_a_source_removes_nothing(told: Told, tmp_path: Path) -> None:
    slip = told(("web", "odl"), "--delete")
    assert slip["unbuilt_sources"] == ["odl"]
    assert len(places(tmp_path)) == 4
    told(("web", "odl"), "--delete", "--removed-source", "old")
    assert places(tmp_path) == ["filtered/web", "raw/web"]
    assert main(["states", "gc", "--removed-source", "web"]) == 2


def test_a_takedown_reaches_a_removed_source(told: Told, tmp_path: Path, cli: Cli) -> None:
    extra = {"text": sentence(9), "url": "https://a.example/1"}
    write_jsonl(tmp_path / "in/old/b.jsonl", [extra])
    run_stage(configured(tmp_path, "web", "old"), RAW)
    configured(tmp_path, "web")
    assert "1 documents" in cli.out("takedown", "--url", extra["url"], "--reason", "asked")
    said = cli.out("takedown", "prove", "--purge", code=1)
    assert "`corpus states gc --delete` removes it" in said
    told(("web",), "--delete")
    assert main(["takedown", "prove"]) == 0


def test_what_a_tag_names_of_a_removed_source_stays(told: Told, tmp_path: Path) -> None:
    make_tag(configured(tmp_path, "web", "old").store, "v1")
    assert not told(("web",), "--delete")["partitions"]
    assert len(places(tmp_path)) == 4
