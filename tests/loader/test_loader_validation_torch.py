"""Validation under torch: every iteration gives each row once, in one order, with any workers."""

import subprocess

from loader_corpus import held_out, numbered_rows, two_sources
from prelude import Any, Path, json, os, pytest, sys

from corpus_loader import CorpusError, CorpusLoader

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
HELD = {"books": [numbered_rows(501, 5)], "web": [numbered_rows(601, 6)]}
JOB = Path(__file__).parents[1] / "trainer_validation_job.py"
NUMBERS = [*range(501, 506), *range(601, 607)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return held_out(two_sources(tmp_path_factory.mktemp("corpus")), HELD)


def dataset_of(store: Path, **options: Any) -> Any:
    from corpus_loader.torch_dataset import CorpusDataset

    return CorpusDataset(CorpusLoader(store, batch_size=2, split="validation", **options))


def numbers_of(batches: Any) -> list[int]:
    return [int(row[0]) for batch in batches for row in batch["tokens"]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stays", [False, True])
def test_counted_batches(store: Path, workers: int, stays: bool) -> None:
    from corpus_loader.torch_dataset import CorpusDataLoader

    options = {"persistent_workers": True} if stays and workers else {}
    batches = CorpusDataLoader(dataset_of(store), num_workers=workers, **options)
    first = numbers_of(batches)
    assert sorted(first) == NUMBERS
    assert int(next(iter(batches))["tokens"][0, 0]) == first[0]  # and is left
    assert numbers_of(batches) == first


def test_state_in_the_middle(store: Path) -> None:
    from corpus_loader.torch_dataset import CorpusDataLoader

    batches = CorpusDataLoader(dataset_of(store))
    first = numbers_of(batches)
    next(iter(batches))
    state = batches.state_dict()
    other = CorpusDataLoader(dataset_of(store), num_workers=2)
    other.load_state_dict(state)
    assert numbers_of(other) == first[2:]
    assert numbers_of(other) == first


def test_the_trainer_of_transformers_does_not_train_on_it(store: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from corpus_loader.torch_dataset import CorpusDataLoader
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    args = transformers.TrainingArguments(str(tmp_path), max_steps=1, use_cpu=True, report_to=[])
    with pytest.raises(CorpusError, match="held out of training"):
        CorpusTrainer(torch.nn.Linear(1, 1), args, corpus=CorpusDataLoader(dataset_of(store)))


def losses_of_rows(store: Path) -> dict[str, float]:
    """The mean loss of all held-out tokens, and those of each source, row by row."""
    from trainer_validation_job import small_model

    from corpus_loader import LoaderOptions
    from corpus_loader.torch_dataset import CorpusDataset
    from corpus_loader.trainers.forms import hugging_face

    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(store, batch_size=1, options=options, split="validation")
    model, sums = small_model(), {"books": [0.0, 0], "web": [0.0, 0]}
    for batch in CorpusDataset(loader):
        given = hugging_face(batch)
        tokens = int((given["labels"][:, 1:] >= 0).sum())
        loss = float(model(**given).loss)
        for each in ("books", "web"):
            if loader.sources[int(batch["sources"][0])] == each:
                sums[each] = [sums[each][0] + loss * tokens, sums[each][1] + tokens]
    whole = [sum(each) for each in zip(*sums.values(), strict=True)]
    by_source = {f"eval_{name}_loss": loss / tokens for name, (loss, tokens) in sums.items()}
    return {"eval_loss": whole[0] / whole[1], **by_source}


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers_evaluates_every_row_once_over_two_ranks(
    store: Path, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {"PYTHONPATH": str(JOB.parents[1]), "OMP_NUM_THREADS": "1"}
    job = [*command, str(JOB), str(store), str(tmp_path / "out")]
    subprocess.run(job, env=os.environ | environment, timeout=240, check=True)
    one, other = (json.loads((tmp_path / f"out.{rank}.json").read_text()) for rank in (0, 1))

    assert one["before"] == other["before"]
    assert one["before"].pop("epoch") == 0
    assert one["before"] == pytest.approx(losses_of_rows(store), rel=1e-5)
    [logged] = one["logged"]
    assert logged["eval_books_loss"] == one["again"]["eval_books_loss"]
    assert logged["eval_loss"] != one["before"]["eval_loss"]


@pytest.mark.filterwarnings("ignore")
def test_several_loaders_of_validation_are_evaluated_by_name(store: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from trainer_validation_job import small_model

    from corpus_loader import LoaderOptions
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    def batches(**what: Any) -> CorpusDataLoader:
        options = LoaderOptions(with_documents=True)
        return CorpusDataLoader(
            CorpusDataset(CorpusLoader(store, batch_size=2, options=options, **what))
        )

    args = transformers.TrainingArguments(
        str(tmp_path), max_steps=1, per_device_train_batch_size=2, use_cpu=True, report_to=[]
    )
    named = {name: batches(split="validation", source=name) for name in ("web", "books")}
    found = CorpusTrainer(small_model(), args, corpus=batches(), eval_dataset=named).evaluate()

    whole = losses_of_rows(store)
    assert found["eval_web_loss"] == pytest.approx(whole["eval_web_loss"], rel=1e-5)
    assert found["eval_books_loss"] == pytest.approx(whole["eval_books_loss"], rel=1e-5)
    with pytest.raises(CorpusError, match="split='validation'"):
        CorpusTrainer(small_model(), args, corpus=batches(), eval_dataset={"web": batches()})


def test_a_phase_is_not_evaluated(store: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    args = transformers.TrainingArguments(str(tmp_path), max_steps=1, use_cpu=True, report_to=[])
    phase = CorpusDataLoader(CorpusDataset(CorpusLoader(store, batch_size=2)))
    for held, message in ((phase, "split='validation'"), (dataset_of(store), "CorpusDataLoader")):
        with pytest.raises(CorpusError, match=message):
            CorpusTrainer(torch.nn.Linear(1, 1), args, corpus=phase, eval_dataset=held)


@pytest.mark.filterwarnings("ignore")
def test_lightning_validates_on_every_row_each_time(store: Path) -> None:
    lightning = pytest.importorskip("lightning")
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.lightning_callback import LightningBatches

    seen: list[list[int]] = []

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.layer(torch.ones(1, 1)).sum()

        def on_validation_epoch_start(self) -> None:
            seen.append([])

        def validation_step(self, batch: Any, index: int) -> None:
            seen[-1] += [int(row[0]) for row in batch["tokens"]]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    training = LightningBatches(CorpusDataLoader(CorpusDataset(CorpusLoader(store, batch_size=2))))
    quiet = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar"], False)
    trainer = lightning.Trainer(
        max_steps=4, val_check_interval=2, check_val_every_n_epoch=None, accelerator="cpu", **quiet
    )
    held = LightningBatches(CorpusDataLoader(dataset_of(store)))
    trainer.fit(Module(), training, held)
    first_look, *every = seen  # Lightning takes two batches before it trains
    assert len(every) == 2 and every[0] == every[1]
    assert sorted(every[0]) == NUMBERS
    assert first_look == every[0][:4]
