"""Thresholds laid over rules, counts per mask, and the passages that break a rule."""

from itertools import combinations

from prelude import given, pl, pytest, settings, st
from tables import cases

from assets.filtered.passages import offending_spans, sample_keys, windows
from assets.filtered.rules.rules import TOO_MANY_VALUES, Rule, rules_for
from assets.filtered.rules.threshold_replay import (
    COMPARED,
    Change,
    Tally,
    changed_rules,
    count_masks,
    overlay_of,
    parse_change,
    rule_groups,
    tally,
    thresholds,
)
from resources.errors import UsageError
from resources.settings.filtering.rules import RulesConfig

BASE = RulesConfig.model_validate(
    {"length": {"min_chars": 100}, "gopher_quality": {}, "language": {"allowed": ["en"]}}
)


def change(*assignments: str) -> dict[str, object]:
    """Return names and thresholds of the rules under some changes."""
    overlay = overlay_of(BASE, [parse_change(assignment) for assignment in assignments])
    return {rule.name: rule.threshold for rule in rules_for(changed_rules(BASE, overlay))}


def rule(score: str, threshold: float = 0.5, name: str = "a.b") -> Rule:
    return Rule(name, score, threshold, "above")


def marked(text: str, score: str, threshold: float = 0.5) -> list[str]:
    return [text[a:b] for a, b in offending_spans(text, rule(score, threshold))]


@cases("""
    assignments                                | expected
    length.too_short=250                       | {"length.too_short": 250}
    length.min_chars=250                       | {"length.too_short": 250}
    rules.length.min_chars=250                 | {"length.too_short": 250}
    filters.rules.length.too_short=250         | {"length.too_short": 250}
    length.too_long=9                          | {"length.too_long": 9}
    language.not_allowed=de, fr                | {"language.not_allowed": ("de", "fr")}
    # Of a group that is off only the rule named comes on.
    fineweb.list_like=0.4                      | {"fineweb.list_like": 0.4}
    c4.lorem_ipsum=on                          | {"c4.lorem_ipsum": 0}
    fineweb.list_like=off c4.lorem_ipsum=off   | {}
""")
def test_rules_are_changed_by_their_names_and_keys(
    assignments: str, expected: dict[str, object]
) -> None:
    given = [assignments] if ", " in assignments else assignments.split()
    assert change(*given) == change() | expected


def test_rules_and_groups_are_switched_off() -> None:
    for off in ("off", "null", "None"):
        assert "length.too_short" not in change(f"length.min_chars={off}")
    assert not any(name.startswith("gopher_quality") for name in change("gopher_quality=off"))


def test_names_and_keys_lead_to_every_threshold() -> None:
    fields = set(thresholds().values())
    assert {f"{group}.{field}" for group, field in fields} <= set(thresholds())


@cases("""
    assignment                          | message
    length.min_chars                    | write KEY=VALUE
    length.min_chars=                   | write KEY=VALUE
    length.min_chars=-1                 | length.min_chars: .*greater than or equal to 0
    length.min_chars=much               | length.min_chars: .*got 'much'
    gopher_quality.max_bullet_lines=1.5 | less than or equal to 1
    gopher_quality.max_bullet_lines=nan | gopher_quality.max_bullet_lines
    length.min_char=1                   | did you mean length.min_chars
    gopher_quality=3                    | can only be switched off
    zzz=1                               | unknown rule 'zzz'
""")
def test_what_cannot_be_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        change(assignment)


def test_a_setting_of_a_score_is_refused() -> None:
    for group, model in rule_groups().items():
        fields = {field for name, field in thresholds().values() if name == group} | {COMPARED}
        for field in set(model.model_fields) - fields:
            with pytest.raises(UsageError, match="changes the score itself"):
                parse_change(f"{group}.{field}=a,b")


def test_the_rule_of_too_many_values_holds_under_every_change_and_has_none() -> None:
    changed = changed_rules(BASE, overlay_of(BASE, [parse_change("pii.max_spans=20000")]))

    assert rules_for(changed, pii=True)[-2:] == [rules_for(changed)[-1], TOO_MANY_VALUES]
    for value in ("off", "20000"):
        with pytest.raises(UsageError, match=r"10,000 values .* Split it"):
            parse_change(f"pii.too_many_values={value}")


