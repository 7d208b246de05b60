"""The loader as a dataset of torch: the same order with any number of workers, exact resume."""

import signal
import subprocess
from collections.abc import Iterable
from functools import partial
from itertools import islice

from hypothesis import HealthCheck, given, settings
from loader_corpus import every_sample, two_sources
from prelude import Any, Path, os, pytest, st, sys, time
from tables import cases

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions

ROOT = Path(__file__).parents[2]
torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # on few cores
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number."""
    return two_sources(tmp_path_factory.mktemp("corpus"))


def dataset_of(store: Path, **options: Any) -> Any:
    """A dataset with batches of four; nothing is left out by default."""
    from corpus_loader.torch_dataset import CorpusDataset

    options = {"drop_last": False} | options
    return CorpusDataset(CorpusLoader(store, batch_size=4, options=LoaderOptions(**options)))


def counting_loader(store: Path, workers: int, **options: Any) -> Any:
    """Our DataLoader for batches of four."""
    return counting(dataset_of(store), workers, **options)


def counting(dataset: Any, workers: int = 0, **options: Any) -> Any:
    """Our DataLoader for a dataset."""
    from corpus_loader.torch_dataset import CorpusDataLoader

    return CorpusDataLoader(dataset, num_workers=workers, **options)


def data_loader(dataset: Any, workers: int, **options: Any) -> Any:
    """torch's DataLoader for it."""
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def numbers(batches: Iterable[dict[str, Any]]) -> list[int]:
    """The rows that were seen."""
    return [int(row[0]) for batch in batches for row in batch["tokens"]]


def whole(store: Path) -> list[int]:
    """The rows of an epoch in their order."""
    return [int(row[0]) for batch in every_sample(store) for row in batch.tokens]


def some_epochs(store: Path, count: int) -> list[int]:
    """The rows of the first epochs in their order."""
    loader = every_sample(store)
    return [number for _ in range(count) for number in numbers_of(loader)]


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_the_order_is_the_same_with_any_number_of_workers(store: Path, workers: int) -> None:
    loader = counting_loader(store, workers)

    assert len(loader) == 10
    assert numbers(loader) + numbers(loader) == some_epochs(store, 2)


def test_torchs_own_loader_reads_a_dataset_without_workers_alone(store: Path) -> None:
    assert numbers(data_loader(dataset_of(store), 0)) == whole(store)
    for options in ({}, {"persistent_workers": True}, {"multiprocessing_context": "spawn"}):
        with pytest.raises(CorpusError, match=r"does not count.*Use CorpusDataLoader\(dataset"):
            next(iter(data_loader(dataset_of(store), 1, **options)))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_accelerate_prepares_is_refused(store: Path, workers: int) -> None:
    accelerate = pytest.importorskip("accelerate")
    own = counting_loader(store, workers)

    prepared = accelerate.Accelerator(cpu=True).prepare(own)

    with pytest.raises(CorpusError, match="Leave the loader out of it: every rank"):
        next(iter(prepared))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_a_batch_goes_on_with_another_number_of_workers(
    store: Path, workers: int
) -> None:
    loader = counting_loader(store, 2)
    last = list(islice(loader, 3))[-1]

    resumed = counting_loader(store, workers)
    resumed.load_state_dict(loader.dataset.state_at(last["cursor"]))

    assert numbers(resumed) == whole(store)[12:]


def test_tokens_are_int64_and_documents_come_along(store: Path) -> None:
    batch = next(iter(dataset_of(store, with_documents=True)))

    assert (batch["tokens"].dtype, tuple(batch["tokens"].shape)) == (torch.int64, (4, 8))
    assert batch["cu_seqlens"].tolist() == [0, 8, 16, 24, 32]
    assert batch["cu_seqlens"].dtype == torch.int32
    assert batch["loss_mask"].sum() == 28
    assert batch["cursor"].tolist() == [4] * 4
    assert all(isinstance(value, torch.Tensor) for value in batch.values())


