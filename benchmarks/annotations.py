"""Compare lexical vectors and their topics with TF-IDF and a static model.

    python benchmarks/annotations.py FOLDER [--only vectors,topics]

FOLDER has a subfolder per source, as corpus_texts.py reads it, with `lang`, and with `origin` and
`family` in `meta.meta` (an origin is a kind of document here; a family is a document in all of its
languages and versions). Families are divided into halves: to train, and to test. Needs an
environment of the project with scikit-learn (BSD) and wordllama (MIT) as well. Prints Markdown;
MB/s are of CPU time, which is one core's if OMP_NUM_THREADS is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

import numpy as np
import polars as pl
import xxhash
from corpus_texts import read_texts
from numpy.typing import NDArray

from assets.annotated.kernels.word_vectors import normalise_rows
from assets.annotated.topics.topics import (
    assign_topics,
    name_topics,
    train_topics,
    words_of_topics,
)
from assets.annotated.vectors.lexical import embed_lexical, train_lexical

FEWEST = 50  # documents of a label
TRAINED = 4_000  # documents that a head is trained on
LANGUAGES = ("de", "fr", "es", "ru", "zh", "ko")

Vectors = NDArray[Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, help="of text, a mixture of all sources")
    parser.add_argument("--only", default="vectors,topics")
    options = parser.parse_args()
    documents = read_documents(options.folder, options.megabytes)
    texts, is_test = documents["text"], documents["is_test"].to_numpy()
    megabytes = int(texts.str.len_bytes().sum()) / 1e6
    print(f"{len(texts):,} documents, {megabytes:.0f} MB, {is_test.mean():.0%} to test\n")
    start = time.process_time()
    model = train_lexical(
        texts.filter(pl.Series(~is_test)).gather_every(2 if megabytes > 50 else 1)
    )
    print(f"lexical is trained in {time.process_time() - start:.0f} CPU s\n")
    embed_lexical(texts.head(1), model)
    lexical, rate = timed(lambda: embed_lexical(texts, model), megabytes)
    static, static_rate = timed(lambda: embed_static(texts), megabytes)
    if "vectors" in options.only:
        print("| vectors | MB/s | source | language | code language | kind | kind, by language |")
        print("|---|---:|---:|---:|---:|---:|---|")
        print_accuracy("lexical, 256 int8", rate, lexical / np.float32(512), documents)
        print_accuracy("static (wordllama), 256 float32", static_rate, static, documents)
        tf_idf, own_rate = timed(lambda: weigh_terms(texts, is_test), megabytes)
        print_accuracy("TF-IDF (scikit-learn), 65,536", own_rate, tf_idf, documents)
    if "topics" in options.only:
        print_topics({"lexical": lexical, "static": frozen(static)}, documents)


def read_documents(folder: Path, megabytes: float | None) -> pl.DataFrame:
    """Return distinct texts: text, source, lang, kind, family, is_test (half, by family)."""
    most = None if megabytes is None else int(megabytes * 1e6)
    rows = read_texts(folder, most).unique("text", maintain_order=True)
    inner = pl.col("meta").str.json_path_match("$.meta")
    rows = rows.with_columns(
        pl.col("lang").fill_null("und"),
        kind=inner.str.json_path_match("$.origin").fill_null(pl.col("source")),
        family=inner.str.json_path_match("$.family").fill_null(pl.col("text")),
    )
    drawn = [xxhash.xxh3_64_intdigest(family.encode()) % 2 == 0 for family in rows["family"]]
    return rows.with_columns(is_test=pl.Series(drawn))


def timed(work: Callable[[], Any], megabytes: float) -> tuple[Any, float]:
    """Return what `work` returns, and MB a second of CPU."""
    start = time.process_time()
    found = work()
    return found, megabytes / (time.process_time() - start)


def embed_static(texts: pl.Series) -> NDArray[np.float32]:
    """Return the vectors of wordllama's model, of length 1."""
    import wordllama

    folder = Path(wordllama.__file__).parent  # has the tokenizer, where `load` does not look
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.embed(["warm"])
    # Long texts alone: a batch is filled up to its longest.
    found = np.concatenate([model.embed([text]) for text in texts])
    unit = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    return np.asarray(unit, np.float32)


