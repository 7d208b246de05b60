"""Phases that continue another draw what it left, whatever the split and the lengths."""

import re
import shutil
from dataclasses import replace
from itertools import islice

from builders import Build, open_corpus, write_corpus
from command_line import LONGEST_SECONDS, start
from loader_corpus import every_sample
from prelude import Any, Counter, Path, json, np, pytest
from sharded_corpus import BUCKETS, corpus_with, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from assets.mixed.mixture_files import mixture_of, tokens_drawn
from assets.mixed.phase_source_files import own_start, phase_source, source_order, source_rows
from corpus_loader import CorpusLoader
from corpus_loader.mixture import Mixture, check_version, mixture_json, parse_mixture
from corpus_loader.order import order_seed
from pipeline_defs.commands.main import main as run
from pipeline_defs.commands.train.plan import plan_corpus
from resources.store.records import to_json

MAIN = {"budgets": {"prose": 40, "notes": 8}, "batch_samples": 2}
LATE = {"budgets": {"prose": 40, "notes": 24}, "batch_samples": 2, "continues": "main"}
ALL_ROWS = [*range(100, 106), *range(200, 204), *range(300, 304)]


def mixture(corpus: Any, phase: str) -> Mixture:
    """Return the mixture that `mixed` would write for a phase."""
    [task] = plan_mixed(corpus, phase).tasks
    return mixture_of(task.root, task.payload)


def with_phases(corpus: Any, **phases: dict[str, Any]) -> Any:
    """The same shards under other phases."""
    named = [{"name": name} | config for name, config in phases.items()]
    return open_corpus(write_corpus(corpus.config.parent, buckets=BUCKETS, phases=named))


