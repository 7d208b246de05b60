"""Scores of pages: what they count, kinds of junk, and limits by domain."""

from prelude import Any, given, pl, pytest, settings, st
from tables import cases

from assets.filtered.filter_documents import filter_documents
from assets.filtered.kernels.text_scores import count_form, count_text
from assets.filtered.page_scores import PAGE_SCORES, pair_scores, score_pages
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.presets import DOMAINS, expand_presets
from resources.settings.filtering.rules import PageRules

PROSE = (
    "The river rose twice in the spring, and the people of the valley moved their cattle up to "
    "the old meadow. When the water fell again they found that the bridge had been carried away, "
    "so for the rest of the year they had to cross by the ford below the mill.\n"
)
JUNK = {
    "boilerplate": "We use cookies to improve your experience.\nPrivacy Policy\nTerms of Use\n"
    "© 2020 Acme. All rights reserved.\nLog in\nSubscribe to our newsletter",
    "navigation": "Home\nAbout us\nProducts\nGarden Tools\nKitchen\nBooks and Maps\nCareers\nPress",
    "keyword_spam": "cheap shoes, cheap shoes online, best shoes cheap, shoes discount, buy shoes, "
    "shoes sale, running shoes cheap, shoes price, order shoes",
    "link_lists": "http://a.example.com/x\nhttp://b.example.org/y\nwww.c.example.net/z.html",
    "machine_noise": "mQINBFit2ioBEADhWpZ8/wvZ6hUTiXOwQHXMAlaFHcPH9hAtr4F1y2+OYdbtMuth\n"
    "lqqwp028AqyY+PRfVMtSYMbjuQuu5byyKR01BbqYhuS3jtqQmljZ/bJvXqnmiVXh\n"
    "38UuLa+z077PxyxQhu5BbqntTPQMfiyqEiU+BKbq2WmANUKQf+1AmZY/IruOXbnq",
    "truncated_pages": "The river rose twice in the spring, and the people of the valley ...\n"
    "Read more",
}


FAULTS = [
    info.json_schema_extra["fault"]
    for info in PageRules.model_fields.values()
    if isinstance(info.json_schema_extra, dict)
]
WINDOW_FAULTS = {"repeated_in_windows", "few_distinct_words"}


def counts_of(*texts: str) -> dict[str, list[int]]:
    """Counts of some texts by name."""
    return count_form(pl.Series(texts, dtype=pl.String), pair_scores()).to_dict(as_series=False)


SIGNS = "aaabBW1é漢 \n\t'-’,.:;)\"_/wA" + "ÉжЖ٣カ・、；…â\ufffd\xa0\u3000\u2003😀𠀋"


@settings(max_examples=500)
@given(st.text(st.sampled_from(SIGNS) | st.sampled_from("aB é漢"), max_size=200))
def test_words_count_the_same_one_by_one_and_in_runs(text: str) -> None:
    lines = f"{text}\nhttp://a.b www.a.bc (don't) e-Book x--1, a,'\nééé//a wé.xy"
    alone = [counts_of(line) for line in lines.split("\n")]  # the buffer's end: one by one
    in_runs = counts_of(*lines.split("\n"), "." * 128)

    for name, counts in in_runs.items():
        assert counts[:-1] == [one[name][0] for one in alone]


@settings(max_examples=300)
@given(st.text(st.sampled_from(SIGNS) | st.sampled_from("aB é漢\n"), max_size=400))
def test_lines_and_windows_are_the_same_one_by_one_and_in_runs(text: str) -> None:
    padded = f"{text}{' ' * 128}"  # white space counts nothing
    assert counts_of(text + " ") == counts_of(padded)


def broken(text: str, rules: dict[str, Any]) -> list[str]:
    """Faults that the rules of a page find in a text."""
    config = FilterConfig.model_validate({"language": {"backend": "none"}, **rules})
    documents = pl.DataFrame({"doc_id": ["a"], "text": [text], "lang": ["en"]})
    reasons = filter_documents(documents, config)[1]["reasons"].item()
    return [reason.removeprefix("page.") for reason in reasons]


@pytest.mark.parametrize(
    ("kind", "fault"), [*zip(JUNK, [f for f in FAULTS if f not in WINDOW_FAULTS], strict=True)]
)
def test_each_kind_of_junk_breaks_its_own_rule(kind: str, fault: str) -> None:
    scores = score_pages(pl.Series([JUNK[kind], PROSE])).to_dict(as_series=False)
    junk, prose = scores[f"{kind}_score"]
    assert junk > 0.9 and prose < 0.05
    assert fault in broken(JUNK[kind], {"rules": {"page": {}}})


