"""The stage `raw` over archives and tables of all kinds: parts, counts and the same documents."""

import io
import tarfile
import zipfile

import pyarrow as pa
import yaml
from builders import open_corpus, write_corpus
from input_files import as_input, jsonl, numbers, read
from prelude import Any, Path, pl, pytest
from range_site import range_site

from assets.raw.asset import plan_raw, read_part
from assets.raw.places.find_inputs import find_inputs
from corpus_loader.places import transports
from resources.settings.sources import SourceConfig

VALUES = numbers(60, width=400)


def write_inputs(folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(folder / "a.tar", "w") as archive:
        for number, text in enumerate(VALUES):
            for name, data in ((f"{number:03d}.txt", text.encode()), (f"{number:03d}.png", b"")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as members:
        for number in range(0, 60, 5):
            members.writestr(f"{number:03d}.jsonl", jsonl(*VALUES[number : number + 5]))
        members.writestr("../up.txt", "up")
        members.writestr("in.zip", b"")
    table = pa.table({"text": VALUES})
    with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as w:
        for batch in table.to_batches(5):
            w.write_batch(batch)
    wet = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
    (folder / "a.wet").write_text("".join(wet % (len(t), t) for t in VALUES), newline="")
    (folder / "a.md").write_text("---\ntitle: T\n---\n# Hi\n")
    (folder / "a.html").write_text("<main><p>A page of text.</p></main>")


def built(config: Path, part_bytes: int) -> tuple[pl.DataFrame, list[Any]]:
    """Return the documents and the parts of a build."""
    content = yaml.safe_load(config.read_text()) | {"part_bytes": part_bytes}
    content["sources"][1] = {"name": "notes", "where": "input/new"}
    config.write_text(yaml.safe_dump(content))
    tasks = plan_raw(open_corpus(config, config.parent / f"store-{part_bytes}"), "notes").tasks
    made = [(task, part) for task in tasks for part in read_part(task)]
    tables = [pl.read_parquet(task.folder.folder / part.files[0].path) for task, part in made]
    return pl.concat(tables).sort("doc_id"), [part for _, part in made]


def test_slices_of_all_formats_conserve_rows_and_documents(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    write_inputs(tmp_path / "input/new")

    whole, few = built(config, 16 << 20)
    sliced, many = built(config, 4096)

    assert len(few) < 8 < 20 < len(many)
    assert sliced.equals(whole)
    assert len(whole) == 4 * 60 + 2
    for parts in (few, many):
        stats = [part.stats for part in parts]
        rejected = sum(sum(each.rejected.values()) for each in stats)
        assert sum(each.quarantined for each in stats) == 1
        assert rejected == 61
        assert sum(each.rows_in for each in stats) == len(whole) + 1 + 61


@pytest.mark.parametrize("name", ["a.tar", "a.zip", "a.arrow", "a.wet", "a.md", "a.html"])
def test_all_formats_are_read_by_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setenv("NETRC", "/dev/null")
    write_inputs(tmp_path / "new")
    local = as_input(tmp_path / "new" / name)
    with range_site() as site:
        site.files[name] = local.path.read_bytes()
        source = SourceConfig.model_validate({"name": "s", "where": site.url(name)})
        [remote] = find_inputs(source, tmp_path, tmp_path / "store/_downloads").files
        assert remote.is_remote

        found = read(remote._replace(name=name), 4096)

    assert found.documents.equals(read(local, 4096).documents)
    assert found.rows_in == read(local, 4096).rows_in > 0
