"""`corpus language check`: labels of a real store against langdetect's."""

from pathlib import Path

import polars as pl
import pytest
from builders import Build, open_corpus, write_corpus, write_jsonl

from pipeline_defs.commands.look.language import check, compare, sampled

ENGLISH = "The river rose twice that year, and the people of the lower town left their houses. "
GERMAN = "Der Fluss stieg in jenem Jahr zweimal, und die Leute verließen ihre Häuser am Ufer. "


def documents(*rows: tuple[str, str | None, str | None]) -> pl.DataFrame:
    table = [("web", str(n), text, ours, declared) for n, (text, ours, declared) in enumerate(rows)]
    names = ("source", "doc_id", "text", "ours", "declared")
    return pl.DataFrame(table, schema=dict.fromkeys(names, pl.String), orient="row")


def test_a_difference_says_who_is_likely_right() -> None:
    found = compare(
        documents(
            (ENGLISH, "en", "en"),
            (ENGLISH, "fr", "en"),
            (GERMAN, "fr", "fr-FR"),
            (GERMAN, "fr", "it"),
            (GERMAN, "fr", None),
            (GERMAN, None, "de"),
        )
    )

    assert found["equal"].to_list() == [True, False, False, False, False]
    assert found["likely_right"].to_list() == [None, "langdetect", "ours", "neither", None]


def test_languages_of_one_family_agree() -> None:
    assert compare(documents((GERMAN, "als", None)))["equal"].to_list() == [True]


def test_a_store_is_checked_and_its_differences_written(
    tmp_path: Path,
    build: Build,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, filters={"rules": {"length": None}}))
    rows = [{"text": ENGLISH * 3, "lang": "en"}, {"text": GERMAN * 3, "lang": "de"}]
    write_jsonl(tmp_path / "input/notes/two.jsonl", rows)
    build(corpus, "raw", "classifier", "filtered")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    monkeypatch.setenv("TOKENMILL_STORE", str(corpus.store.root))
    capsys.readouterr()

    code = check(sample=30, at_least=0.0, file=tmp_path / "differences.csv")
    strict = check(sample=30, at_least=1.01)

    assert (code, strict) == (0, 1)
    printed = capsys.readouterr().out
    assert "30 documents, " in printed and "  en: " in printed
    header = (tmp_path / "differences.csv").read_text().splitlines()[0]
    assert header == "source,doc_id,ours,declared,langdetect,likely_right"
    first, again = sampled(corpus, 20, 7), sampled(corpus, 20, 7)
    assert first.equals(again) and first.height == 20
    assert not first.equals(sampled(corpus, 20, 8))
