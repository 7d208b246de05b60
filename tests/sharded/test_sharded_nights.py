"""Nights of `sharded`: what is new is new files, and a build with the ledger gives the same."""

import random

import msgspec
from bucketed_corpus import LENGTH, build, planned, publish_bucketed, sequences
from builders import hashes
from prelude import Any, Counter, Path, hashlib, json, np, pl, pytest
from s3_server import s3_bucket

from assets.sharded.asset import STAGE as SHARDED
from assets.sharded.exported_ledger_files import export_ledger
from assets.sharded.ledger_files import Ledger, PublishedLedger, read_ledger
from assets.sharded.shard_files import RemovedRows
from assets.sharded.sharded_records import SourceNumbers
from corpus_loader.flat import MappedFile, read_index, read_spans
from corpus_loader.places.objects import Objects
from resources.store.records import Manifest, PartRecord, numbers_of
from resources.store.scratch import MARK, Remote

Parts = list[pl.DataFrame]


def run(folder: Path, parts: Parts, **shards: Any) -> Manifest:
    """One night over these bucketed parts."""
    return build(*planned(folder, parts, **shards))


def part_of(manifest: Manifest, name: str) -> PartRecord:
    return next(part for part in manifest.parts if part.name == name)


def ledger_of(folder: Path, manifest: Manifest) -> PublishedLedger:
    partition = planned(folder)[0].store.partition("sharded", "prose")
    return read_ledger(partition, part_of(manifest, "ledger"))


def removed_of(manifest: Manifest) -> RemovedRows:
    return numbers_of(part_of(manifest, "index"), RemovedRows)


def shards_of(manifest: Manifest) -> list[PartRecord]:
    return [part for part in manifest.parts if "-shard-" in part.name]


def rows_of(folder: Path, manifest: Manifest) -> dict[str, list[int]]:
    """The sequences of each shard by the name of its part, all that its files hold."""
    root = folder / "store/sharded/prose"
    found = {}
    for part in shards_of(manifest):
        file = part.file("parquet.parquet")
        assert file is not None
        found[part.name] = [row[0] for row in pl.read_parquet(root / file.path)["tokens"]]
    return found


def live_rows(folder: Path, manifest: Manifest) -> dict[str, list[int]]:
    """The sequences of each shard without the removed ones, by the list beside the shards."""
    rows, counts = rows_of(folder, manifest), removed_of(manifest).removed_rows
    file = part_of(manifest, "index").file("removed")
    marked = np.empty(0, "<u4")
    if file is not None:
        marked = np.fromfile(folder / "store/sharded/prose" / file.path, "<u4")
    for name in rows:
        count = counts.get(name, 0)
        rows[name] = np.delete(rows[name], marked[:count]).tolist()
        marked = marked[count:]
    assert not len(marked)
    return {name: numbers for name, numbers in rows.items() if numbers}


def index_folder(folder: Path, manifest: Manifest, shard_format: str) -> Path:
    files = part_of(manifest, "index").files
    path = next(f.path for f in files if f.kind == f"{shard_format}.manifest.json")
    return (folder / "store/sharded/prose" / path).parent


def megatron_rows(folder: Path, manifest: Manifest) -> list[int]:
    """The sequences that a reader of Megatron's files finds in the folder with the index."""
    found = []
    for path in sorted(index_folder(folder, manifest, "megatron").glob("*.bin")):
        idx, spans = path.with_suffix(".idx"), path.with_suffix(".spans")
        count = int(np.fromfile(idx, "<u8", 1, offset=18)[0])
        places = read_index(MappedFile(idx, idx.stat().st_size), "uint16", count)
        documents = read_spans(MappedFile(spans, spans.stat().st_size), count)
        tokens = np.fromfile(path, np.uint16)
        rows = [int(places.row(tokens, row)[0]) for row in range(count)]
        of_rows = [documents.row(row).doc_ids.tobytes().hex() for row in range(count)]
        assert of_rows == [f"{row:032x}" for row in rows]
        found += rows
    return found


