"""Phases whose weights change: planned, mixed, read by ranks and resumed, continued."""

import re
from fractions import Fraction
from itertools import islice

from builders import Build, open_corpus, write_corpus
from command_line import LONGEST_SECONDS, start
from loader_corpus import every_sample
from prelude import Any, Counter, Path, json, np, pytest
from sharded_corpus import BUCKETS, corpus_with, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import ClassTokens, MixError
from assets.mixed.mixture_files import mixture_of, realised
from assets.mixed.plan import PhasePlan, plan_phase
from corpus_loader import CorpusLoader
from corpus_loader.find_mixture import find_mixture
from corpus_loader.mixture import Mixture, check_version, mixture_json, parse_mixture
from pipeline_defs.commands.answers import nested
from pipeline_defs.commands.train.plan import plan_corpus
from pipeline_defs.corpus_tables import newest_tables
from resources.settings.phases import PhaseConfig
from resources.store.loader_files import StoreFiles
from resources.store.records import to_json

AVAILABLE = {"web": 1000, "books": 600}
SWAPPED = {0.0: {"web": 0.8, "books": 0.2}, 1.0: {"web": 0.2, "books": 0.8}}
MAIN = {"weights_at": {0.0: {"prose": 1}, 1.0: {"notes": 1}}, "tokens": 96, "batch_samples": 4}


def plan(**config: Any) -> PhasePlan:
    return plan_phase(PhaseConfig.model_validate({"name": "p"} | config), AVAILABLE)


def planned(found: PhasePlan) -> dict[str, int]:
    return {budget.source: budget.planned for budget in found.budgets}


def mixture(corpus: Any, phase: str) -> Mixture:
    """Return the mixture that `mixed` would write for a phase."""
    [task] = plan_mixed(corpus, phase).tasks
    return mixture_of(task.root, task.payload)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"weights_at": SWAPPED, "tokens": 800}, {"web": 400, "books": 400}),
        ({"weights_at": SWAPPED}, {"web": 600, "books": 600}),  # up to one epoch of books
        ({"weights_at": SWAPPED, "one_epoch_of": "web"}, {"web": 1000, "books": 1000}),
        (
            {"weights_at": {0: {"web": 3}, 0.25: {"web": 3, "books": 1}, 1: {"books": 2}}},
            {"web": 600, "books": 600},
        ),
        (
            {"weights_at": {0.0: {"web": 1}, 1.0: {"web": 1, "books": 3}}},
            {"web": 1000, "books": 600},
        ),
    ],
)
def test_a_budget_is_the_mean_of_the_weights(
    config: dict[str, Any], expected: dict[str, int]
) -> None:
    found = plan(**config)
    assert planned(found) == expected
    assert found.verdict in ("ok", "warning") and not found.faults


def test_weights_are_normalised_at_each_knot_with_a_message() -> None:
    found = plan(weights_at={0.0: {"web": 3, "books": 1}, 1.0: {"web": 0.2, "books": 0.8}})

    assert [budget.shares_at for budget in found.budgets] == [
        (Fraction(3, 4), Fraction(1, 5)),
        (Fraction(1, 4), Fraction(4, 5)),
    ]
    assert found.warnings == (
        "the weights at 0 sum to 4, not 1; normalised to web 0.75, books 0.25",
    )


def test_caps_hold_for_the_mean() -> None:
    found = plan(weights_at=SWAPPED, tokens=3000, max_epochs=2)

    assert found.feasible == {"tokens": 2400}
    assert found.faults == (
        "phase 'p' asks for 1,500 tokens of 'books', which has 600: 2.5 epochs, over its cap of 2. "
        "Set `tokens` to at most 2,400 at these shares; or raise `max_epochs` or the `epochs` of a "
        "source.",
    )


def test_classes_share_the_line_of_their_source() -> None:
    config = {"name": "p", "weights_at": SWAPPED, "tokens": 900, "upsample": [[0.5, 1], [1.0, 2]]}
    classes = {"web": {f"web/class-{i}": ClassTokens(500, Fraction(1 + i)) for i in range(2)}}
    found = plan_phase(PhaseConfig.model_validate(config), AVAILABLE, classes=classes)

    assert {unit.source: (unit.planned, unit.shares_at) for unit in found.units} == {
        "web/class-0": (150, (Fraction(4, 15), Fraction(1, 15))),
        "web/class-1": (300, (Fraction(8, 15), Fraction(2, 15))),
        "books": (450, (Fraction(1, 5), Fraction(4, 5))),
    }


