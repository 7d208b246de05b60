"""Shares of lengths in a phase: exact beside the shares of sources, end to end and refused."""

from fractions import Fraction

from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, given, pl, pytest, re, settings, st

from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.bucketed_records import ClassFacts, layout_of
from assets.mixed.asset import STAGE as MIXED
from assets.mixed.budgets import ClassTokens
from assets.mixed.complete_state_files import complete_state
from assets.mixed.plan import PhasePlan, plan_phase
from assets.stages import used_stages
from corpus_loader.loader import CorpusLoader
from corpus_loader.reader import LoaderOptions
from pipeline_defs.commands.train.plan import plan_corpus
from resources.settings.phases import PhaseConfig
from resources.settings.pipeline import SettingsError
from resources.store.mapped_files import map_arrow

LENGTHS = {0: 0.4, 8: 0.3, 32: 0.3}
KEYS = (0, 8, 32)


def plan(of_sources: dict[str, tuple[int, int, int]], **config: Any) -> PhasePlan:
    """Plan sources with these tokens in documents from 0, 8 and 32 tokens on."""
    phase = PhaseConfig.model_validate({"name": "long", "lengths": LENGTHS} | config)
    classes = {
        source: {
            f"{source}/class-{i}": ClassTokens(count, Fraction(str(phase.lengths[key])), key)
            for i, (key, count) in enumerate(zip(KEYS, counts, strict=True))
            if count
        }
        for source, counts in of_sources.items()
    }
    return plan_phase(phase, {name: sum(of) for name, of in of_sources.items()}, classes=classes)


def by_length(found: PhasePlan) -> list[int]:
    return [
        sum(u.planned for u in found.units if u.source.endswith(f"class-{i}")) for i in (0, 1, 2)
    ]


def planned(found: PhasePlan) -> dict[str, int]:
    return {unit.source: unit.planned for unit in found.units}


def test_a_source_gives_each_length_its_share() -> None:
    found = plan({"a": (700, 200, 100)}, weights={"a": 1}, tokens=200)

    assert planned(found) == {"a/class-0": 80, "a/class-1": 60, "a/class-2": 60}


@pytest.mark.parametrize(
    ("weights", "of_books"),
    [({"web": 0.3, "books": 0.7}, (100, 300, 300)), ({"web": 0.4, "books": 0.6}, (0, 300, 300))],
    ids=["long ones are left to the others", "who then give no short ones"],
)
def test_a_source_has_no_long_documents(
    weights: dict[str, float], of_books: tuple[int, int, int]
) -> None:
    tokens = {"web": (1000, 0, 0), "books": (500, 500, 500)}
    found = plan(tokens, weights=weights, tokens=1000)

    assert planned(found) == {
        "web/class-0": round(1000 * weights["web"]),
        **{f"books/class-{i}": count for i, count in enumerate(of_books)},
    }


def test_without_a_length_no_class_is_drawn_twice() -> None:
    found = plan({"a": (700, 200, 90), "b": (500, 400, 900)}, weighting="natural")

    epochs = [unit.epochs for unit in found.units]
    assert max(epochs) <= 1
    assert max(epochs) == pytest.approx(1, abs=0.02)
    assert by_length(found) == pytest.approx([share * found.tokens for share in (0.4, 0.3, 0.3)], 1)


counts = st.tuples(*[st.integers(1, 10**12)] * 3)


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from("abcd"), counts, min_size=1),
    st.lists(st.integers(1, 100), min_size=4, max_size=4),
    st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any),
    st.integers(1, 10**12),
)
def test_both_shares_hold(
    tokens: dict[str, tuple[int, int, int]], weights: list[int], shares: list[int], total: int
) -> None:
    of_sources = dict(zip(tokens, weights, strict=False))
    lengths = {key: share / sum(shares) for key, share in zip(KEYS, shares, strict=True)}
    config = {"weights": of_sources, "lengths": lengths, "max_epochs": 1e15, "tokens": total}
    found = plan(tokens, **config)

    assert found.faults == ()
    for budget in found.budgets:
        exact = Fraction(total * of_sources[budget.source], sum(of_sources.values()))
        assert abs(budget.planned - exact) < 1
        assert sum(unit.planned for unit in budget.classes) == budget.planned
    expected = [share * total / sum(shares) for share in shares]
    for count, share in zip(by_length(found), expected, strict=True):
        assert abs(count - share) <= 2 * len(tokens) + 1e-9 * total


