"""`corpus duplicates check` holds a sample of a real store against datasketch's own LSH."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from assets.deduped.minhash.minhash import shingle_sets
from pipeline_defs.commands.look.duplicates_check import (
    Removal,
    Sample,
    accepted_of,
    candidates_of,
    differences,
)
from pipeline_defs.commands.main import main
from resources.settings.dedup import DedupConfig
from resources.store.records import Manifest, Stats
from resources.store.store import PartWriter

SCHEMA = {"row": pl.UInt32} | {k: v for k, v in CLUSTER_SCHEMA.items() if k != "ref"}
STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates")


def edited(number: int, edits: int) -> str:
    """A text of 200 words of which the last ones are replaced."""
    words = sentence(number, 100).split()
    return " ".join([*words[: len(words) - edits], *(f"edit{i}" for i in range(edits))])


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build) -> Any:
    path = write_corpus(tmp_path, dedup={"near": True})
    copies = [edited(number, edits) for number in range(300, 320) for edits in (0, 5, 12, 40)]
    write_jsonl(tmp_path / "input/notes/copies.jsonl", [{"text": text} for text in copies])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    opened = open_corpus(path)
    build(opened, *STAGES)
    return opened


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main(["duplicates", "check", "--json", *arguments])
    output = capsys.readouterr()
    assert output.out, output.err
    return code, json.loads(output.out)


@pytest.mark.usefixtures("corpus")
def test_datasketch_confirms_what_the_corpus_removed(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys)

    counts = found["counts"]
    assert code == 0
    assert counts["differences not explained"] == 0
    assert counts["documents"] > 140
    assert counts["documents removed by the corpus"] >= 40
    assert counts["of these confirmed by datasketch"] >= 38
    assert {each["reason"] for each in found["differences"]} <= {"no equal band, compared in a set"}


@pytest.mark.usefixtures("corpus")
def test_a_draw_is_seeded_and_brings_whole_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    first, again = (checked(capsys, "--sample", "9", "--seed", "4") for _ in range(2))
    _, other = checked(capsys, "--sample", "9", "--seed", "5")

    assert first == again
    assert first[1]["counts"]["documents"] >= 9
    assert first[0] == 0
    assert first != other


def test_a_removal_that_nothing_explains_is_named(
    corpus: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    part = corpus.store.newest("filtered", "prose").parts[0]
    path = corpus.store.path_of(corpus.store.newest("filtered", "prose"), part.file("documents"))
    kept, gone = pl.read_parquet(path)["doc_id"].head(2)
    rows = [(0, kept, kept, 2, kept, "prose", None, None)]
    rows += [(1, gone, kept, 2, kept, "prose", 0.9, "minhash")]
    folder = corpus.store.partition("duplicates", "all")
    with folder.writing(1):
        writer = PartWriter(folder, "by-hand", "0" * 32)
        writer.write_parquet("clusters", pl.DataFrame(rows, SCHEMA, orient="row"))
        record = writer.publish(Stats(numbers={"source": "prose", "part": part.name}))
        folder.commit(Manifest("duplicates", "all", "f" * 32, "1", {}, (record,), Stats()))

    code = main(["duplicates", "check", "--most", "999"])

    shown = capsys.readouterr().out
    assert code == 1
    assert "NOT EXPLAINED" in shown
    assert kept in shown and gone in shown


def test_a_corpus_without_near_duplicates_has_nothing_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_corpus(tmp_path, dedup={"near": False})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))

    assert main(["duplicates", "check"]) == 2
    assert "dedup.near is false" in capsys.readouterr().err


def sample_of(texts: dict[str, str], removals: dict[str, Removal], **dedup: Any) -> Sample:
    groups: dict[str, tuple[str | None, ...]] = dict.fromkeys(texts, ())
    return Sample(texts, groups, removals, DedupConfig.model_validate(dedup))


def test_a_pair_of_which_both_stay_is_a_difference() -> None:
    sample = sample_of({"a": edited(1, 0), "b": edited(1, 2)}, {})
    candidates = candidates_of(sample)

    found = differences(sample, candidates, accepted_of(sample, candidates))

    assert [(each.pair, each.found_by, each.reason) for each in found] == [
        (("a", "b"), "datasketch", "")
    ]
    assert found[0].similarity > 0.9


@pytest.mark.parametrize(
    ("dedup", "method", "reason"),
    [
        ({}, "minhash", ""),
        ({}, "field:url", "not by similarity: field:url"),
        ({"clusters": "components"}, "minhash", "end of a chain of pairs"),
        ({"preset": "verified"}, "minhash", ""),
    ],
)
def test_the_reason_of_a_removal_follows_from_the_settings(
    dedup: dict[str, Any], method: str, reason: str
) -> None:
    texts = {"a": edited(1, 0), "b": edited(2, 0)}
    sample = sample_of(texts, {"b": Removal("a", method)}, **dedup)

    found = differences(sample, set(), set())

    assert [each.reason for each in found] == [reason]


@pytest.mark.parametrize("dedup", [{}, {"shingle": "characters"}, {"punctuation": "keep"}])
def test_shingles_cut_here_are_those_that_signatures_are_made_of(dedup: dict[str, Any]) -> None:
    config = DedupConfig.model_validate(dedup)
    text = "\u0130stanbul's d\u00e9j\u00e0-vu: \u6f22\u5b57 kana \u304b\u306a"
    text += " \u0928\u092e\u0938\u094d\u0924\u0947 \u03c3\u03c2 _a_ 3,14"
    text += "\u00a0\u20ac \U00020000x \U0001f600"
    sample = Sample({"a": text}, {"a": ()}, {}, config)

    assert len(sample.shingles["a"]) == len(shingle_sets(pl.Series([text]), config)[0])
