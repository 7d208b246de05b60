"""`corpus mix`: a swarm over a built corpus, and weights from what its runs measured."""

import hashlib

import numpy as np
import yaml
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, pl, pytest
from verbs import Cli

from pipeline_defs.commands.share.disclose import render
from pipeline_defs.commands.share.gathered_facts import gather

SOURCES = ("prose", "notes", "talk")
SLOPES = {"prose": 0.2, "notes": -0.4, "talk": 0.5}  # notes lower the loss
RUNS = 12


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Any:
    """A corpus of three sources, of which a phase draws 3,000 tokens; sharded and mixed."""
    folder = tmp_path_factory.mktemp("mix")
    config = yaml.safe_load(write_corpus(folder).read_text())
    texts = [{"text": sentence(300 + i, 15 + i % 9)} for i in range(30)]
    write_jsonl(folder / "input/talk/t.jsonl", texts)
    config["sources"].append({"name": "talk", "where": "input/talk/*"})
    config["phases"] = [
        {
            "name": "main",
            "weights": {"prose": 0.5, "notes": 0.25, "talk": 0.25},
            "tokens": 3000,
            "epochs": {"talk": 1},
        },
        {"name": "late", "budgets": {"prose": 500, "notes": 300}},
    ]
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    corpus = open_corpus(path)
    build(corpus)
    build(corpus, "mixed")
    return corpus