def test_custom_rules_are_known_by_their_columns() -> None:
    assert parse_change("custom.shouting=0.5", ["shouting"]) == Change("custom", "shouting", 0.5)
    with pytest.raises(UsageError, match="unknown rule"):
        parse_change("custom.shouting=0.5")


SCORES = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(0, 3), st.integers(0, 3)), max_size=20
)


@settings(max_examples=50)
@given(SCORES, st.integers(1, 140))
def test_tallies_equal_a_count_by_hand(rows: list[tuple[int, int | None, int]], many: int) -> None:
    schema = {"num_bytes": pl.UInt32, "x": pl.Float64, "y": pl.Float64}
    rules = [rule("xy"[i % 2], i % 4 + i / 1000, f"a.{i}") for i in range(many)]
    chosen = rules[::3]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    broken = [
        [r.name for r in chosen if (v := {"x": x, "y": y}[r.score]) is not None and v > r.threshold]
        for _, x, y in rows
    ]
    decisions = frame.with_columns(kept=pl.Series([not b for b in broken], dtype=pl.Boolean))

    found = tally(count_masks(decisions.lazy(), rules).collect(), rules, chosen)

    sizes = [row[0] for row in rows]
    assert (found.documents, found.bytes, found.contradicted) == (len(rows), sum(sizes), 0)
    assert found.kept == broken.count([])
    assert found.kept_bytes == sum(n for n, b in zip(sizes, broken, strict=True) if not b)
    for r in chosen:
        assert found.broken[r.name] == sum(r.name in b for b in broken)
        assert found.broken_bytes[r.name] == sum(
            n for n, b in zip(sizes, broken, strict=True) if r.name in b
        )
        assert found.alone[r.name] == sum(b == [r.name] for b in broken)
    for one, other in combinations(chosen[:6], 2):
        both = sum(one.name in b and other.name in b for b in broken)
        assert found.pairs[one.name, other.name] == both


def test_bytes_beyond_four_gigabytes_and_contradicted_verdicts_are_counted() -> None:
    sizes = pl.Series([4_000_000_000] * 3, dtype=pl.UInt32)
    decisions = pl.DataFrame({"kept": [True] * 3, "num_bytes": sizes})
    assert tally(count_masks(decisions.lazy(), []).collect(), [], []).kept_bytes == 12_000_000_000
    decisions = pl.DataFrame({"kept": [True, False], "num_bytes": [1, 1], "x": [1.0, 0.0]})
    rules = [rule("x")]
    assert tally(count_masks(decisions.lazy(), rules).collect(), rules, rules).contradicted == 2
    total = Tally(documents=1)
    total.add(Tally(documents=2, kept=1))
    assert (total.documents, total.kept) == (3, 1)


@cases(r"""
    score                       | text                      | passages
    duplicate_line_share        | "a\n b \na\nc\nb"         | ["a", "b"]
    repeated_line_share         | "a\nb\na"                 | ["a", "a"]
    duplicate_paragraph_share   | "a\nb\n\n\nc\n \na\nb"    | ["a\nb"]
    top_2_gram_char_share       | x y of it x y of it z x y | ["x y", "x y", "x y"]
    duplicate_5_gram_char_share | a b c d e f a b c d e g   | ["a b c d e", "a b c d e"]
    top_2_gram_char_share       | no word again             | []
    hash_ratio                  | # a #b                    | ["#", "#"]
    ellipsis_ratio              | a... b…                   | ["...", "…"]
    bullet_line_share           | "a\n - b\n• c"            | ["- b", "• c"]
    ellipsis_line_share         | "a...\nb\nc… "            | ["a...", "c…"]
    short_line_share            | f"{'x' * 31}\nshort"      | ["short"]
    terminal_line_share         | "Done.\nnot done"         | ["not done"]
    alphabetic_word_share       | a 1 -- é                  | ["1", "--"]
    curly_bracket_lines         | f {x}                     | ["{"]
    lorem_ipsum_lines           | A Lorem Ipsum b           | ["Lorem Ipsum"]
    policy_lines                | our Privacy Policy        | ["Privacy Policy"]
    alphanumeric_share          | é4 ()_ a                  | ["()_"]
    no_such_score               | text                      | []
""")
def test_passages_are_found(score: str, text: str, passages: list[str]) -> None:
    assert marked(text, score) == passages