def test_a_night_of_few_new_sequences_writes_their_shards_alone(tmp_path: Path) -> None:
    before = run(tmp_path, [sequences(0, 200)])
    files = hashes(tmp_path / "store/sharded")

    after = run(tmp_path, [sequences(0, 200), sequences(300, 5)])

    assert [part.name for part in after.parts] == [
        "ledger",
        *(f"g0001-shard-{number:05d}" for number in range(4)),
        "g0002-shard-00000",
        "index",
    ]
    assert shards_of(after)[:4] == shards_of(before)
    assert files.items() <= hashes(tmp_path / "store/sharded").items()
    assert sorted(megatron_rows(tmp_path, after)) == [*range(200), *range(300, 305)]
    assert removed_of(after) == RemovedRows()


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    run(tmp_path, [sequences(0, 200)])
    parts = [sequences(0, 195), sequences(300, 5)]
    run(tmp_path, parts)
    before = hashes(tmp_path / "store/sharded")

    run(tmp_path, parts)

    assert hashes(tmp_path / "store/sharded") == before


def test_removed_rows_are_listed_beside_the_shards(tmp_path: Path) -> None:
    before = run(tmp_path, [sequences(0, 100), sequences(100, 100)])

    after = run(tmp_path, [sequences(0, 96), sequences(100, 100)])

    assert shards_of(after) == shards_of(before)
    gone = {96, 97, 98, 99}
    rows, removed = rows_of(tmp_path, after), removed_of(after)
    counts = {name: len(gone & {*of}) for name, of in rows.items() if gone & {*of}}
    assert counts == removed.removed_rows
    assert removed.removed_tokens == {name: n * (LENGTH - 1) for name, n in counts.items()}
    live = live_rows(tmp_path, after)
    assert live == {name: [row for row in of if row not in gone] for name, of in rows.items()}
    assert megatron_rows(tmp_path, after) == [row for of in live.values() for row in of]
    assert after.stats.numbers["removed_rows"] == removed.removed_rows


def test_the_folder_of_a_state_says_what_it_holds(tmp_path: Path) -> None:
    formats = ["parquet", "megatron", "mds", "litdata"]
    run(tmp_path, [sequences(0, 200)], formats=formats)
    after = run(tmp_path, [sequences(0, 197), sequences(300, 5)], formats=formats)

    for name in formats:
        content = json.loads((index_folder(tmp_path, after, name) / "manifest.json").read_bytes())
        files = {path.name for path in index_folder(tmp_path, after, name).iterdir()}
        assert {file["name"] for file in content["files"]} == files - {"manifest.json"}
        assert content["removed_rows"] == 3
        assert content["rows"] == (202 if name == "megatron" else 205)
        assert content["tokens"] == content["rows"] * (LENGTH - 1)
        assert content["stored_tokens"] == content["rows"] * LENGTH
        by_shard = {f["shard"]: f.get("removed_rows", 0) for f in content["files"] if "shard" in f}
        removed = removed_of(after).removed_rows
        assert by_shard == {part.name: removed.get(part.name, 0) for part in shards_of(after)}
    samples = json.loads((index_folder(tmp_path, after, "mds") / "index.json").read_bytes())
    assert sum(shard["samples"] for shard in samples["shards"]) == 205


def test_too_many_removed_rows_are_written_out(tmp_path: Path) -> None:
    run(tmp_path, [sequences(0, 100)], rewrite_share=0.1)
    after = run(tmp_path, [sequences(0, 89)], rewrite_share=0.1)

    assert {part.name[:5] for part in shards_of(after)} == {"g0002"}
    assert sorted(row for of in rows_of(tmp_path, after).values() for row in of) == [*range(89)]
    assert ledger_of(tmp_path, after).ledger.is_one


