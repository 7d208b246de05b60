"""Small files that are read together, and files that change or seem not to have changed."""

import gzip
import shutil
from dataclasses import replace

import yaml
from builders import open_corpus, write_corpus
from input_files import as_input, jsonl, numbers, read
from msgspec import structs
from prelude import Any, Path, example, given, os, pl, pytest, settings, st

from assets.raw.asset import plan_raw, read_part
from assets.raw.places import known_borders, observed_inputs
from assets.raw.places.file_digests import check_unchanged, digest_file, status_of
from assets.raw.places.observed_inputs import REHASH, known_files, write_cache
from assets.raw.raw_inputs import RawInputs, group_files
from assets.raw.readers.input_file import ChangedFileError, InputFile
from resources.store.disk import BLOCK_BYTES
from resources.tasks import Task

PART_BYTES = 8192
LONG_AGO = 10**18  # a time of change, in ns
TEXTS = st.lists(st.text("ab\n", max_size=900), min_size=1, max_size=3)
FOLDER = st.dictionaries(st.text("abcdef", min_size=1, max_size=5), TEXTS, min_size=1, max_size=12)


def files_of(sizes: dict[str, int], suffix: str = "") -> list[InputFile]:
    names = sorted(sizes)
    compression = "gz" if suffix else None
    return [InputFile("", name, "txt", compression, sizes[name], name) for name in names]


def groups_of(sizes: dict[str, int], part_bytes: int, suffix: str = "") -> list[list[str]]:
    groups = group_files(files_of(sizes, suffix), part_bytes)
    return [[file.name for file in group] for group in groups]


@pytest.fixture
def corpus(tmp_path: Path) -> Any:
    """A corpus whose notes have ten small files, changed long ago."""
    config = write_corpus(tmp_path)
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["where"] = "input/small"
    config.write_text(yaml.safe_dump(content))
    (tmp_path / "input/small").mkdir()
    for number in range(10):
        write(tmp_path / f"input/small/{number}.txt", f"text number {number}".encode())
    return open_corpus(config)


