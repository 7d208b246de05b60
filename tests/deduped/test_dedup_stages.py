"""Deduplication through its stages: nights of adding and removing, against a build from nothing."""

import shutil
from dataclasses import replace
from random import Random

import dagster as dg
import yaml
from builders import (
    Build,
    Night,
    deduped,
    hashes,
    open_corpus,
    play,
    records,
    write_corpus,
    write_jsonl,
)
from builders import edited_text as text
from prelude import Any, Path, json, pl, pytest

from assets.deduped.clusters import component_files
from assets.deduped.deduped_records import cluster_parts
from assets.deduped.duplicates_asset import PASSES, plan_duplicates
from assets.deduped.duplicates_asset import STAGE as DUPLICATES
from resources.passes import run_passes
from resources.run_reports import read_report

CUTS = ("repeated", "substrings", "evaluation")
STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", *CUTS, "deduped")


def with_dedup(folder: Path, **dedup: Any) -> Any:
    """The small corpus, not built yet, with a dedup config."""
    return open_corpus(write_corpus(folder, dedup={"near": True, **dedup}))


def table(corpus: Any, stage: str, partition: str, kind: str, columns: list[str]) -> list[Any]:
    manifest = corpus.store.newest(stage, partition)
    files = [file for part in manifest.parts if (file := part.file(kind))]
    frames = [pl.read_parquet(corpus.store.path_of(manifest, f), columns=columns) for f in files]
    return sorted(pl.concat(frames).rows())


CLUSTER = ["doc_id", "cluster_id", "cluster_size", "kept_doc_id", "kept_source", "similarity"]


def outcome(corpus: Any) -> dict[str, list[Any]]:
    """What deduplication decided and what it left, without the order of parts."""
    return {
        "clusters": table(corpus, "duplicates", "all", "clusters", [*CLUSTER[:5], "method"]),
        **{
            source: sorted(pl.concat(deduped(corpus, source, "doc_id", "text")).rows())
            for source in ("prose", "notes")
        },
    }


def ledger(corpus: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = corpus.store.newest("band_index", "all").provenance["ledger"]
    return entries


def generations(corpus: Any) -> set[int]:
    return {generation for entry in ledger(corpus) for _, generation in entry["generations"]}


def cluster_fingerprints(corpus: Any) -> dict[tuple[str, str], str]:
    """The fingerprints of the parts of clusters, which are those of their content."""
    parts = cluster_parts(corpus.store.newest(DUPLICATES, "all"))
    return {part.stats.numbers.key: part.fingerprint for part in parts}


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


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "dedup",
    [{}, {"preset": "datatrove"}, {"threshold": 0.7}],
    ids=["default", "components", "star"],
)
def test_nights_end_in_what_a_build_from_nothing_gives(
    tmp_path: Path, build: Build, seed: int, dedup: dict[str, Any]
) -> None:
    nightly = with_dedup(tmp_path / "nightly", **dedup)
    build(nightly, *STAGES)
    for night in random_nights(seed):
        play(nightly, night)
        build(nightly, *STAGES)

    order = tmp_path / "nightly" / "ledger.json"
    order.write_text(json.dumps(ledger(nightly)))
    config = yaml.safe_load(nightly.config.read_text())
    config["dedup"]["ledger"] = "ledger.json"
    config["store"] = "from_nothing"
    nightly.config.write_text(yaml.safe_dump(config, sort_keys=False))
    whole = open_corpus(nightly.config, tmp_path / "from_nothing")
    build(whole, *STAGES)

    assert outcome(whole) == outcome(nightly)
    assert outcome(whole)["clusters"]
    assert cluster_fingerprints(whole) == cluster_fingerprints(nightly)


