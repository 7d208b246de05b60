"""The calls that stages make before the first part load the kernels that the parts need."""

from concurrent.futures import Future

from builders import open_corpus, write_corpus
from prelude import Any, Path, pl, pytest

from assets.deduped.duplicates_asset import dedup_warm_ups
from assets.filtered.asset import STAGE as FILTERED
from assets.filtered.filter_documents import filter_warm_ups
from assets.filtered.rules.rules import rules_for
from assets.filtered.score_counts import PROVIDERS, FilterData
from assets.filtered.scores import counts_behind, scores_of
from assets.mixed.asset import STAGE as MIXED
from assets.stages import STAGES
from assets.tokenized.tokenizer_asset import STAGE as TOKENIZER
from pipeline_defs import compile_kernels
from resources.kernel_cache import num_compiled, num_kernels
from resources.settings.dedup import DedupConfig
from resources.settings.filtering.filters import FilterConfig
from resources.settings.pipeline import SettingsError

FINEWEB = {"presets": ["gopher-quality", "fineweb"], "pii": {}}


def test_the_calls_of_every_stage_run(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path, filters=FINEWEB))
    calls = [call for stage in STAGES if stage.warm_up for call in stage.warm_up(corpus)]

    results = [call() for call in calls]

    assert any(isinstance(result, pl.DataFrame) for result in results)


def test_every_count_behind_a_rule_is_called_for(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path, filters=FINEWEB))
    config: FilterConfig = corpus.settings.filters_for("prose")
    scores = [rule.score for rule in rules_for(config.rules)]
    wanted = counts_behind(scores, scores_of(config.rules))
    computed = [call() for call in filter_warm_ups(config, FilterData())]
    columns = {c for frame in computed if isinstance(frame, pl.DataFrame) for c in frame.columns}

    assert wanted & set().union(*(names for names, _ in PROVIDERS)) <= columns


@pytest.mark.parametrize("clusters", ["star", "components"])
def test_equal_texts_are_clustered(clusters: str) -> None:
    config = DedupConfig.model_validate({"clusters": clusters, "fields": ["url"]})

    tables = [call() for call in dedup_warm_ups(config)]

    assert [len(table) for table in tables if isinstance(table, pl.DataFrame)] == [2]


@pytest.mark.parametrize(("is_cold", "stages"), [(False, STAGES), (True, [MIXED])])
def test_compiled_kernels_and_stages_without_kernels_are_not_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_cold: bool, stages: Any
) -> None:
    monkeypatch.setattr(compile_kernels, "is_cold", lambda *_: is_cold)

    compile_kernels.compile_kernels(stages)

    assert capsys.readouterr().out == ""
    if is_cold:  # those without calls of their own are compiled, too
        assert compile_kernels.cold_stages([TOKENIZER, MIXED]) == ("tokenizer",)


@pytest.mark.parametrize(
    ("settings", "called"),
    [
        ({}, set()),
        ({"dedup": {"lines": {}}}, {"line_units"}),
        ({"dedup": {"substrings": {}}}, {"word_runs"}),
        ({"dedup": {"clusters": "components"}}, {"component_survivors"}),
        ({"classifier": {"good": ["prose"], "bad": ["notes"]}}, {"word_features"}),
        (
            {"annotations": [{"name": "about", "kind": "topics"}]},
            {"nearest_centres", "word_vectors", "word_features"},
        ),
    ],
)
def test_modules_that_the_settings_do_not_call_are_not_compiled(
    tmp_path: Path, settings: dict[str, Any], called: set[str]
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, **settings))

    names = set(compile_kernels.called_modules(STAGES, corpus.settings))

    assert "assets.tokenized.kernels.marked_lists" in names
    assert called == {name.rpartition(".")[2] for name in names & {*compile_kernels.CALLED_IF}}
    every = set(compile_kernels.called_modules(STAGES, None))
    assert every >= names | {*compile_kernels.CALLED_IF}


def test_the_progress_ends_with_the_number_of_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    package = "assets.tokenized.kernels"
    done: Future[None] = Future()
    done.set_result(None)

    compile_kernels.show_progress([done], [package])

    compiled, most = num_compiled(package), num_kernels(package)
    line = f"\r{compiled} of at most {most} kernels \r{compiled} kernels are compiled.\n"
    assert capsys.readouterr().out == line
    assert 0 < most < 10


def test_settings_that_call_other_kernels_are_cold_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mark(**settings: Any) -> str:
        monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path, **settings)))
        return compile_kernels.mark_of([TOKENIZER])

    rules = [{"rules": {"length": {"min_chars": least}}} for least in (5, 60, None)]
    assert mark(filters=rules[0]) == mark(filters=rules[1]) != mark(filters=rules[2])
    assert mark(dedup={"threshold": 0.7}) == mark(dedup={"threshold": 0.9})
    assert mark(dedup={"lines": {}}) != mark()


def test_a_classifier_that_is_not_trained_yet_is_not_called(tmp_path: Path) -> None:
    filters = {"rules": {"quality": {"min_score": 0.5}}}
    examples = {"good": ["prose"], "bad": ["notes"]}
    corpus = open_corpus(write_corpus(tmp_path, filters=filters, classifier=examples))

    assert FILTERED.warm_up
    for call in FILTERED.warm_up(corpus):
        call()


def test_a_filter_file_that_is_missing_is_named_before_any_call(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path, filters={"custom": "gone.py"}))

    assert FILTERED.warm_up
    with pytest.raises(SettingsError, match=r"source 'prose'.*gone\.py"):
        list(FILTERED.warm_up(corpus))