def seen(loader: CorpusLoader) -> list[int]:
    """The first token of every row that a loader gives: the number of the row."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


def starts(found: Mixture) -> dict[str, int]:
    return {source.name: source.start for source in found.sources}


def drawn(found: Mixture) -> list[tuple[str, int, int]]:
    """(source, epoch, row) of all samples of a phase, in its order."""
    order = found.order(found.seed)
    samples = order.samples(np.arange(len(order)))
    names = [found.sources[number].name for number in samples.source]
    return list(zip(names, samples.epoch.tolist(), samples.row.tolist(), strict=True))


@pytest.mark.parametrize("seed", [None, 5])
def test_two_phases_read_every_row_of_their_sources_once(
    tmp_path: Path, build: Build, seed: int | None
) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)
    build(corpus, "mixed")
    root = corpus.store.root

    first = seen(every_sample(root, "main", seed=seed))
    then = seen(every_sample(root, "late", seed=seed))

    assert (len(first), len(then)) == (6, 8)
    assert sorted(first + then) == ALL_ROWS
    assert first != seen(every_sample(root, "main", seed=9))


def test_a_phase_goes_on_at_a_cursor_and_resumes_with_other_ranks(
    tmp_path: Path, build: Build
) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)
    build(corpus, "mixed")
    root = corpus.store.root
    ranks = [CorpusLoader(root, "main", rank, 2, batch_size=1) for rank in range(2)]
    before = [next(iter(loader)) for _ in range(2) for loader in ranks]
    [cursor] = {loader.state_dict()["cursor"] for loader in ranks}
    assert cursor == 4

    at = {"continues": {"phase": "main", "at": cursor}}
    stopped = with_phases(corpus, main=MAIN, late=LATE | at)
    build(stopped, "mixed")
    ranks = [CorpusLoader(root, "late", rank, 3, batch_size=1) for rank in range(3)]
    after = [next(iter(loader)) for loader in ranks]
    [state] = {tuple(loader.state_dict().items()) for loader in ranks}
    alone = every_sample(root, "late", batch_size=4)
    alone.load_state_dict(dict(state))

    rows = Counter([int(batch.tokens[0, 0]) for batch in before + after] + seen(alone))
    found = mixture(stopped, "late")
    assert sum(starts(found).values()) == 4
    for source in found.sources:
        epochs, rest = divmod(source.start + source.samples, source.rows)
        is_notes = source.name == "notes"
        of_source = [times for row, times in rows.items() if (row >= 300) == is_notes]
        expected = [epochs + 1] * rest + [epochs] * (source.rows - rest)
        assert sorted(of_source, reverse=True) == [times for times in expected if times]


def test_a_third_phase_knows_what_the_first_drew_and_the_second_did_not(tmp_path: Path) -> None:
    corpus = with_phases(
        corpus_with(tmp_path, MAIN),
        main=MAIN | {"seed": 3},
        late={"budgets": {"prose": 24}, "batch_samples": 4, "continues": "main"},
        last={"budgets": {"notes": 24, "prose": 16}, "batch_samples": 5, "continues": "late"},
    )
    first, then, last = (mixture(corpus, name) for name in ("main", "late", "last"))

    expected = [{"prose": 0, "notes": 0}, {"prose": 5}, {"notes": 1, "prose": 8}]
    assert [starts(each) for each in (first, then, last)] == expected
    rows = drawn(first) + drawn(then) + drawn(last)
    assert len(rows) == len(set(rows)) == 14
    assert {epoch for _, epoch, _ in rows} == {0}
    assert {each.seed for each in (first, then, last)} == {order_seed(3, "main")}
    assert last.seed_of(8) == order_seed(8, "main") == first.seed_of(8)


@pytest.mark.parametrize("planned", [1, 9, 17, 18, 30, 60])
def test_samples_of_other_lengths_are_counted_from_where_the_earlier_phase_stopped(
    tmp_path: Path, planned: int
) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    lengths = [3, 5, 1, 9, 4, 7]
    write_sharded(corpus.store, "notes", [shard(300, lengths, None)], bucket="0-128")
    late = {"budgets": {"notes": planned, "prose": 8}, "continues": "main"}
    corpus = with_phases(corpus, main=MAIN | {"budgets": {"notes": 19}}, late=late)
    found = mixture(corpus, "late")

    [notes, _] = found.sources
    only = found.order(found.seed).epochs
    rows = only.rows(np.zeros(40, np.intp), np.arange(40))[0]
    tokens = np.array(lengths)[rows]
    first = mixture(corpus, "main").sources[0]
    assert (notes.start, tokens[: notes.start].sum()) == (first.samples, first.realised_tokens)
    reached = np.cumsum([0, *tokens[notes.start :]])
    assert notes.samples == np.abs(reached - planned).argmin()
    assert notes.realised_tokens == reached[notes.samples]
    assert notes.epochs == pytest.approx(tokens[: notes.start + notes.samples].sum() / 29, abs=1e-6)


def test_caps_and_warnings_count_the_earlier_phases(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN | {"budgets": {"prose": 240}})

    def late(prose: int, **config: Any) -> Any:
        asked = {"budgets": {"prose": prose}, "continues": "main"} | config
        return with_phases(corpus, main=MAIN | {"budgets": {"prose": 240}}, late=asked)

    assert mixture(late(80), "late").warnings == ()
    [warning] = mixture(late(88), "late").warnings
    assert warning.startswith("'prose' is repeated 4.1 times; more than 4 epochs teach")
    with pytest.raises(MixError, match=r"at most prose 160.*`max_epochs`"):
        mixture(late(168, max_epochs=5), "late")
    with pytest.raises(MixError, match=r"which has 80, after 240 of earlier phases: 5.1 epochs"):
        mixture(late(168, max_epochs=5), "late")
    assert mixture(late(160, max_epochs=5), "late").sources[0].epochs == 5
    unimax = {"budgets": None, "weighting": "unimax", "sources": ["prose", "notes"]}
    shares = mixture(late(0, tokens=150, **unimax), "late").sources
    assert [source.planned_tokens for source in shares] == [75, 75]
    shares = mixture(late(0, tokens=190, **unimax), "late").sources
    assert [source.planned_tokens for source in shares] == [80, 110]


def test_the_plan_shows_what_was_drawn_before(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)
    found = json.loads(to_json(plan_corpus(corpus, ["main", "late"])))

    main, late = (found["phases"][name]["sources"]["prose"] for name in ("main", "late"))
    assert "drawn_before" not in main
    assert (late["drawn_before"], late["epochs"], late["planned_tokens"]) == (40, 1.0, 40)
    assert found["sources"]["prose"]["epochs"] == 1.0
    inside = with_phases(corpus, main=MAIN, late=LATE | {"continues": {"phase": "main", "at": 3}})
    refused = plan_corpus(inside, ["late"]).phases["late"]
    assert refused.faults == [
        "phase 'late' continues 'main': position 3 is inside a block of 2 samples. Give 2, and 1 "
        "samples are drawn again; or 4, and 1 are passed over"
    ]
    with pytest.raises(MixError, match="position 3 is inside a block"):
        plan_mixed(inside, "late")


def test_a_source_without_samples_is_found_by_the_row_at_which_it_goes_on(tmp_path: Path) -> None:
    lengths = [3, 5, 1, 9, 4, 7]
    corpus = corpus_with(tmp_path, MAIN)
    write_sharded(corpus.store, "notes", [shard(300, lengths, None)], bucket="0-128")
    source = phase_source(corpus.store.newest("sharded", "notes"), corpus.settings.phase("main"))
    config = corpus.settings.phase("main")
    start = own_start(config)
    rows = source_order(config, source, start.seed).rows(range(12))[0]

    for number, row in enumerate(rows):
        there = replace(start, samples={"notes": number})
        assert source_rows(corpus.store.root, config, source, there).first == lengths[row]
        drawn_before = sum(lengths[each] for each in rows[:number])
        assert tokens_drawn(corpus.store.root, config, source, there) == drawn_before


def test_a_plan_before_all_is_sharded_says_what_it_cannot_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = corpus_with(tmp_path, MAIN, {"budgets": {"prose": 40}, "continues": "main"})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert run(["plan"]) == 0
    assert re.search(r"drawn .*\n.* before ", capsys.readouterr().out)
    shutil.rmtree(corpus.store.root / "sharded" / "notes")

    found = plan_corpus(corpus, ["late"]).phases["late"]

    assert found.verdict == "ok"
    assert found.sources["prose"].epochs == 0.5
    assert found.notes == [
        "what 'main' draws is not counted in the epochs before all its sources, and those of this "
        "phase, are sharded"
    ]


def test_the_fingerprint_names_where_a_phase_goes_on(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)

    def fingerprints(first: dict[str, Any], then: dict[str, Any]) -> tuple[str, str]:
        changed = with_phases(corpus, main=MAIN | first, late=LATE | then)
        [task] = plan_mixed(changed, "late").tasks
        return task.fingerprint, mixture(changed, "late").fingerprint

    found = [
        fingerprints({}, {}),
        fingerprints({}, {"continues": {"phase": "main", "at": 4}}),
        fingerprints({"seed": 1}, {}),
        fingerprints({"budgets": {"prose": 48, "notes": 8}}, {}),
    ]
    assert [len(set(column)) for column in zip(*found, strict=True)] == [4, 4]
    _, same_place = fingerprints({}, {"continues": {"phase": "main", "at": 6}})
    assert same_place == found[0][1]
    alone = {key: value for key, value in LATE.items() if key != "continues"}
    phases = with_phases(corpus, main=MAIN, late=alone)
    assert mixture(phases, "late").fingerprint == "3bed8d43951f986ccb45ab3ec5d5c73f"


def test_only_mixtures_that_continue_have_the_new_fields(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)
    found = mixture(corpus, "late")
    plain, continued = mixture_json(mixture(corpus, "main")), mixture_json(found)

    assert plain["version"] == 1
    assert "order_phase" not in plain
    assert all("start" not in source for source in plain["sources"])
    assert (continued["version"], continued["order_phase"]) == (5, "main")
    written = {source["name"]: source["start"] for source in continued["sources"]}
    assert written == {"prose": 5, "notes": 1}
    check_version(to_json(continued))
    assert parse_mixture(to_json(continued)) == found
    # Its order never changes.
    assert found.fingerprint == "c942a4989275eb319d801730ee42ed4d"
    assert drawn(found) == [
        *(("notes", 0, 2), ("prose", 0, 7), ("prose", 0, 5), ("prose", 0, 1), ("notes", 0, 1)),
        *(("prose", 0, 9), ("notes", 0, 0), ("prose", 0, 2)),
    ]


CLASSES = {"score": "meta.n", "limits": [16, 38]}
CLASSED = {
    "buckets": {"mode": "pack", "sequence_length": 16, "classes": CLASSES},
    "shards": {"formats": ["megatron"], "target_bytes": 1024},
}


def test_three_phases_of_classes_through_the_command(tmp_path: Path) -> None:
    """Documents of `prose` are in classes by number; each phase weighs them in its own way."""
    names = ("general", "anneal", "late")
    weighed: list[dict[str, Any]] = [
        {"budgets": {"prose": 500, "notes": 300}, "upsample": [[16, 1], [38, 1], [40, 1]]},
        {"budgets": {"prose": 400}, "upsample": [[16, 0], [38, 1], [40, 2]]},
        {"budgets": {"notes": 200, "prose": 700}, "upsample": [[16, 1], [38, 2], [40, 0]]},
    ]
    weighed[1]["continues"] = {"phase": "general", "at": 32}
    weighed[2]["continues"] = "anneal"
    phases = [{"name": name, "batch_samples": 8} | weighed[i] for i, name in enumerate(names)]
    config = write_corpus(tmp_path, **CLASSED, phases=phases)
    process = start(config, "pipeline_defs.commands.main", "build")
    assert process.wait(LONGEST_SECONDS) == 0, (tmp_path / "out.log").read_text()[-3000:]

    root = tmp_path / "store"
    general, anneal, late = (every_sample(root, name, batch_size=4) for name in names)
    seen_rows = [
        (loader.sources[source], row.tobytes())
        for loader, stop in ((general, 8), (anneal, None), (late, None))
        for batch in islice(loader, stop)
        for source, row in zip(batch.sources, batch.tokens, strict=True)
    ]
    times = Counter(seen_rows)
    reached = {source.name: source for source in (*anneal.mixture.sources, *late.mixture.sources)}
    assert set(reached) == {"notes", "prose/class-0", "prose/class-1", "prose/class-2"}
    for name, source in reached.items():
        epochs, rest = divmod(source.start + source.samples, source.rows)
        of_source = [count for (drawn_of, _), count in times.items() if drawn_of == name]
        assert sum(of_source) == source.start + source.samples
        assert sorted(of_source, reverse=True) == (
            [epochs + 1] * rest + [epochs] * (source.rows - rest) * bool(epochs)
        )
