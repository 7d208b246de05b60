"""From texts to what stays, and what that promises."""

from dedup_flow import clusters_of, removed_of
from prelude import Any, assert_frame_equal, given, np, pl, pytest, settings, st

from assets.deduped.clusters.duplicates import drop_duplicates
from assets.deduped.dedupe import Findings, dedupe
from assets.deduped.minhash.minhash import without_licence
from resources.settings.dedup import DedupConfig

CONFIG = DedupConfig()
CONFIGS = [
    {},
    {"verify": "signature", "clusters": "star"},
    {"verify": "exact"},
    {"near": False},
]
WORDS = " ".join(f"word{number}" for number in range(200))
NO_CLUSTERS = pl.DataFrame(
    schema={"doc_id": pl.String, "kept_doc_id": pl.String, "cluster_size": pl.UInt32}
)


def table(*texts: str) -> pl.DataFrame:
    ids = [f"{number:032x}" for number in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String})


def numbers(doc_ids: pl.Series) -> list[int]:
    return [int(doc_id, 16) for doc_id in doc_ids]


def hits_of(*documents: int, are_enough: list[bool]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "doc_id": [f"{number:032x}" for number in documents],
            "set": "quiz",
            "item": "7",
            "num_ngrams": [int(enough) for enough in are_enough],
            "item_share": [0.5 * enough for enough in are_enough],
            "is_contaminated": are_enough,
        }
    )


def test_planted_copies_are_found_and_nothing_else() -> None:
    documents = table(WORDS, WORDS.upper(), f"  {WORDS}\n", WORDS + " and more", "another text")

    result = removed_of(clusters_of(documents, CONFIG))

    assert numbers(result["doc_id"]) == [1, 2, 3]
    assert set(numbers(result["kept_doc_id"])) == {0}


@pytest.mark.parametrize("given_config", CONFIGS)
def test_short_and_blank_texts_are_not_one_cluster(given_config: dict[str, Any]) -> None:
    texts = ["", " ", "\n", "?", "!", "a", "b", "a b", "a c", "é", "汉", "字", "\u0301", "\x00"]

    assert clusters_of(table(*texts), DedupConfig(**given_config)).is_empty()


def test_twenty_thousand_copies_leave_one() -> None:
    documents = table(*["the same few words again"] * 20_000)

    clusters = clusters_of(documents, CONFIG)

    assert numbers(drop_duplicates(documents, clusters)["doc_id"]) == [0]
    assert clusters["cluster_size"].unique().to_list() == [20_000]


@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize("given_config", CONFIGS[:3])
def test_short_keys_that_collide_make_no_duplicates(
    given_config: dict[str, Any], bits: int
) -> None:
    texts = [f"{WORDS} {WORDS[i : i + 300]}" for i in range(0, 900, 300)]
    texts += [f"number {i} of {i * 7} texts with {i % 5} and {i * i} in it" for i in range(300)]
    config = DedupConfig(**given_config)
    whole = clusters_of(table(*texts), config)

    short = clusters_of(table(*texts), config, np.uint64((1 << bits) - 1 << 64 - bits))

    assert_frame_equal(short, whole)


short_texts = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join)


@given(st.lists(short_texts, max_size=30), st.sampled_from(CONFIGS), st.integers(0, 9))
@settings(max_examples=30)
def test_removal_loses_nothing_repeats_nothing_and_ignores_order(
    texts: list[str], given_config: dict[str, Any], seed: int
) -> None:
    documents, config = table(*texts), DedupConfig(**given_config)
    clusters = clusters_of(documents, config)
    removed = removed_of(clusters)
    kept = drop_duplicates(documents, clusters)
    shuffled = documents.sample(fraction=1, shuffle=True, seed=seed)

    assert len(kept) + len(removed) == len(documents)
    assert set(removed["kept_doc_id"]) <= set(kept["doc_id"])
    assert clusters_of(kept, config).is_empty()
    again = clusters_of(shuffled, config).drop("ref").sort("doc_id")
    assert_frame_equal(again, clusters.drop("ref").sort("doc_id"))


def test_order_of_what_stays_is_kept() -> None:
    documents = pl.DataFrame({"doc_id": ["c", "a", "b", "d"], "text": ["1", "2", "3", "4"]})
    clusters = pl.DataFrame(
        {"doc_id": ["b", "z", "c"], "kept_doc_id": ["c", "c", "c"], "cluster_size": [3, 3, 3]}
    )

    result = drop_duplicates(documents, clusters)

    assert result.to_dict(as_series=False) == {"doc_id": ["c", "a", "d"], "text": ["1", "2", "4"]}


