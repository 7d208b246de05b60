"""Mixtures of phases: samples and tokens, fingerprints of the order, refused phases."""

import yaml
from builders import open_corpus, write_corpus
from msgspec import structs
from prelude import Any, Path, json, np, pl, pytest
from sharded_corpus import PROSE, WEIGHTED, change, corpus_with, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from assets.mixed.mixture_files import mixture_of, realised
from assets.mixed.phase_shard_files import read_samples
from assets.mixed.phase_source_files import (
    PhaseShard,
    PhaseSource,
    check_flat,
    own_start,
    phase_source,
    row_lengths,
    source_order,
    source_rows,
)
from assets.sharded.asset import STAGE as SHARDED
from corpus_loader.mixture import FlatFile, check_version, mixture_json, parse_mixture
from corpus_loader.places.errors import CorpusError
from resources.settings.phases import PhaseConfig
from resources.settings.pipeline import SettingsError
from resources.store.records import to_json


def mixture(corpus: Any, phase: str = "main") -> dict[str, Any]:
    """Return the mixture that `mixed` would write for a phase."""
    [task] = plan_mixed(corpus, phase).tasks
    found = mixture_of(task.root, task.payload)
    return json.loads(to_json(mixture_json(found)))  # type: ignore[no-any-return]


def samples(corpus: Any, found: dict[str, Any]) -> pl.DataFrame:
    """Return all samples of a mixture, in its order."""
    positions = np.arange(found["epoch_samples"])
    return read_samples(corpus.store.root, parse_mixture(to_json(found)), positions)


def test_realised_tokens_are_those_of_the_samples_of_the_order(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"notes": 70, "prose": 30}, "batch_samples": 4})
    found = mixture(corpus)
    rows = samples(corpus, found)
    realised = {source["name"]: source["realised_tokens"] for source in found["sources"]}
    tokens = rows["num_tokens"].to_numpy()
    is_note = rows["tokens"].list.first().to_numpy() >= 300
    assert realised == {"notes": tokens[is_note].sum(), "prose": tokens[~is_note].sum()}
    assert abs(realised["notes"] - 70) <= 4


def test_rows_of_other_lengths_are_mixed_by_their_own(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"notes": 9, "prose": 16}})
    write_sharded(corpus.store, "notes", [shard(300, [3, 5, 1, 9], None)], bucket="0-128")
    found = mixture(corpus)
    assert found["sequence_length"] is None
    rows = samples(corpus, found)
    assert rows.select(pl.col("tokens").list.len() == pl.col("num_tokens"))["tokens"].all()
    assert int(rows["num_tokens"].sum()) == found["tokens"]
    assert realised(parse_mixture(to_json(found))).is_estimated


def test_a_phase_may_draw_from_some_buckets_only(tmp_path: Path) -> None:
    buckets = {"mode": "decompose", "sequence_length": 8, "min_length": 4}
    corpus = corpus_with(tmp_path, WEIGHTED)
    phase = {"weights": {"prose": 1}, "buckets": ["4"]}
    write_corpus(tmp_path, buckets=buckets, phases=[{"name": n} | phase for n in ("main", "late")])
    corpus = open_corpus(corpus.config)

    with pytest.raises(MixError, match=r"\['prose'\], which have none in buckets 4"):
        mixture(corpus)
    write_sharded(corpus.store, "prose", [shard(0, [4, 3], 4)], bucket="4")
    assert mixture(corpus)["sequence_length"] == 4


def test_lengths_come_from_parquet_where_there_is_no_flat_file(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"notes": 28}})
    write_sharded(corpus.store, "notes", [shard(300, [8, 8, 8, 4])], formats=("parquet",))
    [source] = mixture(corpus)["sources"]
    assert (source["samples"], source["realised_tokens"]) == (4, 28)
    assert source["shards"][0]["files"] == {}
    with pytest.raises(MixError, match=r"\['notes'\] lack flat files. Add 'megatron'"):
        mixture(change(corpus, {"budgets": {"notes": 28}, "formats": ["parquet"]}))
    write_sharded(corpus.store, "notes", [shard(300, [8, 8, 8, 4])], formats=("mds",))
    with pytest.raises(MixError, match="Add 'megatron' to `shards"):
        mixture(corpus)  # no file holds the lengths


