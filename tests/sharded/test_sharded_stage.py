"""Shards on disk: every format has the same rows in the same order, and says what is in it."""

import errno
import random
import shutil
from dataclasses import replace

from bucketed_corpus import (
    LENGTH,
    PACKED,
    build,
    planned,
    publish_bucketed,
    run_sharded,
    sequences,
    tasks_of,
)
from builders import hashes, open_corpus, write_corpus
from prelude import Any, Callable, Iterator, Path, hashlib, json, np, pl, pytest, re

from assets.sharded import scatter_files
from assets.sharded.asset import STAGE as SHARDED
from assets.sharded.asset import plan_sharded, write_shard
from assets.sharded.scatter_files import read_pile, scatter_part, scatter_paths
from assets.sharded.shuffle_files import scatter_tasks, wanted_of
from resources.engine.cost import Cost
from resources.engine.map_parts import map_parts
from resources.engine.run_task import Ended, PartUseError
from resources.engine.system_errors import SystemFault
from resources.store.records import DamagedFileError, Manifest, PartRecord
from resources.tasks import Plan, Task

Shards = Callable[..., Manifest]
MEMORY = "assets.sharded.scatter_files.memory_bytes"


@pytest.fixture(params=["numbers", "rows"])
def in_piles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Content of piles: numbers of rows, or, of a source too large for the memory, the rows."""
    if request.param == "rows":
        monkeypatch.setattr(MEMORY, lambda: 0)
    return str(request.param)


@pytest.fixture
def shard(tmp_path: Path) -> Shards:
    """Shards a source made of the given bucketed parts, in this process; returns its manifest."""

    def run(parts: list[pl.DataFrame], **config: Any) -> Manifest:
        corpus = open_corpus(
            write_corpus(
                tmp_path,
                buckets=config.pop("buckets", PACKED),
                shards={"target_bytes": 1024, **config},
                engine={"kind": "in_process"},
            )
        )
        publish_bucketed(corpus, parts)
        return build(corpus, plan_sharded(corpus, "prose"))

    return run


def folder_of(tmp_path: Path, shard_format: str) -> Path:
    (found,) = (tmp_path / "store/sharded/prose").glob(f"{shard_format}-*")
    return found


def written(tmp_path: Path) -> dict[str, tuple[int, int]]:
    """The file that each shard's name stands for, and when it was written."""
    root = tmp_path / "store/sharded/prose"
    files = {str(path.relative_to(root)): path.stat() for path in root.glob("*-*/[!m]*")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in files.items()}


def lose_sequences(tmp_path: Path) -> None:
    """From now on nothing can read the bucketed parts."""
    for path in (tmp_path / "store/bucketed").rglob("*.arrow"):
        path.unlink()


