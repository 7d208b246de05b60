"""Clusters against a slow obvious reference, and what must hold for any documents."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random

from cluster_members import ROWS, VALUES, Doc, Pair, as_pairs, candidates, config, table
from many_examples import many_examples
from prelude import Any, assert_frame_equal, given, pl, pytest, st

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA, decide
from resources.settings.dedup import DedupConfig


def likeness(a: Doc, b: Doc) -> float:
    if a.text is not None and (a.text, a.group) == (b.text, b.group):
        return 1.0
    if a.signature is None or b.signature is None:
        return 0.0
    return sum(x == y for x, y in zip(a.signature, b.signature, strict=True)) / VALUES


def measured(a: Doc, b: Doc) -> float | None:
    """The similarity that the table has: none where there was nothing to compare."""
    has_none = a.signature is None or b.signature is None
    return None if has_none and likeness(a, b) == 0 else likeness(a, b)


def accepted(a: Doc, b: Doc, policy: DedupConfig) -> bool:
    if a.group != b.group:
        return False
    if (a.text is not None and a.text == b.text) or (a.url is not None and a.url == b.url):
        return True
    if a.signature is None or b.signature is None:
        return False
    if policy.verify == "signature":
        return likeness(a, b) >= policy.threshold
    bands = range(0, VALUES, ROWS)
    return any(a.signature[k : k + ROWS] == b.signature[k : k + ROWS] for k in bands)


def rank_key(d: Doc, policy: DedupConfig) -> tuple[Any, ...]:
    named = list(policy.priority)
    keys: dict[str, Any] = {
        "priority": named.index(d.source) if d.source in named else len(named),
        "ingested": d.generation,
        "quality": (d.quality is None, -(d.quality or 0)),
        "longest": -d.num_chars,
        "newest": (d.date is None, -(d.date or 0)),
        "oldest": (d.date is None, d.date or 0),
    }
    return (*(keys[name] for name in policy.keep), d.doc_id)


class Reference:
    """Decide with sets and loops: all pairs of a connected set of candidates are compared."""

    def __init__(self, docs: Sequence[Doc], pairs: Iterable[Pair], policy: DedupConfig) -> None:
        self.policy = policy
        keys = [key for key in policy.keep if key != "priority" or policy.priority]
        first = keys[:1] if policy.clusters == "star" else keys
        self.round = {d: d.generation if "ingested" in first else 0 for d in docs}
        self.docs = sorted(docs, key=lambda d: (self.round[d], d.ref))
        by_ref = {d.ref: d for d in docs}
        self.pairs = [(by_ref[a], by_ref[b]) for a, b in pairs]
        firsts: dict[object, Doc] = {}
        self.node = {
            d: d if d.text is None else firsts.setdefault((d.text, d.group), d) for d in self.docs
        }

    def rank(self, d: Doc) -> tuple[Any, ...]:
        return rank_key(d, self.policy)

    def connected(self, nodes: Iterable[Doc], edges: Iterable[tuple[Doc, Doc]]) -> list[set[Doc]]:
        parts = [{node} for node in nodes]
        for a, b in edges:
            one = next(part for part in parts if a in part)
            other = next(part for part in parts if b in part)
            if one is not other:
                parts.remove(other)
                one |= other
        return parts

    def sets_at(self, stage: int) -> list[set[Doc]]:
        nodes = {node for node in self.node.values() if self.round[node] <= stage}
        edges = [(a, b) for a, b in self.pairs if max(self.round[a], self.round[b]) <= stage]
        return self.connected(nodes, [(self.node[a], self.node[b]) for a, b in edges])

    def survivors(self) -> dict[Doc, Doc]:
        star = self.policy.clusters == "star"
        return self.star_survivors() if star else self.component_survivors()

    def component_survivors(self) -> dict[Doc, Doc]:
        clusters: list[set[Doc]] = []
        for stage in sorted(set(self.round.values())):
            new = {d for d in self.docs if self.round[d] == stage}
            compared = [pair for pair in self.pairs if new & set(pair) and self.seen(pair, stage)]
            for part in self.sets_at(stage):
                compared += [pair for pair in combinations(part, 2) if new & set(pair)]
            edges = [
                (self.node[a], self.node[b]) for a, b in compared if accepted(a, b, self.policy)
            ]
            nodes = {self.node[d] for d in new} & new
            inner = [(a, b) for a, b in edges if a in nodes and b in nodes]
            joined: list[tuple[set[Doc], set[Doc]]] = []
            for group in self.connected(nodes, inner):
                ends = {d for edge in edges if group & set(edge) for d in edge}
                touched = [cluster for cluster in clusters if cluster & ends]
                best = min(touched, key=lambda c: min(map(self.rank, c)), default=set())
                joined.append((group, best))
            for group, cluster in joined:
                if cluster:
                    cluster |= group
                else:
                    clusters.append(group)
            for d in new:
                next(cluster for cluster in clusters if self.node[d] in cluster).add(d)
        return {d: min(cluster, key=self.rank) for cluster in clusters for d in cluster}

    def seen(self, pair: tuple[Doc, Doc], stage: int) -> bool:
        return max(self.round[d] for d in pair) == stage

    def star_survivors(self) -> dict[Doc, Doc]:
        survivors: dict[Doc, Doc] = {}
        for d in sorted(self.docs, key=lambda d: (self.round[d], self.rank(d))):
            near = next(part for part in self.sets_at(self.round[d]) if self.node[d] in part)
            kept = [k for k, s in survivors.items() if k is s and self.node[k] in near]
            copies = [k for k in kept if self.node[k] is self.node[d]]
            rivals = copies or [k for k in kept if accepted(k, d, self.policy)]
            survivors[d] = min(rivals, key=lambda k: (-likeness(k, d), self.rank(k)), default=d)
        return survivors


def expected(docs: Sequence[Doc], pairs: Iterable[Pair], policy: DedupConfig) -> pl.DataFrame:
    survivors = Reference(docs, pairs, policy).survivors()
    rows = []
    for d in sorted(docs, key=lambda d: d.ref):
        kept = survivors[d]
        cluster = [other for other in docs if survivors[other] is kept]
        is_exact = d.text is not None and d.text == kept.text
        is_field = d.url is not None and d.url == kept.url
        method = "exact" if is_exact else "field:url" if is_field else "minhash"
        found = (None, None) if kept is d else (measured(d, kept), method)
        if len(cluster) > 1:
            first = min(other.doc_id for other in cluster)
            rows.append((d.ref, d.doc_id, first, len(cluster), kept.doc_id, kept.source, *found))
    return pl.DataFrame(rows, schema=CLUSTER_SCHEMA, orient="row")


@st.composite
def doc_lists(draw: st.DrawFn) -> list[Doc]:
    """Documents that share texts, urls and bands often; generations in any order of refs."""
    signature = st.none() | st.tuples(*[st.integers(0, 2)] * VALUES)
    rare = st.none() | st.none() | st.none() | st.integers(0, 3)
    fields: dict[str, Any] = {
        **{"text": rare, "signature": signature, "url": rare, "group": st.sampled_from([0, 0, 7])},
        **{"generation": st.integers(0, 3), "source": st.sampled_from(["web", "books", "code"])},
        "num_chars": st.integers(1, 3),
        "quality": st.none() | st.sampled_from([0.5, 1.0, float("-inf")]),
        "date": st.none() | st.integers(-2, 2),
    }
    drawn: list[dict[str, Any]] = draw(st.lists(st.fixed_dictionaries(fields), max_size=12))
    ids = draw(st.permutations(range(len(drawn))))
    places = draw(st.sets(st.integers(0, 40), min_size=len(drawn), max_size=len(drawn)))
    refs = [((place // 8) << 32) | place % 8 for place in sorted(places)]
    return [
        Doc(ref, f"{i:032x}", **values) for ref, i, values in zip(refs, ids, drawn, strict=True)
    ]


verified: list[dict[str, Any]] = [
    {"verify": "signature", "threshold": share} for share in (0.25, 0.5, 0.75)
]
policies = st.builds(
    lambda verification, **keys: config(**verification, **keys),
    verification=st.sampled_from([{}, *verified]),
    clusters=st.sampled_from(["components", "star"]),
    priority=st.sampled_from([(), ("books",), ("code", "web")]),
    quality_field=st.just("meta.q"),
    date_field=st.just("meta.d"),
    keep=st.sampled_from(
        [
            *(("priority", "ingested", "longest"), ("ingested", "quality"), ("longest",)),
            *(("quality", "newest"), ("oldest", "ingested"), ()),
        ]
    ),
)


@pytest.mark.slow
@given(doc_lists(), policies, st.randoms(use_true_random=False))
@many_examples(100)
def test_clusters_equal_the_reference_in_any_order(
    docs: list[Doc], policy: DedupConfig, random: Random
) -> None:
    refs = [d.ref for d in docs]
    collisions = [tuple(sorted(random.sample(refs, 2))) for _ in range(3) if len(refs) > 1]
    pairs: list[Any] = [*candidates(docs), *collisions]

    clusters = decide(table(docs), as_pairs(pairs), policy)

    assert_frame_equal(clusters, expected(docs, pairs, policy))
    random.shuffle(pairs)
    shuffled = decide(table(random.sample(docs, len(docs))), as_pairs(pairs), policy)
    assert_frame_equal(shuffled, clusters)


@pytest.mark.slow
@given(doc_lists(), policies)
@many_examples(60)
def test_what_was_kept_stays_when_generations_are_added(
    docs: list[Doc], policy: DedupConfig
) -> None:
    policy = policy.model_copy(update={"keep": ("ingested", *(set(policy.keep) - {"ingested"}))})
    removed_before: set[str] = set()
    for generation in range(4):
        known = [d for d in docs if d.generation <= generation]
        clusters = decide(table(known), as_pairs(candidates(known)), policy)
        removed = set(clusters.filter(pl.col("method").is_not_null())["doc_id"])

        older = {d.doc_id for d in docs if d.generation < generation}
        assert removed & older <= removed_before
        removed_before = removed
