"""Seeded values that must never change by themselves.

A change here means that signatures made before and after it cannot be compared: every source has to
go through `signatures` again, and other documents may be removed as duplicates. If that is wanted,
raise the stage's code version together with these values.
"""

import polars as pl

from assets.transforms.minhash import DedupConfig, permutations
from assets.transforms.signatures import signatures

TEXTS = ["The quick brown fox jumps over the lazy dog, twice.", "机器学习 GPU加速"]
DOCUMENTS = pl.DataFrame({"doc_id": ["en", "zh"], "text": TEXTS})


def test_permutations_of_seed_1() -> None:
    assert permutations(DedupConfig())[:, :3].tolist() == [
        [3582191691, 4270784983, 1892572953],
        [2465816345, 2636844999, 630194419],
    ]


def test_text_hashes() -> None:
    hashes = signatures(DOCUMENTS, DedupConfig())["text_hash"]

    assert [value.hex() for value in hashes] == [
        "e554a85019d0c50653a0ed5e142ca48f",
        "c0052c1c1ce1be2868a78fd0a8d6c812",
    ]


def test_signature_values() -> None:
    values = signatures(DOCUMENTS, DedupConfig())["signature"]

    assert [value.to_list()[:4] for value in values] == [
        [1211087180, 10030152, 420608135, 1403573584],
        [789616339, 1092765691, 423341502, 189473322],
    ]


def test_band_hashes() -> None:
    bands = signatures(DOCUMENTS, DedupConfig()).select("band_00", "band_13")

    assert bands.rows() == [
        (577299065196912167, 4114440958435672927),
        (9863178190285476099, 4131614360648970633),
    ]