def test_a_mixture_names_the_weights_and_older_loaders_refuse_it(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN, {"weights": {"prose": 1, "notes": 1}, "tokens": 96})
    found, plain = mixture(corpus, "main"), mixture(corpus, "late")
    encoded = mixture_json(found)

    assert (encoded["version"], encoded["knots"]) == (6, (0.0, 1.0))
    expected = {"prose": (1.0, 0.0), "notes": (0.0, 1.0)}
    assert {source["name"]: source["weights_at"] for source in encoded["sources"]} == expected
    assert parse_mixture(to_json(encoded)) == found
    check_version(to_json(encoded))
    said = mixture_json(plain)
    assert (said["version"], "knots" in said) == (1, False)
    assert all("weights_at" not in source for source in said["sources"])
    assert [s.samples for s in found.sources] == [s.samples for s in plain.sources]


def test_the_fingerprint_names_the_weights(tmp_path: Path) -> None:
    def fingerprint(weights_at: dict[float, dict[str, float]]) -> str:
        return mixture(corpus_with(tmp_path, MAIN | {"weights_at": weights_at}), "main").fingerprint

    swapped = {0.0: {"prose": 1}, 1.0: {"notes": 1}}
    back = {0.0: {"notes": 1}, 1.0: {"prose": 1}}
    bent = {0.0: {"prose": 1}, 0.5: {"prose": 1, "notes": 1}, 1.0: {"notes": 1}}
    assert fingerprint(swapped) == "786e6f1ce1c58e4d19e94182823e093f"
    with pytest.raises(MixError, match="draws no sample"):
        mixture(corpus_with(tmp_path, MAIN | {"tokens": 3}), "main")
    assert len({fingerprint(weights) for weights in (swapped, back, bent)}) == 3


def test_the_chart_follows_the_weights(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, MAIN | {"tokens": 800, "epochs": {"notes": 50}})
    shares = realised(mixture(corpus, "main")).shares

    assert shares.shape == (26, 2)  # the blocks of 100 samples of 8 tokens, and of some of 7
    line = 1 - (np.arange(26) + 0.5) / 26
    assert np.abs(shares[:, 0] - line).max() < 0.5  # two of the four samples of a block
    assert (shares[:5, 0].mean(), shares[-5:, 0].mean()) == pytest.approx((0.9, 0.1), abs=0.06)


def test_a_phase_goes_on_where_weights_stopped_changing(tmp_path: Path) -> None:
    late = {"budgets": {"prose": 40, "notes": 8}, "continues": {"phase": "main", "at": 8}}
    corpus = corpus_with(tmp_path, MAIN, late)
    first, then = mixture(corpus, "main"), mixture(corpus, "late")
    order = first.order(first.seed)
    sources = order.samples(np.arange(8)).source.tolist()

    starts = {source.name: source.start for source in then.sources}
    assert starts == {"prose": sources.count(0), "notes": sources.count(1)}
    changing = {"continues": "main", "weights_at": MAIN["weights_at"], "tokens": 48}
    both = mixture(corpus_with(tmp_path, MAIN, changing), "late")
    assert (mixture_json(both)["version"], both.knots) == (6, (0.0, 1.0))
    assert [source.start for source in both.sources] == [6, 7]


@pytest.mark.parametrize("tokens", [900, 901, 950])
def test_samples_of_other_lengths_keep_the_line_in_tokens(tmp_path: Path, tokens: int) -> None:
    """Rows of prose have 8 tokens, those of notes 80: one tenth of the samples, half of tokens."""
    corpus = corpus_with(tmp_path, MAIN)
    write_sharded(corpus.store, "notes", [shard(300, [80] * 6, None)], bucket="0-128")
    phase = MAIN | {"tokens": tokens, "epochs": {"prose": 99, "notes": 99}}
    phases = [{"name": "main"} | phase]
    found = mixture(open_corpus(write_corpus(tmp_path, buckets=BUCKETS, phases=phases)), "main")

    assert [source.samples for source in found.sources] == [round(tokens / 16), round(tokens / 160)]
    order = found.order(found.seed)
    length = np.array([8, 80])[order.samples(np.arange(len(order))).source]
    of_prose = np.cumsum(np.where(length == 8, 8, 0))
    half = np.searchsorted(np.cumsum(length), tokens / 2)
    assert abs(of_prose[half] - tokens * 3 / 8) < 80  # of x(2 - x) / 2, at a half


