"""Datasets of the hub in formats that the package `datasets` reads for us."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from builders import Build, hashes, open_corpus, published, sentence, write_corpus, write_jsonl
from command_line import until
from format_folders import peer
from hub_server import Hub, hub_server
from many_runs import begin_raw, exit_codes

from assets.raw.places.file_digests import ChangedFileError
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_packaged import records_of
from corpus_loader.places.errors import CorpusError
from pipeline_defs.commands.main import main
from resources.settings.sources import Source

ENGINE = {"steps": "in_process", "kind": "in_process", "workers": 1}
TOKEN = "hf_" + "secret" * 5
ABOUT_1 = '{"id":"s1","description":"about 1"}'
ABOUT_LOCUS = (
    '{"locus_name":"AB1","accession":"","version":"","definition":"A locus.","organism":"",'
    '"taxonomy":"","keywords":"","features":"[]","length":4,"molecule_type":"DNA",'
    '"secondary_accessions":[],"contig":""}'
)
FASTQ = b"@r1 a read\nACGT\n+\nIIII\n@r2\nGG\n+\nII\n"
GENBANK = b"LOCUS       AB1   4 bp    DNA\nDEFINITION  A locus.\nORIGIN\n        1 acgt\n//\n"


def fasta(*numbers: int, repeats: int = 0) -> bytes:
    """A FASTA file with a sequence per number."""
    rest = "ACGT" * repeats
    return "".join(f">s{n} about {n}\nACGT{n}\n{rest}\n" for n in numbers).encode()


def hdf5(*numbers: int) -> bytes:
    """An HDF5 file with a text per number."""
    h5py, out = peer("h5py"), io.BytesIO()
    with h5py.File(out, "w") as file:
        texts = [sentence(n) for n in numbers]
        file.create_dataset("text", data=texts, dtype=h5py.string_dtype())
        file.create_dataset("n", data=[*numbers])
    return out.getvalue()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories, where the package is installed."""
    peer("datasets")
    with hub_server(monkeypatch) as found:
        yield found


def write(folder: Path, part_bytes: int = 4096, **more: Any) -> Path:
    """Write a corpus, one of whose sources is on the hub."""
    folder.mkdir(exist_ok=True)
    prose = {"name": "prose", "where": "hf://acme/bio", "text_field": "sequence", **more}
    notes = {"name": "notes", "where": "input/notes/*"}
    return write_corpus(folder, sources=[prose, notes], engine=ENGINE, part_bytes=part_bytes)


def built(build: Build, config: Path) -> Any:
    corpus = open_corpus(config)
    build(corpus, "raw")
    return corpus


@pytest.mark.parametrize(
    ("name", "content", "texts", "meta"),
    [
        ("a.fa", fasta(1, 2, repeats=1), ["ACGT1ACGT", "ACGT2ACGT"], ABOUT_1),
        ("a.fna.gz", gzip.compress(fasta(1)), ["ACGT1"], ABOUT_1),
        ("a.gbk", GENBANK, ["ACGT"], ABOUT_LOCUS),
        ("a.FQ", FASTQ, ["ACGT", "GG"], '{"id":"r1","description":"a read","quality":"IIII"}'),
    ],
    ids=["fasta", "compressed", "genbank", "fastq"],
)
def test_rows_become_documents(
    name: str, content: bytes, texts: list[str], meta: str, hub: Hub, tmp_path: Path, build: Build
) -> None:
    hub.add("acme/bio", {f"data/{name}": content, "README.md": b"# Bio"})
    documents = published(built(build, write(tmp_path)))
    assert documents["text"].to_list() == texts
    assert documents["meta"][0] == meta
    origins = [{"file": f"hf://acme/bio/data/{name}", "row": row} for row in range(len(texts))]
    assert documents["origin"].to_list() == origins


def test_columns_are_those_that_are_wanted(hub: Hub, tmp_path: Path, build: Build) -> None:
    hub.add("acme/bio", {"x.gb": GENBANK})
    documents = published(
        built(build, write(tmp_path, columns=["sequence", "definition", "length"]))
    )
    assert documents["text"].to_list() == ["ACGT"]
    assert documents["meta"].to_list() == ['{"definition":"A locus.","length":4}']


def test_a_file_of_xml_is_a_document(hub: Hub, tmp_path: Path, build: Build) -> None:
    files = {"a.xml": "<a>\r\n é</a>".encode(), "b.xml": b"<b/>", "c.xml": b"<c>%d</c>" % 10**999}
    hub.add("acme/bio", files)
    corpus = built(build, write(tmp_path, text_field="text", max_record_bytes=1000))
    assert published(corpus)["text"].to_list() == ["<a>\n é</a>", "<b/>"]
    [error] = published(corpus, kind="quarantine")["error"]
    assert error == "record has 1,007 bytes, above max_record_bytes=1,000"