def test_a_lower_share_writes_out_what_is_marked_already(tmp_path: Path) -> None:
    run(tmp_path, [sequences(0, 100)])
    assert removed_of(run(tmp_path, [sequences(0, 98)])).removed_rows

    after = build(*planned(tmp_path, rewrite_share=0.01))

    assert not removed_of(after).removed_rows and len(ledger_of(tmp_path, after).records) == 1


@pytest.mark.parametrize("change", [{"seed": 3}, {"target_bytes": 2048}])
def test_another_order_starts_a_new_ledger(tmp_path: Path, change: dict[str, Any]) -> None:
    run(tmp_path, [sequences(0, 200)])
    two = run(tmp_path, [sequences(0, 200), sequences(300, 5)])
    assert len(ledger_of(tmp_path, two).ledger.generations) == 2

    after = build(*planned(tmp_path, **change))

    assert [g.number for g in ledger_of(tmp_path, after).ledger.generations] == [1]


def test_a_lost_shard_without_removed_rows_is_written_again(tmp_path: Path) -> None:
    run(tmp_path, [sequences(0, 200)])
    parts = [sequences(0, 200), sequences(300, 5)]
    run(tmp_path, parts)
    before = hashes(tmp_path / "store/sharded")
    next((tmp_path / "store/sharded/prose").glob("megatron-*/shard-00003.idx")).unlink()

    run(tmp_path, parts)

    assert hashes(tmp_path / "store/sharded") == before


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_generation_with_removed_rows_is_rewritten_when_it_lacks_a_file(
    tmp_path: Path, is_lost: bool
) -> None:
    run(tmp_path, [sequences(0, 200)])
    run(tmp_path, [sequences(0, 197)])
    formats = ["parquet", "megatron"] if is_lost else ["parquet", "megatron", "npy"]
    if is_lost:
        for path in (tmp_path / "store/sharded/prose").glob("megatron-*/shard-00003.bin"):
            path.unlink()

    after = build(*planned(tmp_path, formats=formats))

    assert {part.name[:5] for part in shards_of(after)} == {"g0002"}
    assert sorted(megatron_rows(tmp_path, after)) == [*range(197)]