def test_tensors_share_the_memory_of_the_arrays(store: Path) -> None:
    from corpus_loader.torch_dataset import to_tensors

    batch = next(iter(dataset_of(store).loader))

    assert to_tensors(batch)["tokens"].data_ptr() == batch.tokens.ctypes.data


def test_a_loader_that_gives_int32_is_left_alone(store: Path) -> None:
    assert next(iter(dataset_of(store, dtype="int32")))["tokens"].dtype == torch.int32


def numbers_of(loader: CorpusLoader) -> list[int]:
    """The rows of an epoch of a loader."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


@cases("""
    option               | message
    {"batch_size": 8}    | batch_size is 8: give it to CorpusLoader
    {"shuffle": True}    | shuffle is True: the samples are shuffled already
    {"drop_last": True}  | drop_last is True: give it to LoaderOptions
    {"num_workers": "2"} | num_workers is '2'; it must be a whole number
""")
def test_options_that_decide_on_batches_are_refused(
    store: Path, option: dict[str, Any], message: str
) -> None:
    from corpus_loader.torch_dataset import CorpusDataLoader

    with pytest.raises(CorpusError, match=message):
        CorpusDataLoader(dataset_of(store), **option)
    as_torch_has_them = {"batch_size": None, "sampler": None, "shuffle": False, "drop_last": False}
    assert numbers(CorpusDataLoader(dataset_of(store), **as_torch_has_them)) == whole(store)


def test_a_path_is_no_loader_and_a_loader_no_dataset(store: Path) -> None:
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset

    with pytest.raises(CorpusError, match=r"loader is .*; it must be a CorpusLoader"):
        CorpusDataset(store)
    with pytest.raises(CorpusError, match=r"dataset is .*; it must be a CorpusDataset"):
        CorpusDataLoader(every_sample(store))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_what_was_read_ahead_does_not_count(store: Path, context: str) -> None:
    options = {"multiprocessing_context": context, "prefetch_factor": 4}
    loader = counting_loader(store, 1 if context == "spawn" else 2, **options)
    seen = numbers(islice(loader, 3))

    state = loader.state_dict()

    assert state["cursor"] == 12
    if context == "fork":
        assert numbers(loader) == whole(store)[12:]  # this loader goes on as well
    for workers in (0, 2, 4):
        resumed = counting_loader(store, workers)
        resumed.load_state_dict(state)
        assert seen + numbers(resumed) + numbers(resumed) == some_epochs(store, 2)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(
    workers=st.lists(st.integers(0, 3), min_size=2, max_size=3),
    taken=st.lists(st.integers(0, 24), min_size=1, max_size=2),
    ahead=st.integers(1, 3),
)
def test_a_run_that_was_cut_sees_what_one_run_sees(
    store: Path, workers: list[int], taken: list[int], ahead: int
) -> None:
    state, seen = None, []
    for number, count in zip(workers, [*taken, 30 - sum(taken)], strict=False):
        loader = counting_loader(store, number, prefetch_factor=ahead if number else None)
        if state is not None:
            loader.load_state_dict(state)
        batches = endless(loader)
        seen += numbers(islice(batches, max(0, count)))
        batches.close()
        state = loader.state_dict()

    assert seen == some_epochs(store, 6)[: len(seen)]
    assert state is not None
    assert seen == some_epochs(store, state["cursor"] // 37 + 1)[: state["cursor"]]


def endless(loader: Any) -> Any:
    """Epoch after epoch, as a training loop sees them."""
    while True:
        yield from loader


def test_set_epoch_of_the_counting_loader_keeps_the_place_inside_that_epoch(store: Path) -> None:
    loader = counting_loader(store, 1)
    loader.load_state_dict(loader.dataset.state_at(37))

    seen = []
    for epoch in range(2):
        loader.set_epoch(epoch)
        seen += numbers(loader)

    assert seen == some_epochs(store, 2)[37:]


def processes(context: str, workers: int, ahead: int, *, stay: bool) -> dict[str, Any]:
    """Options of a DataLoader for its workers."""
    if not workers:
        return {}
    kind = {"multiprocessing_context": context, "prefetch_factor": ahead}
    return kind | {"persistent_workers": stay}


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize(
    ("context", "workers", "ahead"),
    [
        *(("fork", workers, ahead) for workers in (0, 1, 3) for ahead in (1, 4)),
        ("spawn", 1, 4),
        ("forkserver", 1, 1),
    ],
)
def test_workers_of_every_kind_see_every_sample_once_and_resume(
    store: Path, context: str, workers: int, ahead: int, stay: bool
) -> None:
    options = processes(context, workers, ahead, stay=stay)
    loader = counting_loader(store, workers, **options)
    seen = numbers(islice(loader, 3))
    state = loader.state_dict()
    seen += numbers(loader) + numbers(loader) + numbers(islice(loader, 2))

    assert seen == some_epochs(store, 3)[: len(seen)]
    assert len(seen) == 2 * 37 + 8
    assert loader.stats().batches == 22
    loader.load_state_dict(state)  # also into workers that are there
    assert numbers(loader) == whole(store)[12:]
    loader.set_epoch(5)
    assert numbers(loader) == some_epochs(store, 6)[5 * 37 :]
    resumed = counting_loader(store, 2, persistent_workers=stay)
    resumed.load_state_dict(state)
    assert numbers(resumed) + numbers(resumed) == some_epochs(store, 2)[12:]


@pytest.mark.parametrize(
    ("context", "ahead", "stay"), [("spawn", 4, True), ("forkserver", 1, False)]
)
def test_three_workers_that_are_not_forked_give_every_sample_once_and_a_state(
    store: Path, context: str, ahead: int, stay: bool
) -> None:
    loader = counting_loader(store, 3, **processes(context, 3, ahead, stay=stay))
    seen = numbers(islice(loader, 5))
    state = loader.state_dict()
    seen += numbers(loader)

    assert state["cursor"] == 20
    assert seen == whole(store)
    resumed = counting_loader(store, 2, persistent_workers=stay)
    resumed.load_state_dict(state)
    assert seen[:20] + numbers(resumed) + numbers(resumed) == some_epochs(store, 2)


class SlowToSend:
    """Notes when the queue of a worker begins and ends to send it."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def __reduce__(self) -> tuple[Any, ...]:
        for note in ("begun", "ended"):
            with open(self.notes, "a") as file:
                print(note, file=file)
            time.sleep(0.05)
        return (str, ())


