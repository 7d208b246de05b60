"""The stage `held_out` over nights of documents that come and go, against a build from nothing."""

from random import Random

import yaml
from builders import Build, Night, open_corpus, play, records, write_corpus
from builders import edited_text as text
from prelude import Any, Path, pl, pytest

from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.asset import warn_of_buckets
from assets.bucketed.held_out import is_below
from assets.bucketed.held_out_asset import STAGE as HELD_OUT
from assets.deduped.duplicates_asset import STAGE as DUPLICATES
from pipeline_defs.commands.main import main
from resources.run_reports import read_report

pytestmark = pytest.mark.slow

STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", "held_out")
TOKENIZED = (*STAGES[:-1], "deduped", "tokenizer", "tokenized", "held_out")
SHARE = 0.4


def held(folder: Path, **changes: Any) -> Any:
    """The small corpus, not built yet, of which 40 % are held out."""
    return open_corpus(write_corpus(folder, **{"holdout": {"share": SHARE}} | changes))


def table(corpus: Any, stage: Any, kind: str, columns: list[str]) -> pl.DataFrame:
    manifest = corpus.store.newest(stage, "all")
    files = [corpus.store.path_of(manifest, f) for p in manifest.parts if (f := p.file(kind))]
    return pl.concat([pl.read_parquet(file, columns=columns) for file in files])


def decisions(corpus: Any) -> dict[str, bool]:
    return dict(table(corpus, HELD_OUT, "decisions", ["doc_id", "is_held"]).iter_rows())


def clusters(corpus: Any) -> dict[str, list[str]]:
    """The documents of each cluster."""
    rows = table(corpus, DUPLICATES, "clusters", ["cluster_id", "doc_id"])
    return dict(rows.group_by("cluster_id").agg("doc_id").iter_rows())


def check_rule(corpus: Any, before: dict[str, bool]) -> dict[str, bool]:
    """Compare all decisions with the rule, document by document; return them."""
    found = decisions(corpus)
    share = corpus.store.newest(HELD_OUT, "all").config["shares"]["prose"]
    of_cluster = {doc_id: ids for ids in clusters(corpus).values() for doc_id in ids}
    for doc_id, is_held in found.items():
        ids = of_cluster.get(doc_id, [doc_id])
        old = {before[each] for each in ids if each in before}
        by_first = bool(is_below(pl.Series([min(ids)]), share)[0])
        assert is_held == before.get(doc_id, True in old if old else by_first)
    return found


def random_nights(seed: int) -> list[Night]:
    """Three nights of files with copies and edited copies of few texts; some change, some go."""
    random = Random(seed)
    nights: list[Night] = []
    files: list[str] = []
    for number in range(3):
        night: Night = {}
        for index in range(random.randint(1, 2)):
            name = f"{random.choice(('prose', 'notes'))}/n{9 - number}{index}.jsonl"
            picked = [text(random.randint(300, 306), random.choice((0, 0, 1, 2))) for _ in range(6)]
            night[name] = records(*picked)
        if files and random.random() < 0.7:
            night[random.choice(files)] = random.choice((None, records(text(301), text(999))))
        files = sorted({*files, *night} - {name for name, c in night.items() if c is None})
        nights.append(night)
    return nights