def test_every_step_takes_out_its_own_and_each_document_counts_once() -> None:
    question = "which of these thirteen words in a row is the one that nobody has ever seen"
    notice = "All rights reserved by nobody in particular."
    span = " ".join(f"repeated{i}" for i in range(60))
    body = " ".join(f"own{i}" for i in range(40))
    documents = table(
        "a copy",
        f"{body} {question} {body}",
        f"{body} {span} {body} {body}",
        f"{body}\n{notice}\n{body}",
        notice,
        body,
    )
    start = len(body) + 1
    config = DedupConfig(
        lines={"min_count": 2},
        substrings={"min_words": 50, "min_kept_share": 0.1},
        decontamination={"sets": [{"name": "quiz", "where": "q.jsonl"}]},
    )
    found = Findings(
        clusters=pl.DataFrame(
            {"doc_id": [f"{0:032x}"], "kept_doc_id": [f"{99:032x}"], "cluster_size": [2]}
        ),
        hits=hits_of(1, 3, are_enough=[True, False]),
        spans=pl.DataFrame(
            {"doc_id": [f"{2:032x}"], "start": [start], "stop": [start + len(span)]}
        ),
        repeated=pl.DataFrame({"unit": ["lines"], "text": [notice]}),
    )

    done = dedupe(documents, found, config)

    assert numbers(done.documents["doc_id"]) == [2, 3, 5]
    assert done.documents["text"].to_list() == [f"{body} {body} {body}", f"{body}\n{body}", body]
    assert (done.num_duplicates, done.rejected) == (1, {"contaminated": 1, "lines": 1})
    changes = done.all_changes()
    assert numbers(changes["doc_id"]) == [2, 3, 4]
    assert changes["step"].to_list() == ["substrings", "lines", "lines"]
    assert changes["is_rejected"].to_list() == [False, False, True]
    assert done.hits is not None and numbers(done.hits["doc_id"]) == [1, 3]


def test_tagged_documents_stay() -> None:
    config = DedupConfig(
        decontamination={"sets": [{"name": "quiz", "where": "q.jsonl"}], "action": "tag"}
    )
    found = Findings(NO_CLUSTERS, hits_of(0, 2, are_enough=[True, False]))

    done = dedupe(table("an item", "other", "half an item"), found, config)

    assert done.documents["contamination"].to_list() == [["quiz"], [], []]
    assert done.rejected == {}


def test_paragraphs_are_cut_before_lines() -> None:
    table = pl.DataFrame({"doc_id": ["a"], "text": ["kept text\n\nsame"]})
    both = pl.DataFrame({"unit": ["lines", "paragraphs"], "text": ["same", "same"]})
    cut = {"min_count": 2, "min_chars": 1, "min_kept_share": 0.1}
    config = DedupConfig.model_validate({"lines": cut, "paragraphs": cut})

    result = dedupe(table, Findings(NO_CLUSTERS, repeated=both), config)

    assert result.all_changes()["step"].to_list() == ["paragraphs"]


APACHE = """Copyright 2024 The Authors. All rights reserved.

Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
in compliance with the License. You may obtain a copy of the License at the address below. Unless
required by applicable law or agreed to in writing, software distributed under the License is
distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or
implied. See the License for the specific language governing permissions and limitations."""
CODES = [
    "int add(int a, int b) { return a + b; }",
    "void close_all(Pool *pool) { while (pool->size) drop(pool); }",
    'static const char *NAMES[] = {"red", "green", "blue"};',
]


def in_lines(mark: str) -> str:
    return "\n".join(f"{mark} {line}".rstrip() for line in APACHE.split("\n"))


@pytest.mark.parametrize(
    "header",
    [
        *(in_lines(mark) for mark in ("#", "//", "--", ";;", "%")),
        f"/*\n{APACHE}\n*/",
        f"<?php\n/**\n{in_lines(' *')}\n **/",
        f"<!--\n{APACHE}\n-->",
        f'"""{APACHE}"""',
        f"#!/bin/sh\n\n# What this is for.\n\n{in_lines('#')}",
        f"#ifndef A_H\n#define A_H\n/* {APACHE} */",
        f"// Copyright 2024 The Authors.\n\n{in_lines('//')}",
    ],
)
def test_a_licence_header_makes_no_copies(header: str) -> None:
    texts = [f"{header}\n\n{code}\n" for code in CODES]
    same = [f"{texts[0]}\n", texts[0].replace("2024", "2025")]  # exact, and of another year
    ids = [*"abcde"]

    removed = removed_of(
        clusters_of(pl.DataFrame({"doc_id": ids, "text": texts + same}), DedupConfig())
    )

    assert sorted(removed["method"]) == ["exact", "minhash"]
    assert set(removed["doc_id"]) | set(removed["kept_doc_id"]) == {"a", "d", "e"}


@pytest.mark.parametrize("text", [in_lines("#"), f"/*\n{APACHE}\n*/\n\n", f"The text.\n{APACHE}"])
def test_a_text_that_is_its_licence_counts_as_it_is(text: str) -> None:
    assert without_licence(pl.Series([text])).to_list() == [text]
