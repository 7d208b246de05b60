"""`corpus duplicates check`: the clusters of a sample, held against datasketch's MinHash and LSH.

Words and shingles are cut in Python, and nothing of `assets` takes part in datasketch's answer: it
is a second opinion. Bands, rows, seed and hash function (XXH32) are the same, so that both sides
should have equal candidates.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import polars as pl
import xxhash
from cyclopts import Parameter

from assets.deduped.minhash.meta_fields import column_of, field_values
from pipeline_defs.commands.look.duplicates import cluster_places, scan_clusters
from pipeline_defs.commands.published_documents import filtered_manifests, path_of
from pipeline_defs.commands.terminal import Json, Natural, Positive, print_json, print_table
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.dedup import DedupConfig
from resources.store.store import StoreError

UNEXPLAINED = "NOT EXPLAINED"
LIMIT = 64  # different texts of a set of candidates; above it, leaders are compared (docs/dedup.md)
ROUNDING = 1e-6
ESTIMATE_ERRORS = 5  # standard errors of an estimate, beyond which it is not one
_IDEOGRAPHS, _AFTER_IDEOGRAPHS = 0x20000, 0x40000
_UNSPACED = (
    *(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800), range(0x3005, 0x3008)),
    *(range(0x3040, 0x3100), range(0x31F0, 0x3200), range(0x3400, 0x4DC0), range(0x4E00, 0xA000)),
    *(range(0xA9E0, 0xAA00), range(0xAA60, 0xAA80), range(0xF900, 0xFB00), range(0xFF66, 0xFFA0)),
    *(range(0x116D0, 0x11700), range(0x1AFF0, 0x1B170), range(_IDEOGRAPHS, _AFTER_IDEOGRAPHS)),
)
Pair = tuple[str, str]


def check_sample(
    *,
    sample: Annotated[Positive, Parameter(help="Documents to draw.")] = 5000,
    seed: Annotated[Natural, Parameter(help="Seed of the draw.")] = 0,
    most: Annotated[Positive, Parameter(name="--most", help="Show at most so many.")] = 20,
    json: Json = False,
) -> int:
    """Compare the removals of a sample with datasketch; 1 if a difference is not explained.

    Drawn documents bring the others of their clusters with them.
    """
    corpus = load_corpus()
    if not corpus.settings.dedup.near:
        raise UsageError("dedup.near is false: there is no MinHash to check. Set it to true.")
    drawn = read_sample(corpus, sample, seed)
    candidates = candidates_of(drawn)
    accepted = accepted_of(drawn, candidates)
    found = differences(drawn, candidates, accepted)
    confirmed = len(drawn.removals) - sum(each.found_by == "corpus" for each in found)
    counts = {
        "documents": len(drawn.texts),
        "candidate pairs of datasketch": len(candidates),
        "of these accepted": len(accepted),
        "documents removed by the corpus": len(drawn.removals),
        "of these confirmed by datasketch": confirmed,
        "pairs that datasketch alone would settle": len(found) - len(drawn.removals) + confirmed,
        "differences not explained": sum(not each.reason for each in found),
    }
    if json:
        print_json({"counts": counts, "differences": found})
    else:
        print_check(counts, found, most)
    return 1 if counts["differences not explained"] else 0


def read_sample(corpus: Corpus, size: int, seed: int) -> Sample:
    """Draw documents by a hash of their ids, and read them and their whole clusters.

    Contaminated documents that are rejected are left out: they are compared with no other.
    """
    contaminated = rejected_ids(corpus)
    tables = [
        path_of(corpus, manifest, part, "documents")
        for manifest in filtered_manifests(corpus)
        for part in manifest.parts
    ]
    ids = [
        doc_id for path in tables for doc_id in pl.read_parquet(path, columns=["doc_id"])["doc_id"]
    ]
    keys = {doc_id: xxhash.xxh3_64_intdigest(doc_id.encode(), seed) for doc_id in ids}
    drawn = set(sorted(set(ids) - contaminated, key=lambda doc_id: (keys[doc_id], doc_id))[:size])
    clusters = scan_clusters(cluster_places(corpus)).collect(engine="streaming")
    with_drawn = clusters.filter(pl.col("doc_id").is_in(list(drawn)))["cluster_id"].unique()
    members = clusters.filter(pl.col("cluster_id").is_in(with_drawn.implode()))
    wanted = drawn | set(members["doc_id"])
    if missing := sorted(wanted - keys.keys()):
        raise StoreError(
            f"{len(missing)} clustered documents ({missing[0]}, ...) are not among the newest "
            "filtered documents. Materialize `duplicates` again."
        )
    removed = members.filter(pl.col("method").is_not_null())
    rows = removed.select("doc_id", "kept_doc_id", "method").iter_rows()
    removals = {doc_id: Removal(kept, method) for doc_id, kept, method in rows}
    return sample_of(corpus, tables, wanted, removals)


def sample_of(
    corpus: Corpus, tables: Iterable[object], wanted: set[str], removals: dict[str, Removal]
) -> Sample:
    """Read the texts of the wanted documents, and the values that they are grouped by."""
    config = corpus.settings.dedup
    columns = list(dict.fromkeys(["doc_id", "text", *map(column_of, config.within)]))
    texts: dict[str, str] = {}
    groups: dict[str, tuple[str | None, ...]] = {}
    for path in tables:
        rows = pl.scan_parquet(str(path)).select(columns)
        found = rows.filter(pl.col("doc_id").is_in(sorted(wanted))).collect(engine="streaming")
        texts |= dict(zip(found["doc_id"], found["text"].fill_null(""), strict=True))
        values = [field_values(found, name).to_list() for name in config.within]
        rows_of_values = zip(*values, strict=True) if values else [()] * found.height
        groups |= dict(zip(found["doc_id"], rows_of_values, strict=True))
    return Sample(texts, groups, removals, config)


def rejected_ids(corpus: Corpus) -> set[str]:
    """Return the documents that are rejected for items of evaluation sets."""
    decontamination = corpus.settings.dedup.decontamination
    if decontamination is None or decontamination.action != "reject":
        return set()
    gone: set[str] = set()
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest("signatures", source)
        for part in manifest.parts:
            if part.file("contamination"):
                hits = pl.read_parquet(path_of(corpus, manifest, part, "contamination"))
                gone |= set(hits.filter("is_contaminated")["doc_id"])
    return gone


def print_check(counts: dict[str, int], found: list[Difference], most: int) -> None:
    """Print counts, differences by reason, and the first of them, those not explained first."""
    print_table(
        "duplicates, held against datasketch", ("of the sample",), ("count",), counts.items()
    )
    by_reason = Counter((each.found_by, each.reason or UNEXPLAINED) for each in found)
    reasons = ((*pair, count) for pair, count in sorted(by_reason.items()))
    print_table("differences", ("found by", "reason"), ("count",), reasons)
    pairs = (
        (each.found_by, *each.pair, each.reason or UNEXPLAINED, f"{each.similarity:.4f}")
        for each in sorted(found, key=lambda each: (bool(each.reason), each.pair))[:most]
    )
    texts = ("found by", "document", "document", "reason")
    print_table("pairs", texts, ("similarity",), pairs)


@dataclass(frozen=True)
class Removal:
    """Fate of a removed document: the one that stays for it, and the method that found the pair."""

    survivor: str
    method: str


@dataclass(frozen=True)
class Difference:
    """Pair of documents that one side takes for duplicates; an empty reason explains nothing."""

    pair: Pair
    found_by: str
    similarity: float
    reason: str


@dataclass(frozen=True)
class Sample:
    """Documents of a sample: texts, groups (dedup.within) and removals of the corpus, by doc_id."""

    texts: Mapping[str, str]
    groups: Mapping[str, tuple[str | None, ...]]
    removals: Mapping[str, Removal]
    config: DedupConfig

    @cached_property
    def shingles(self) -> dict[str, frozenset[str]]:
        """The shingles of each document."""
        return {doc_id: frozenset(cut(text, self.config)) for doc_id, text in self.texts.items()}

    def similarity(self, pair: Pair) -> float:
        """Return the true Jaccard similarity of two documents."""
        one, other = self.shingles[pair[0]], self.shingles[pair[1]]
        return len(one & other) / max(1, len(one | other))

    @property
    def least(self) -> float:
        """The similarity from which a candidate is a copy; 0 if candidates are not verified."""
        return 0.0 if self.config.verify == "none" else self.config.threshold


def cut(text: str, config: DedupConfig) -> Iterator[str]:
    """Yield the shingles of a text, as docs/dedup.md defines them."""
    if config.lowercase:
        text = text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")
    table = {ord(character): written(character, config) for character in set(text)}
    words = text.translate(table).split(" ")
    words = [word for word in words if word]
    is_characters = config.shingle == "characters"
    units, joint = (list(" ".join(words)), "") if is_characters else (words, " ")
    size = min(config.ngram, len(units))
    for start in range(len(units) - size + 1 if size else 0):
        yield joint.join(units[start : start + size])


def written(character: str, config: DedupConfig) -> str:
    """Return a character as words have it: with blanks around it if it is a word, or a blank."""
    code = ord(character)
    is_letter = code < _AFTER_IDEOGRAPHS and (
        character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    )
    if not (is_letter or (config.punctuation == "keep" and not character.isspace())):
        return " "
    is_single = is_letter and any(code in block for block in _UNSPACED)
    return f" {character} " if is_single else character


def ordered(one: str, other: str) -> Pair:
    """Return two doc_ids in ascending order."""
    return (one, other) if one < other else (other, one)


def candidates_of(sample: Sample) -> set[Pair]:
    """Return the pairs of one group that datasketch's MinHashLSH finds."""
    from datasketch import MinHash, MinHashLSH

    config = sample.config
    index = MinHashLSH(num_perm=config.num_values, params=(config.bands, config.rows))
    found: set[Pair] = set()
    for doc_id in sorted(sample.texts):
        if not sample.shingles[doc_id]:
            continue
        sketch = MinHash(config.num_values, config.seed, hashfunc=xxhash.xxh32_intdigest)
        sketch.update_batch([shingle.encode() for shingle in sample.shingles[doc_id]])
        found |= {ordered(doc_id, str(other)) for other in index.query(sketch)}
        index.insert(doc_id, sketch)
    return {pair for pair in found if sample.groups[pair[0]] == sample.groups[pair[1]]}


