"""`corpus plan` knows the feasible phases before `mixed` runs."""

from builders import open_corpus, write_corpus
from msgspec import to_builtins
from prelude import Any, Path, json, pytest
from sharded_corpus import corpus_with, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from pipeline_defs.commands.main import main
from pipeline_defs.commands.train.plan import plan_corpus
from resources.store.records import Manifest, PartRecord, Stats

EDGES = {"mode": "buckets", "edges": [16]}


TOKENIZED = {  # provenance of a tokenized source
    "deduped": "f" * 32,
    "tokenizer_fingerprint": "f" * 64,
    "vocab_size": 1000,
    "token_dtype": "uint16",
    "end_of_document": "<|endoftext|>",
    "end_of_document_id": 0,
    "begin_of_document": None,
    "begin_of_document_id": None,
}


def commit(corpus: Any, stage: str, source: str, stats: Stats, **provenance: Any) -> None:
    """Commit a manifest of a stage and source with these counts."""
    part = PartRecord("part", "f" * 32, (), stats)
    manifest = Manifest(stage, source, "f" * 32, "1", {}, (part,), stats, provenance)
    corpus.store.partition(stage, source).commit(manifest)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a corpus: prose is tokenized, notes deduped; two phases draw from both."""
    phases = [
        {"name": "main", "weights": {"prose": 0.75, "notes": 0.25}, "tokens": 8000},
        {"name": "late", "budgets": {"prose": 3000}, "buckets": ["0-16"]},
    ]
    config = write_corpus(tmp_path, phases=phases, buckets=EDGES)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    made = open_corpus(config)
    stats = Stats(150, 150, tokens=3000, text_bytes=12_000)
    commit(made, "tokenized", "prose", stats, **TOKENIZED)
    commit(made, "deduped", "notes", Stats(70, 70, bytes=4000))
    return made


def test_tokens_are_counted_in_the_last_stage_that_a_source_reached(corpus: Any) -> None:
    found = plan_of(corpus, ["main", "late"])

    main_phase, late = found["phases"]["main"], found["phases"]["late"]
    assert main_phase["sources"] == {
        "prose": source(0.75, 3000, 6000, "tokenized") | {"epochs": 2.0, "samples": 300},
        "notes": source(0.25, 1000, 2000, "deduped") | {"epochs": 2.0, "samples": 140},
    }
    assert main_phase["notes"] == ["notes is not tokenized: estimated at 4.00 bytes a token"]
    assert (main_phase["verdict"], main_phase["tokens"]) == ("ok", 8000)
    assert late["notes"] == ["prose has no buckets yet: counted whole."]
    assert found["sources"]["prose"] == {
        "available_tokens": 3000,
        "counted_in": "tokenized",
        "planned_tokens": 9000,
        "epochs": 3.0,
    }
    assert found["warnings"] == []


def test_epochs_over_all_phases_are_warned_of(corpus: Any) -> None:
    asked = {"budgets": {"prose": 7500}, "buckets": ["17-up"]}
    phases = [{"name": name} | asked for name in ("main", "late")]
    corpus = open_corpus(write_corpus(corpus.config.parent, phases=phases, buckets=EDGES))

    found = plan_of(corpus, ["main", "late"])

    assert {phase["verdict"] for phase in found["phases"].values()} == {"ok"}
    assert found["warnings"] == ["'prose' is gone through 5.0 times over all phases"]


def plan_of(corpus: Any, names: list[str]) -> Any:
    """Return the plan as --json prints it."""
    return to_builtins(plan_corpus(corpus, names))


def source(weight: float, available: int, planned: int, stage: str) -> dict[str, Any]:
    tokens = {"available_tokens": available, "planned_tokens": planned}
    return {"weight": weight, "counted_in": stage, "cap": 16.0} | tokens


def test_bytes_a_token_are_those_of_the_tokenized_sources(corpus: Any) -> None:
    commit(corpus, "tokenized", "prose", Stats(9, 9, tokens=100, text_bytes=500), **TOKENIZED)

    [note] = plan_of(corpus, ["main"])["phases"]["main"]["notes"]

    assert note == "notes is not tokenized: estimated at 5.00 bytes a token"


def test_the_plan_is_a_table(corpus: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 0

    shown = capsys.readouterr().out
    assert "6,000" in shown and "all phases" in shown and "late: ok" in shown


def test_json_is_the_plan(corpus: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--phase", "late", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found == plan_of(corpus, ["late"])


def test_a_refused_phase_gives_exit_code_1_and_the_numbers_that_would_do(
    corpus: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = [
        {"name": "main", "weights": {"prose": 0.5, "notes": 0.5}, "tokens": 40000},
        {"name": "late", "budgets": {"prose": 6000}},
    ]
    write_corpus(corpus.config.parent, phases=phases, buckets=EDGES)

    assert main(["plan", "--json"]) == 1
    refused = json.loads(capsys.readouterr().out)["phases"]["main"]
    assert refused["feasible"] == {"tokens": 32000, "weights": {"prose": 0.6, "notes": 0.4}}
    assert main(["plan"]) == 1
    assert "Set `tokens` to at most 32,000" in capsys.readouterr().out
    assert main(["plan", "--phase", "late"]) == 0


def test_a_phase_of_a_source_that_is_not_built_has_no_verdict_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config := write_corpus(tmp_path)))
    commit(open_corpus(config), "deduped", "notes", Stats(70, 70, bytes=4000))

    assert main(["plan"]) == 0

    shown = capsys.readouterr().out
    assert "main: not built yet\n  prose: nothing to count yet" in shown
    assert "refused" not in shown and "available tokens" not in shown


@pytest.mark.parametrize(
    ("phase", "verdict"),
    [
        ({"budgets": {"prose": 3}}, "refused"),
        ({"budgets": {"prose": 40, "notes": 2}}, "warning"),
        ({"weights": {"prose": 1, "notes": 1e-300}, "tokens": 40}, "warning"),
        ({"budgets": {"prose": 40}}, "ok"),
        ({"budgets": {"notes": 28}, "formats": ["parquet"]}, "ok"),
        ({"weights": {"prose": 0.5, "notes": 0.5}, "tokens": 1000}, "refused"),
    ],
)
def test_over_shards_the_verdict_is_the_one_of_mixed(
    tmp_path: Path, phase: dict[str, Any], verdict: str
) -> None:
    sharded = corpus_with(tmp_path, phase)

    found = plan_of(sharded, ["main"])["phases"]["main"]

    assert found["verdict"] == verdict
    if verdict == "refused":
        with pytest.raises(MixError) as refusal:
            plan_mixed(sharded, "main")
        assert str(refusal.value) == "\n".join(found["faults"])
        return
    [task] = plan_mixed(sharded, "main").tasks
    assert list(task.payload.plan.warnings) == found["warnings"]


def test_what_mixed_cannot_read_is_refused_before(tmp_path: Path) -> None:
    sharded = corpus_with(tmp_path, {"budgets": {"prose": 40, "notes": 28}})
    write_sharded(sharded.store, "notes", [shard(300, [8, 4])], tokenizer_fingerprint="e" * 32)
    [fault] = plan_of(sharded, ["main"])["phases"]["main"]["faults"]
    assert "would mix shards of different tokenizers" in fault
    next(sharded.store.root.glob("sharded/prose/*/shard-00000.spans")).unlink()
    write_sharded(sharded.store, "notes", [shard(300, [8, 4])])
    next(sharded.store.root.glob("sharded/notes/*/shard-00000.spans")).unlink()
    plan_of(sharded, ["late"])  # of rows that are all equally long nothing is read


def test_an_unknown_phase_is_named(corpus: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--phase", "mian"]) == 2
    assert "did you mean main" in capsys.readouterr().err