def test_of_a_page_the_piece_that_looks_most_like_the_fault_is_found() -> None:
    prose = "The people of the town walked down to the river and talked about the flood. " * 9
    menu = "Home\nAbout us\nLog in\nNext\nSite map\nContact\nPrivacy\nSearch\n" * 6
    [passage] = marked(f"{prose}\n\n{menu}\n{prose}", "navigation_score")
    assert "Site map" in passage and len(passage) < 450
    assert marked("", "navigation_score") == []
    assert marked("short\nmuch longer", "longest_line", 6) == ["much longer"]
    assert marked("a bbbbb", "mean_word_length", 3) == ["bbbbb"]
    assert marked("It began well.\nAnd so on and", "truncated_pages_score") == ["And so on and"]


def test_the_menu_of_a_page_is_marked_and_not_its_footer() -> None:
    entries = "Install, User Guide, API, Examples, Community, Getting Started, Tutorial, What's new"
    others = "Glossary, Development, FAQ, Support, Related packages, Roadmap, About us, GitHub"
    menu = "".join(f"-  {each}\n\n" for each in f"{entries}, {others}".split(", ")) * 2
    footer = "0.0 MB\n\n© 2023 - 2023, the developers (BSD License). Show this page source"
    prose = (
        "The river rose in April, and the old bridge was closed for a week of repairs. People from "
        "the village crossed by boat while the engineers looked at the stones. In the second night "
        "a pillar gave way, and no one was hurt. The council met in the school and asked the state "
        "for help with the costs. By the end of May a narrow road led over the water again.\n\n"
    )

    [passage] = marked(menu + prose + footer, "navigation_score")

    assert passage in menu and len(passage) > 300


NASTY = st.text(st.sampled_from("ab .…\n\n \t\u3000-*•#{é4漢😀!\x00\u0301")) | st.text()


@pytest.mark.slow
@settings(max_examples=100)
@given(NASTY)
def test_spans_of_any_text_are_ascending_and_inside(text: str) -> None:
    from assets.filtered.passages import FINDERS

    for score in FINDERS:
        ends = [place for span in offending_spans(text, rule(score)) for place in span]
        assert ends == sorted(ends) and all(0 <= place <= len(text) for place in ends)


@given(
    st.integers(0, 5000),
    st.lists(st.tuples(st.integers(0, 4999), st.integers(1, 300)), max_size=8),
    st.integers(1, 3000),
)
def test_windows_show_no_more_than_the_width(
    length: int, places: list[tuple[int, int]], width: int
) -> None:
    from assets.filtered.passages import merge_spans

    spans = merge_spans((a, min(length, a + n)) for a, n in places if a < length)
    shown = windows(length, spans, width)
    ends = [place for span in shown for place in span]
    assert ends == sorted(ends) and all(0 <= place <= length for place in ends)
    assert sum(b - a for a, b in shown) <= width
    assert bool(shown) == (length > 0)


def test_windows_lie_around_the_spans() -> None:
    assert windows(10_000, [(5000, 5010)], 500) == [(4840, 5170)]
    assert windows(100, [(50, 60)], 500) == [(0, 100)]
    assert windows(10_000, [], 500) == [(0, 500)]


def test_sample_keys_depend_on_the_id_and_the_seed_only() -> None:
    ids = pl.Series(["00" * 16, "ff" * 16, "not hex"])
    keys = sample_keys(ids, 0)
    assert keys.to_list() == sample_keys(ids.reverse(), 0).reverse().to_list()
    assert keys.to_list() != sample_keys(ids, 1).to_list()
    assert sample_keys(ids.clear(), 0).to_list() == []
