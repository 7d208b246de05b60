"""Classes of quality in a phase: exact budgets and epochs by class, end to end and in the order."""

from fractions import Fraction

from builders import Build, deduped, open_corpus, write_corpus
from prelude import Any, Path, given, json, np, pl, pytest, re, settings, st
from tables import cases

from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.bucketed_records import layout_of
from assets.mixed.asset import STAGE as MIXED
from assets.mixed.budgets import ClassTokens
from assets.mixed.plan import PhasePlan, plan_phase
from assets.mixed.samples import SourceRows
from assets.stages import used_stages
from corpus_loader.find_mixture import find_mixture
from corpus_loader.loader import CorpusLoader
from corpus_loader.reader import LoaderOptions
from pipeline_defs.commands.answers import nested
from pipeline_defs.commands.train.plan import plan_corpus
from pipeline_defs.corpus_tables import newest_tables
from resources.settings.buckets import BucketConfig
from resources.settings.phases import PhaseConfig
from resources.settings.pipeline import SettingsError
from resources.store.loader_files import StoreFiles
from resources.store.mapped_files import map_arrow

STEPS = [[0.4, 0], [0.95, 1], [1.0, 7]]
WEIGHTS = (0, 1, 7)


def plan(of_classes: tuple[int, ...], **config: Any) -> PhasePlan:
    """Plan source `a` with classes of these tokens, weighing 0, 1 and 7, beside `b` of 1,000."""
    classes = {
        f"a/class-{i}": ClassTokens(count, Fraction(WEIGHTS[i]))
        for i, count in enumerate(of_classes)
    }
    phase = PhaseConfig.model_validate({"name": "general", "upsample": STEPS} | config)
    return plan_phase(phase, {"a": sum(of_classes), "b": 1000}, classes={"a": classes})


def planned(found: PhasePlan) -> dict[str, int]:
    return {unit.source: unit.planned for unit in found.units}


@cases("""
    config                                                                 | expected
    # an epoch: 0, 1 and 7 times
    {"weighting": "natural"}                                               | (0, 550, 350, 1000)
    {"weighting": "natural", "tokens": 950}                                | (0, 275, 175, 500)
    {"weights": {"a": 0.9, "b": 0.1}}                                      | (0, 550, 350, 100)
    {"budgets": {"a": 90, "b": 10}}                                        | (0, 55, 35, 10)
    {"weighting": "unimax", "tokens": 10_000, "epochs": {"a": 14, "b": 1}} | (0, 1100, 700, 1000)
""")
def test_a_class_gets_its_tokens_times_its_weight(
    config: dict[str, Any], expected: tuple[int, ...]
) -> None:
    found = planned(plan((400, 550, 50), **config))

    assert tuple(found.values()) == expected
    assert list(found) == ["a/class-0", "a/class-1", "a/class-2", "b"]


@settings(max_examples=60)
@given(st.tuples(*[st.integers(1, 10**12)] * 3), st.integers(1, 10**12), st.floats(0.01, 0.99))
def test_classes_sum_to_the_budget_and_keep_to_their_weights(
    tokens: tuple[int, int, int], total: int, weight: float
) -> None:
    found = plan(tokens, tokens=total, weights={"a": weight, "b": 1 - weight})

    [whole, _] = found.budgets
    assert found.tokens == sum(planned(found).values()) == total
    assert sum(unit.planned for unit in whole.classes) == whole.planned
    size = tokens[1] + 7 * tokens[2]
    for unit, count, times in zip(whole.classes, tokens, WEIGHTS, strict=True):
        assert abs(unit.planned - Fraction(whole.planned * count * times, size)) < 1
    assert whole.classes[0].planned == 0


def test_caps_and_warnings_are_of_classes_and_name_them() -> None:
    warned = plan((400, 550, 50), weighting="natural")
    refused = plan((400, 550, 50), budgets={"a": 2700, "b": 1000})

    assert [line.split(";")[0] for line in warned.warnings] == ["'a/class-2' is repeated 7.0 times"]
    assert refused.faults[0].startswith(
        "phase 'general' asks for 1,050 tokens of 'a/class-2', which has 50: 21.0 epochs, over its "
        "cap of 16. Ask for at most a 2,057; or raise `max_epochs` or the `epochs` of a source; or "
        "lower the highest weight of `upsample`."
    )
    assert plan((400, 550, 50), budgets={"a": 2057, "b": 1000}).faults == ()