def test_lengths_that_the_sources_do_not_have_are_refused() -> None:
    [none] = plan({"a": (700, 200, 0)}, weighting="natural").faults
    weights = {"web": 0.75, "books": 0.25}
    [few] = plan({"web": (1000, 0, 0), "books": (500, 500, 500)}, weights=weights, tokens=9).faults

    assert none.startswith(
        "phase 'long' asks for 0.3 of its tokens from documents of 32 tokens and more (`lengths`), "
        "but the sources that have some (none) have a share of 0 together."
    )
    assert few.startswith(
        "phase 'long' asks for 0.3 of its tokens from documents of 8 to 31 tokens (`lengths`), but "
        "the sources that have some (books) have a share of 0.25 together."
    )


def test_caps_are_of_classes() -> None:
    [fault] = plan({"a": (700, 200, 10)}, weights={"a": 1}, tokens=800).faults

    assert fault == (
        "phase 'long' asks for 240 tokens of 'a/class-2', which has 10: 24.0 epochs, over its cap "
        "of 16. All its sources have 533 tokens within their caps, of 800. Set `tokens` to at most "
        "533 at these shares; or raise `max_epochs` or the `epochs` of a source; or lower the "
        "share of that length in `lengths`."
    )


# End to end: `notes` are texts of many lengths, `prose` those of the small corpus.
CLASSES = {"score": "tokens", "limits": [150, 400]}
PHASE = {
    "name": "main",
    "weights": {"prose": 0.25, "notes": 0.75},
    "lengths": {0: 0.2, 150: 0.3, 400: 0.5},
    "batch_samples": 16,
}


def of_lengths(folder: Path, **changes: Any) -> Any:
    """A corpus with texts of many lengths, and a phase with shares of lengths."""
    content = {
        "buckets": {"mode": "pack", "sequence_length": 64, "classes": CLASSES},
        "shards": {"formats": ["megatron"], "target_bytes": 4096},
        "phases": [PHASE],
    }
    config = write_corpus(folder, **content | changes)
    texts = [{"text": sentence(100 + number, 10 + 4 * number)} for number in range(50)]
    write_jsonl(folder / "input/notes/n.jsonl", texts)
    return open_corpus(config)


def build_all(build: Build, corpus: Any) -> None:
    build(corpus, *[name for name in used_stages(corpus.settings) if name != "mixed"])
    build(corpus, "mixed")