def export_ledger(corpus: Any, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKENMILL_CONFIG", str(corpus.config))
        capsys.readouterr()
        assert main(["duplicates", "ledger"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("seed", "stages", "changes"),
    [
        (0, STAGES, {}),
        (1, STAGES, {}),
        (0, STAGES, {"dedup": {"clusters": "components", "keep": ["longest"]}}),
        (1, TOKENIZED, {"holdout": {"tokens": 500}}),
    ],
    ids=["default", "default again", "longest of components", "tokens"],
)
def test_nights_keep_what_is_decided_and_end_as_a_build_from_nothing(
    tmp_path: Path,
    build: Build,
    capsys: pytest.CaptureFixture[str],
    seed: int,
    stages: tuple[str, ...],
    changes: dict[str, Any],
) -> None:
    nightly = held(tmp_path / "nightly", **{"dedup": {}, "part_bytes": 2048} | changes)
    build(nightly, *stages)
    found = check_rule(nightly, {})
    for night in random_nights(seed):
        play(nightly, night)
        build(nightly, *stages)
        found = check_rule(nightly, found)
    build(nightly, "held_out")
    assert read_report(nightly.store.root, "held_out", "all").parts_computed == 0

    (tmp_path / "nightly" / "ledger.json").write_text(export_ledger(nightly, capsys))
    config = yaml.safe_load(nightly.config.read_text())
    config["dedup"]["ledger"], config["store"] = "ledger.json", "from_nothing"
    nightly.config.write_text(yaml.safe_dump(config, sort_keys=False))
    whole = open_corpus(nightly.config, tmp_path / "from_nothing")
    build(whole, *stages)

    assert decisions(whole) == found
    assert published(whole) == published(nightly)


def published(corpus: Any) -> dict[str, str]:
    """The hashes of the files that the newest manifest names."""
    return {
        file.path: file.sha256
        for part in corpus.store.newest(HELD_OUT, "all").parts
        for file in part.files
    }


def built(build: Build, folder: Path, *texts: str, **changes: Any) -> Any:
    """A corpus with these documents in a file of their own, and its decisions."""
    corpus = held(folder, **changes)
    play(corpus, {"prose/m.jsonl": records(*texts)})
    build(corpus, *STAGES)
    return corpus


def ids_of(corpus: Any, *texts: str) -> list[str]:
    """The documents with these texts."""
    found = {}
    for source in ("prose", "notes"):
        manifest = corpus.store.newest("filtered", source)
        for part in manifest.parts:
            path = corpus.store.path_of(manifest, part.file("documents"))
            found |= dict(pl.read_parquet(path, columns=["text", "doc_id"]).iter_rows())
    return [found[each] for each in texts]


def bridged(build: Build, folder: Path) -> tuple[Any, str, str, str]:
    """A corpus with a trained document, one that is held out, and one between these two.

    The last comes a night later: it has most of its shingles in common with both.
    """
    words = [f"word{i}" for i in range(80)]
    for start in range(20):
        one = " ".join([f"begin{start}", *words[:66]])
        other = " ".join([*words[6:], f"end{start}"])
        found = built(
            build,
            folder / str(start),
            one,
            other,
            dedup={"clusters": "components", "keep": ["longest"]},
            filters={"rules": {}},
        )
        trained, kept = ids_of(found, one, other)
        if (decided := decisions(found))[trained] != decided[kept]:
            pair = (trained, kept) if decided[kept] else (kept, trained)
            return found, " ".join(words[:76]), *pair
    raise AssertionError("no such pair")


def test_clusters_that_merge_are_reported_and_none_is_moved(
    tmp_path: Path, build: Build, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus, between, trained, kept = bridged(build, tmp_path)
    play(corpus, {"notes/between.jsonl": records(between)})

    dagster_build(corpus, *STAGES)

    [new] = ids_of(corpus, between)
    found = decisions(corpus)
    assert [found[doc_id] for doc_id in (trained, kept, new)] == [False, True, True]
    numbers = corpus.store.newest(HELD_OUT, "all").stats.numbers
    assert (numbers.mixed, numbers.trained) == (1, 1)
    assert (
        "documents that are not held out turned out to be copies of held-out ones: 1, in clusters: "
        f"1, as that of {min(kept, new)} (`corpus duplicates show DOC` prints one)."
    ) in capfd.readouterr().err


def test_a_number_of_tokens_becomes_a_share_once(tmp_path: Path, build: Build) -> None:
    corpus = built(build, tmp_path, holdout={"tokens": 500})
    build(corpus, *TOKENIZED)
    tokens = sum(corpus.store.newest("tokenized", name).stats.tokens for name in ("prose", "notes"))

    config = corpus.store.newest(HELD_OUT, "all").config
    assert config["shares"] == dict.fromkeys(("prose", "notes"), 500 / tokens)
    before = decisions(corpus)
    assert 0 < sum(before.values()) < 30

    play(corpus, {"prose/new.jsonl": records(*(text(500 + i) for i in range(50)))})
    build(corpus, *TOKENIZED)
    assert corpus.store.newest(HELD_OUT, "all").config == config
    assert before.items() <= decisions(corpus).items()


def test_another_share_is_for_documents_that_come_later(tmp_path: Path, build: Build) -> None:
    corpus = held(tmp_path, holdout={"share": 0.0})
    build(corpus, *STAGES)
    before = decisions(corpus)
    assert before and not any(before.values())

    raised = held(tmp_path, holdout={"share": 0.5})
    play(raised, {"prose/new.jsonl": records(*(text(500 + i) for i in range(50)))})
    build(raised, *STAGES)
    found = decisions(raised)
    new = pl.Series(sorted(found.keys() - before.keys()))
    assert {doc_id for doc_id in found if found[doc_id]} == set(new.filter(is_below(new, 0.5)))

    lowered = held(tmp_path, holdout={"share": 0.0})
    build(lowered, *STAGES)
    assert decisions(lowered) == found


def test_a_source_can_have_a_share_of_its_own(tmp_path: Path, build: Build) -> None:
    config = yaml.safe_load(write_corpus(tmp_path).read_text())
    prose, notes = config["sources"]
    sources = [prose | {"holdout": {"share": 0}}, notes]
    corpus = held(tmp_path, sources=sources)
    build(corpus, *STAGES)

    shares = corpus.store.newest(HELD_OUT, "all").config["shares"]
    assert shares == {"prose": 0.0, "notes": SHARE}
    parts = corpus.store.newest(HELD_OUT, "all").parts
    by_source = {part.stats.numbers.source: part.stats.numbers.held for part in parts}
    assert by_source["prose"] == 0 < by_source["notes"]


def test_without_deduplication_each_document_decides_for_itself(
    tmp_path: Path, build: Build
) -> None:
    dedup = {"exact": False, "near": False}
    corpus = built(build, tmp_path, text(300), text(300), text(300), dedup=dedup)

    found = decisions(corpus)
    ids = pl.Series(sorted(found))
    assert {doc_id for doc_id in found if found[doc_id]} == set(ids.filter(is_below(ids, SHARE)))


def test_a_run_without_holdout_warns_of_what_was_held_out(tmp_path: Path, build: Build) -> None:
    corpus = held(tmp_path)
    build(corpus, *TOKENIZED, "leakage", "bucketed")
    is_held = decisions(corpus)
    bucketed = corpus.store.newest(BUCKETED, "prose")
    assert warn_of_buckets(held(tmp_path, holdout={"share": 0.0}), bucketed).warnings == []

    without = open_corpus(write_corpus(tmp_path))
    found = [
        warn_of_buckets(without, corpus.store.newest(BUCKETED, source)).warnings
        for source in ("prose", "notes")
    ]
    counts = [int(text.split("any more: ")[1].split(",")[0]) for [text] in found]
    assert found[0] == [
        "source 'prose': documents that were held out for validation are not any more: "
        f"{counts[0]}, since pipeline.yaml has no `holdout`. `holdout: {{share: 0}}` keeps them "
        "held out, and holds out no more"
    ]
    assert sum(counts) == sum(is_held.values()) > 0