def test_rows_are_exact_through_cut_connections_and_503s(
    hub: Hub, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"x.h5": hdf5(*range(300)), "y.h5": hdf5(*range(300, 500)), "z.fa": fasta(*range(900))}
    hub.add("acme/bio", files, token=TOKEN)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    options = {"text_field": "text", "where": "hf://acme/bio/*.h5"}
    calm = built(build, write(tmp_path / "calm", **options))
    assert published(calm)["text"].to_list() == [sentence(n) for n in range(500)]
    assert published(calm)["meta"][300] == '{"n":300}'
    assert hub.served() == len(files["x.h5"]) + len(files["y.h5"])
    assert {each.host for each in hub.requests if each.served} == {"other"}
    assert {each.token for each in hub.requests if each.host == "other"} == {""}

    hub.busy, hub.cuts = 7, 9
    rough = built(build, write(tmp_path / "rough", **options))
    assert (hub.busy, hub.cuts) == (0, 0)
    raw = [hashes(corpus.store.root / "raw/prose") for corpus in (calm, rough)]
    assert raw[0] == raw[1]


def test_damaged_files_are_in_quarantine_and_the_others_are_read(
    hub: Hub, tmp_path: Path, build: Build
) -> None:
    packed = gzip.compress(fasta(*range(5000)))
    files = {
        "a.fa": fasta(1),
        "b.fa.gz": packed[: len(packed) // 2],
        "c.h5": hdf5(*range(300))[:50_000],
        "d.xml": b"\xff<d/>",
        "e.fa": fasta(2),
    }
    hub.add("acme/bio", files)
    corpus = built(build, write(tmp_path))
    documents, quarantine = published(corpus), published(corpus, kind="quarantine")
    of_file = documents.group_by(pl.col("origin").struct.field("file").str.slice(14)).agg("text")
    texts = dict(of_file.rows())
    assert texts.keys() == {"a.fa", "b.fa.gz", "e.fa"}
    assert 1000 < len(texts["b.fa.gz"]) < 3000
    assert texts["b.fa.gz"] == [f"ACGT{n}" for n in range(len(texts["b.fa.gz"]))]
    faults = dict(quarantine.select(pl.col("file").str.slice(14), "error").rows())
    assert faults.keys() == {"b.fa.gz", "c.h5", "d.xml"}
    assert "truncated" in faults["b.fa.gz"]
    assert faults["c.h5"].startswith("hdf5 file cannot be read: OSError: Unable to ")
    assert faults["d.xml"] == "not valid UTF-8: invalid start byte"


def test_no_answer_of_the_hub_is_a_fault_of_a_file(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that reads hides what its file raises; that must not become a damaged file."""
    sha = hub.add("acme/bio", {"a.fa": fasta(1), "b.h5": hdf5(1)})
    source = Source(name="bio", where=("hf://acme/bio",))
    files = find_inputs(source, tmp_path, tmp_path / "d").files
    hub.repositories["acme/bio"].commits[sha] = {}
    for file in files:
        with pytest.raises(ChangedFileError, match="was removed between"):
            list(records_of(file, source))
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "0")
    hub.busy, hub.requests[:] = 99, hub.requests[:3]
    for file in files:
        with pytest.raises(CorpusError, match="could not be read"):
            hub.requests[:] = hub.requests[:3]
            list(records_of(file, source))


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [("a.fa", fasta(*range(1000)), "sequence"), ("a.h5", None, "text"), ("a.xml", b"<a/>", "text")],
    ids=["fasta", "hdf5", "xml"],
)
def test_what_follows_a_state_is_the_rest(
    name: str, content: bytes | None, field: str, tmp_path: Path
) -> None:
    peer("datasets")
    path = tmp_path / name
    path.write_bytes(content or hdf5(*range(1000)))
    form: Any = {".fa": "fasta", ".h5": "hdf5", ".xml": "xml"}[path.suffix]
    file = InputFile(str(path), name, form, None, path.stat().st_size, "")
    source = Source(name="bio", where=("bio",), text_field=field)
    whole = [*records_of(file, source)]
    assert len(whole) == (1 if name == "a.xml" else 8)
    for index, (_, state) in enumerate(whole):
        assert [*records_of(file, source, state)] == whole[index + 1 :]


@pytest.mark.parametrize("cap", [{"max_documents": 200}, {"max_text_bytes": 1500}])
@pytest.mark.parametrize("part_bytes", [4096, 1 << 20])
def test_a_cap_ends_at_the_same_document(
    cap: dict[str, int], part_bytes: int, hub: Hub, tmp_path: Path, build: Build
) -> None:
    hub.add("acme/bio", {f"{name}.fa": fasta(*range(400)) for name in "abcdefgh"})
    whole = published(built(build, write(tmp_path / "all")))
    config = write(tmp_path / "capped", part_bytes, **cap)
    capped = published(built(build, config))
    within = pl.col("text").str.len_bytes().cum_sum() <= cap.get("max_text_bytes", 10**9)
    assert capped.equals(whole.filter(within).head(cap.get("max_documents", 10**9)))
    assert 0 < capped.height < 400


def test_worker_processes_the_estimate_and_a_replay_read_them_too(
    hub: Hub,
    tmp_path: Path,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {f"{n}.fa": fasta(*range(300 * n, 300 * n + 300), repeats=20) for n in range(5)}
    files["1.fa"] = files["1.fa"].replace(b">s400 about 400", b">s400 " + b"about" * 100)
    hub.add("acme/bio", files)
    monkeypatch.setenv("USE_TORCH", "0")
    options = {"part_bytes": 30_000, "max_record_bytes": 400}
    calm = built(build, write(tmp_path / "one", **options))
    workers = {"steps": "in_process", "kind": "processes", "workers": 2}
    monkeypatch.setitem(ENGINE, "kind", "processes")
    monkeypatch.setitem(ENGINE, "workers", 2)
    config = write(tmp_path / "many", **options)
    assert yaml.safe_load(config.read_text())["engine"] == workers
    corpus = built(build, config)
    raw = [hashes(each.store.root / "raw/prose") for each in (calm, corpus)]
    assert raw[0] == raw[1]
    assert published(corpus).height == 1499

    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    assert main(["estimate", "--source", "prose", "--share", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["sources"]["prose"]["amounts"]["documents"]
    assert found["low"] <= 1499 <= found["high"] < 1700

    [place] = published(corpus, kind="quarantine").select("file", "position").iter_rows(named=True)
    patch = {**place, "record": {"sequence": "ACGT400"}}
    file = write_jsonl(tmp_path / "patched.jsonl", [patch])
    assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0
    texts = published(corpus).sort(pl.col("origin").struct.field("file"), maintain_order=True)[
        "text"
    ]
    assert [text[:7] for text in texts][400] == "ACGT400"
    assert (len(texts), len(published(corpus)["doc_id"].unique())) == (1500, 1500)


def test_a_field_filter_applies(hub: Hub, tmp_path: Path, build: Build) -> None:
    hub.add("acme/bio", {"a.fa": fasta(*range(400))})
    config = write(tmp_path, field_filter=["id = s7", 'description = "about 7"'])
    assert published(built(build, config))["text"].to_list() == ["ACGT7"]


def test_a_killed_run_goes_on_from_its_states(
    hub: Hub, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill raw twice within files, then continue: the bytes are those of an undisturbed run."""
    files = {"a.fa": fasta(*range(6000), repeats=200), "b.fa": fasta(*range(3000), repeats=200)}
    hub.add("acme/bio", files, token=TOKEN)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("USE_TORCH", "0")  # else the package imports it, for seconds, in each run
    calm = built(build, write(tmp_path / "calm", part_bytes=200_000))
    total = hub.served()

    config = write(tmp_path / "killed", part_bytes=200_000)
    records = config.parent / "store/raw/prose/_parts"
    hub.seconds = 0.5
    kept: dict[Path, int] = {}
    for least in (3, 12):
        run = begin_raw(config)
        until(lambda least=least: len([*records.glob("*.json")]) >= least)
        run.kill()
        assert exit_codes([run]) == [-signal.SIGKILL]
        kept |= {path: path.stat().st_mtime_ns for path in records.glob("*.json")}
    hub.seconds = 0.0
    hub.requests.clear()
    assert exit_codes([begin_raw(config)]) == [0]
    assert hub.served() <= total, "a file is read again up to its row, and no more than that"
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    raw = [hashes(each / "store/raw/prose") for each in (calm.config.parent, config.parent)]
    assert raw[0] == raw[1]
    assert published(calm)["origin"].struct.field("row").to_list() == [*range(6000), *range(3000)]
    for folder in (tmp_path, Path(os.environ["DAGSTER_HOME"])):
        for path in folder.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


def test_nothing_is_written_beside_the_store_and_nothing_else_is_asked(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("acme/bio", {"a.fa": fasta(1), "bio.py": b"raise SystemExit"})
    monkeypatch.setenv("USE_TORCH", "0")
    monkeypatch.setenv("HTTPS_PROXY", hub.address)  # by which all that goes to other hosts is seen
    for name in ("HF_HOME", "XDG_CACHE_HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    config = write(tmp_path / "corpus")
    assert exit_codes([begin_raw(config)]) == [0]
    assert published(open_corpus(config))["text"].to_list() == ["ACGT1"]
    assert not [path for path in tmp_path.glob("[A-Z]*/**/*") if "dagster" not in str(path)]
    assert {each.host for each in hub.requests} == {"hub"}
    asked = [each.path.partition("?")[0].split("/acme/bio/")[1].split("/") for each in hub.requests]
    assert [what[0] for what in asked] == ["revision", "tree", "resolve"]
    assert asked[-1][-1] == "a.fa"
