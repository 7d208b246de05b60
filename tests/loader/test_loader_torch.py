"""The loader as a dataset of torch: the same order with any number of workers, exact resume."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loader_corpus import two_sources

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*set_vital:UserWarning"),  # torchdata 0.11 with torch 2.13
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),  # on few cores
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number."""
    return two_sources(tmp_path_factory.mktemp("corpus"))


def dataset_of(store: Path, **options: Any) -> Any:
    """A dataset with batches of four."""
    from corpus_loader.torch_dataset import CorpusDataset

    return CorpusDataset(CorpusLoader(store, batch_size=4, options=LoaderOptions(**options)))


def data_loader(dataset: Any, workers: int, **options: Any) -> Any:
    """torch's DataLoader for it."""
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def stateful_loader(dataset: Any, workers: int) -> Any:
    """torchdata's StatefulDataLoader for it."""
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    return torchdata.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)


def numbers(batches: Iterable[dict[str, Any]]) -> list[int]:
    """The rows that were seen."""
    return [int(row[0]) for batch in batches for row in batch["tokens"]]


def whole(store: Path) -> list[int]:
    """The rows of an epoch in their order."""
    return [int(row[0]) for batch in CorpusLoader(store) for row in batch.tokens]


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_the_order_is_the_same_with_any_number_of_workers(store: Path, workers: int) -> None:
    loader = data_loader(dataset_of(store), workers)

    assert numbers(loader) == whole(store)
    assert len(loader) == 10


def test_tokens_are_int64_and_documents_come_along(store: Path) -> None:
    batch = next(iter(dataset_of(store, with_documents=True)))

    assert (batch["tokens"].dtype, tuple(batch["tokens"].shape)) == (torch.int64, (4, 8))
    assert batch["cu_seqlens"].tolist() == [0, 8, 16, 24, 32]
    assert batch["cu_seqlens"].dtype == torch.int32
    assert batch["loss_mask"].sum() == 28
    assert batch["cursor"] == 4


def test_tensors_share_the_memory_of_the_arrays(store: Path) -> None:
    from corpus_loader.torch_dataset import to_tensors

    batch = next(iter(dataset_of(store).loader))

    assert to_tensors(batch)["tokens"].data_ptr() == batch.tokens.ctypes.data


def test_a_loader_that_gives_int32_is_left_alone(store: Path) -> None:
    assert next(iter(dataset_of(store, dtype="int32")))["tokens"].dtype == torch.int32


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_a_batch_goes_on_with_another_number_of_workers(
    store: Path, workers: int
) -> None:
    dataset = dataset_of(store)
    batches = iter(data_loader(dataset, 2))
    last = [next(batches) for _ in range(3)][-1]

    resumed = dataset_of(store)
    resumed.load_state_dict(dataset.state_at(last["cursor"]))

    assert numbers(data_loader(resumed, workers)) == whole(store)[12:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [1, 4])
def test_stateful_data_loader_resumes_at_the_exact_batch(
    store: Path, workers: int, taken: int
) -> None:
    loader = stateful_loader(dataset_of(store), workers)
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = loader.state_dict()

    resumed = stateful_loader(dataset_of(store), workers)
    resumed.load_state_dict(state)

    assert numbers(resumed) == whole(store)[4 * taken :]


def test_the_next_epoch_follows_with_and_without_workers(store: Path) -> None:
    loader = CorpusLoader(store)
    epochs = [numbers_of(loader), numbers_of(loader)]
    alone, others = dataset_of(store), dataset_of(store)

    assert [numbers(alone), numbers(alone)] == epochs
    for epoch in (0, 1):
        others.set_epoch(epoch)
        assert numbers(data_loader(others, 2)) == epochs[epoch]


def numbers_of(loader: CorpusLoader) -> list[int]:
    """The rows of an epoch of a loader."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_over_epochs_goes_on_after_the_last_batch_of_one(store: Path, workers: int) -> None:
    loader = CorpusLoader(store)
    epochs = [numbers_of(loader), numbers_of(loader)]
    dataset = dataset_of(store)
    dataset.load_state_dict(dataset.state_at(37))

    for epoch, expected in enumerate([[], epochs[1]]):
        dataset.set_epoch(epoch)
        assert numbers(data_loader(dataset, workers)) == expected


@pytest.mark.parametrize("taken", [3, None])
def test_a_worker_that_stays_is_refused_a_second_iteration(
    store: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    dataset, info = dataset_of(store), SimpleNamespace(id=0, num_workers=1)
    monkeypatch.setattr("corpus_loader.torch_dataset.get_worker_info", lambda: info)

    assert numbers(islice(dataset, taken)) == whole(store)[: taken and 4 * taken]
    with pytest.raises(CorpusError, match="Use persistent_workers=False"):
        next(iter(dataset))


def test_the_state_of_another_worker_is_refused(store: Path) -> None:
    dataset = dataset_of(store)
    dataset.load_state_dict(dataset.state_dict() | {"worker": [0, 2], "taken": 1})

    with pytest.raises(CorpusError, match=r"state is of worker \(0, 2\), this one is \(1, 2\)"):
        dataset.check_worker(1, 2)


def test_a_missing_shard_reaches_the_training_loop_by_name(store: Path, tmp_path: Path) -> None:
    two_sources(tmp_path)
    (tmp_path / "sharded/web/megatron-0123abcd/shard-00001.bin").unlink()

    with pytest.raises(CorpusError, match=r"shard-00001\.bin is missing"):
        numbers(data_loader(dataset_of(tmp_path), 1))
