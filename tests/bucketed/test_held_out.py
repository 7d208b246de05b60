"""Documents are held out by the smallest id of a new cluster, and as was decided before."""

from dataclasses import dataclass, field

from many_examples import many_examples
from prelude import Any, given, pl, pytest, st

from assets.bucketed.held_out import (
    MARK_SCHEMA,
    Shares,
    decide,
    held_clusters,
    is_below,
    marks_of,
    mixed_clusters,
    shares_of,
)
from resources.settings.pipeline import Settings

HELD_IDS = ("0", "1", "2", "5", "9")  # of ten documents, by a share of 0.3
OTHER_IDS = ("3", "4", "6", "7", "8")
SHARES = Shares(0.3, 0.3)


def doc(number: int | str) -> str:
    return f"{number:0>32}"


def decided(**is_held: bool | None) -> pl.DataFrame:
    """Decisions by the last digit of the documents, as in `d3=True`."""
    rows = [(doc(name[1:]), value) for name, value in is_held.items()]
    return pl.DataFrame(rows, {"doc_id": pl.String, "is_held": pl.Boolean}, orient="row")


def clustered(*clusters: str) -> pl.DataFrame:
    """Clusters by the last digits of their documents, as in "135"."""
    rows = [(doc(d), doc(min(cluster)), len(cluster)) for cluster in clusters for d in cluster]
    schema = {"doc_id": pl.String, "cluster_id": pl.String, "cluster_size": pl.UInt32}
    return pl.DataFrame(rows, schema, orient="row")


def decide_all(known: pl.DataFrame, clusters: pl.DataFrame, shares: Shares = SHARES) -> str:
    """The last digits of the documents that are held out, all of them in one part."""
    held = held_clusters(marks_of(known, clusters, shares))
    found = decide(known, clusters, held, shares.own)
    assert found["is_held"].null_count() == 0
    return "".join(doc_id[-1] for doc_id in found.filter("is_held")["doc_id"])


def test_a_document_is_held_out_by_its_own_id() -> None:
    ids = pl.Series([doc(number) for number in range(10)])

    assert not is_below(ids, 0.0).any()
    assert [i[-1] for i in ids.filter(pl.Series(is_below(ids, 0.3)))] == [*HELD_IDS]
    many = pl.Series([doc(f"{number:x}") for number in range(100_000)])
    assert is_below(many, 0.01).mean() == pytest.approx(0.01, abs=0.001)
    assert not (is_below(many, 0.01) & ~is_below(many, 0.02)).any()


@pytest.mark.parametrize(
    ("known", "clusters", "expected"),
    [
        (decided(d1=None, d3=None), clustered(), "1"),  # each by its own id
        (decided(d1=None, d3=None), clustered("13"), "13"),  # both by that of 1
        (decided(d3=None, d5=None), clustered("35"), ""),  # both by that of 3
        (decided(d1=None, d3=False), clustered("13"), ""),  # as the earlier one
        (decided(d3=None, d4=True), clustered("34"), "34"),
        (decided(d1=False, d3=True, d4=None), clustered("134"), "34"),  # held out wins
        (decided(d1=False, d3=True), clustered("13"), "3"),  # and none is moved
        (decided(d1=False, d3=True), clustered(), "3"),
    ],
)
def test_a_cluster_is_decided_by_its_first_document(
    known: pl.DataFrame, clusters: pl.DataFrame, expected: str
) -> None:
    assert decide_all(known, clusters) == expected


def test_a_copy_in_a_source_that_holds_out_nothing_is_held_out() -> None:
    known, clusters = decided(d5=None, d6=None), clustered("16")
    of_other_part = pl.DataFrame([(doc(1), doc(1), 2, "first")], MARK_SCHEMA, orient="row")
    own = marks_of(known, clusters, Shares(0.0, 0.3))

    assert own.is_empty()
    held = held_clusters(pl.concat([own, of_other_part]))
    found = decide(known, clusters, held, 0.0)
    assert found.rows() == [(doc(5), False), (doc(6), True)]


def test_clusters_with_both_kinds_of_documents_are_counted() -> None:
    known = decided(d0=True, d1=False, d2=False, d3=True, d4=True)
    found = mixed_clusters(marks_of(known, clustered("012", "34"), SHARES))

    assert found.rows() == [(doc(0), doc(0), 1, 2)]