@pytest.fixture
def settled(corpus: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """That corpus, planned when no file may change once more at the same times."""
    monkeypatch.setattr(observed_inputs, "RACY_NS", 0)
    fingerprints(corpus)
    assert len(known_files(corpus, "notes").before) == 10
    return corpus


def write(path: Path, data: bytes) -> Path:
    """Write a file as if that was long ago."""
    path.write_bytes(data)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


def small(corpus: Any, name: str) -> Path:
    return Path(corpus.config.parent / "input/small" / name)


def tasks_of(corpus: Any) -> list[Task[RawInputs]]:
    return plan_raw(corpus, "notes").tasks


def fingerprints(corpus: Any) -> list[tuple[str, str]]:
    return [(task.name, task.fingerprint) for task in tasks_of(corpus)]


def documents(tasks: list[Task[RawInputs]]) -> pl.DataFrame:
    tables = [
        pl.read_parquet(task.folder.folder / part.files[0].path)
        for task in tasks
        for part in read_part(task)
    ]
    return pl.concat(tables).sort("doc_id")


# Groups


def test_small_files_are_grouped_and_large_ones_are_alone() -> None:
    sizes = {f"{number:02d}": 30 for number in range(12)} | {"05+": 101, "zz": 25}

    assert groups_of(sizes, 120) == [
        ["00", "01", "02"],
        ["03", "04"],
        ["05", "06", "07", "08", "09", "10"],
        ["05+"],
        ["11", "zz"],
    ]


def test_a_compressed_file_counts_as_the_text_that_it_probably_holds() -> None:
    assert groups_of({"a": 30, "b": 30}, 400, "gz") == [["a"], ["b"]]
    assert groups_of({"a": 25, "b": 25}, 400, "gz") == [["a", "b"]]


def test_a_million_small_files_would_be_some_sixty_parts() -> None:
    sizes = {f"{number:07d}": 3000 for number in range(20_000)}

    num_bytes_per_part = 3000 * len(sizes) / len(groups_of(sizes, 1_200_000))

    assert 50 < 3e9 * (1_200_000 / num_bytes_per_part) / (64 << 20) < 90


@given(st.dictionaries(st.text("abc", max_size=6), st.integers(0, 120)), st.text("abc", max_size=6))
def test_a_file_that_comes_or_goes_changes_three_parts_at_most(
    sizes: dict[str, int], name: str
) -> None:
    without = {other: size for other, size in sizes.items() if other != name}
    before = {tuple(group) for group in groups_of(without, 200)}
    after = {tuple(group) for group in groups_of(without | {name: 40}, 200)}

    assert len(before - after) <= 3 and len(after - before) <= 3


@given(FOLDER, st.sampled_from(["txt", "txt.gz"]))
@example({"a": ["x" * 600], "b": ["y" * 9000]}, "txt.gz")
@settings(max_examples=25)
def test_documents_are_those_of_one_part_per_file(
    tmp_path_factory: pytest.TempPathFactory, folder: dict[str, list[str]], suffix: str
) -> None:
    base = tmp_path_factory.mktemp("files")
    (base / "input/notes").mkdir(parents=True)
    for name, texts in folder.items():
        data = "\n\n".join(texts).encode()
        packed = gzip.compress(data) if suffix == "txt.gz" else data
        (base / f"input/notes/{name}.{suffix}").write_bytes(packed)
    content = yaml.safe_load((Path(__file__).parents[1] / "small_corpus.yaml").read_text())
    content["sources"][1]["text_documents"] = "blank_line"
    (base / "pipeline.yaml").write_text(yaml.safe_dump(content))
    corpus = open_corpus(base / "pipeline.yaml")

    alone = [
        read(as_input(path), text_documents="blank_line").documents.select("text", "origin", "meta")
        for path in sorted((base / "input/notes").iterdir())
    ]
    origin = pl.struct(
        file=pl.lit("input/notes/") + pl.col("origin").struct.field("file"),
        row=pl.col("origin").struct.field("row"),
    )
    expected = pl.concat(alone).with_columns(origin=origin)

    found = documents(tasks_of(corpus))

    assert found["doc_id"].is_unique().all()
    assert found.select("text", "origin", "meta").sort("origin").equals(expected.sort("origin"))


def test_a_group_that_holds_more_text_than_expected_is_several_parts(corpus: Any) -> None:
    for number in range(10):
        small(corpus, f"{number}.txt").unlink()
        packed = gzip.compress("\n".join(["the same words"] * 400).encode())
        write(small(corpus, f"{number}.txt.gz"), packed)

    (task,) = tasks_of(corpus)
    parts = read_part(task)

    assert [part.stats.rows_kept for part in parts] == [2] * 5
    assert [part.stats.numbers["is_last"] for part in parts] == [False] * 4 + [True]


def test_a_damaged_file_of_a_group_marks_its_own_documents(corpus: Any) -> None:
    broken = bytearray(gzip.compress(jsonl(*numbers(3)), mtime=0))
    broken[-8] ^= 1
    write(small(corpus, "5.jsonl.gz"), bytes(broken))

    (task,) = tasks_of(corpus)
    (part,) = read_part(task)
    table = pl.read_parquet(task.folder.folder / part.files[0].path)

    damaged = table.filter(pl.col("meta").str.contains("damaged"))
    assert set(damaged["origin"].struct.field("file")) == {"input/small/5.jsonl.gz"}
    assert (damaged.height, table.height) == (3, 13)
    assert part.stats.numbers["faulty_files"] == {"input/small/5.jsonl.gz": 3}


# Files that change


def change_size(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def change_letters(path: Path) -> None:
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"text", b"TEXT"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_size, r"3\.txt has changed .*: 13 bytes with digest \w{32} then, 17 bytes with"),
        (change_letters, r"3\.txt has changed .*: 13 bytes with digest \w{32} then, 13 bytes with"),
        (Path.unlink, r"3\.txt was removed between planning and reading"),
    ],
)
def test_a_file_that_changes_after_planning_fails_its_part(
    corpus: Any, change: Any, said: str
) -> None:
    (task,) = tasks_of(corpus)
    change(small(corpus, "3.txt"))

    with pytest.raises(ChangedFileError, match=said) as raised:
        read_part(task)

    assert "Build again when nothing writes to it." in str(raised.value)
    assert task.published() is None
    assert not [path for path in corpus.store.root.rglob("*") if path.is_file()]


def test_a_touched_file_is_read(corpus: Any) -> None:
    (task,) = tasks_of(corpus)
    os.utime(small(corpus, "3.txt"))

    assert read_part(task)[0].stats.rows_kept == 10


def test_a_slice_proves_its_own_blocks(tmp_path: Path) -> None:
    data = bytearray(os.urandom(1000) * 13_000)
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    file = as_input(path)._replace(**digest_file(str(path))._asdict())
    data[2 * BLOCK_BYTES + 5] ^= 1
    path.write_bytes(data)

    check_unchanged(file, [(0, 2 * BLOCK_BYTES - 1)])
    check_unchanged(file, [(3 * BLOCK_BYTES, len(data))])
    for span in ((0, 2 * BLOCK_BYTES + 1), (0, len(data))):
        with pytest.raises(ChangedFileError, match=r"a\.txt has changed"):
            check_unchanged(file, [span])


# Digests that are known


def test_a_change_that_keeps_size_and_time_is_found(settled: Any) -> None:
    before = fingerprints(settled)
    change_letters(small(settled, "3.txt"))

    assert fingerprints(settled) != before