@pytest.fixture
def folder(built: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the corpus, without the files of swarms before."""
    path: Path = built.config.parent
    monkeypatch.setenv("TOKENMILL_CONFIG", str(built.config))
    monkeypatch.setenv("TOKENMILL_STORE", str(built.store.root))
    monkeypatch.chdir(path)
    for file in path.glob("swarm*"):
        file.unlink()
    return path


def measured(ratios: Path, slopes: dict[str, float] = SLOPES) -> Path:
    """Write metrics by a law that is known, with a little noise."""
    table = pl.read_csv(ratios)
    rng = np.random.default_rng(5)
    loss = sum(table[name] * slope for name, slope in slopes.items())
    both = {f"loss_{n}": 2 + loss.exp() + rng.normal(0, 0.005, len(table)) for n in (1, 2)}
    metrics = ratios.with_name("swarm-metrics.csv")
    table.select("run").with_columns(**both).reverse().write_csv(metrics)
    return metrics


def swarm(cli: Cli, *options: str) -> Path:
    """Draw a swarm; its ratios."""
    told = cli.json("mix", "swarm", "--tokens", "600", "--runs", str(RUNS), *options)
    return Path(told["ratios"])


def test_a_swarm_is_mixed_over_the_same_store_and_changes_nothing_of_the_corpus(
    built: Any, folder: Path, cli: Cli, build: Build
) -> None:
    before = hashes(built.store.root)

    ratios = pl.read_csv(swarm(cli))
    runs = open_corpus(folder / "swarm.yaml", built.store.root)
    build(runs)
    build(runs, "mixed")

    assert ratios.columns == ["run", *sorted(SOURCES)]
    assert ratios["run"].to_list() == [f"main-swarm-{n:02}" for n in range(RUNS)]
    after = hashes(built.store.root)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[1] for name in after.keys() - before.keys()} == {*ratios["run"]}
    for row in ratios.iter_rows(named=True):
        manifest = runs.store.newest("mixed", row["run"])
        assert manifest.config["tokens"] == 600
        for name, share in manifest.parts[0].stats.numbers["mix"].items():
            assert share["weight"] == pytest.approx(row[name], abs=1e-5)


def test_no_mixture_of_a_swarm_is_beyond_the_caps_of_the_phase(folder: Path, cli: Cli) -> None:
    available = cli.json("plan", "--phase", "main")["sources"]["talk"]["available_tokens"]

    ratios = pl.read_csv(swarm(cli))

    assert available < 3000
    assert ratios["talk"].max() <= available / 3000 + 1e-5
    natural = cli.json("plan", "--phase", "main")["phases"]["main"]["sources"]
    sizes = {name: natural[name]["available_tokens"] for name in SOURCES}
    first = ratios.row(0, named=True)
    assert first["prose"] / first["notes"] == pytest.approx(sizes["prose"] / sizes["notes"], 1e-3)


def test_fitted_weights_are_in_the_lineage_of_the_phase_and_in_disclosures(
    built: Any, folder: Path, cli: Cli, build: Build
) -> None:
    ratios = swarm(cli)
    metrics = measured(ratios)
    digests = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in (("ratios", ratios), ("metrics", metrics))
    }

    found = cli.json("mix", "fit", str(ratios), str(metrics))
    text = cli.out("mix", "fit", str(ratios), str(metrics))

    assert found["is_better"] and found["change"][2] < 0
    assert found["phase"]["fitted"] == digests
    assert [each["r2"] > 0.5 for each in found["metrics"]] == [True, True]
    by_source = {each["source"]: each for each in found["weights"]}
    assert by_source["notes"]["fitted_weight"] > by_source["notes"]["natural_weight"]
    for each in found["weights"]:
        assert each["fitted_weight"] <= each["most_weight"] + 1e-5
        assert each["low_weight"] <= each["high_weight"] <= each["most_weight"] + 1e-9
    [pasted] = yaml.safe_load(text[text.index("- name: main") :])
    assert pasted == found["phase"]

    config = yaml.safe_load(built.config.read_text())
    other = folder / "fitted.yaml"
    other.write_text(yaml.safe_dump(config | {"phases": [pasted, config["phases"][1]]}))
    corpus = open_corpus(other, built.store.root)
    build(corpus, "mixed")
    assert corpus.store.newest("mixed", "main").config["fitted"] == digests
    facts = gather(corpus)
    assert facts.known("corpus.fitted") == [["main", digests["ratios"], digests["metrics"]]]
    for form in ("hf", "gpai", "eu"):
        assert digests["metrics"] in render(form, facts)  # type: ignore[arg-type]
    build(built, "mixed")  # the weights before: the states of other tests
    assert "SHA-256" not in render("hf", gather(built))


def test_only_a_source_that_changed_is_fitted_again(folder: Path, cli: Cli) -> None:
    ratios = swarm(cli, "--refit", "notes")
    metrics = measured(ratios)

    options = ("--refit", "notes", "--penalty", "0.1")
    found = cli.json("mix", "fit", str(ratios), str(metrics), *options)

    weights = found["phase"]["weights"]
    assert weights["prose"] / weights["talk"] == pytest.approx(2, 1e-4)  # as the phase has it
    natural = {each["source"]: each["natural_weight"] for each in found["weights"]}
    assert natural["notes"] + 0.05 < weights["notes"] < 1


def test_losses_without_a_signal_give_no_weights(folder: Path, cli: Cli) -> None:
    ratios = swarm(cli)
    metrics = measured(ratios, {"prose": 0.0})

    text = cli.out("mix", "fit", str(ratios), str(metrics), code=1)

    assert "No signal" in text and "fitted:" not in text


def cells(path: Path, **columns: Any) -> Path:
    """Lay columns over a table of runs; None takes one out."""
    table = pl.read_csv(path, infer_schema=False)
    gone = [name for name, values in columns.items() if values is None]
    given = {n: pl.Series(v).cast(pl.String) for n, v in columns.items() if v is not None}
    table.drop(gone).with_columns(**given).write_csv(path)
    return path


@pytest.mark.parametrize(
    ("wrong", "columns", "said"),
    [
        ("ratios", {"run": None}, "no column `run`"),
        ("ratios", {"run": ["same"] * RUNS}, "'same' is there twice"),
        ("ratios", {"books": [0] * RUNS}, "unknown source 'books'"),
        ("ratios", {"talk": None}, "no column for 'talk', a source of the phase"),
        ("ratios", {"talk": ["x"] * RUNS}, "'talk' of main-swarm-00 is 'x', no number"),
        ("ratios", {"talk": [2] * RUNS}, "of main-swarm-00 sum to 2."),
        ("ratios", {"prose": [0.5] * RUNS, "notes": [0.3] * RUNS, "talk": [0.2] * RUNS}, "1 of 3"),
        ("metrics", {"run": [f"r{n}" for n in range(RUNS)]}, "no row for 'main-swarm-00'"),
        ("metrics", {"loss_1": ["nan"] * RUNS}, "'loss_1' of main-swarm-11 is 'nan', no number"),
        ("metrics", {"loss_1": [""] * RUNS}, "'loss_1' of main-swarm-11 is"),
        ("metrics", {"loss_1": [-1.0, *[2.0] * (RUNS - 1)]}, "must be above 0 and differ"),
        ("metrics", {"loss_1": [2.0] * RUNS}, "must be above 0 and differ"),
        ("metrics", {"loss_1": None, "loss_2": None}, "no column but the names of runs"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    wrong: str, columns: dict[str, Any], said: str, folder: Path, cli: Cli
) -> None:
    ratios = swarm(cli)
    metrics = measured(ratios)
    changed = cells(ratios if wrong == "ratios" else metrics, **columns)

    error = cli.err(2, "mix", "fit", str(ratios), str(metrics))

    assert said in error and str(changed) in error


def test_wrong_use_is_told(folder: Path, cli: Cli, tmp_path: Path) -> None:
    ratios = swarm(cli)
    metrics = measured(ratios)
    fit = ("mix", "fit", str(ratios), str(metrics))

    assert "exists: remove it" in cli.err(2, "mix", "swarm", "--tokens", "600")
    assert "without a folder" in cli.err(2, "mix", "swarm", "--tokens", "600", "--out", "a/b")
    assert "longer than phase 'main'" in cli.err(
        2, "mix", "swarm", "--tokens", "3001", "--out", "swarm2"
    )
    assert "did you mean main?" in cli.err(2, *fit, "--phase", "mains")
    assert "did you mean talk?" in cli.err(2, *fit, "--refit", "talks")
    assert "another ratio of the sources that stay" in cli.err(2, *fit, "--refit", "talk")
    assert "--penalty is nan" in cli.err(2, *fit, "--penalty", "nan")
    missing = tmp_path / "none.csv"
    assert f"{missing}: cannot be read" in cli.err(2, "mix", "fit", str(missing), str(metrics))
    few = tmp_path / "few.csv"
    few.write_text("\n".join(ratios.read_text().splitlines()[:4]))
    assert "5 runs or more are needed" in cli.err(2, "mix", "fit", str(few), str(metrics))


def test_nothing_is_drawn_from_a_corpus_that_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))

    assert "nothing to count yet" in cli.err(2, "mix", "swarm", "--tokens", "600")


def test_more_than_the_caps_allow_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, build: Build
) -> None:
    phase = {"name": "main", "weights": {"prose": 0.5, "notes": 0.5}, "tokens": 10**7}
    path = write_corpus(tmp_path, phases=[phase])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    build(open_corpus(path))

    error = cli.err(2, "mix", "swarm", "--tokens", "600")

    assert "fewer tokens than it asks for within their caps" in error
    assert not list(tmp_path.glob("swarm*"))
