"""The copy that stays is the original: the others agree with it, and its text is not damaged."""

import html
from random import Random

from dedup_flow import clusters_of, removed_of
from prelude import Callable, example, given, np, pairwise, pl, pytest, st

from assets.deduped.clusters.cleanliness import (
    BY_CHARACTER,
    CLASSES,
    CODE_POINTS,
    character_classes,
    count_by_character,
    damage_of,
)
from assets.deduped.kernels.agreement import EDGE, UNIT, agreements
from assets.deduped.minhash.minhash import sets_and_edges, shingle_sets
from resources.settings.dedup import DedupConfig

CONFIG = DedupConfig()
OTHERS = [
    f"Page {number} tells of ships, tides & harbours no other page has seen." for number in range(9)
]


def article(seed: int, sentences: int = 30) -> str:
    """Sentences with a comma, an accent and a sign that HTML escapes; three to a line."""
    random = Random(seed)
    made = []
    for number in range(sentences):
        words = [f"word{random.randrange(5000)}" for _ in range(9)]
        words[3] += ","
        words[5] = "caf\u00e9" if number % 15 == 7 else words[5]
        words[6] = "Q&A" if number % 15 == 3 else "lighthouse"
        made.append(" ".join(words).capitalize() + "." + ("\n" if number % 3 == 2 else ""))
    return " ".join(made).replace("\n ", "\n").strip()


def table(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": [f"{row:032x}" for row in range(len(texts))], "text": texts})


def kept_of(*texts: str, config: DedupConfig = CONFIG) -> list[str]:
    """The texts that stay."""
    documents = table(*texts)
    removed = removed_of(clusters_of(documents, config))["doc_id"]
    return documents.filter(~pl.col("doc_id").is_in(removed.implode()))["text"].to_list()


def damage(*texts: str) -> pl.DataFrame:
    num_words = pl.Series([len(text.split()) for text in texts])
    return damage_of(pl.Series(texts), num_words)


SIGNIFICANT = (
    "aZ' \n\t\x017.\u00c3\u00e2\u00e9\u00f0\u20ac\u00a9\ufffd\u2019\u00ad"
    "\u01c5\u4e2d\U0001f600\u0391\u03b1"
)


strange = st.text(st.sampled_from(SIGNIFICANT) | st.characters(codec="utf-8"), max_size=40)
between_plain = st.lists(st.tuples(strange, st.integers(0, 150))).map(
    lambda runs: "".join(found + ("\tPlain text, " * 12)[:size] for found, size in runs)
)


@given(st.lists(strange | between_plain), st.booleans())
@example(
    ["\u00e2\ufffd\ufffdx\u00e2\ufffd\u00e2\ufffd", "Ab aB \u00f0\u0178\u02dc\u20ac", ""], True
)
@example(["\u00e2" + "a" * 200 + "\x7f\ufffd" + "a" * 63, "a" * 200], False)
def test_characters_are_counted_as_the_regexes_do(texts: list[str], in_form: bool) -> None:
    series = pl.Series(texts, dtype=pl.String)
    counted = count_by_character(series, in_form=in_form)
    assert [*counted] == [*BY_CHARACTER][: 7 if in_form else 2]
    assert {name: counts.to_list() for name, counts in counted.items()} == {
        name: series.str.count_matches(BY_CHARACTER[name]).to_list() for name in counted
    }


def test_the_class_of_every_character_is_that_of_the_regex() -> None:
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    characters = pl.Series(map(chr, points))
    for bit, regex in enumerate(CLASSES):
        is_of_class = characters.str.contains(regex).to_numpy()
        classes = np.zeros(0x110000, np.uint8)
        classes[:CODE_POINTS] = character_classes()
        assert (is_of_class == (classes[points] >> bit & 1)).all()


DAMAGES: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "collapsed": lambda text: " ".join(text.split()),
    "broken": lambda text: text.replace(" ", " \n"),
    "misread": lambda text: text.encode().decode("latin-1"),
    "windows": lambda text: text.encode().decode("cp1252"),
    "entities": html.escape,
    "hyphenated": lambda text: text.replace("lighthouse", "light-\nhouse", 6).replace(
        "light-\nhouse", "lighthouse", 3
    ),
    "wrapped lines": lambda text: text.replace(", ", ",\n"),
    "between others": lambda text: f"{OTHERS[0]}\n{text}\n{OTHERS[1]}",
    "below a menu": lambda text: f"Home | News | About us | Contact\n{text}",
    "truncated": lambda text: text[: round(0.9 * len(text))],
}


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
def test_the_original_stays_whatever_became_of_its_copy(kind: str, is_first: bool) -> None:
    for seed in range(3):
        original = article(seed)
        damaged = DAMAGES[kind](original)
        assert damaged != original
        pair = (original, damaged) if is_first else (damaged, original)

        assert kept_of(*pair) == [original]