def accepted_of(sample: Sample, candidates: set[Pair]) -> set[Pair]:
    """Return the candidates that reach the threshold by their true similarity."""
    least = sample.least - ROUNDING
    return {pair for pair in candidates if sample.similarity(pair) >= least}


def differences(sample: Sample, candidates: set[Pair], accepted: set[Pair]) -> list[Difference]:
    """Return the removals that datasketch does not confirm, and its pairs of which both stay."""
    sets = Sets(candidates)
    removals = [(ordered(gone, each.survivor), each) for gone, each in sample.removals.items()]
    only_ours = [
        Difference(pair, "corpus", sample.similarity(pair), why_removed(sample, pair, each))
        for pair, each in sorted(removals, key=lambda item: item[0])
        if pair not in accepted
    ]
    only_theirs = [
        Difference(pair, "datasketch", sample.similarity(pair), why_kept(sample, pair, sets))
        for pair in sorted(accepted)
        if not {*pair} & sample.removals.keys()
    ]
    return only_ours + only_theirs


def why_removed(sample: Sample, pair: Pair, removal: Removal) -> str:
    """Explain a removal that datasketch does not confirm; empty if nothing does."""
    config, similarity = sample.config, sample.similarity(pair)
    if removal.method != "minhash":
        return f"not by similarity: {removal.method}"
    if config.clusters == "components":
        return "end of a chain of pairs"
    if config.verify == "signature" and abs(similarity - config.threshold) < error_of(config):
        return "error of the estimate"
    if similarity >= sample.least - ROUNDING and config.verify != "none":
        return "no equal band, compared in a set"
    return ""