def random_night(rng: random.Random, before: dict[str, list[int]]) -> dict[str, list[int]]:
    """Parts after a night: one comes, some lose rows, rows move, a part goes, one is rewritten."""
    parts = {name: [*numbers] for name, numbers in before.items()}
    first = 1 + max((n for numbers in parts.values() for n in numbers), default=0)
    parts[f"{first:05d}"] = [*range(first, first + rng.choice([1, 3, 20, 60]))]
    for numbers in parts.values():
        if rng.random() < 0.3 and numbers:
            numbers.pop(rng.randrange(len(numbers)))
    if rng.random() < 0.2:
        del parts[rng.choice(sorted(parts))]
    if rng.random() < 0.3 and len(parts) > 1:
        giver, taker = rng.sample(sorted(parts), 2)
        parts[taker] += [parts[giver].pop() for _ in range(len(parts[giver]) // 2)]
    return parts


def frames(parts: dict[str, list[int]]) -> Parts:
    return [pl.concat([sequences(n, 1) for n in of]) for of in parts.values() if of]


@pytest.mark.parametrize("seed", range(4))
def test_a_build_from_nothing_with_the_ledger_gives_the_same_shards(
    tmp_path: Path, seed: int
) -> None:
    rng, parts = random.Random(seed), {"00000": [*range(1, 200)]}
    shards = {"rewrite_share": 0.1, "target_bytes": 1024}
    for number in range(6):
        nightly = run(tmp_path / "nightly", frames(parts), **shards)

        live = live_rows(tmp_path / "nightly", nightly)
        expected = Counter(n for numbers in parts.values() for n in numbers)
        assert Counter(row for of in live.values() for row in of) == expected
        ledger = ledger_of(tmp_path / "nightly", nightly)
        assert len(ledger.ledger.generations) <= 9

        (exported := tmp_path / f"exported-{number}").mkdir()
        export_ledger(exported, "prose", ledger)
        fresh = tmp_path / f"fresh-{number}"
        fresh.mkdir()
        built = run(fresh, frames(parts), ledger=str(exported), **shards)

        assert live_rows(fresh, built) == live
        assert not removed_of(built).removed_rows
        assert_same_files(ledger.ledger, nightly, built)
        parts = random_night(rng, parts)
        assert_same_next_night(tmp_path, number, frames(parts), shards)


def assert_same_files(ledger: Ledger, nightly: Manifest, built: Manifest) -> None:
    """Generations without a removed row have the same files, to the byte."""
    whole = {f"g{g.number:04d}" for g in ledger.generations if not g.removed and not g.absent}
    before, after = (
        {part.name: part.files for part in shards_of(each) if part.name[:5] in whole}
        for each in (nightly, built)
    )
    assert before == after


def assert_same_next_night(folder: Path, number: int, parts: Parts, shards: dict[str, Any]) -> None:
    """The next night decides the same after both builds."""
    if number == 3:
        of_fresh = run(folder / f"fresh-{number}", parts, **shards)
        of_nightly = run(folder / "nightly", parts, **shards)
        fresh = live_rows(folder / f"fresh-{number}", of_fresh)
        assert fresh == live_rows(folder / "nightly", of_nightly)


def test_a_ledger_of_another_order_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    before = run(tmp_path / "a", [sequences(0, 50)])
    (exported := tmp_path / "exported").mkdir()
    export_ledger(exported, "prose", ledger_of(tmp_path / "a", before))
    with pytest.raises(ValueError, match="another seed"):
        run(tmp_path / "b", [sequences(0, 50)], ledger=str(exported), seed=1)

    path = exported / "prose.g0001.sequences.bin"
    path.write_bytes(b"\1" + path.read_bytes()[1:])
    with pytest.raises(ValueError, match="changed since it was exported"):
        run(tmp_path / "c", [sequences(0, 50)], ledger=str(exported))
    (exported / "prose.json").write_text("[]")
    with pytest.raises(ValueError, match="is no ledger"):
        run(tmp_path / "d", [sequences(0, 50)], ledger=str(exported))


def test_the_manifest_of_a_source_counts_removed_rows(tmp_path: Path) -> None:
    corpus, plan = planned(tmp_path, [sequences(0, 90)])
    build(corpus, plan)
    publish_bucketed(corpus, [sequences(0, 89)])
    run(tmp_path, [sequences(0, 89)])

    numbers = corpus.store.newest(SHARDED, "prose").stats.numbers

    assert isinstance(numbers, SourceNumbers)
    assert sum(numbers.removed_rows.values()) == 1
    assert sum(numbers.removed_tokens.values()) == LENGTH - 1


def test_nights_on_an_object_store_are_those_on_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats = ["parquet", "megatron"]
    nights = [
        [sequences(0, 200)],
        [sequences(0, 197), sequences(300, 5)],
        [sequences(0, 197), sequences(300, 5), sequences(400, 90)],
    ]
    with s3_bucket(monkeypatch):
        for night, parts in enumerate(nights):
            run(tmp_path / "disk", parts, formats=formats)
            machine = tmp_path / f"machine-{night}"  # which has no copies of earlier nights
            scratch = machine / "store"
            scratch.mkdir(parents=True)
            mark = Remote("s3://corpora/nights", 1 << 30)
            (scratch / MARK).write_bytes(msgspec.json.encode(mark))
            run(machine, parts, formats=formats)

        objects = Objects("s3://corpora/nights")
        keys = [info.key for info in objects.list_objects("sharded")]
        there = dict(zip(keys, map(digest_of, objects.each(objects.get, keys)), strict=True))
    here = hashes(tmp_path / "disk/store")
    assert len(there) > 80
    assert there == {name: digest for name, digest in here.items() if is_published(name)}


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_published(name: str) -> bool:
    return name.startswith("sharded/") and not name.endswith(".lock")
