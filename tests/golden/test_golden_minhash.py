"""Seeded values that must never change by themselves.

A change here means that signatures made before and after it cannot be compared: every source has to
go through `signatures` again, and other documents may be removed as duplicates. If that is wanted,
raise the stage's code version together with these values.
"""

import polars as pl

from assets.deduped.minhash.minhash import permutations
from assets.deduped.minhash.signatures import signatures
from resources.settings.dedup import DedupConfig

TEXTS = ["The quick brown fox jumps over the lazy dog, twice.", "机器学习 GPU加速"]
DOCUMENTS = pl.DataFrame({"doc_id": ["en", "zh"], "text": TEXTS})


def test_permutations_of_seed_1() -> None:
    assert permutations(112, 1)[:, :3].tolist() == [
        [3582191691, 4270784983, 1892572953],
        [2465816345, 2636844999, 630194419],
    ]


def test_text_hashes() -> None:
    hashes = signatures(DOCUMENTS, DedupConfig())[0]["text_hash"]

    assert [value.hex() for value in hashes] == [
        "e554a85019d0c50653a0ed5e142ca48f",
        "c0052c1c1ce1be2868a78fd0a8d6c812",
    ]


def test_signature_values() -> None:
    values = signatures(DOCUMENTS, DedupConfig())[0]["signature"]

    assert [value.to_list()[:4] for value in values] == [
        [1211087180, 10030152, 420608135, 1403573584],
        [789616339, 1092765691, 423341502, 189473322],
    ]


def test_keys_of_texts() -> None:
    _, keys = signatures(DOCUMENTS, DedupConfig(near=False))

    assert keys.rows() == [(10130405925397692203, 0), (13492079655367836780, 1)]


def test_keys_of_bands() -> None:
    first_and_last_bands = {
        (577299065196912167, 0),
        (4114440958435672927, 0),
        (9863178190285476099, 1),
        (4131614360648970633, 1),
    }

    _, keys = signatures(DOCUMENTS, DedupConfig(exact=False))

    assert first_and_last_bands < set(keys.rows())


def test_keys_of_fields_in_groups() -> None:
    documents = DOCUMENTS.with_columns(url=pl.lit("http://a"), lang="doc_id")
    config = DedupConfig(fields=("url",), within=("lang",), exact=False, near=False)

    _, keys = signatures(documents, config)

    assert keys.rows() == [(4819446071024910939, 0), (12145904336963457088, 1)]
