"""The stage of questions: each text is asked about once, and its answer is kept with it."""

import dagster as dg
from builders import Build, deduped, open_corpus, sentence, write_corpus, write_jsonl
from chat_server import Reply, chat_server, judge, score
from prelude import Any, Path, json, pl, pytest, re
from verbs import Cli

from assets.annotated.asked_asset import STAGE, key_of
from assets.annotated.asset import plan_annotated
from resources.engine.run_task import PartError
from resources.store.inventory import stored_files
from resources.store.store import StoreError, typed

BEFORE = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped", "tokenizer")
STAGES = (*BEFORE, "tokenized", "asked", "annotated", "bucketed")
JUDGE: dict[str, Any] = {
    **{"name": "judge", "kind": "ask", "model": "any", "prompt": "prompt.txt"},
    **{"columns": {"score": "number"}, "pattern": r"Score: (?P<score>\d+)", "parallel": 4},
}


def judged_corpus(folder: Path, url: str, **changes: Any) -> Any:
    config = write_corpus(folder, annotations=[JUDGE | {"endpoint": url} | changes])
    (folder / "prompt.txt").write_text("How good is it, from 0 to 5?")
    return open_corpus(config)


def answers(corpus: Any, *sources: str) -> pl.DataFrame:
    """The answers about the documents of all sources, as `annotated` has them."""
    found = []
    for source in sources or ("prose", "notes"):
        manifest = corpus.store.newest("annotated", source)
        found += [
            pl.read_parquet(corpus.store.part_file(manifest, part, "annotations").checked())
            for part in manifest.parts
        ]
    return pl.concat(found)


def texts(corpus: Any) -> dict[str, str]:
    """The text of each document, by id."""
    tables = [each for s in ("prose", "notes") for each in deduped(corpus, s, "doc_id", "text")]
    return dict(pl.concat(tables).iter_rows())


def test_each_text_is_asked_about_once_and_its_answer_goes_with_it(
    tmp_path: Path, build: Build
) -> None:
    with chat_server(judge) as (url, seen):
        corpus = judged_corpus(tmp_path, url, drop="score < 2")
        build(corpus, *STAGES)
        said, by_id = answers(corpus), texts(corpus)
        assert dict(said.iter_rows()) == {d: by_id[d].count("e") % 6 for d in said["doc_id"]}
        assert len(seen) == said.height
        left_out = [corpus.store.newest("bucketed", s).stats.rejected for s in ("prose", "notes")]
        dropped = sum(each.get("annotation.judge", 0) for each in left_out)
        assert dropped == said.filter(pl.col("score") < 2).height > 0

        before = len(seen)
        build(corpus, *STAGES)
        assert len(seen) == before
        write_jsonl(tmp_path / "input/notes/new.jsonl", [{"text": sentence(990, 40)}])
        build(corpus, *STAGES)
        assert len(seen) == before + 1 and answers(corpus).height == said.height + 1
        (tmp_path / "input/notes/new.jsonl").unlink()
        build(corpus, *STAGES)
        assert len(seen) == before + 1 and answers(corpus).equals(said)

        (tmp_path / "prompt.txt").write_text("How bad is it?")
        with pytest.raises(StoreError, match="asked.* another `annotations` config.*first"):
            plan_annotated(open_corpus(corpus.config), "prose")
        build(corpus, *STAGES)
        assert len(seen) == before + 1 + said.height
    assert not [*(tmp_path / "store/_answers").glob("*")]


