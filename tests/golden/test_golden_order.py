"""Orders and tokenizers that users have built corpora with: they must never change by accident.

If a test here fails, a new version gives other bytes for the same pipeline.yaml:

* permutation, keys: every shard reshuffles, every phase takes other samples in another order;
* shard plan: sequences move to other shards;
* mix: a phase has other budgets, draws other samples, and cannot be resumed from a saved position;
* tokenizer: a corpus trained anew gets other token ids; models trained on the old ones cannot read
  it.

Change a value only on purpose, with the `code_version` of the stage, and say so in the changelog.
"""

import numpy as np
import polars as pl

from assets.mixed.plan import plan_phase
from assets.mixed.samples import nearest_samples
from assets.sharded.shuffle import BucketSize, plan_bucket_shards, scatter
from assets.tokenized.encode_documents import TokenFormat, encode_documents
from assets.tokenized.encoders import load_encoders
from assets.tokenized.sample_files import is_sampled
from assets.tokenized.tokenizer import tokenizer_fingerprint, train_bpe
from corpus_loader.order import SourceOrder, SourceShape, order_seed
from corpus_loader.permutation import derive_key, permute
from resources.settings.phases import PhaseConfig
from resources.settings.shards import ShardConfig
from resources.settings.tokenizer import TokenizerConfig

TEXTS = [
    "The mill turns, and the miller's wheel turns.",
    "def mill(x):\n    return x",
    "風車が回る。",
]


def test_keys() -> None:
    assert derive_key(0, "shard", "web", "0-128") == 10298932280596595242
    assert derive_key("Ä", 1) == 1001836135369100484


def test_permutations() -> None:
    assert permute(np.arange(10), size=10, key=1).tolist() == [9, 0, 5, 4, 8, 1, 2, 6, 7, 3]
    assert permute(np.arange(6), size=100_003, key=1).tolist() == [
        91837,
        46897,
        58556,
        13994,
        82086,
        85282,
    ]


def test_shard_plan() -> None:
    buckets = {"0-4": BucketSize(6, 1200), "5-up": BucketSize(3, 100)}
    plans = plan_bucket_shards("web", buckets, 2, ShardConfig(target_bytes=1024, seed=5))
    placed = scatter(np.arange(9), plans)
    assert placed.select("shard", "position", "row").rows() == [
        (0, 0, 2),
        (0, 1, 0),
        (1, 2, 5),
        (1, 3, 4),
        (2, 4, 1),
        (2, 5, 3),
        (3, 0, 7),
        (3, 1, 6),
        (3, 2, 8),
    ]


def test_mix_budgets_and_samples() -> None:
    sizes = {"web": 1_000_003, "books": 70_001, "code": 20_011}
    phases = {
        "weights": PhaseConfig(name="a", weights={"web": 2, "books": 1, "code": 0.5}),
        "temperature": PhaseConfig(name="b", weighting="temperature", tokens=500_000, max_epochs=9),
        "unimax": PhaseConfig(name="c", weighting="unimax", tokens=500_000),
    }
    plans = {name: plan_phase(config, sizes).budgets for name, config in phases.items()}
    assert {name: [b.planned for b in budgets] for name, budgets in plans.items()} == {
        "weights": [80044, 40022, 20011],
        "temperature": [284151, 127961, 87888],
        "unimax": [209978, 209978, 80044],
    }
    order = SourceOrder(order_seed(0, "a"), None, SourceShape("web", 1, (2, 3)))
    lengths = np.array([10, 20, 30, 40, 50], np.uint32)
    assert order_seed(0, "a") == 1131039782225359
    assert nearest_samples(275, lengths, lambda draws: order.rows(draws)[0]) == (9, 250)


def test_tokenizer_sample() -> None:
    ids = pl.Series([f"{number:02x}" * 16 for number in range(0, 256, 16)])
    assert is_sampled(ids, 0.5, seed=1).arg_true().to_list() == [1, 3, 4, 7, 8, 12, 13, 14, 15]


def test_tokenizer() -> None:
    tokenizer_json = train_bpe([TEXTS], TokenizerConfig(vocab_size=270))
    documents = pl.DataFrame({"doc_id": ["a", "b"], "text": ["the mill\n", "回る 1"]})
    assert (
        tokenizer_fingerprint(tokenizer_json)
        == "850e262801d830933192ab7e6cc1483c59c15b3d0b5b12d0bc67f5b978d788d6"
    )
    encoded = encode_documents(documents, load_encoders(tokenizer_json), TokenFormat(270, end_id=0))
    assert encoded["tokens"].to_list() == [
        [84, 257, 264, 199, 0],
        [162, 250, 253, 160, 225, 234, 221, 17, 0],
    ]
