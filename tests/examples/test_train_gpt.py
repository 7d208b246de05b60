"""The worked example: a very small GPT learns, and a stopped run goes on exactly."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from builders import Build, open_corpus, write_corpus

torch = pytest.importorskip("torch")

from corpus_loader import CorpusLoader, LoaderOptions  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/train_gpt.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_gpt"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def store(tmp_path: Path, build: Build) -> Path:
    """A corpus packed into sequences of 64 tokens."""
    corpus = open_corpus(write_corpus(tmp_path, buckets={"mode": "pack", "sequence_length": 64}))
    build(corpus)
    build(corpus, "mixed")
    root: Path = corpus.store.root
    return root


def loader(store: Path) -> CorpusLoader:
    return CorpusLoader(
        store, phase="main", batch_size=4, options=LoaderOptions(with_documents=True)
    )


def test_the_loss_falls_well_under_the_unigram_entropy(example: ModuleType, store: Path) -> None:
    entropy = example.unigram_entropy(loader(store), batches=10)

    losses = example.start(loader(store)).run(60)

    assert losses[0] > entropy  # an untrained model knows less than the frequencies
    assert sum(losses[-5:]) / 5 < 0.6 * entropy


def test_a_stopped_run_goes_on_with_the_same_batches_and_losses(
    example: ModuleType, store: Path, tmp_path: Path
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
    example: ModuleType, store: Path
) -> None:
    training = example.start(loader(store), torch.float64)
    tokens, positions, _ = example.tensors(next(iter(training.loader)))
    starts = (positions[0] == 0).nonzero().flatten().tolist()
    assert len(starts) > 1  # several documents in the sequence
    start, stop = starts[1], [*starts, tokens.shape[1]][2]

    with torch.no_grad():
        packed = training.model(tokens[:1], positions[:1])[0, start:stop]
        alone = training.model(tokens[:1, start:stop], positions[:1, start:stop])[0]

    assert (packed - alone).abs().max() < 1e-12