def test_a_plan_knows_the_length_of_the_first_row_that_is_drawn(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    lengths = [3, 5, 9, 2, 7, 4]
    by_shard = [lengths[:2], lengths[2:5], lengths[5:]]
    shards = [shard(100 * (i + 3), of_shard, None) for i, of_shard in enumerate(by_shard)]
    write_sharded(corpus.store, "notes", shards, bucket="0-128")
    source = phase_source(corpus.store.newest(SHARDED, "notes"), corpus.settings.phase("main"))
    assert row_lengths(corpus.store.root, source).tolist() == lengths

    drawn = set()
    for seed in range(24):
        config = PhaseConfig(name="main", weighting="natural", seed=seed)
        start = own_start(config)
        row = int(source_order(config, source, start.seed).rows([0])[0][0])
        drawn.add(row)
        assert source_rows(corpus.store.root, config, source, start).first == lengths[row]
    assert drawn == set(range(6))


def test_one_shard_without_flat_files_is_enough_to_refuse_a_phase() -> None:
    flat = PhaseShard("s/0", 1, 8, "8", {"bin": FlatFile(16, "")}, None)
    other = PhaseShard("s/1", 1, 8, "8", {}, None)
    check_flat("main", [PhaseSource("prose", (flat, flat))])
    with pytest.raises(MixError, match=r"\['prose'\] lack flat files"):
        check_flat("main", [PhaseSource("prose", (flat, other))])


def test_shards_of_an_older_version_or_another_tokenizer_are_refused(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    manifest = corpus.store.newest("sharded", "notes")
    about = {key: said for key, said in manifest.provenance.items() if "begin_of" not in key}
    older = structs.replace(manifest, provenance=about)
    corpus.store.partition("sharded", "notes").commit(older)
    with pytest.raises(MixError, match=r"shards of \['notes'\] are of .* Materialize `sharded`"):
        mixture(corpus)

    write_sharded(corpus.store, "notes", [shard(300, [8])], tokenizer_fingerprint="e" * 32)
    with pytest.raises(MixError, match=r"'prose': 'f{32}', 'notes': 'e{32}'"):
        mixture(corpus)


def test_a_phase_without_any_sample_is_refused_and_orders_are_their_own(tmp_path: Path) -> None:
    budget = {"budgets": {"prose": 40}}
    corpus = corpus_with(tmp_path, budget, budget)
    assert mixture(corpus, "main")["seed"] != mixture(corpus, "late")["seed"]
    for tokens in (3, 1):
        with pytest.raises(MixError, match="phase 'main' draws no sample"):
            mixture(change(corpus, {"budgets": {"prose": tokens}}))


def test_a_source_without_samples_and_one_repeated_often_are_warned_of(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"prose": 2, "notes": 140}})
    found = mixture(corpus)

    none, often = sorted(found["warnings"], reverse=True)
    assert none.startswith("'prose' gives no sample: its 2 tokens")
    assert often.startswith("'notes' is repeated 5.0 times; more than 4 epochs")
    assert found["epoch_samples"] == 20


def test_the_fingerprint_names_data_and_order_alone(tmp_path: Path) -> None:
    def fingerprint(corpus: Any) -> str:
        return str(mixture(corpus)["fingerprint"])

    corpus = corpus_with(tmp_path, WEIGHTED)
    first = fingerprint(corpus)

    assert fingerprint(change(corpus, WEIGHTED | {"warn_epochs": 2.0})) == first
    assert fingerprint(change(corpus, WEIGHTED | {"formats": ["npy"]})) == first
    assert fingerprint(change(corpus, WEIGHTED | {"seed": 1})) != first
    assert fingerprint(change(corpus, WEIGHTED | {"batch_samples": 2})) != first
    assert fingerprint(change(corpus, WEIGHTED | {"window_shards": 1})) != first
    write_sharded(corpus.store, "notes", [shard(301, [8, 8, 8, 4])])
    assert fingerprint(corpus) != first