def test_a_class_of_weight_0_is_no_class_without_samples() -> None:
    of_a = {f"a/class-{i}": ClassTokens(5, Fraction(i)) for i in range(2)}
    classes = {"a": of_a}
    rows = {name: SourceRows(8, {"8.class-0": (1, 8)}) for name in classes["a"]}
    phase = PhaseConfig.model_validate({"name": "p", "upsample": STEPS, "budgets": {"a": 5}})

    assert plan_phase(phase, {"a": 10}, rows, classes).warnings == ()


# End to end: forty documents of `prose` with numbers 0 to 39, beside `notes` without any.
CLASSES = {"score": "meta.n", "limits": [16, 38]}
PACKED = {"mode": "pack", "sequence_length": 16}
PHASE = {
    "name": "main",
    "weights": {"prose": 0.75, "notes": 0.25},
    "one_epoch_of": "prose",
    "upsample": [[16, 0], [38, 1], [40, 7]],
    "batch_samples": 16,
    "warn_epochs": 8,
}


def classed(folder: Path, **changes: Any) -> Any:
    """The small corpus with classes, and a phase that weighs them."""
    content = {
        "buckets": PACKED | {"classes": CLASSES},
        "shards": {"formats": ["megatron"], "target_bytes": 1024},
        "phases": [PHASE],
    }
    return open_corpus(write_corpus(folder, **content | changes))


def build_all(build: Build, corpus: Any) -> None:
    build(corpus, *[name for name in used_stages(corpus.settings) if name != "mixed"])
    build(corpus, "mixed")


def numbers_of(corpus: Any) -> dict[str, int]:
    """The number of every document of `prose`, by id."""
    table = pl.concat(deduped(corpus, "prose", "doc_id", "meta"))
    return {doc_id: json.loads(meta)["n"] for doc_id, meta in table.iter_rows()}


def test_documents_are_packed_with_their_class_and_drawn_by_its_weight(
    tmp_path: Path, build: Build
) -> None:
    corpus = classed(tmp_path)
    build_all(build, corpus)

    stats = corpus.store.newest(BUCKETED, "prose").stats.numbers
    by_class = {name: count for name, count in stats.bucket_tokens.items() if count}
    assert list(by_class) == ["16.class-0", "16.class-1", "16.class-2"]
    mixture = find_mixture(StoreFiles(corpus.store.root), "main")
    mix = corpus.store.newest(MIXED, "main").parts[0].stats.numbers.mix
    assert list(mix) == ["notes", "prose/class-0", "prose/class-1", "prose/class-2"]
    assert [mix[name].available_tokens for name in list(mix)[1:]] == list(by_class.values())
    assert mix["prose/class-0"].samples == 0
    assert abs(mix["prose/class-1"].planned_tokens - by_class["16.class-1"]) <= 1
    assert abs(mix["prose/class-2"].planned_tokens - 7 * by_class["16.class-2"]) <= 1

    loader = CorpusLoader(corpus.store.root, phase="main", batch_size=4)
    assert loader.sources == ["prose/class-1", "prose/class-2", "notes"]
    samples = loader.reader.order.samples(np.arange(mixture.epoch_samples))
    for number, source in enumerate(loader.mixture.sources):
        drawn = samples.row[samples.source == number]
        assert len(drawn) == source.samples == mix[source.name].samples
        counts = np.bincount(drawn, minlength=source.rows)
        assert counts.max() - counts.min() <= 1  # each row once in each epoch


def test_a_batch_has_documents_of_the_class_that_it_names(tmp_path: Path, build: Build) -> None:
    corpus = classed(tmp_path)
    build_all(build, corpus)
    known = numbers_of(corpus)
    limits = {"prose/class-1": range(16, 38), "prose/class-2": range(38, 40)}

    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(corpus.store.root, phase="main", batch_size=1, options=options)
    seen: dict[str, set[int]] = {"prose/class-1": set(), "prose/class-2": set()}
    for batch in loader:
        [source] = [loader.sources[number] for number in batch.sources]
        assert batch.documents is not None
        names = {row.tobytes().hex() for row in batch.documents.doc_ids} - {"0" * 32}
        if source != "notes":
            seen[source] |= {known[name] for name in names}
    assert seen == {name: set(known.values()) & set(limits[name]) for name in limits}