def test_what_was_published_stays_when_copies_come(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    play(corpus, {"prose/m.jsonl": records(text(300))})
    build(corpus, *STAGES)

    play(
        corpus,
        {
            "notes/a.jsonl": records(text(300) + " and a longer end"),
            "prose/0.jsonl": records(text(300)),
        },
    )
    build(corpus, *STAGES)

    found = pl.DataFrame(outcome(corpus)["prose"], ["doc_id", "text"], orient="row")
    assert found.filter(pl.col("text").str.contains(text(300)[:100]))["text"].to_list() == [
        text(300)
    ]
    assert generations(corpus) == {1, 2}
    survivors = {row[3] for row in outcome(corpus)["clusters"]}
    assert survivors & set(found["doc_id"])


def test_a_cleaner_copy_wins_within_a_run_and_unpublishes_nothing_of_an_earlier_one(
    tmp_path: Path, build: Build
) -> None:
    corpus = with_dedup(tmp_path)
    clean = [text(number).capitalize() for number in (300, 301)]
    play(corpus, {"prose/m.jsonl": records(clean[0].upper())})
    play(corpus, {"notes/a.jsonl": records(clean[1].upper(), clean[1])})
    build(corpus, *STAGES)
    assert clean[1] in [row[1] for row in outcome(corpus)["notes"]]
    assert clean[1].upper() not in [row[1] for row in outcome(corpus)["notes"]]

    play(corpus, {"notes/b.jsonl": records(clean[0])})
    build(corpus, *STAGES)

    assert clean[0].upper() in [row[1] for row in outcome(corpus)["prose"]]
    assert clean[0] not in [row[1] for row in outcome(corpus)["notes"]]


def test_what_was_published_stays_when_another_file_is_appended_to(
    tmp_path: Path, build: Build
) -> None:
    corpus = with_dedup(tmp_path)
    play(corpus, {"notes/a.jsonl": records(text(301)), "prose/m.jsonl": records(text(300))})
    build(corpus, *STAGES)

    longer = text(300) + " and a longer end"
    play(corpus, {"notes/a.jsonl": records(text(301), longer)})
    build(corpus, *STAGES)

    assert text(300) in [row[1] for row in outcome(corpus)["prose"]]
    assert longer not in [row[1] for row in outcome(corpus)["notes"]]
    changed = next(entry for entry in ledger(corpus) if len(entry["generations"]) == 2)
    assert changed["generations"] == [[1, 1], [2, 2]]


def test_a_takedown_puts_back_what_it_had_shadowed(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    play(corpus, {"prose/m.jsonl": records(text(300))})
    build(corpus, *STAGES)
    play(corpus, {"notes/x.jsonl": records(text(300)), "notes/y.jsonl": records(text(300, 1))})
    build(corpus, *STAGES)
    shadowed = [row for row in outcome(corpus)["notes"] if row[1].startswith(text(300)[:100])]

    play(corpus, {"prose/m.jsonl": None})
    build(corpus, *STAGES)

    back = [row[1] for row in outcome(corpus)["notes"] if row[1].startswith(text(300)[:100])]
    assert shadowed == []
    assert len(back) == 1  # of the two the longer one


def test_a_night_writes_what_changed(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    build(corpus, *STAGES)
    parts = len(corpus.store.newest("duplicates", "all").parts)

    play(corpus, {"notes/new.jsonl": records(text(700), text(701))})
    build(corpus, *STAGES)

    ran = {
        stage: read_report(corpus.store.root, stage, "all")
        for stage in ("band_index", "duplicates")
    }
    assert read_report(corpus.store.root, "signatures", "notes").parts_computed == 1
    assert ran["band_index"].parts_computed == 1
    assert len(corpus.store.newest("band_index", "all").provenance["segments"]) == 2
    assert len(corpus.store.newest("duplicates", "all").parts) == parts + 1
    assert ran["duplicates"].parts_computed == 2  # the new part, and the state
    assert read_report(corpus.store.root, "deduped", "prose").parts_computed == 0


def test_a_night_writes_only_the_clusters_that_documents_join_or_leave(
    tmp_path: Path, build: Build
) -> None:
    """Each of the files is a part: no document is alike in those of `same` and the others."""
    corpus = open_corpus(write_corpus(tmp_path, dedup={"near": True}, part_bytes=2048))
    pairs = {"same": (800, 801), "left": (802, 803), "joined": (804, 805)}
    for name, numbers in pairs.items():
        for source in ("prose", "notes"):
            play(corpus, {f"{source}/{name}.jsonl": records(*map(text, numbers))})
    build(corpus, *STAGES)
    before = cluster_fingerprints(corpus)

    night: Night = {"prose/left.jsonl": None, "notes/new.jsonl": records(text(804, 1), text(806))}
    play(corpus, night)
    build(corpus, *STAGES)

    after = cluster_fingerprints(corpus)
    changed = [key for key in after if after[key] != before.get(key)]
    assert [source for source, _ in sorted(changed)] == ["notes", "notes", "notes", "prose"]
    report = read_report(corpus.store.root, "duplicates", "all")
    assert report.parts_computed == len(changed) + 1  # the state
    assert report.parts_reused == len(after) - len(changed)


def several_batches(corpus: Any) -> Any:
    """The same corpus, with memory for a few members of clusters at a time."""
    dedup = corpus.settings.dedup.model_copy(update={"memory_bytes": 1 << 19})
    return replace(corpus, settings=corpus.settings.model_copy(update={"dedup": dedup}))


def test_clusters_do_not_depend_on_the_number_of_batches_and_ranges(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, dedup={"near": True}, part_bytes=2048))
    for number in range(30):
        names = [f"{source}/{number}.jsonl" for source in ("prose", "notes")]
        play(corpus, {name: records(text(300 + number), text(400 + number)) for name in names})
    build(corpus, *STAGES)
    before = hashes(corpus.store.root / "duplicates")
    shutil.rmtree(corpus.store.root / "duplicates")

    monkeypatch.setattr(component_files, "RANGE_SHARE", 1 << 14)  # 2 pairs of as little memory
    limited = several_batches(corpus)
    plan = plan_duplicates(limited, "all")
    run_passes(limited, plan.tasks, PASSES[:5])
    parts = corpus.store.root / "duplicates" / "all" / "_parts"
    assert len(list(parts.glob("merged-*"))) > 3
    assert len(list(parts.glob("decided-*"))) > 3
    assert len(list(parts.glob("gathered-*"))) > 3
    build(limited, "duplicates")

    assert hashes(corpus.store.root / "duplicates") == before


def test_members_are_not_compared_again_after_a_kill(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    play(corpus, {"prose/m.jsonl": records(text(300)), "notes/x.jsonl": records(text(300))})
    build(corpus, *STAGES)
    before = outcome(corpus)
    shutil.rmtree(corpus.store.root / "duplicates")

    run_passes(corpus, plan_duplicates(corpus, "all").tasks, PASSES[:5])
    folder = corpus.store.root / "duplicates" / "all"
    [decided] = folder.glob("*.decisions.arrow")
    inode = decided.stat().st_ino
    run_passes(corpus, plan_duplicates(corpus, "all").tasks, PASSES[:6])
    assert [path.stat().st_ino for path in folder.glob("*.decisions.arrow")] == [inode]

    build(corpus, "duplicates")
    assert outcome(corpus) == before
    kinds = {path.name.split(".")[1] for path in folder.glob("*.*.*")}
    assert kinds == {"clusters", "summary", "digests", "parts"}  # and nothing of other passes


def test_a_lost_file_of_the_index_is_built_again(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    build(corpus, *STAGES)
    before = outcome(corpus)
    for path in (corpus.store.root / "band_index/all").glob("*.entries.bin"):
        path.unlink()

    build(corpus, *STAGES)

    assert outcome(corpus) == before
    assert generations(corpus) == {1}


def test_a_clean_copy_of_a_contaminated_document_stays(tmp_path: Path, build: Build) -> None:
    question = "which of these thirteen words in a row is the one that nobody has ever seen"
    write_jsonl(tmp_path / "quiz.jsonl", [{"text": question}])
    quiz = {"sets": [{"name": "quiz", "where": "quiz.jsonl"}]}
    corpus = with_dedup(tmp_path, decontamination=quiz, bands=50, rows=2)
    play(corpus, {"notes/x.jsonl": records(f"{text(300)} {question}", text(300), question)})

    build(corpus, *STAGES)

    texts = [row[1] for row in outcome(corpus)["notes"]]
    assert text(300) in texts
    assert not [each for each in texts if question in each]
    stats = corpus.store.newest("deduped", "notes").stats
    assert stats.rejected == {"contaminated": 2}
    assert stats.numbers["contaminated"] == {"quiz": 2}
    hits = table(corpus, "deduped", "notes", "contamination", ["set", "is_contaminated"])
    assert hits == [("quiz", True)] * 2


def test_signatures_of_another_config_are_refused(tmp_path: Path, build: Build) -> None:
    corpus = with_dedup(tmp_path)
    build(corpus, *STAGES)

    config = yaml.safe_load(corpus.config.read_text()) | {"dedup": {"bands": 20, "rows": 6}}
    corpus.config.write_text(yaml.safe_dump(config, sort_keys=False))
    changed = open_corpus(corpus.config)

    with pytest.raises(dg.Failure, match=r"under another `dedup` config.*`signatures`"):
        build(changed, "band_index")
    with pytest.raises(dg.Failure, match=r"under another `dedup` config.*`band_index`"):
        build(changed, "duplicates")


def test_a_store_of_unverified_clusters_is_clustered_again_and_not_signed_again(
    tmp_path: Path, build: Build
) -> None:
    unverified = with_dedup(tmp_path, preset="datatrove")
    whole = [text(number) for number in range(300, 304)]
    edited = [text(number, 14) for number in range(300, 304)]  # 102 of 130 shingles: 0.78
    play(unverified, {"prose/m.jsonl": records(*whole), "notes/a.jsonl": records(*edited)})
    build(unverified, *STAGES)
    config = yaml.safe_load(unverified.config.read_text())
    del config["dedup"]["preset"]
    unverified.config.write_text(yaml.safe_dump(config, sort_keys=False))
    verified = open_corpus(unverified.config)
    published = [row[1] for rows in outcome(unverified).values() for row in rows]
    build(verified, *STAGES)

    reports = {
        name: read_report(verified.store.root, name, partition)
        for name, partition in (("signatures", "notes"), ("band_index", "all"))
    }
    assert [report.parts_computed for report in reports.values()] == [0, 0]
    assert read_report(verified.store.root, "duplicates", "all").parts_computed > 0
    assert not {*whole, *edited} <= set(published)
    now_published = [row[1] for rows in outcome(verified).values() for row in rows]
    assert {*whole, *edited} <= set(now_published)


@pytest.mark.parametrize("lost", ["all", "newest manifest"])
def test_decisions_on_a_lost_index_are_made_again(tmp_path: Path, build: Build, lost: str) -> None:
    corpus = with_dedup(tmp_path)
    play(corpus, {"notes/b.jsonl": records(text(300)), "notes/c.jsonl": records(text(301))})
    build(corpus, *STAGES)
    play(corpus, {"notes/a.jsonl": records(text(300)), "prose/0.jsonl": records(text(301, 1))})
    build(corpus, *STAGES)

    folder = corpus.store.root / "band_index" / "all"
    if lost == "all":
        shutil.rmtree(folder)
    else:
        sorted((folder / "_manifests").glob("*.json"))[-1].unlink()
        play(corpus, {"notes/a.jsonl": None, "prose/1.jsonl": records(text(300), text(301))})
    build(corpus, *STAGES)

    after = outcome(corpus)
    shutil.rmtree(corpus.store.root / "duplicates")
    build(corpus, *STAGES)
    assert outcome(corpus) == after