def frozen(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return vectors as int8, as lexical ones are."""
    return np.asarray(normalise_rows((vectors * 2.0**20).astype(np.int64)))


def weigh_terms(texts: pl.Series, is_test: NDArray[np.bool_]) -> Any:
    """Return TF-IDF of the words of half of the texts; the time is that of all, once more."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = TfidfVectorizer(max_features=1 << 16, sublinear_tf=True, min_df=3, dtype=np.float32)
    terms.fit(texts.filter(pl.Series(~is_test)).to_list())
    return terms.transform(texts.to_list())


def print_accuracy(name: str, rate: float, vectors: Any, documents: pl.DataFrame) -> None:
    """Print a row: accuracy of logistic regression for each label, over documents to test."""
    is_code = documents["source"].to_numpy() == "code"
    everything = np.full(len(documents), True)
    cells = []
    for column, among in (("source", everything), ("lang", ~is_code), ("lang", is_code)):
        cells.append(f"{predicted(vectors, documents, column, among)[1].mean():.3f}")
    rows, is_right = predicted(vectors, documents, "kind", everything)
    of_language = documents["lang"].to_numpy()[rows]
    by_language = [f"{each} {is_right[of_language == each].mean():.2f}" for each in LANGUAGES]
    cells += [f"{is_right.mean():.3f}", ", ".join(by_language)]
    print(f"| {name} | {rate:.0f} | {' | '.join(cells)} |", flush=True)


def predicted(
    vectors: Any, documents: pl.DataFrame, column: str, among: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows to test, and whether the answer is right."""
    from sklearn.linear_model import LogisticRegression

    labels = documents[column].to_numpy().astype(str)
    counts = documents.filter(pl.Series(among))[column].value_counts()
    usual = counts.filter(pl.col("count") >= FEWEST)[column].to_list()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(among & np.isin(labels, usual)))
    is_test = documents["is_test"].to_numpy()[rows]
    train, test = rows[~is_test][:TRAINED], rows[is_test]
    head = LogisticRegression(C=10, max_iter=200).fit(vectors[train], labels[train])
    return test, head.predict(vectors[test]) == labels[test]


def print_topics(vectors: dict[str, NDArray[np.int8]], documents: pl.DataFrame) -> None:
    """Print a row for each way to topics, and the names of the first's largest."""
    print(
        "\n| topics | number | MB/s | purity: source | language | kind | in one language |", end=""
    )
    print(" translations together | distinct words |\n|---|" + "---:|" * 8)
    megabytes = int(documents["text"].str.len_bytes().sum()) / 1e6
    none = pl.Series(["*"] * len(documents))
    listed = []
    for name, own in vectors.items():
        for groups, way in ((documents["lang"], "without means"), (none, "plain")):
            topics = train_topics(own, groups)
            found, rate = timed(lambda: assign_topics(own, groups, topics)["topic"], megabytes)  # noqa: B023
            found_words = words_of_topics(documents["text"], found)
            names = [
                name.partition(" ")[2] for name in name_topics(found_words, len(topics.names), 10)
            ]
            words = " ".join(names).split()
            table = documents.with_columns(topic=found).drop_nulls("topic")
            purest = [purity(table, column) for column in ("source", "lang", "kind")]
            cells = [f"{rate:.0f}", *(f"{each.mean():.3f}" for each in purest)]
            is_one = pl.DataFrame({"topic": table["topic"], "p": purest[1]}).unique("topic")
            cells += [
                f"{(is_one['p'] > 0.9).sum()} of {found.n_unique()}",
                f"{together(table):.3f}",
            ]
            cells.append(f"{len(set(words)) / len(words):.2f}")
            print(f"| {name}, {way} | {found.n_unique()} | {' | '.join(cells)} |", flush=True)
            listed.append(names)
    print("\n" + "\n".join(f"- {' '.join(name.split()[:6])}" for name in listed[0][:12]))


def purity(table: pl.DataFrame, column: str) -> pl.Series:
    """Return, for each document, the share of the commonest label in its topic."""
    counts = table.group_by("topic", column).agg(n=pl.len())
    share = counts.group_by("topic").agg(share=pl.col("n").max() / pl.col("n").sum())
    return table.join(share, on="topic", how="left", maintain_order="left")["share"]


def together(table: pl.DataFrame) -> float:
    """Return the share of pairs of one document in two languages that have one topic."""
    own = table.filter(pl.len().over("family").is_between(2, 30)).select("family", "lang", "topic")
    pairs = own.join(own, on="family").filter(pl.col("lang") < pl.col("lang_right"))
    return float((pairs["topic"] == pairs["topic_right"]).mean())  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