def test_the_plan_and_the_table_show_the_weights(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    corpus = corpus_with(tmp_path, MAIN)
    build(corpus, "mixed")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    found = json.loads(to_json(plan_corpus(corpus, ["main", "late"])))["phases"]
    prose = found["main"]["sources"]["prose"]

    assert (prose["weight"], prose["weights_at"], prose["planned_tokens"]) == (0.5, [1.0, 0.0], 48)
    assert "weights_at" not in found["late"]["sources"]["prose"]
    shown = cli.out("plan")
    assert re.search(r"weights *\n.* at *\n", shown) and "100.0%, 0.0%" in shown
    said = nested(newest_tables(corpus)["mix"], "phase", "source")
    assert said["main"]["notes"]["weights_at"] == [0.0, 1.0]
    assert "weights_at" not in said["late"]["prose"]
    assert "0.0%, 100.0%" in cli.out("summary", "--stages")


def test_a_corpus_is_built_read_by_ranks_and_resumed_by_others(tmp_path: Path) -> None:
    phase = {
        "name": "general",
        "weights_at": {0.0: {"prose": 0.9, "notes": 0.1}, 1.0: {"prose": 0.1, "notes": 0.9}},
        "tokens": 1600,
        "batch_samples": 8,
    }
    buckets = {"mode": "pack", "sequence_length": 16}
    shards = {"formats": ["megatron"], "target_bytes": 1024}
    config = write_corpus(tmp_path, buckets=buckets, shards=shards, phases=[phase])
    process = start(config, "pipeline_defs.commands.main", "build")
    assert process.wait(LONGEST_SECONDS) == 0, (tmp_path / "out.log").read_text()[-3000:]
    root = tmp_path / "store"
    whole = [
        (int(source), row.tobytes())
        for batch in every_sample(root, "general", batch_size=1)
        for source, row in zip(batch.sources, batch.tokens, strict=True)
    ]

    ranks = [CorpusLoader(root, "general", rank, 4, batch_size=2) for rank in range(4)]
    steps = list(zip(*(islice(loader, 5) for loader in ranks), strict=True))
    [state] = {tuple(loader.state_dict().items()) for loader in ranks}
    others = [CorpusLoader(root, "general", rank, 3, batch_size=1) for rank in range(3)]
    for loader in others:
        loader.load_state_dict(dict(state))
    steps += list(zip(*others, strict=True))
    read = [
        (int(source), row.tobytes())
        for step in steps
        for batch in step
        for source, row in zip(batch.sources, batch.tokens, strict=True)
    ]

    assert read == whole[: len(read)] and len(whole) - len(read) < 3
    found = find_mixture(StoreFiles(root), "general")
    times = Counter(whole)
    for number, source in enumerate(found.sources):
        epochs, rest = divmod(source.samples, source.rows)
        of_source = [count for (drawn_of, _), count in times.items() if drawn_of == number]
        assert sum(of_source) == source.samples
        assert max(of_source) <= epochs + (rest > 0)
    blocks = np.array([source for source, _ in whole])[: len(whole) // 8 * 8].reshape(-1, 8)
    line = np.interp(np.arange(len(blocks)) + 0.5, [0, len(whole) / 8], [0.9, 0.1]) * 8
    assert np.abs(np.count_nonzero(blocks == 0, axis=1) - line).max() < 2.1


@pytest.mark.parametrize("batch_samples", [13, 512])
def test_a_phase_of_one_block_follows_the_line_sample_by_sample(
    tmp_path: Path, batch_samples: int
) -> None:
    found = mixture(corpus_with(tmp_path, MAIN | {"batch_samples": batch_samples}), "main")
    order = found.order(found.seed)

    of_prose = np.cumsum(order.samples(np.arange(13)).source == 0)
    assert of_prose.tolist() == [1, 2, 3, 3, 4, 4, 5, 5, 5, 5, 5, 6, 6]
    line = [n / 13 * (1 - n / 26) * 12 for n in range(1, 14)]  # 6 of 13 samples at the end
    assert np.abs(of_prose - line).max() < 1