def rows_of(tmp_path: Path) -> list[pl.DataFrame]:
    return [
        pl.read_parquet(path) for path in sorted(folder_of(tmp_path, "parquet").glob("*.parquet"))
    ]


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_flat_files_and_parquet_hold_the_same_rows(
    shard: Shards, tmp_path: Path, dtype: str
) -> None:
    parts = [sequences(0, 100, dtype), sequences(100, 1, dtype), sequences(101, 99, dtype)]
    manifest = shard(parts)

    width = {"uint16": 2, "uint32": 4}[dtype]
    frames = rows_of(tmp_path)
    assert len(frames) == -(-200 * LENGTH * width // 1024)
    assert sorted(row[0] for frame in frames for row in frame["tokens"]) == [*range(200)]
    for number, frame in enumerate(frames):
        path = folder_of(tmp_path, "megatron") / f"shard-{number:05d}.bin"
        flat = np.fromfile(path, dtype).reshape(-1, LENGTH)
        assert flat.tolist() == frame["tokens"].to_list()
        assert [f"{row[0]:032x}" for row in flat] == [
            spans[0]["doc_id"] for spans in frame["spans"]
        ]
    assert [part.name for part in manifest.parts] == [
        "ledger",
        *(f"g0001-shard-{number:05d}" for number in range(len(frames))),
        "index",
    ]
    assert manifest.stats.rows_in == manifest.stats.rows_kept == 200
    assert manifest.stats.tokens == 200 * (LENGTH - 1)
    assert manifest.stats.text_bytes == 200
    assert manifest.stats.numbers["stored_tokens"] == 200 * LENGTH
    assert manifest.stats.numbers["shards"] == {str(LENGTH): len(frames)}


def test_manifest_json_says_what_the_folder_holds(shard: Shards, tmp_path: Path) -> None:
    formats = ["parquet", "megatron", "mds", "litdata", "datatrove", "arrow"]
    manifest = shard([sequences(0, 150)], formats=formats)

    root = tmp_path / "store/sharded/prose"
    named = {root / file.path for part in manifest.parts for file in part.files}
    there = {path for path in root.rglob("*") if path.is_file() and path.parent.name[0] != "_"}
    assert there - named == {root / ".lock"}
    for name in formats:
        folder = folder_of(tmp_path, name)
        content = json.loads((folder / "manifest.json").read_bytes())
        assert folder.name == f"{name}-{content['fingerprint'][:8]}"
        files = {path.name for path in folder.iterdir()} - {"manifest.json"}
        assert {file["name"] for file in content["files"]} == files
        for file in content["files"]:
            data = (folder / file["name"]).read_bytes()
            assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        counted = {f["shard"]: (f["rows"], f["tokens"]) for f in content["files"] if "shard" in f}
        assert (content["rows"], content["tokens"]) == (150, 150 * (LENGTH - 1))
        assert tuple(map(sum, zip(*counted.values(), strict=True))) == (150, 150 * (LENGTH - 1))
        assert content["stored_tokens"] == 150 * LENGTH
        assert content["format"] == name and content["sequence_length"] == LENGTH
        assert content["token_dtype"] == "uint16" and content["end_of_document_id"] == 0
        assert content["tokenizer_fingerprint"] == "f" * 64
        assert content["config"] == {"seed": 0, "target_bytes": 1024}
    shard([sequences(0, 150)], seed=1)
    assert len(list(root.glob("megatron-*"))) == 2


def test_the_work_of_all_tasks_is_that_of_the_source(tmp_path: Path) -> None:
    corpus, plan = planned(tmp_path, [sequences(0, 90)])

    num_bytes = corpus.store.newest("bucketed", "prose").stats.bytes
    tasks = tasks_of(corpus, plan)
    work_bytes = sum(task.work_bytes for task in tasks)
    assert num_bytes - len(tasks) < work_bytes <= num_bytes


def test_the_time_of_the_first_pass_counts_for_the_first_shard_written(
    shard: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard([sequences(0, 90), sequences(90, 90)])
    for number in (1, 2):
        next((tmp_path / "store/sharded/prose").glob(f"megatron-*/shard-0000{number}.idx")).unlink()
    corpus, plan = planned(tmp_path)

    def took_a_thousand_seconds(*args: Any) -> Iterator[Ended[Any]]:
        for ended in map_parts(*args):
            yield replace(ended, cost=Cost(0.0, 1000.0, 1000.0, 0))

    monkeypatch.setattr("assets.sharded.shuffle_files.map_with_progress", took_a_thousand_seconds)
    outcomes = run_sharded(corpus, plan.tasks, write_shard)

    spent = [sum(cost.cpu_seconds for cost in outcome.costs) for outcome in outcomes]
    assert [round(seconds, -3) for seconds in spent] == [0, 0, 2000, 0, 0]


def test_one_more_format_leaves_the_files_of_the_others(shard: Shards, tmp_path: Path) -> None:
    shard([sequences(0, 90)])
    before = written(tmp_path)

    corpus, plan = planned(tmp_path, formats=["parquet", "megatron", "npy"])
    manifest = build(corpus, plan)

    after = written(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {name.split("-")[0] for name in after.keys() - before.keys()} == {"npy"}
    flat = b"".join(
        (folder_of(tmp_path, "npy") / f"shard-{number:05d}.npy").read_bytes() for number in (0, 1)
    )
    assert np.frombuffer(flat, np.uint16).reshape(-1, LENGTH).tolist() == [
        row for frame in rows_of(tmp_path) for row in frame["tokens"].to_list()
    ]
    assert [len(part.files) for part in manifest.parts] == [3, 6, 6, 3]


def test_one_format_less_reads_no_rows(shard: Shards, tmp_path: Path) -> None:
    before = shard([sequences(0, 90)])
    files = written(tmp_path)
    lose_sequences(tmp_path)

    after = build(*planned(tmp_path, formats=["megatron"]))

    assert after.stats == before.stats
    shards = [part for part in after.parts if part.name != "ledger"]
    assert {file.kind.split(".")[0] for part in shards for file in part.files} == {"megatron"}
    assert {name: files[name] for name in written(tmp_path) if name[0] == "m"}.items() <= (
        written(tmp_path).items()
    )


@pytest.mark.parametrize(
    "change",
    [
        *({"seed": 1}, {"target_bytes": 1025}, {"formats": ["megatron", "parquet"]}, {}),
        {"parts": [sequences(1, 90)]},
    ],
    ids=["seed", "target_bytes", "formats", "code version", "bucketed parts"],
)
def test_what_decides_the_bytes_is_in_every_fingerprint(
    tmp_path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprints(*planned(tmp_path, [sequences(0, 90)]))
    assert fingerprints(*planned(tmp_path, [sequences(0, 90)])) == before

    if not change:
        monkeypatch.setattr("assets.sharded.asset.SHARDED", replace(SHARDED, code_version="next"))
    after = fingerprints(*planned(tmp_path, **change))

    assert before.keys() == after.keys()
    assert not before.items() & after.items()


def fingerprints(corpus: Any, plan: Plan) -> dict[str, str]:
    return {task.name: task.fingerprint for task in tasks_of(corpus, plan)}


def test_rows_of_different_lengths_have_no_common_one(shard: Shards, tmp_path: Path) -> None:
    long = sequences(50, 50, length=12).with_columns(bucket=pl.lit(1, pl.UInt8))
    shard([pl.concat([sequences(0, 50), long])], buckets={"mode": "buckets", "edges": [8]})

    content = json.loads((folder_of(tmp_path, "megatron") / "manifest.json").read_bytes())
    assert content["sequence_length"] is None
    assert [set(frame["tokens"].list.len()) for frame in rows_of(tmp_path)] == [{8}, {12}, {12}]


@pytest.mark.parametrize("parts", [[], [sequences(0, 0)]])
def test_an_empty_source_has_an_index_and_no_shards(
    shard: Shards, tmp_path: Path, parts: list[pl.DataFrame]
) -> None:
    manifest = shard(parts)

    assert [part.name for part in manifest.parts] == ["ledger", "index"]
    content = json.loads((folder_of(tmp_path, "megatron") / "manifest.json").read_bytes())
    assert content["files"] == [] and content["rows"] == 0


@pytest.mark.usefixtures("in_piles")
def test_a_lost_shard_scatters_its_own_rows_only(shard: Shards, tmp_path: Path) -> None:
    shard([sequences(0, 90), sequences(90, 90)])
    before, files = hashes(tmp_path / "store"), written(tmp_path)
    next((tmp_path / "store/sharded/prose").glob("megatron-*/shard-00001.idx")).unlink()
    corpus, plan = planned(tmp_path)

    wanted = wanted_of(tasks_of(corpus, plan)[:-1])
    for task in scatter_tasks(corpus, wanted):
        scatter_part(task)
    paths = scatter_paths(wanted[0], wanted[0].payload.scattered)
    heights = [[len(read_pile(path, number).rows) for number in range(3)] for path in paths]
    assert scatter_tasks(corpus, wanted) == []  # what is scattered is not scattered again
    build(corpus, plan)

    assert [task.name for task in wanted] == ["g0001-shard-00001"]
    assert [sum(pile) for pile in zip(*heights, strict=True)] == [0, 60, 0]
    assert hashes(tmp_path / "store") == before
    rewritten = {name for name, file in written(tmp_path).items() if file != files[name]}
    assert {name.split("/")[1] for name in rewritten} == {
        f"shard-00001.{suffix}" for suffix in ("bin", "idx", "spans")
    }


def test_piles_go_before_the_next_sources_are_scattered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.sharded.shuffle_files.GROUP_BYTES", 1)
    corpus, plan = planned(tmp_path, [sequences(0, 90)])
    publish_bucketed(corpus, [sequences(0, 60), sequences(60, 30)], "notes")
    found = []

    def look(task: Task) -> list[PartRecord]:
        found.append((task.partition, {path.parent.name for path in piles(tmp_path)}))
        return write_shard(task)

    run_sharded(corpus, plan.tasks + plan_sharded(corpus, "notes").tasks, look)

    assert found == [("prose", {"prose"})] * 2 + [("notes", {"notes"})] * 2
    assert piles(tmp_path) == []


def piles(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store/sharded").rglob("*.piles.bin"))


def test_a_source_too_large_for_the_memory_has_the_same_shards(
    shard: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_of_piles = []

    def look(task: Task) -> list[PartRecord]:
        bytes_of_piles.append(sum(path.stat().st_size for path in piles(tmp_path)))
        return write_shard(task)

    shard([sequences(0, 90), sequences(90, 50), sequences(140, 0)])
    before = hashes(tmp_path / "store")
    for memory in (1 << 40, 0):
        shutil.rmtree(tmp_path / "store/sharded")
        monkeypatch.setattr(MEMORY, lambda memory=memory: memory)
        corpus, plan = planned(tmp_path)
        build(corpus, plan, look)
        assert hashes(tmp_path / "store") == before

    assert bytes_of_piles[0] < bytes_of_piles[-1]


@pytest.mark.usefixtures("in_piles")
def test_a_flipped_bit_in_a_pile_is_named_and_the_next_run_writes_it_again(
    shard: Shards, tmp_path: Path
) -> None:
    before = shard([sequences(0, 90), sequences(90, 90)])
    shutil.rmtree(tmp_path / "store/sharded")
    corpus, plan = planned(tmp_path)

    def damage_before_the_first(task: Task) -> list[PartRecord]:
        content = bytearray((first := sorted(piles(tmp_path))[0]).read_bytes())
        content[len(content) // 4] ^= 1
        first.write_bytes(content)
        return write_shard(task)

    outcomes = run_sharded(corpus, plan.tasks, damage_before_the_first)

    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert errors and isinstance(errors[0], PartUseError)
    assert "piles.bin changed since" in str(errors[0])
    assert "run the same command again" in str(errors[0])
    assert build(corpus, plan) == before


@pytest.mark.usefixtures("in_piles")
def test_no_bit_of_a_pile_flips_unseen(tmp_path: Path) -> None:
    corpus, plan = planned(tmp_path, [sequences(0, 60)])
    wanted = wanted_of(tasks_of(corpus, plan)[:-1])
    for task in scatter_tasks(corpus, wanted):
        scatter_part(task)
    [path] = piles(tmp_path)
    content, clean = path.read_bytes(), read_pile(path, 0)
    assert len(clean.rows)
    changed = 0
    for bit in random.Random(12).sample(range(8 * len(content)), 500):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            pile = read_pile(path, 0)
            assert pile.sequences.equals(clean.sequences)
            assert pile.rows.tolist() == clean.rows.tolist()
            assert pile.positions.tolist() == clean.positions.tolist()
        except DamagedFileError:
            changed += 1
            assert not path.exists()
    assert changed > 100


@pytest.mark.usefixtures("in_piles")
def test_a_disk_that_fails_costs_no_pile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, plan = planned(tmp_path, [sequences(0, 60)])
    wanted = wanted_of(tasks_of(corpus, plan)[:-1])
    for task in scatter_tasks(corpus, wanted):
        scatter_part(task)
    [path] = piles(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(scatter_files, "read_message", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_pile(path, 0)
    assert path.exists()


def test_a_killed_run_goes_on_with_its_piles(shard: Shards, tmp_path: Path, in_piles: str) -> None:
    before = shard([sequences(0, 90), sequences(90, 90)])
    rows = [frame["tokens"].to_list() for frame in rows_of(tmp_path)]
    shutil.rmtree(tmp_path / "store/sharded")
    corpus, plan = planned(tmp_path)

    def die_at_the_second(task: Task) -> list[PartRecord]:
        if task.name == "g0001-shard-00001":
            raise MemoryError
        return write_shard(task)

    with pytest.raises(SystemFault, match="MemoryError"):
        run_sharded(corpus, plan.tasks, die_at_the_second)
    left = {path: path.stat().st_mtime_ns for path in piles(tmp_path)}
    if in_piles == "rows":
        lose_sequences(tmp_path)

    def look(task: Task) -> list[PartRecord]:
        assert {path: path.stat().st_mtime_ns for path in piles(tmp_path)} == left
        return write_shard(task)

    assert left and build(corpus, plan, look) == before
    assert [frame["tokens"].to_list() for frame in rows_of(tmp_path)] == rows


def test_who_misses_a_pile_finds_the_shard_that_another_run_published(tmp_path: Path) -> None:
    corpus, plan = planned(tmp_path, [sequences(0, 30)])

    def gather_late(task: Task) -> list[PartRecord]:
        run_sharded(corpus, plan.tasks, write_shard)
        return write_shard(task)

    def gather_too_late(task: Task) -> list[PartRecord]:
        for path in piles(tmp_path):
            path.unlink()
        return write_shard(task)

    failed = run_sharded(corpus, plan.tasks, gather_too_late)[0]
    assert "FileNotFoundError" in str(failed.error)
    outcomes = run_sharded(corpus, plan.tasks, gather_late)

    expected = ["ledger", "g0001-shard-00000", "index"]
    assert [record.name for outcome in outcomes for record in outcome.records] == expected


def test_parts_committed_while_shards_were_planned_are_refused(
    shard: Shards, tmp_path: Path
) -> None:
    shard([sequences(0, 90)])
    corpus = open_corpus(write_corpus(tmp_path, buckets=PACKED, shards={"seed": 5}))
    plan = plan_sharded(corpus, "prose")
    publish_bucketed(corpus, [sequences(0, 91)])

    failed = run_sharded(corpus, plan.tasks, write_shard)[0]
    assert re.search(r"bucketed\[prose\] was committed again .* Run again", str(failed.error))


def test_tasks_stay_small_however_many_parts_there_are(shard: Shards, tmp_path: Path) -> None:
    import pickle

    shard([sequences(0, 30)])
    corpus = open_corpus(tmp_path / "pipeline.yaml")
    small = len(pickle.dumps(tasks_of(corpus, plan_sharded(corpus, "prose"))[0]))
    publish_bucketed(corpus, [sequences(first, 1) for first in range(30)])

    assert abs(len(pickle.dumps(tasks_of(corpus, plan_sharded(corpus, "prose"))[0])) - small) < 10
