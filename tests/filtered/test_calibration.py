"""Limits proposed from the scores of clean text."""

from prelude import given, np, pl, pytest, st

from assets.filtered.rules.calibration import (
    Floats,
    language_rows,
    limit_at,
    longest_cut,
    propose_limits,
    tail_lengths,
)
from assets.filtered.rules.rules import Direction, Rule

NAN = float("nan")
WORDS = Rule("gopher_quality.too_few_words", "word_count", 50, "below", "min_words")
BULLET_LINES = "gopher_quality.too_many_bullet_lines"
BULLETS = Rule(BULLET_LINES, "bullet_line_share", 0.9, "above", "max_bullet_lines")
LISTS = Rule("fineweb.list_like", "list_ratio", 0.3, "above", "max_list_ratio")
RULES = (WORDS, BULLETS, LISTS)


def inclusive(rule: Rule) -> Rule:
    return Rule(rule.name, rule.score, rule.threshold, rule.direction, rule.field, True)


def cut_by(scores: Floats, rule: Rule, limit: float | None) -> int:
    """Documents that the rule itself rejects at a limit."""
    if limit is None:
        return 0
    set_to = Rule(rule.name, rule.score, limit, rule.direction, rule.field, rule.is_inclusive)
    frame = pl.DataFrame({rule.score: scores}).fill_nan(None)
    return int(frame.select(set_to.broken).to_series().sum())


shares = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, NAN])
counts = st.integers(0, 40).map(float)
amounts = st.floats(0, 1e6) | st.just(0.0)


@given(st.lists(shares, min_size=1), st.integers(0, 20), st.booleans())
def test_a_share_cuts_no_more_than_it_may(
    scores: list[float], cut: int, is_inclusive: bool
) -> None:
    rule = inclusive(BULLETS) if is_inclusive else BULLETS
    column = np.array(scores)
    if np.isnan(column).all():
        return
    limit = limit_at(column, rule, cut)
    assert limit is None or 0 <= limit <= 1
    assert cut_by(column, rule, limit) <= cut


@given(st.lists(counts, min_size=1), st.integers(0, 20), st.booleans())
def test_a_count_is_whole_and_cuts_no_more_than_it_may(
    scores: list[float], cut: int, is_inclusive: bool
) -> None:
    rule = inclusive(WORDS) if is_inclusive else WORDS
    limit = limit_at(np.array(scores), rule, cut)
    assert limit is None or isinstance(limit, int)
    assert cut_by(np.array(scores), rule, limit) <= cut


@given(st.lists(amounts, min_size=1), st.integers(0, 20))
def test_an_amount_cuts_no_more_than_it_may(scores: list[float], cut: int) -> None:
    column = np.array(scores)
    assert cut_by(column, LISTS, limit_at(column, LISTS, cut)) <= cut


@pytest.mark.parametrize(
    ("rule", "cut", "limit"),
    [
        (BULLETS, 0, 0.457),
        (BULLETS, 1, 0.124),
        (inclusive(BULLETS), 1, 0.124),
        (inclusive(BULLETS), 3, 0.071),
        (BULLETS, 3, 0.07),
        (LISTS, 0, 0.457),
        (LISTS, 2, 0.1),
    ],
)
def test_limits_are_rounded_away_from_the_text(rule: Rule, cut: int, limit: float) -> None:
    scores = np.array([0.07, NAN, 0.4567, 0.1, 0.12345])
    assert limit_at(scores, rule, cut) == limit
    assert limit_at(np.array([123_456.0]), LISTS, 0) == 124_000  # large amounts: three digits


@pytest.mark.parametrize(
    ("direction", "lengths"), [("above", [1, 3, 3, 4]), ("below", [4, 3, 3, 1])]
)
def test_equal_scores_are_in_each_others_tails(direction: Direction, lengths: list[int]) -> None:
    found = tail_lengths(np.array([0.9, 0.5, 0.5, 0.1, NAN]), direction)
    assert found[:4].tolist() == lengths
    assert found[4] > 10**12