@dataclass
class Nights:
    """State after some nights: decisions, and for each part its inputs and its marks."""

    decisions: dict[int, bool] = field(default_factory=dict)
    parts: dict[int, tuple[object, pl.DataFrame]] = field(default_factory=dict)

    def run(self, documents: dict[int, int], clusters: list[list[int]], order: list[int]) -> None:
        """One night: documents by number with their part, and all clusters; parts in an order."""
        ids = {number: doc(f"{number:x}") for number in documents}
        members = {n: (ids[n], min(ids[m] for m in c), len(c)) for c in clusters for n in c}
        inputs, marks = {}, {}
        for part in order:
            own = sorted(n for n, of in documents.items() if of == part)
            rows = [members[n] for n in own if n in members]
            made_of = (own, rows)
            table = pl.DataFrame(rows, clustered().schema, orient="row")
            decisions = [(ids[n], self.decisions.get(n)) for n in own]
            known = pl.DataFrame(decisions, decided().schema, orient="row")
            if part in self.parts and self.parts[part][0] == made_of:
                marks[part] = self.parts[part][1]
            else:
                inputs[part] = made_of, known, table
                marks[part] = marks_of(known, table, SHARES)
        held = held_clusters(pl.concat(marks.values())) if marks else pl.Series([], dtype=pl.String)
        before, self.decisions = self.decisions, {}
        for part, (made_of, known, table) in inputs.items():
            found = decide(known, table, held, SHARES.own)
            self.parts[part] = made_of, marks_of(found, table, SHARES)
            self.decisions |= {int(i, 16): h for i, h in found.rows()}
        self.decisions |= {n: before[n] for n, p in documents.items() if p not in inputs}
        self.parts = {part: of for part, of in self.parts.items() if part in order}


@st.composite
def nights(draw: st.DrawFn) -> list[tuple[dict[int, int], list[list[int]]]]:
    """Nights of documents that come, go and move, in clusters that merge and fall apart."""
    found, documents = [], {}
    for _ in range(draw(st.integers(2, 4))):
        gone = draw(st.sets(st.sampled_from(sorted(documents)))) if documents else set()
        new = draw(st.dictionaries(st.integers(0, 40), st.integers(0, 3), max_size=10))
        documents = {n: p for n, p in documents.items() if n not in gone} | new
        labels = {n: draw(st.integers(0, 6)) for n in sorted(documents)}
        groups = [[n for n in sorted(labels) if labels[n] == g] for g in range(1, 7)]
        found.append((documents, [group for group in groups if len(group) > 1]))
    return found


@pytest.mark.slow
@many_examples(150)
@given(nights(), st.randoms(use_true_random=False))
def test_decisions_are_kept_and_new_copies_follow_them(
    played: list[tuple[dict[int, int], list[list[int]]]], random: object
) -> None:
    one, other = Nights(), Nights()
    for documents, clusters in played:
        before = dict(one.decisions)
        parts = sorted({*documents.values()})
        one.run(documents, clusters, parts)
        shuffled = list(parts)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        other.run(documents, clusters, shuffled)

        assert other.decisions == one.decisions
        assert one.decisions.keys() == documents.keys()
        alone = {*documents} - {n for cluster in clusters for n in cluster}
        for cluster in [*clusters, *([n] for n in alone)]:
            old = {before[n] for n in cluster if n in before}
            for n in cluster:
                first = pl.Series([min(doc(f"{m:x}") for m in cluster)])
                expected = True in old if old else bool(is_below(first, SHARES.own)[0])
                assert one.decisions[n] == before.get(n, expected)


TOKENS = {"web": 800, "books": 200}


def holding_out(holdout: dict[str, Any] | None, books: dict[str, Any] | None = None) -> Settings:
    """Settings of two sources, the second with a `holdout` of its own if it is given."""
    sources = [{"name": name, "where": "*"} for name in TOKENS]
    if books:
        sources[1]["holdout"] = books  # type: ignore[assignment]
    phases = [{"name": "all", "weights": dict.fromkeys(TOKENS, 1)}]
    about = {"store": "store", "sources": sources, "holdout": holdout, "phases": phases}
    return Settings.model_validate(about)


def tokens_of(sources: Any) -> int:
    return sum(TOKENS[source] for source in sources)


@pytest.mark.parametrize(
    ("settings", "before", "shares", "kept"),
    [
        (holding_out({"share": 0.1}), {}, {"web": 0.1, "books": 0.1}, {}),
        (holding_out(None, {"share": 0.2}), {}, {"web": 0.0, "books": 0.2}, {}),
        (holding_out({"tokens": 100}), {}, {"web": 0.1, "books": 0.1}, {"": [100, 0.1]}),
        (
            holding_out({"tokens": 100}, {"tokens": 50}),
            {"": [100, 0.3], "books": [40, 0.3]},  # another number was asked for
            {"web": 0.3, "books": 0.25},
            {"": [100, 0.3], "books": [50, 0.25]},
        ),
    ],
    ids=["a share of all", "a share of one", "tokens of all", "kept unless changed"],
)
def test_a_number_of_tokens_becomes_a_share_once(
    settings: Settings,
    before: dict[str, list[float]],
    shares: dict[str, float],
    kept: dict[str, list[float]],
) -> None:
    found = shares_of(settings, before, tokens_of)
    assert found == {"shares": shares, "tokens": kept}


def test_sources_without_tokens_have_no_share_yet() -> None:
    found = shares_of(holding_out({"tokens": 100}), {}, lambda _: 0)
    assert found == {"shares": {}, "tokens": {}}