def test_of_edited_copies_the_one_that_all_resemble_stays() -> None:
    original = article(5, 60)
    words = original.split(" ")
    edited = []
    for number in range(4):
        changed = list(words)
        for at in range(7 + number, len(words), 61):
            changed[at] = f"other{number}"
        edited.append(" ".join(changed))

    assert original in kept_of(*edited[:2], original, *edited[2:])


def test_the_longest_of_several_truncated_copies_does_not_win_by_their_agreement() -> None:
    original = article(6)
    shorter = [original[: round(share * len(original))] for share in (0.94, 0.92, 0.9)]

    assert kept_of(*shorter, original) == [original]


@pytest.mark.parametrize("preset", ["verified", "datatrove"])
def test_damage_decides_without_shingles(preset: str) -> None:
    original = article(7)
    given = {"preset": preset, "keep": ["cleanest"]}

    assert kept_of(original.upper(), original, config=DedupConfig.model_validate(given)) == [
        original
    ]


def test_copies_that_are_equal_as_compared_are_ranked_by_their_damage() -> None:
    original = article(8)
    config = DedupConfig(near=False, exact_text="words")

    assert kept_of(original.lower(), original, original.upper(), config=config) == [original]


@pytest.mark.parametrize("text", ["", "Short.", article(1)])
def test_undamaged_text_has_no_damage(text: str) -> None:
    assert damage(text).row(0) == (0, 0)


def test_damage_is_bounded_and_the_same_for_a_text_wherever_it_is_read() -> None:
    texts = [change(article(2)) for change in DAMAGES.values()] + ["\ufffd" * 500, "&amp;" * 500]
    together = damage(*texts)

    assert together.rows() == [damage(text).row(0) for text in texts]
    assert together.min_horizontal().min() >= 0
    assert together.max_horizontal().max() <= 0.9


@pytest.mark.parametrize("shingle", ["words", "characters"])
def test_edges_are_the_first_and_the_last_shingles(shingle: str) -> None:
    config = DedupConfig.model_validate({"shingle": shingle, "ngram": 2})
    units = ["a", "b", "c", "d", "e", "f", "g", "h"] if shingle == "words" else list("abcdefgh")
    joint = " " if shingle == "words" else ""
    whole = joint.join(units)
    single = [joint.join(pair) for pair in pairwise(units)]
    hashes = [int(shingle_sets(pl.Series([each]), config)[0][0]) for each in single]
    texts = pl.Series([whole, "", single[0], f"{article(3, 400)} {whole}"])

    edges = sets_and_edges(texts, config, EDGE)[2].tolist()

    assert edges[0] == [*hashes[:EDGE], *hashes[-EDGE:]]
    assert edges[1] == [0] * 2 * EDGE
    assert edges[2] == [hashes[0]] * 2 * EDGE
    assert edges[3][EDGE:] == hashes[-EDGE:]


def test_later_rounds_do_not_change_the_agreement_of_earlier_ones() -> None:
    from assets.deduped.clusters.duplicates import evidence_of, with_spans
    from assets.deduped.minhash.signatures import signatures

    texts = [article(9), article(9)[:-40], article(9).upper(), f"{OTHERS[2]} {article(9)}"]
    facts, _ = signatures(table(*texts), CONFIG)
    values, offsets, edges = sets_and_edges(pl.Series(texts), CONFIG, EDGE)
    shingles = values, offsets
    evidence = evidence_of(with_spans(facts, shingles), CONFIG, shingles)
    starts, earlier = np.array([0, 0, 1, 3, 6]), np.array([0, 0, 1, 0, 1, 2], np.int32)

    alone = agreements(evidence, edges, (starts, earlier), np.array([0, 2, 2]))
    both = agreements(evidence, edges, (starts, earlier), np.array([0, 2, 4]))

    assert both[:2].tolist() == alone[:2].tolist()
    assert 2 * UNIT >= alone[0] > alone[1] > UNIT