def with_a_slow_part(notes: Path, batch: dict[str, Any]) -> dict[str, Any]:
    """A collate function."""
    return batch | {"slow": SlowToSend(notes)}


def test_a_spawned_worker_that_is_left_ends_after_its_queue(store: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    options = processes("spawn", 1, 3, stay=False)
    loader = counting_loader(store, 1, collate_fn=partial(with_a_slow_part, notes), **options)

    for _ in loader:
        break

    assert notes.read_text() == "begun\nended\n" * (notes.stat().st_size // 12)


def test_workers_that_stay_are_the_same_processes(store: Path) -> None:
    loader = counting_loader(store, 2, persistent_workers=True)
    numbers(loader)
    first = [worker.pid for worker in loader._iterator._workers]
    numbers(loader)

    assert [worker.pid for worker in loader._iterator._workers] == first


def test_workers_that_stay_give_nothing_after_the_end_of_the_epoch_of_a_state(store: Path) -> None:
    loader = counting_loader(store, 2, persistent_workers=True)
    numbers(loader)
    loader.load_state_dict(loader.dataset.state_at(37))
    loader.set_epoch(0)
    assert numbers(loader) == []
    loader.set_epoch(1)
    assert numbers(loader) == some_epochs(store, 2)[37:]


TRAINING = """
import json, os, sys, pathlib
from corpus_loader import CorpusLoader
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
store, log, checkpoint, workers, dies_after = sys.argv[1:]
loader = CorpusDataLoader(CorpusDataset(CorpusLoader(store, batch_size=4)), int(workers))
if os.path.exists(checkpoint):
    loader.load_state_dict(json.loads(pathlib.Path(checkpoint).read_text()))
steps = 0
while True:
    for batch in loader:
        with open(log, "a") as out:
            print(*(row[0] for row in batch["tokens"].tolist()), file=out)
        pathlib.Path(checkpoint).write_text(json.dumps(loader.state_dict()))
        steps += 1
        if steps == int(dies_after):
            os.kill(os.getpid(), 9)
"""


def test_the_documented_checkpoint_goes_on_where_it_was_saved(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/loader.md").read_text().partition("## Checkpoint and resume")[2]
    example = page.partition("```python\n")[2].partition("```")[0]
    assert "num_workers=2" in example
    (tmp_path / "corpus_store").symlink_to(store)
    monkeypatch.chdir(tmp_path)
    seen: list[int] = []

    for _ in range(2):
        exec(
            example, {"rank": 0, "world": 1, "train": lambda rows: seen.extend(rows[:, 0].tolist())}
        )

    dropping = CorpusLoader(store)
    assert seen == numbers_of(dropping) + numbers_of(dropping)


def test_a_killed_training_goes_on_at_the_next_batch(store: Path, tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "log", tmp_path / "loader.json"
    for workers, steps in ((2, 5), (0, 6), (1, 9)):
        words = [sys.executable, "-c", TRAINING, store, log, checkpoint, str(workers), str(steps)]
        died = subprocess.run(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=120)
        assert died.returncode == -signal.SIGKILL

    dropping = CorpusLoader(store, batch_size=4)
    expected = [number for _ in range(3) for number in numbers_of(dropping)]
    assert [int(line) for line in log.read_text().split()] == expected[: 4 * 20]


def test_a_missing_shard_reaches_the_training_loop_by_name(store: Path, tmp_path: Path) -> None:
    two_sources(tmp_path)
    (tmp_path / "sharded/web/megatron-0123abcd/shard-00001.bin").unlink()

    with pytest.raises(CorpusError, match=r"shard-00001\.bin is missing"):
        numbers(counting(dataset_of(tmp_path), 1))


def test_batches_split_together_are_those_of_a_loader_that_makes_each(store: Path) -> None:
    from corpus_loader.torch_dataset import to_tensors

    loader = CorpusLoader(store, batch_size=4, options=LoaderOptions(dtype="int64", pad_last=True))
    one_by_one = [to_tensors(batch) for batch in loader]
    dataset = dataset_of(store, pad_last=True)
    together = list(counting(dataset))

    assert len(together) == len(one_by_one) > 1
    for batch, expected in zip(together, one_by_one, strict=True):
        assert list(batch) == list(expected)
        for name, tensor in expected.items():
            assert batch[name].dtype == tensor.dtype
            assert batch[name].tolist() == tensor.tolist()
    assert dataset.state_dict()["cursor"] == int(one_by_one[-1]["cursor"][0])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_loaded_in_an_iteration_gives_its_next_batch(store: Path, workers: int) -> None:
    batches = counting_loader(store, workers)
    state, seen = batches.dataset.state_at(4), list[int]()
    for number, batch in enumerate(batches):
        seen += numbers([batch])
        if number == 2:
            batches.load_state_dict(state)
    assert seen == whole(store)[:12] + whole(store)[4:]


@pytest.mark.parametrize(("workers", "stay"), [(0, False), (2, False), (2, True)])
def test_a_second_iteration_takes_over_and_the_first_raises(
    store: Path, workers: int, stay: bool
) -> None:
    batches = counting_loader(store, workers, persistent_workers=stay)
    first, second = iter(batches), iter(batches)
    seen = [next(first), next(second)]
    with pytest.raises(CorpusError, match="another iteration of this loader has begun"):
        next(first)
    assert numbers([*seen, *second]) == whole(store)