def test_a_known_file_is_not_read(settled: Any) -> None:
    known = known_files(settled, "notes")
    files = [status_of(place, os.stat(place)) for place in known.before]
    shutil.rmtree(small(settled, "."))

    assert [file.bytes for file in known.digests(files)] == [13] * 10


def test_what_is_known_is_believed_but_by_rehash(settled: Any) -> None:
    before, known = fingerprints(settled), known_files(settled, "notes")
    wrong = {at: structs.replace(file, digest="0" * 32) for at, file in known.before.items()}
    write_cache(known.path, wrong)

    assert fingerprints(settled) != before
    assert fingerprints(replace(settled, flags=frozenset({REHASH}))) == before
    assert fingerprints(settled) == before


def test_a_file_that_was_changed_a_moment_ago_is_read_again(corpus: Any) -> None:
    os.utime(small(corpus, "3.txt"))
    before = fingerprints(corpus)
    change_letters(small(corpus, "3.txt"))

    assert fingerprints(corpus) != before


def test_a_file_that_replaces_another_is_read_again(corpus: Any) -> None:
    before = fingerprints(corpus)
    write(small(corpus, "new"), b"TEXT number 3").replace(small(corpus, "3.txt"))

    assert fingerprints(corpus) != before


@pytest.mark.parametrize(
    "damage", ["deleted", "cut", "flipped", "empty", "of another kind", "of 0.4"]
)
def test_what_is_known_may_be_lost_or_damaged(settled: Any, damage: str) -> None:
    before, known = fingerprints(settled), known_files(settled, "notes")
    path = known.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    match damage:
        case "deleted":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-9])
        case "flipped":
            path.write_bytes(data)
        case "of 0.4":  # size, time of the last write, inode, digests
            files = known.before.items()
            old = {at: (f.bytes, f.written_ns, f.inode, "0" * 32, "") for at, f in files}
            write_cache(path, old)
        case _:
            path.write_bytes(b"" if damage == "empty" else b"{}" * 40)

    assert known_files(settled, "notes").before == {}
    assert fingerprints(settled) == before
    assert len(known_files(settled, "notes").before) == 10


# Large files


@pytest.fixture
def large(corpus: Any) -> Any:
    """A corpus whose notes are one file of forty members, ten times as large as a part."""
    members = [gzip.compress(jsonl(*numbers(90, width=i + 1))) for i in range(40)]
    for path in small(corpus, ".").iterdir():
        path.unlink()
    write(small(corpus, "notes.jsonl.gz"), b"".join(members))
    return corpus


def borders_path(corpus: Any) -> Path:
    return known_files(corpus, "notes").path.with_suffix(".borders")


def test_members_of_a_large_file_are_read_by_several_tasks(large: Any) -> None:
    tasks = tasks_of(large)
    alone = read(as_input(small(large, "notes.jsonl.gz")), 1 << 30).documents

    assert len(tasks) > 9
    assert documents(tasks)["text"].sort().to_list() == alone["text"].sort().to_list()
    assert (
        documents(tasks)["origin"]
        .struct.field("row")
        .sort()
        .equals(alone["origin"].struct.field("row").sort())
    )


def test_borders_are_found_once(large: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprints(large)
    monkeypatch.delattr(known_borders, "find_borders")

    assert fingerprints(large) == before


def test_borders_of_much_text_are_found_by_workers_of_the_engine(
    large: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprints(large)
    borders_path(large).unlink()
    engine = large.settings.engine.model_copy(update={"kind": "processes", "workers": 2})
    own = large.settings.model_copy(update={"engine": engine})
    monkeypatch.setattr(known_borders, "AUTO_PROCESS_BYTES", 1)
    monkeypatch.delattr(known_borders, "find_borders")  # of this process

    assert fingerprints(replace(large, settings=own)) == before
    assert borders_path(large).exists()


@pytest.mark.parametrize("damage", ["deleted", "flipped"])
def test_borders_that_are_known_may_be_lost_or_damaged(large: Any, damage: str) -> None:
    before = fingerprints(large)
    data = bytearray(borders_path(large).read_bytes())
    data[len(data) // 2] ^= 1
    borders_path(large).unlink()
    if damage == "flipped":
        borders_path(large).write_bytes(data)

    assert fingerprints(large) == before


def test_borders_of_a_file_that_changes_meanwhile_are_not_kept(
    large: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_borders = known_borders.find_borders

    def find_and_change(*arguments: Any) -> Any:
        found = find_borders(*arguments)
        write(small(large, "notes.jsonl.gz"), gzip.compress(jsonl("other")))
        return found

    monkeypatch.setattr(known_borders, "find_borders", find_and_change)
    [task] = tasks_of(large)

    assert not borders_path(large).exists()
    with pytest.raises(ChangedFileError, match=r"notes\.jsonl\.gz has changed"):
        read_part(task)
