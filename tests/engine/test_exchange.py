"""Exchange by hash: rows that a pass over prefixes reads of the parts' tables, and back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from resources import exchange as module
from resources.corpus import Corpus
from resources.exchange import Made, OfPart, OfPrefix, PartDigests, Round, exchange
from resources.passes import PassFiles
from resources.run_tasks import run_partitions
from resources.store.disk import xxh3_of
from resources.store.published import as_it_is
from resources.store.records import Empty, FileRecord, PartRecord, StageRecords, Stats, to_line
from resources.tasks import Task

HALF = 1 << 63
PARTS = [
    pl.DataFrame(
        {"hash": [1, 7, HALF, HALF + 1], "text": ["a", "b", "long text in a buffer", "d"]},
        schema_overrides={"hash": pl.UInt64},
    ),
    pl.DataFrame(schema={"hash": pl.UInt64, "text": pl.String}),
    pl.DataFrame({"hash": [HALF + 9], "text": ["e"]}, schema_overrides={"hash": pl.UInt64}),
]


def files_of(folder: Path, tables: list[pl.DataFrame], rows_at_once: int) -> PassFiles:
    """Write tables, in batches of some rows, as an earlier pass would."""
    records = []
    for number, table in enumerate(tables):
        path = folder / f"{number}.arrow"
        table.write_ipc(path, compression="uncompressed", record_batch_size=rows_at_once)
        size = path.stat().st_size
        records.append(FileRecord("table", path.name, table.height, size, "", xxh3_of(path)))
    listed = folder / "list.json"
    listed.write_bytes(to_line(records))
    return PassFiles(listed)


def is_mapped(folder: Path) -> bool:
    return str(folder) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_all_rows_with_a_prefix_are_read_and_no_file_stays_mapped(
    tmp_path: Path, rows_at_once: int
) -> None:
    files = files_of(tmp_path, PARTS, rows_at_once)

    places = (0, 1), (1, 1), (0, 0)
    of_prefixes = (OfPrefix(place, {"table": files}, None, 1) for place in places)
    low, high, both = (list(each.tables("table")) for each in of_prefixes)

    assert not is_mapped(tmp_path)
    for part, *found in zip(PARTS, low, high, both, strict=True):
        wanted = part.filter(pl.col("hash") < HALF), part.filter(pl.col("hash") >= HALF), part
        for table, expected in zip(found, wanted, strict=True):
            assert_frame_equal(table, expected)


@pytest.mark.parametrize(("own", "expected"), [(PARTS[0], ["a", "c", "e"]), (PARTS[1], [])])
def test_a_part_finds_what_was_made_of_its_hashes_under_all_prefixes(
    tmp_path: Path, own: pl.DataFrame, expected: list[str]
) -> None:
    tables = [
        pl.DataFrame(
            {"hash": hashes, "text": texts},
            schema_overrides={"hash": pl.UInt64, "text": pl.String},
        )
        for hashes, texts in [([1, 2], ["a", "b"]), ([], []), ([HALF, HALF], ["c", "e"]), ([], [])]
    ]
    own.write_ipc(tmp_path / "own.arrow", compression="uncompressed")
    found = {"table": files_of(tmp_path, tables, 1)}

    file = as_it_is(tmp_path / "own.arrow")
    part = OfPart(0, None, {"table": (file, own.height)}, found)

    assert part.look_up("table")["text"].to_list() == expected
    assert_frame_equal(part.read("table"), own)


RECORDS = StageRecords("counted", "1", Empty, Empty)
HASHES = {"a": [1, HALF], "b": [HALF, HALF + 7], "c": [1, 5]}


def count(part: OfPart[list[int]]) -> Made:
    return Made({"hashes": pl.DataFrame({"hash": part.inputs}, {"hash": pl.UInt64})})


def add_up(hashes: OfPrefix[int]) -> Made:
    """Count the parts that have a hash; tell only of the hash HALF that a part has it."""
    tables = list(hashes.tables("hashes"))
    total = pl.concat(tables).group_by("hash").agg(parts=pl.len() * hashes.shared).sort("hash")
    digests = [str((table["hash"] == HALF).any()) for table in tables]
    return Made({"hashes": total}, Stats(numbers=PartDigests(digests)))


def tell(task: Task[OfPart[list[int]]]) -> list[PartRecord]:
    writer = task.writer()
    found = task.payload.look_up("hashes").rows()
    writer.write_text("found", "json", to_line(found).decode())
    return [writer.publish(Stats())]


def run(corpus: Corpus, hashes: dict[str, list[int]], *, is_kept: bool) -> list[tuple[str, str]]:
    """Name and fingerprint of each part of a stage that counts, and tells of each part."""
    stage = exchange(
        RECORDS,
        Round("count-", count, "sum-", add_up),
        last=("tell-", tell),
        shared=lambda _corpus, parts: len(parts),
        is_kept=is_kept,
    )
    planned = "count" if is_kept else "tell"
    tasks = [
        Task(corpus.store.root, "counted", "web", f"{planned}-{name}", f"{numbers}", 1, numbers)
        for name, numbers in hashes.items()
    ]
    [outcomes] = stage(corpus, tasks, tell, run_partitions)
    parts = [record for outcome in outcomes for record in outcome.records]
    return [(part.name, part.fingerprint) for part in parts]


@pytest.mark.parametrize("bits", [0, 2])
def test_a_stage_needs_what_a_part_emits_and_how_prefixes_combine(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.setattr(module, "prefix_bits_for", lambda *_: bits)

    parts = run(corpus, HASHES, is_kept=True)

    sums, tells = (
        [f"sum-{prefix:04d}" for prefix in range(1 << bits)],
        ["tell-a", "tell-b", "tell-c"],
    )
    assert [name for name, _ in parts] == ["count-a", "count-b", "count-c", *sums, *tells]
    told = sorted(corpus.store.partition("counted", "web").folder.glob("tell-*.found.json"))
    found = [path.read_text() for path in told]
    assert found == [
        f"[[1,6],[{HALF},6]]\n",
        f"[[{HALF},6],[{HALF + 7},3]]\n",
        "[[1,6],[5,3]]\n",
    ]
    assert [name for name, _ in run(corpus, HASHES, is_kept=False)] == tells


def test_a_part_is_made_anew_if_its_digest_of_what_it_finds_is_another(corpus: Corpus) -> None:
    before, after = (
        {name: fingerprint for name, fingerprint in run(corpus, hashes, is_kept=True)}
        for hashes in (HASHES, HASHES | {"b": [HALF + 7], "c": [1, HALF]})
    )

    assert before["tell-a"] == after["tell-a"]
    assert all(before[f"tell-{name}"] != after[f"tell-{name}"] for name in "bc")