def test_documents_are_packed_by_length_and_drawn_by_their_share(
    tmp_path: Path, build: Build
) -> None:
    corpus = of_lengths(tmp_path)
    build_all(build, corpus)

    for source in ("prose", "notes"):
        manifest = corpus.store.newest(BUCKETED, source)
        assert manifest.provenance.classes == ClassFacts("tokens", (150, 400))
        names = layout_of(manifest).names
        for part in manifest.parts:
            sequences = map_arrow(corpus.store.path_of(manifest, part.file("sequences")), None)
            by_document = sequences.explode("spans").unnest("spans").group_by("doc_id", "bucket")
            for bucket, tokens in by_document.agg(pl.sum("length"))["bucket", "length"].iter_rows():
                number = int(names[bucket][-1])
                assert (0, 150, 400, 10**9)[number] <= tokens < (150, 400, 10**9)[number]

    planned = plan_corpus(corpus, ["main"]).phases["main"]
    units = {name: unit for of in planned.sources.values() for name, unit in of.units.items()}
    assert planned.sources["prose"].planned_tokens == round(planned.tokens / 4)
    assert max(unit.epochs for unit in units.values()) == pytest.approx(1, abs=1e-3)
    for number, share in enumerate((0.2, 0.3, 0.5)):
        of_class = [unit for name, unit in units.items() if name.endswith(f"class-{number}")]
        assert abs(sum(u.planned_tokens for u in of_class) - share * planned.tokens) <= 2

    mix = corpus.store.newest(MIXED, "main").parts[0].stats.numbers.mix
    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(corpus.store.root, phase="main", batch_size=1, options=options)
    drawn = dict.fromkeys(mix, 0)
    for batch in loader:
        assert batch.documents is not None
        drawn[loader.sources[int(batch.sources[0])]] += int(batch.documents.num_tokens.sum())
    for name, of in mix.items():
        assert of.planned_tokens == units[name].planned_tokens
        assert abs(drawn[name] - of.planned_tokens) <= 32  # half a sample


def test_shards_without_classes_by_length_are_refused(tmp_path: Path, build: Build) -> None:
    by_number = {"mode": "pack", "sequence_length": 64, "classes": {**CLASSES, "score": "meta.n"}}
    plain = of_lengths(
        tmp_path, buckets=by_number, phases=[{"name": "main", "budgets": {"prose": 500}}]
    )
    build(plain, *[name for name in used_stages(plain.settings) if name != "mixed"])
    corpus = of_lengths(tmp_path)

    assert plan_corpus(corpus, ["main"]).phases["main"].faults == [
        "phase 'main' has `lengths`, but 'prose' was packed without classes by length. Materialize "
        "`bucketed` and `sharded` for it first."
    ]


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ({"lengths": {8: 0.5, 400: 0.5}}, "the lengths are [8, 400]; the first must be 0"),
        ({"lengths": {0: 0.5, 400: 0.4}}, "the shares are [0.5, 0.4]; each must be 0 or more"),
        ({"lengths": {0: 1.5, 400: -0.5}}, "each must be 0 or more, and their sum 1"),
        ({"lengths": {0: 0.5, 300: 0.5}}, "300 is not a border of classes; they end at 150, 400"),
        ({"upsample": [[400, 1]]}, "`upsample` and `lengths` both weigh the classes"),
        (
            {"weights": None, "weighting": "unimax"},
            "`lengths` does not go with `weighting: unimax`",
        ),
    ],
)
def test_wrong_lengths_are_refused(tmp_path: Path, phase: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        of_lengths(tmp_path, phases=[PHASE | phase])


@pytest.mark.parametrize("classes", [None, {"score": "meta.n", "limits": [150, 400]}])
def test_lengths_need_classes_by_length(tmp_path: Path, classes: Any) -> None:
    message = (
        "needs classes by length: set `buckets.classes` to {score: tokens, limits: [150, 400]}. "
        "Classes by a score and by length at once are not possible"
    )
    with pytest.raises(SettingsError, match=re.escape(message)):
        of_lengths(tmp_path, buckets={"mode": "pack", "classes": classes})


def test_a_phase_without_lengths_is_dumped_as_before() -> None:
    phase = PhaseConfig.model_validate({"name": "p", "budgets": {"a": 1}})
    assert "lengths" not in phase.model_dump(mode="json")


def test_the_lengths_of_a_published_phase_are_read_again(tmp_path: Path, build: Build) -> None:
    """JSON sorts keys by their digits: "0", "1000", "150"."""
    corpus = of_lengths(
        tmp_path,
        buckets={
            "mode": "pack",
            "sequence_length": 64,
            "classes": CLASSES | {"limits": [150, 1000]},
        },
        phases=[PHASE | {"lengths": {0: 0.2, 150: 0.7, 1000: 0.1}}],
    )
    build_all(build, corpus)

    assert ("mixed", "main") in complete_state(corpus).manifests