def test_plan_and_summary_show_the_classes(tmp_path: Path, build: Build) -> None:
    corpus = classed(tmp_path)
    build_all(build, corpus)

    of_shards = plan_corpus(corpus, ["main"]).phases["main"]
    prose = of_shards.sources["prose"]
    assert [round(share.epochs, 3) for share in prose.units.values()] == [0, 1, 7]
    assert list(prose.units) == ["prose/class-0", "prose/class-1", "prose/class-2"]
    assert sum(share.planned_tokens for share in prose.units.values()) == prose.planned_tokens
    assert of_shards.sources["notes"].units == {}
    planned = {name: share.planned_tokens for name, share in prose.units.items()}
    summary = nested(newest_tables(corpus)["mix"], "phase", "source")["main"]
    assert {name: summary[name]["planned_tokens"] for name in planned} == planned


def test_percentiles_of_a_real_score_put_documents_in_classes(tmp_path: Path, build: Build) -> None:
    corpus = classed(
        tmp_path,
        classifier={"good": ["prose"], "bad": ["notes"], "held_out": 0.3},
        filters={"rules": {"quality": {"min_score": 0, "min_percentile": 0}}},
        buckets=PACKED | {"classes": {"limits": [0.4, 0.95]}},
        phases=[PHASE | {"upsample": STEPS}],
    )
    build_all(build, corpus)

    manifest = corpus.store.newest("filtered", "prose")
    files = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    table = pl.concat(pl.read_parquet(file) for file in files)
    scores = dict(table.select("doc_id", "quality_percentile").iter_rows())
    bucketed = corpus.store.newest(BUCKETED, "prose")
    names = layout_of(bucketed).names
    for part in bucketed.parts:
        sequences = map_arrow(corpus.store.path_of(bucketed, part.file("sequences")), None)
        for bucket, spans in sequences.select("bucket", "spans").iter_rows():
            number = int(names[bucket][-1])
            low, high = (0, 0.4, 0.95, 2)[number : number + 2]
            assert all(low <= scores[span["doc_id"]] < high for span in spans)


def test_phases_without_upsample_draw_all_classes_alike(tmp_path: Path, build: Build) -> None:
    corpus = classed(tmp_path, phases=[{"name": "main", "budgets": {"prose": 500}}])
    build_all(build, corpus)

    [prose] = find_mixture(StoreFiles(corpus.store.root), "main").sources
    assert prose.name == "prose"
    assert {shard.bucket for shard in prose.shards} >= {"16.class-0", "16.class-1"}


def test_shards_without_classes_are_refused(tmp_path: Path, build: Build) -> None:
    plain = classed(tmp_path, buckets=PACKED, phases=[{"name": "main", "budgets": {"prose": 500}}])
    build(plain, *[name for name in used_stages(plain.settings) if name != "mixed"])
    corpus = classed(tmp_path)

    faults = plan_corpus(corpus, ["main"]).phases["main"].faults

    assert faults == [
        "phase 'main' has `upsample`, but 'prose' was packed without classes. Materialize "
        "`bucketed` and `sharded` for it first."
    ]


def test_a_source_without_the_score_is_in_no_class(tmp_path: Path, build: Build) -> None:
    corpus = classed(tmp_path, phases=[PHASE | {"weights": {"notes": 1}, "one_epoch_of": None}])
    build(corpus, *[name for name in used_stages(corpus.settings) if name != "mixed"])

    [fault] = plan_corpus(corpus, ["main"]).phases["main"].faults
    assert fault.startswith("phase 'main' has `upsample`, but no document of 'notes' has the score")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buckets": PACKED}, "weighs classes, of which there are none: set `buckets.classes`"),
        (
            {"phases": [PHASE | {"upsample": [[20, 0], [40, 1]]}]},
            "20 is not a border of classes; they end at 16, 38",
        ),
        (
            {"phases": [PHASE | {"upsample": [[16, 0], [38, 1]]}]},
            "it ends at 38, so that scores from 38 on have no weight",
        ),
        ({"phases": [PHASE | {"upsample": [[38, 0], [16, 1]]}]}, "finite and ascending"),
        ({"phases": [PHASE | {"upsample": [[40, 0]]}]}, "all weights of `upsample` are 0"),
        ({"buckets": PACKED | {"classes": {"limits": [0.9, 0.4]}}}, "finite and ascending"),
        (
            {"buckets": PACKED | {"classes": {"limits": [16, 38]}}},
            "no source has 'quality_percentile': set `filters.rules.quality.min_percentile` to 0",
        ),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        classed(tmp_path, **changes)


def test_settings_without_classes_are_dumped_as_before() -> None:
    assert "classes" not in BucketConfig().model_dump(mode="json")
    phase = PhaseConfig.model_validate({"name": "p", "budgets": {"a": 1}})
    assert "upsample" not in phase.model_dump(mode="json")
