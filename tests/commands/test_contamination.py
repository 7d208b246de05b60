"""`corpus contamination` shows passages of evaluation items, and the sets that a name names."""

import re

import every_stage
from builders import open_corpus, sentence, write_corpus, write_jsonl
from prelude import Path, json, pytest
from verbs import Cli

from assets.deduped.asset import STAGE as DEDUPED
from assets.stages import STAGES
from pipeline_defs.commands.look.contamination import AROUND, marked
from pipeline_defs.corpus_tables import newest_tables
from resources.settings.decontamination import (
    DecontaminationConfig,
    EvaluationSet,
    known_sets,
)

QUESTION = sentence(900, 23)
EDGE = "the words before it\x1b[31m"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a corpus as far as `deduped`: a document has an item, another a third of one."""
    quiz = {"name": "quiz", "where": "quiz.jsonl", "fields": ["question"]}
    dedup = {"decontamination": {"sets": [quiz], "ngram": "5-words", "min_share": 0.5}}
    filters = {"rules": {"length": {"min_chars": 20}}, "language": {"backend": "none"}}
    corpus = open_corpus(write_corpus(tmp_path, filters=filters, dedup=dedup))
    write_jsonl(tmp_path / "quiz.jsonl", [{"question": QUESTION}])
    few = " ".join(QUESTION.split()[:8])
    texts = [f"{EDGE} {QUESTION.upper()} and after", f"{few} but then it goes on otherwise"]
    write_jsonl(tmp_path / "input/notes/more.jsonl", [{"text": text} for text in texts])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    stages = STAGES[: STAGES.index(DEDUPED) + 1]
    every_stage.build(corpus, [stage for stage in stages if stage.is_used(corpus.settings)])
    return tmp_path


def test_review_shows_a_passage_above_its_item(built: Path, cli: Cli) -> None:
    (hit,) = cli.json("contamination", "review")

    assert (hit["set"], hit["source"], hit["item_share"]) == ("quiz", "notes", 1.0)
    assert hit["passage"].startswith(QUESTION.upper()[:100])
    assert hit["item_text"].split() == QUESTION.removesuffix(".").split()

    said = cli.out("contamination", "review", "--set", "quiz", "--source", "notes")
    assert "quiz: 1 of its items in 1 documents" in said and "\x1b" not in said
    assert said.index(f"⟦{QUESTION.upper()[:30]}") < said.index(f"⟦{QUESTION[:30]}")


def test_the_report_counts_documents_of_each_set(built: Path, cli: Cli) -> None:
    corpus = open_corpus(built / "pipeline.yaml")

    assert newest_tables(corpus)["contaminated"].rows() == [("notes", "quiz", 1, 1)]


def test_a_document_partly_like_an_item_stays_and_says_so(built: Path, cli: Cli) -> None:
    _, part = cli.json("contamination", "review", "--rare")

    said = cli.out("trace", part["doc_id"])

    assert re.search(r"deduped: kept, partly like item \S+ of evaluation set quiz \(17% of", said)


def test_rare_passages_are_shown_on_request(built: Path, cli: Cli) -> None:
    whole, part = cli.json("contamination", "review", "--rare")

    assert whole["is_contaminated"] and not part["is_contaminated"]
    assert "contaminated: no: too little of the item" in cli.out(
        "contamination", "review", "--rare"
    )
    assert "1 more: --most" in cli.out("contamination", "review", "--rare", "--most", "1")


def test_without_evaluation_sets_there_is_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))

    assert "names no evaluation set" in cli.err(2, "contamination", "review")


def test_a_long_item_is_cut_around_what_it_shares() -> None:
    before, after = "b " * 200, " a" * 200
    shared = "one two three four five"

    segments = marked(f"{before}{shared}{after}", "One, two three four FIVE!", "words")

    kinds = [kind for kind, _ in segments]
    assert kinds == ["omitted", "same", "passage", "same", "omitted"]
    assert segments[2][1].strip() == shared
    assert {len(segments[1][1]), len(segments[3][1])} <= {AROUND, AROUND - 1}


def test_known_sets_need_no_more_than_their_name(cli: Cli) -> None:
    given = ["gsm8k", "mmlu", {"name": "own", "where": "own.jsonl"}]
    sets = DecontaminationConfig.model_validate({"sets": given}).sets

    assert [each.where for each in sets] == [
        ("hf://openai/gsm8k",),
        ("hf://cais/mmlu",),
        ("own.jsonl",),
    ]
    assert (sets[1].split, sets[1].config, sets[1].fields) == (
        "test",
        "all",
        ("question", "choices"),
    )
    with pytest.raises(ValueError, match="'gsm9k' is none of the known evaluation sets"):
        DecontaminationConfig.model_validate({"sets": ["gsm9k"]})
    for name, known in known_sets().items():
        assert EvaluationSet.model_validate(known.keys).name == name and known.license
    assert json.loads(cli.out("contamination", "sets", "--json"))["gsm8k"]["license"] == "MIT"
    assert "hf://openai/gsm8k" in cli.out("contamination", "sets")
