"""Topics that an annotator finds in the corpus: what is trained, kept and renewed."""

import json
from random import Random

from builders import Build, deduped, open_corpus, write_corpus, write_jsonl
from command_line import LONGEST_SECONDS, start
from prelude import Any, Path, pl, pytest
from verbs import Cli

from assets.annotated.asset import plan_annotated
from pipeline_defs.corpus_tables import newest_tables
from resources.store.store import StoreError

SUBJECTS = ("rivers", "engines", "operas")
TOPICS: dict[str, Any] = {"name": "about", "kind": "topics", "most_topics": 3}
BEFORE = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped", "tokenizer")
STAGES = (*BEFORE, "tokenized", "annotators", "annotation_models", "annotated")


def text(random: Random, subject: str) -> str:
    """A text of words of its subject, each of 200, between common ones."""
    words = [f"{subject}{random.randrange(200)}" for _ in range(60)]
    return " and the ".join(" ".join(words[i : i + 4]) for i in range(0, 60, 4)) + "."


def subjects_corpus(folder: Path, *annotators: Any, **changes: Any) -> Any:
    """Texts of three subjects in two sources; n is even where one is about rivers."""
    config = write_corpus(folder, annotations=[*annotators], **changes)
    random = Random(1)
    for source in ("prose", "notes"):
        for path in (folder / "input" / source).iterdir():
            path.unlink()
    records = [{"text": text(random, SUBJECTS[n % 3]), "n": n} for n in range(450)]
    write_jsonl(folder / "input/prose/a.jsonl", records[:300])
    write_jsonl(folder / "input/notes/a.jsonl", records[300:])
    return open_corpus(config)


def said(corpus: Any, annotator: str) -> dict[str, dict[str, Any]]:
    """What an annotator says of each document of both sources, by its subject and id."""
    found = {}
    for source in ("prose", "notes"):
        manifest = corpus.store.newest("annotated", source)
        parts = [part for part in manifest.parts if part.stats.numbers["annotator"] == annotator]
        for part in parts:
            path = corpus.store.part_file(manifest, part, "annotations").checked()
            found |= {row["doc_id"]: row for row in pl.read_parquet(path).iter_rows(named=True)}
    return found


def subjects(corpus: Any) -> dict[str, str]:
    """The subject of each document, by id."""
    tables = [each for s in ("prose", "notes") for each in deduped(corpus, s, "doc_id", "meta")]
    rows = pl.concat(tables).iter_rows()
    return {doc_id: SUBJECTS[json.loads(meta)["n"] % 3] for doc_id, meta in rows}


def test_topics_are_shown_and_found_again(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = subjects_corpus(tmp_path, TOPICS)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert "No topics are found yet" in cli.out("topics", code=1)
    build(corpus, *STAGES)

    rows = cli.json("topics")
    assert [(row["prose"], row["notes"]) for row in rows] == [(100, 50)] * 3
    about = said(corpus, "about")
    for row in cli.json("annotations")["labels"]:
        example = about[row["example"]]
        assert example["topic"] == row["label"]
    write_jsonl(tmp_path / "input/notes/b.jsonl", [{"text": "a and the b", "n": 1}])
    build(corpus, *STAGES)
    before = corpus.store.newest("annotation_models", "all").fingerprint
    renewing = start(corpus.config, "pipeline_defs.commands.main", "topics", "--renew")
    assert renewing.wait(LONGEST_SECONDS) == 0, (tmp_path / "out.log").read_text()
    assert "annotates all documents again" in (tmp_path / "out.log").read_text()
    assert corpus.store.newest("annotation_models", "all").fingerprint != before


def test_topics_of_another_config_or_version_are_refused(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = subjects_corpus(tmp_path, TOPICS)
    build(corpus, *STAGES)
    with monkeypatch.context() as patch:
        patch.setattr("assets.annotated.asset.LEXICAL", "vectors-of-a-later-version")
        with pytest.raises(StoreError, match="lacks a model of the annotator 'about'.*first"):
            plan_annotated(corpus, "prose")
    config = corpus.config.read_text()
    corpus.config.write_text(config.replace("most_topics: 3", "most_topics: 2"))
    other = open_corpus(corpus.config)

    with pytest.raises(StoreError, match="annotation_models.* another `annotations` config.*first"):
        plan_annotated(other, "prose")

    build(other, "annotation_models", "annotated")
    assert {row["topic"][:1] for row in said(other, "about").values()} == {"0", "1"}


def test_a_corpus_without_topics_says_so(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    assert "no annotator with `kind: topics`" in cli.err(2, "topics")


def test_topics_are_the_subjects_and_are_kept_while_documents_come(
    tmp_path: Path, build: Build
) -> None:
    corpus = subjects_corpus(tmp_path, TOPICS | {"drop": "topic LIKE '%rivers%'"})
    build(corpus, *STAGES, "bucketed")
    about, of = said(corpus, "about"), subjects(corpus)
    found = {(of[doc_id], row["topic"]) for doc_id, row in about.items()}
    assert len(found) == 3 and all(subject in str(topic) for subject, topic in found)
    assert all(0 <= row["distance"] <= 2 for row in about.values())
    left_out = [corpus.store.newest("bucketed", s).stats.rejected for s in ("prose", "notes")]
    assert [each["annotation.about"] for each in left_out] == [100, 50]
    before = corpus.store.newest("annotation_models", "all").fingerprint
    tables = newest_tables(corpus)
    assert sorted(tables["topics"]["documents"]) == [50, 50, 50, 100, 100, 100]
    far = tables["annotated"]["far"].to_list()
    assert tables["annotated"].drop("far").rows() == [
        ("prose", "about", 300, 300, 100),
        ("notes", "about", 150, 150, 50),
    ]
    assert 1 <= sum(far) <= 5  # about 1 % of 450

    random = Random(2)
    write_jsonl(tmp_path / "input/notes/b.jsonl", [{"text": text(random, "operas"), "n": 2}])
    build(corpus, *STAGES)
    assert corpus.store.newest("annotation_models", "all").fingerprint == before
    assert len(said(corpus, "about")) == len(about) + 1

    renewed = open_corpus(corpus.config)
    object.__setattr__(renewed, "flags", frozenset({"renew"}))
    build(renewed, "annotation_models")
    assert corpus.store.newest("annotation_models", "all").fingerprint != before
