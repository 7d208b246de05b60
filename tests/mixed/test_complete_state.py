"""What goes out is one complete state: found from mixtures and kept manifests, backwards."""

from collections.abc import Mapping

import dagster as dg
import yaml
from builders import Build, open_corpus, records, sentence, write_jsonl
from prelude import Any, pytest

from assets.mixed.complete_state_files import complete_state, incomplete
from resources.errors import UsageError, and_more
from resources.store.store import StoreError

pytestmark = pytest.mark.slow

CHAIN = ("raw", "filtered", "deduped", "tokenized", "bucketed", "sharded")


def night(corpus: Any, number: int, source: str = "prose") -> None:
    """Add ten documents to a source."""
    texts = records(*(sentence(number * 1000 + i, 40) for i in range(10)))
    write_jsonl(corpus.config.parent / f"input/{source}/night{number}.jsonl", texts)


def numbers(corpus: Any, tag: str | None = None) -> Mapping[str, set[int]]:
    """Return the numbers of the manifests in the state, by partition."""
    found: dict[str, set[int]] = {}
    for (_, partition), (number, _) in complete_state(corpus, tag).manifests.items():
        found.setdefault(partition, set()).add(number)
    return found


def full(corpus: Any, build: Build) -> Any:
    """Build everything, and mix."""
    corpus = open_corpus(corpus.config)
    build(corpus)
    build(corpus, "mixed")
    return corpus


@pytest.mark.parametrize("last", range(1, 6))
def test_after_a_night_that_stopped_the_state_is_the_one_before(
    corpus: Any, build: Build, last: int
) -> None:
    full(corpus, build)
    assert incomplete(corpus) == ""
    night(corpus, 1)
    between = ("signatures", "band_index", "duplicates") if last > 2 else ()
    build(corpus, *CHAIN[:last], *between)
    assert numbers(corpus) == {name: {1} for name in ("prose", "notes", "main", "late")}
    assert f"without newer {', '.join(f'{each} of prose' for each in CHAIN[last - 1 :: -1])}" in (
        incomplete(corpus)
    )
    full(corpus, build)
    assert numbers(corpus)["prose"] == {2} and incomplete(corpus) == ""


def test_shards_that_no_phase_was_mixed_from_are_not_in_the_state(
    corpus: Any, build: Build
) -> None:
    full(corpus, build)
    night(corpus, 1)
    build(corpus)
    assert numbers(corpus)["prose"] == {1} and "sharded of prose" in incomplete(corpus)
    build(corpus, "mixed")
    assert numbers(corpus)["prose"] == {2} == numbers(corpus)["main"]


def test_a_first_build_that_is_not_complete_is_refused(corpus: Any, build: Build) -> None:
    with pytest.raises(StoreError, match="No complete state of prose, notes is kept"):
        complete_state(corpus)
    build(corpus, "raw", "filtered")
    with pytest.raises(StoreError, match="prose, notes is kept: a stage is not built"):
        complete_state(corpus)
    assert incomplete(corpus).startswith("No complete state of prose, notes")


