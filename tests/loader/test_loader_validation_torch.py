"""Validation under torch: every iteration gives each row once, in one order, with any workers."""

from pathlib import Path
from typing import Any

import pytest
from loader_corpus import held_out, numbered_rows, two_sources

from corpus_loader import CorpusError, CorpusLoader

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
HELD = {"books": [numbered_rows(501, 5)], "web": [numbered_rows(601, 6)]}
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


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_any_data_loader(store: Path, workers: int) -> None:
    from torch.utils.data import DataLoader

    batches = DataLoader(dataset_of(store), batch_size=None, num_workers=workers)
    first = numbers_of(batches)
    assert sorted(first) == NUMBERS
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
        max_steps=4,
        val_check_interval=2,
        check_val_every_n_epoch=None,
        accelerator="cpu",
        **quiet,
    )
    held = LightningBatches(CorpusDataLoader(dataset_of(store)))
    trainer.fit(Module(), training, held)
    first_look, *every = seen  # Lightning takes two batches before it trains
    assert len(every) == 2 and every[0] == every[1]
    assert sorted(every[0]) == NUMBERS
    assert first_look == every[0][:4]