def test_a_budget_is_spent_run_after_run_and_a_sample_grows(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    with chat_server(judge) as (url, seen):
        corpus = judged_corpus(tmp_path, url, max_requests=25, share=0.5)
        numbers = []
        for _ in range(4):
            build(corpus, "raw" if not numbers else "asked", *STAGES[1:])
            stats = corpus.store.newest("asked", "all").stats
            numbers.append((len(seen), left := stats.numbers["left"]))
            told = f"judge: {left} texts are not asked about yet"
            assert (told in cli.out("summary")) == (left > 0)
        total = stats.rows_kept
        assert numbers[0] == (25, total - 25) and numbers[-1] == (total, 0)
        assert total < answers(corpus).height
        config = corpus.config.read_text()
        corpus.config.write_text(
            config.replace("share: 0.5", "share: 1.0").replace(
                "max_requests: 25", "max_requests: null"
            )
        )
        build(corpus := open_corpus(corpus.config), *STAGES)
        assert len(seen) == answers(corpus).height and not answers(corpus)["score"].null_count()


def test_answers_out_of_form_are_counted_and_not_asked_again(tmp_path: Path, build: Build) -> None:
    def answer(message: str) -> Reply:
        return (200, {}, "Well.") if score(message) == 0 else judge(message)

    with chat_server(answer) as (url, seen):
        corpus = judged_corpus(tmp_path, url)
        build(corpus, *STAGES)
        numbers = corpus.store.newest("asked", "all").stats.numbers
        assert numbers["failed"] == {
            "the answer is not in the form": answers(corpus)["score"].null_count()
        }
        [check], manifest = STAGE.checks, corpus.store.newest("asked", "all")
        assert re.fullmatch(
            r"judge: \d+ of \d+ have no answer \(the answer is not in the form: \d+\)",
            check.finds(corpus, typed(manifest, STAGE), ()),
        )
        assert numbers["answered"] == {"judge-2026": len(seen)} and numbers["left"] == 0
        build(corpus, *STAGES)
        assert sum(numbers["requests"].values()) == len(seen)


def test_a_server_that_is_gone_fails_and_what_it_answered_is_kept(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "0.2")
    left = [20]

    def answer(message: str) -> Reply:
        left[0] -= 1
        return judge(message) if left[0] >= 0 else (503, {}, b"")

    with chat_server(answer) as (url, seen):
        corpus = judged_corpus(tmp_path, url)
        with pytest.raises(PartError, match="does not answer: HTTP 503"):
            build(corpus, *STAGES)
        left[0] = 1000
        asked = len(seen)
        found = [*stored_files(corpus.store.root, tmp_path / "runs")]
        assert "answers" in {file.declared.name for file in found if file.declared}
        for number, path in enumerate(sorted((tmp_path / "input").glob("*/*.jsonl"))):
            with path.open("a") as file:  # the part of which some is answered is another now
                file.write(json.dumps({"text": sentence(990 + number, 40)}) + "\n")
        build(corpus, *STAGES)
        assert len(seen) - asked == answers(corpus).height - 20
    assert not [*(tmp_path / "store").glob("_answers/*")]


def test_a_takedown_takes_the_answer_along(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    with chat_server(judge) as (url, seen):
        corpus = judged_corpus(tmp_path, url)
        build(corpus, *STAGES)
        gone = answers(corpus, "prose")["doc_id"][3]
        key = key_of(texts(corpus)[gone])
        assert found_in(corpus, gone) == {"asked", "annotated"}
        assert found_in(corpus, key) == {"asked"}
        cli.out("takedown", "--doc", gone, "--reason", "asked")
        build(corpus, *STAGES)
        cli.out("states", "gc", "--keep", "1", "--delete")
        assert found_in(corpus, gone) == found_in(corpus, key) == set()
        assert len(seen) == answers(corpus).height + 1


def found_in(corpus: Any, value: str) -> set[str]:
    """The stages of answers that have a value in a table."""
    files = [(name, path) for name in ("asked", "annotated") for path in tables(corpus, name)]
    return {name for name, path in files if value in pl.read_parquet(path).write_json()}


def tables(corpus: Any, stage: str) -> list[Path]:
    return [*(corpus.store.root / stage).glob("*/*.parquet")]


def test_a_prompt_that_is_none_is_told(tmp_path: Path, build: Build) -> None:
    corpus = judged_corpus(tmp_path, "http://127.0.0.1:9/v1", prompt="none.txt")
    with pytest.raises(dg.Failure, match="prompt 'none.txt' cannot be read.*Correct `prompt`"):
        build(corpus, *STAGES)