def test_a_state_is_that_of_a_tag(corpus: Any, build: Build, cli: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    full(corpus, build)
    cli.out("states", "tag", "v1")
    for number in range(1, 5):  # more than are kept
        night(corpus, number)
        full(corpus, build)
    assert numbers(corpus, "v1")["prose"] == {1} and numbers(corpus)["prose"] == {5}
    night(corpus, 9)
    build(corpus, "raw", "filtered")
    cli.out("states", "tag", "halfway")
    with pytest.raises(StoreError, match="No complete state is kept"):
        complete_state(corpus, "halfway", ["prose"])
    with pytest.raises(UsageError, match="v2"):
        complete_state(corpus, "v2")


def test_a_source_that_failed_has_the_older_state_that_phases_are_mixed_from(
    corpus: Any, build: Build
) -> None:
    config = yaml.safe_load(corpus.config.read_text())
    config["sources"][1]["max_bad_share"] = 0.5
    corpus.config.write_text(yaml.safe_dump(config))
    full(corpus, build)
    write_jsonl(corpus.config.parent / "input/notes/night1.jsonl", ["{"] * 90)
    night(corpus, 2)
    with pytest.raises(dg.Failure, match="max_bad_share"):
        full(corpus, build)
    build(corpus, "mixed")
    found = complete_state(corpus)
    assert found.manifests["sharded", "prose"][0] == 2
    assert found.manifests["raw", "notes"][0] == 1 and "raw of notes" in found.without


def test_a_new_source_is_left_out_until_phases_are_mixed_from_it(corpus: Any, build: Build) -> None:
    config = yaml.safe_load(corpus.config.read_text())
    config["phases"] = [{"name": "main", "weighting": "natural"}]
    corpus.config.write_text(yaml.safe_dump(config))
    full(corpus, build)
    config["sources"].append({"name": "new", "where": "input/new/*"})
    corpus.config.write_text(yaml.safe_dump(config))
    night(corpus, 7, "new")
    corpus = open_corpus(corpus.config)
    for names in (("raw",), ()):
        build(corpus, *names)
        found = complete_state(corpus)
        assert found.sources == ("prose", "notes") and "source new" in found.without
    build(corpus, "mixed")
    assert complete_state(corpus).sources == ("prose", "notes", "new")


def test_a_source_that_was_withdrawn_is_in_no_state(corpus: Any, build: Build) -> None:
    config = yaml.safe_load(corpus.config.read_text())
    config["phases"] = [{"name": "main", "weighting": "natural"}]
    corpus.config.write_text(yaml.safe_dump(config))
    full(corpus, build)
    del config["sources"][1]
    corpus.config.write_text(yaml.safe_dump(config))
    with pytest.raises(StoreError, match="phase 'main' was mixed from other states"):
        complete_state(open_corpus(corpus.config))
    assert complete_state(full(corpus, build)).sources == ("prose",)


def test_a_source_that_is_rolled_back_goes_out_as_it_is_rolled_back(
    corpus: Any, build: Build, cli: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    full(corpus, build)
    night(corpus, 1)
    full(corpus, build)
    cli.out("states", "rollback", "prose", "--to", "1")
    found = complete_state(corpus).manifests
    assert found["mixed", "main"][0] == 1
    before = corpus.store.partition("sharded", "prose").read_manifest(1)
    assert found["sharded", "prose"][1].fingerprint == before.fingerprint
    full(corpus, build)
    assert incomplete(corpus) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"phases": [{"name": "a", "budgets": {"prose": 900}}, {"name": "b", "continues": "a",
         "budgets": {"prose": 400}}]},
        {"phases": [{"name": "a", "weights_at": {0.0: {"prose": 1, "notes": 0},
         1.0: {"prose": 0, "notes": 1}}, "tokens": 2000}]},
        {"phases": [{"name": "a", "weights": {"prose": 1, "notes": 0}}], "holdout": {"share": 0.2}},
        {"phases": [{"name": "a", "weighting": "temperature", "exponent": 0.5,
         "sources": ["notes"]}]},
        {"shards": {"formats": ["parquet"]}},
    ],
)  # fmt: skip
def test_every_kind_of_phase_finds_the_shards_it_was_mixed_from(
    corpus: Any, build: Build, changes: dict[str, Any]
) -> None:
    config = yaml.safe_load(corpus.config.read_text()) | changes
    corpus.config.write_text(yaml.safe_dump(config))
    corpus = full(corpus, build)
    assert incomplete(corpus) == ""
    night(corpus, 1)
    night(corpus, 1, "notes")
    build(corpus)
    assert "newer sharded of" in incomplete(corpus)


def test_of_many_sources_the_first_are_named() -> None:
    names = [f"s{number}" for number in range(1, 31)]
    assert and_more(names[:20]).endswith("s19, s20")
    assert and_more(names, separator="; ").endswith("s19; s20 and 10 more")