def why_kept(sample: Sample, pair: Pair, sets: Sets) -> str:
    """Explain a pair of datasketch of which both documents stay; empty if nothing does."""
    config, similarity = sample.config, sample.similarity(pair)
    if config.verify == "signature" and abs(similarity - config.threshold) < error_of(config):
        return "error of the estimate"
    if sets.size(pair[0]) > LIMIT:
        return f"set of over {LIMIT}: compared with leaders"
    return ""


def error_of(config: DedupConfig) -> float:
    """Return the largest error that an estimate may have, near the threshold."""
    variance = max(0.05, config.threshold * (1 - config.threshold)) / config.num_values
    return ESTIMATE_ERRORS * float(variance**0.5)


class Sets:
    """Documents by the chains of pairs that connect them."""

    def __init__(self, pairs: set[Pair]) -> None:
        self._parents: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        for one, other in sorted(pairs):
            first, second = self._root(one), self._root(other)
            if first != second:
                self._parents[second] = first
                self._sizes[first] = self._sizes.get(first, 1) + self._sizes.get(second, 1)

    def size(self, doc_id: str) -> int:
        """Count the documents of a set."""
        return self._sizes.get(self._root(doc_id), 1)

    def _root(self, doc_id: str) -> str:
        while (parent := self._parents.get(doc_id, doc_id)) != doc_id:
            self._parents[doc_id] = self._parents.get(parent, parent)
            doc_id = parent
        return doc_id