def test_what_other_rules_reject_is_part_of_the_loss() -> None:
    tails = np.arange(1, 101)
    lost = np.zeros(100, bool)
    assert longest_cut(tails, lost, 0.95) == 5
    lost[97:] = True
    assert longest_cut(tails, lost, 0.95) == 2
    lost[90:] = True
    assert longest_cut(tails, lost, 0.95) == 0


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.integers(100, 400))
def test_all_rules_together_keep_what_was_asked(seed: int, keep: float, number: int) -> None:
    draw = np.random.default_rng(seed)
    table = {
        "word_count": draw.geometric(0.02, number).astype(np.float64),
        "bullet_line_share": np.round(draw.beta(0.3, 4, number), 2),
        "list_ratio": np.where(draw.random(number) < 0.3, NAN, draw.exponential(1, number)),
    }
    lost = draw.random(number) < 0.004
    found = propose_limits(RULES, table.__getitem__, language_rows(None, number), lost, keep)

    rules = [
        Rule(rule.name, rule.score, found[rule.name]["*"] or 0, rule.direction, rule.field)
        for rule in RULES
    ]
    frame = pl.DataFrame(table).fill_nan(None)
    broken = frame.select(pl.any_horizontal(rule.broken for rule in rules)).to_series()
    rejected = broken.to_numpy() | lost
    assert number - rejected.sum() >= min(keep * number, number - lost.sum()) - 1e-6


def test_the_allowance_is_used_up() -> None:
    number = 1000
    draw = np.random.default_rng(0)
    table = {rule.score: draw.random(number) for rule in (BULLETS, LISTS)}
    table["word_count"] = draw.permutation(number).astype(np.float64)
    lost = np.zeros(number, bool)
    found = propose_limits(RULES, table.__getitem__, language_rows(None, number), lost, 0.95)
    cuts = [cut_by(table[rule.score], rule, found[rule.name]["*"]) for rule in RULES]
    assert max(cuts) - min(cuts) <= 3  # rounding keeps a few
    assert 44 <= sum(cuts) <= 52


def test_rules_that_reject_the_same_documents_share_the_loss() -> None:
    number = 1000
    scores = np.random.default_rng(0).random(number)
    twin = Rule("fineweb.too_many_short_lines", "short_line_share", 0.67, "above", BULLETS.field)
    twin = Rule(twin.name, twin.score, 0.67, "above", "max_short_lines")
    lost, groups = np.zeros(number, bool), language_rows(None, number)
    table = {"bullet_line_share": scores, "short_line_share": scores}
    one = propose_limits([BULLETS], table.__getitem__, groups, lost, 0.9)
    both = propose_limits([BULLETS, twin], table.__getitem__, groups, lost, 0.9)
    assert one[BULLETS.name] == both[BULLETS.name] == both[twin.name]


def test_languages_of_a_hundred_documents_have_limits_of_their_own() -> None:
    languages = pl.Series(["de"] * 120 + ["zh"] * 99 + ["visual basic"] * 100 + [None] * 5)
    groups = language_rows(languages, len(languages))
    assert {lang: len(rows) for lang, rows in groups.items()} == {"de": 120, "*": 204}
    one = language_rows(pl.Series(["de"] * 120), 120)
    assert {lang: len(rows) for lang, rows in one.items()} == {"*": 120}


def test_few_other_documents_have_the_widest_limit_and_a_rule_without_scores_none() -> None:
    languages = pl.Series(["de"] * 200 + ["fr"] * 200 + ["la"] * 3)
    words = np.concatenate([np.arange(100, 300), np.arange(40, 240), [70, 80, 90]]).astype(float)
    table = {"word_count": words, "list_ratio": np.full(403, NAN)}
    groups = language_rows(languages, 403)
    lost = np.zeros(403, bool)
    found = propose_limits([WORDS, LISTS], table.__getitem__, groups, lost, 0.9)
    assert found.keys() == {WORDS.name}
    limits = found[WORDS.name]
    assert limits["de"] == 120 and limits["fr"] == limits["*"] == 60
