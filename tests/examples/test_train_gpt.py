"""The worked example: a very small GPT learns, and a stopped run goes on exactly."""

import importlib.util
import warnings
from types import ModuleType

import yaml
from builders import Build, open_corpus
from format_folders import peer
from prelude import Any, Path, pl, pytest, sys

from pipeline_defs.commands.mix.run_tables import metrics_of, read_table

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data"
CONFIG = {
    "store": "store",
    "sources": [
        {"name": "prose", "where": f"{SAMPLE}/books/*"},
        {"name": "notes", "where": f"{SAMPLE}/reference/*"},
    ],
    "tokenizer": {"vocab_size": 512, "sample_bytes": 200_000},
    "buckets": {"sequence_length": 128},
    "holdout": {"share": 0.1},
    "phases": [
        {"name": "main", "weights": {"prose": 0.5, "notes": 0.5}},
        {"name": "late", "budgets": {"prose": 500}},
    ],
}


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch, in one thread: the model is too small for two."""
    package = peer("torch")
    package.set_num_threads(1)
    return package


@pytest.fixture(scope="module")
def example(torch: Any) -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("train_gpt", ROOT / "examples/train_gpt.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_gpt"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Path:
    """Two sources of the sample corpus, packed into sequences of 128 tokens."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(CONFIG))
    corpus = open_corpus(folder / "pipeline.yaml")
    build(corpus)
    build(corpus, "mixed")
    root: Path = corpus.store.root
    return root


def loader(store: Path) -> Any:
    from corpus_loader import CorpusLoader, LoaderOptions

    options = LoaderOptions(with_documents=True)
    return CorpusLoader(store, phase="main", batch_size=8, options=options)


def test_the_loss_falls_well_under_the_unigram_entropy(example: ModuleType, store: Path) -> None:
    entropy = example.unigram_entropy(loader(store), batches=20)

    losses = example.start(loader(store)).run(300)

    assert losses[0] > entropy  # an untrained model knows less than the frequencies
    assert sum(losses[-20:]) / 20 < entropy - 0.5


def test_a_stopped_run_goes_on_with_the_same_batches_and_losses(
    example: ModuleType, store: Path, tmp_path: Path, torch: Any
) -> None:
    whole = example.start(loader(store), torch.float64).run(8)

    first = example.start(loader(store), torch.float64)
    losses = first.run(3)
    first.save(tmp_path)
    second = example.start(loader(store), torch.float64)
    second.load(tmp_path)
    losses += second.run(5)

    assert losses == whole


def test_a_document_in_a_packed_sequence_is_seen_as_if_it_stood_alone(
    example: ModuleType, store: Path, torch: Any
) -> None:
    training = example.start(loader(store), torch.float64)
    batch = training.loader.samples(range(200))
    tokens, positions, _ = example.tensors(batch)
    row = int((positions == 0).sum(1).argmax())  # the sequence of most documents
    _, start, stop, *_ = *(positions[row] == 0).nonzero().flatten().tolist(), tokens.shape[1]

    with torch.no_grad():
        packed = training.model(tokens[[row]], positions[[row]])[0, start:stop]
        alone = training.model(tokens[[row], start:stop], positions[[row], start:stop])[0]

    assert (packed - alone).abs().max() < 1e-12


def test_the_masks_of_a_cpu_and_of_a_gpu_are_the_same(
    example: ModuleType, store: Path, torch: Any, monkeypatch: Any
) -> None:
    training = example.start(loader(store))
    tokens, positions, _ = example.tensors(next(iter(training.loader)))
    monkeypatch.setattr(example, "compiled", lambda function: function)

    with (
        torch.no_grad(),
        warnings.catch_warnings(action="ignore"),
    ):  # not compiled: slow, as it says
        dense = training.model(tokens, positions)
        monkeypatch.setattr(example, "document_mask", example.document_blocks)
        in_blocks = training.model(tokens, positions)

    assert (in_blocks - dense).abs().max() < 1e-4


def test_the_loss_on_held_out_documents_falls_in_every_source(
    example: ModuleType, store: Path, torch: Any, monkeypatch: Any, capsys: Any
) -> None:
    from corpus_loader import CorpusLoader, LoaderOptions

    def held(**which: Any) -> CorpusLoader:
        options = LoaderOptions(with_documents=True)
        return CorpusLoader(store, batch_size=8, options=options, split="validation", **which)

    training = example.start(loader(store))
    before = example.losses_by_source(training.model, held())
    training.run(40)
    after = example.losses_by_source(training.model, held())

    assert before.keys() == {"prose", "notes"}
    for source, loss in before.items():
        assert after[source] < loss - 0.5
        alone = example.losses_by_source(training.model, held(source=source))
        assert alone == {source: pytest.approx(after[source], rel=1e-5)}

    command = [str(store), "--phase", "main", "--steps", "4", "--validate-every", "2"]
    monkeypatch.setattr(sys, "argv", ["train_gpt.py", *command])
    example.main()
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(": loss")[0] for line in lines[:3]] == [
        "step 2", "  held out of prose", "  held out of notes",
    ]  # fmt: skip
    assert len(lines) == 6


def test_proxy_runs_are_measured_once_each_and_fitted(
    example: ModuleType, tmp_path: Path, build: Build, torch: Any, monkeypatch: Any, cli: Any
) -> None:
    phases = [CONFIG["phases"][0] | {"tokens": 30_000}]  # type: ignore[index]
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(CONFIG | {"phases": phases}))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    build(open_corpus(tmp_path / "pipeline.yaml"))
    told = cli.json("mix", "swarm", "--tokens", "16000", "--runs", "6")
    runs = open_corpus(Path(told["config"]), tmp_path / "store")
    build(runs, "mixed")
    metrics = tmp_path / "metrics.csv"
    monkeypatch.syspath_prepend(ROOT / "examples")
    proxy_runs = importlib.import_module("proxy_runs")
    command = ["proxy_runs.py", str(tmp_path / "store"), told["ratios"], str(metrics)]
    monkeypatch.setattr(sys, "argv", command)

    proxy_runs.main()
    header, *rows = metrics.read_text().splitlines()
    metrics.write_text("".join(f"{line}\n" for line in (header, *rows[:-1])))
    proxy_runs.main()  # as after an interruption: the last run alone

    assert header == "run,prose,notes" and len(rows) == 6
    assert metrics.read_text().splitlines() == [header, *rows]
    mixtures, losses = pl.read_csv(told["ratios"]), pl.read_csv(metrics)
    for source in ("prose", "notes"):  # each is learned from itself
        assert pl.DataFrame([mixtures[source], losses[source].alias("loss")]).corr()[0, 1] < -0.5
    tables = read_table(metrics), read_table(Path(told["ratios"]))
    assert metrics_of(*tables).shape == (6, 2)