def test_prose_breaks_no_rule_of_pages() -> None:
    assert broken(PROSE, {"rules": {"page": {}}}) == []
    assert broken(PROSE, {"presets": ["balanced"]}) == []


@pytest.mark.parametrize(
    ("text", "distinct", "repeated"),
    [
        ("one two three four " * 8, 4 / 32, 25 / 32),  # from the eighth word on, four came before
        ("one two three " * 2 + "four five six seven", 7 / 10, 0),  # no run of four
        (" ".join(map(str, range(128))) * 2, 1, 0),  # the copy is in the next window
        ("", 0, 0),
    ],
)
def test_repetition_is_counted_within_windows(text: str, distinct: float, repeated: float) -> None:
    scores = score_pages(pl.Series([text])).row(0, named=True)
    assert scores["window_distinct_share"] == pytest.approx(distinct, abs=0.01)
    assert scores["window_repeated_share"] == repeated


@pytest.mark.parametrize(
    ("words", "counted"), [(0, 0), (5, 5), (128, 128), (191, 128), (192, 192), (256, 256)]
)
def test_the_last_window_counts_if_it_is_half_full_or_the_only_one(
    words: int, counted: int
) -> None:
    assert counts_of("a " * words)["window_words"] == [counted]


def test_a_text_that_repeats_itself_breaks_the_rules_of_windows() -> None:
    assert set(broken("one two three four " * 8, {"rules": {"page": {}}})) >= WINDOW_FAULTS


def test_scores_are_the_same_with_the_counts_of_other_rules() -> None:
    texts = pl.Series([*JUNK.values(), PROSE, ""])
    known = count_text(texts, pair_scores=pair_scores()).with_columns(text=texts)
    assert score_pages(texts, known).equals(score_pages(texts))


def test_limits_of_pages_are_wider_for_references() -> None:
    page = {"max_navigation": 0.9, "max_boilerplate": 0.5, "max_truncated": None}
    by_domain = {domain: expand_presets({"presets": ["balanced"]}, domain) for domain in DOMAINS}
    assert page.items() <= by_domain["reference"]["rules"]["page"].items()
    assert not by_domain["code"]["rules"]["page"]
    cut = JUNK["truncated_pages"].removesuffix("\nRead more")
    assert broken(cut, by_domain["reference"]) == []
    assert broken(cut, by_domain["web"]) == ["truncated"]


@cases(r"""
    text | expected
    One two, three. | {"words": 3, "clause_words": 1, "last_finished": 1, "cased_words": 1}
    水は 流れる。 | {"words": 6, "singles": 5, "last_finished": 1, "letter_words": 0}
    http://a.bc/d x1 don't | {"url_characters": 13, "odd_characters": 2}
    "Home\nAbout\nand so on." | {"label_lines": 1, "label_characters": 5, "form_lines": 3}
    It goes on (…) | {"last_dots": 1, "last_finished": 0}
    'He said "no."\n\n' | {"last_finished": 1, "last_dots": 0}
    It was cut here and th | {"last_lower": 1, "last_characters": 23}
    Ã¤ b - 12 | {"damages": 2, "one_letter_words": 1, "mark_words": 1, "numbers": 1}
""")
def test_the_form_of_a_text_is_counted(text: str, expected: dict[str, int]) -> None:
    counts = counts_of(text)
    assert {name: counts[name][0] for name in expected} == expected


MARKS = "\n\t .,:;'\"-/w@)]}1\x85…’”ⓊⅨÃ、か中𝐀🅨٤"  # of each class, and of two


@given(st.lists(st.text(st.sampled_from(MARKS) | st.characters(), max_size=60), max_size=5))
def test_scores_are_shares_that_do_not_depend_on_other_texts(texts: list[str]) -> None:
    texts = ["", *(text.encode("utf-8", "ignore").decode() for text in texts)]
    scores = score_pages(pl.Series(texts, dtype=pl.String))
    backwards = score_pages(pl.Series(texts[::-1], dtype=pl.String)).reverse()
    assert scores.equals(backwards)
    assert all(scores[name].is_between(0, 1).all() for name in PAGE_SCORES)
    assert set(scores.row(0)) == {0.0}


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("a\x85b", {"damages": 0, "words": 2}),  # a line feed of old mainframes, not a damage
        ("l:Ⓚ’u", {"odd_characters": 5}),  # a capital that is no letter: two runs of letters
        ("Ⓘ’@z»", {"odd_characters": 0}),
    ],
)
@pytest.mark.parametrize("after", ["", "x" * 200])
def test_signs_of_two_classes_count_alike_in_a_mask_and_alone(
    text: str, counted: dict[str, int], after: str
) -> None:
    counts = counts_of(text, after)
    assert {name: counts[name][0] for name in counted} == counted