def test_the_fingerprint_leaves_out_sources_without_samples_and_names_the_tokenizer(
    tmp_path: Path,
) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"prose": 2, "notes": 28}})
    before = mixture(corpus)
    write_sharded(corpus.store, "prose", PROSE[:1])
    after = mixture(corpus)

    assert [source["samples"] for source in after["sources"]] == [0, 4]
    assert after["sources"][0]["shards"] != before["sources"][0]["shards"]
    assert after["fingerprint"] == before["fingerprint"]

    corpus = change(corpus, {"budgets": {"prose": 40}})
    first = mixture(corpus)
    write_sharded(corpus.store, "prose", PROSE[:1], tokenizer_fingerprint="e" * 32)
    second = mixture(corpus)
    files = [[each["files"] for each in found["sources"][0]["shards"]] for found in (first, second)]
    assert files[0] == files[1]
    assert first["fingerprint"] != second["fingerprint"]


def test_trainers_get_a_vocabulary_of_the_multiple(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    plain, before = mixture(corpus), plan_mixed(corpus, "main")
    config = yaml.safe_load(corpus.config.read_text())
    config.setdefault("tokenizer", {})["vocab_multiple"] = 128
    corpus.config.write_text(yaml.safe_dump(config, sort_keys=False))
    corpus = open_corpus(corpus.config)
    padded, after = mixture(corpus), plan_mixed(corpus, "main")

    assert (plain["vocab_size"], padded["vocab_size"]) == (1000, 1024)
    assert plain | {"vocab_size": 1024} == padded  # the order of samples is the same
    assert before.tasks[0].fingerprint != after.tasks[0].fingerprint
    assert after.provenance.vocab_size == 1024


ONE_BUCKET = WEIGHTED | {"one_bucket_batches": True}


def test_only_a_phase_of_one_bucket_batches_has_version_3(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    plain = mixture(corpus)
    found = mixture(change(corpus, ONE_BUCKET))
    again = mixture(change(corpus, ONE_BUCKET))

    assert (plain["version"], "one_bucket_batches" in plain) == (1, False)
    assert (found["version"], found["one_bucket_batches"]) == (3, True)
    assert found == again
    assert found["fingerprint"] != plain["fingerprint"]
    assert parse_mixture(to_json(found)).one_bucket_batches
    assert json.loads(to_json(mixture_json(parse_mixture(to_json(found))))) == found


def test_the_buckets_of_shards_are_in_the_fingerprint_of_one_bucket_batches(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    found = []
    for bucket in ("0-8", "0-16"):
        write_sharded(corpus.store, "notes", [shard(300, [8, 8, 8, 4], None)], bucket=bucket)
        phases = change(corpus, WEIGHTED), change(corpus, ONE_BUCKET)
        found.append([mixture(phase)["fingerprint"] for phase in phases])

    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


def test_a_loader_of_before_refuses_one_bucket_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    plain, found = mixture(corpus), mixture(change(corpus, ONE_BUCKET))
    check_version(to_json(found))
    monkeypatch.setattr("corpus_loader.mixture.VERSION", 2)  # of the release before

    check_version(to_json(plain))
    with pytest.raises(CorpusError, match="has version 3, this corpus_loader reads up to 2"):
        check_version(to_json(found))


def test_weights_of_the_loss_change_nothing_but_themselves(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    plain = mixture(corpus)
    weighted = mixture(change(corpus, WEIGHTED | {"loss_weights": {"notes": 0.5}}))

    assert [source.pop("loss_weight", 1) for source in weighted["sources"]] == [
        0.5 if source["name"] == "notes" else 1 for source in plain["sources"]
    ]
    assert weighted | {"version": plain["version"]} == plain
    with pytest.raises(MixError, match="a loss weight for 'notes', which it does not draw; it dr"):
        mixture(change(corpus, {"budgets": {"prose": 28}, "loss_weights": {"notes": 2}}))
    with pytest.raises(MixError, match="a loss weight for 'prose/class-0', which it does not"):
        mixture(change(corpus, WEIGHTED | {"loss_weights": {"prose/class-0": 2}}))
    with pytest.raises(SettingsError, match="unknown source"):
        change(corpus, WEIGHTED | {"loss_weights": {"note": 2}})
    with pytest.raises(SettingsError, match="`loss_weights` does not go with `formats`"):
        change(corpus, WEIGHTED | {"loss_weights": {"notes": 2}, "formats": ["parquet"]})
