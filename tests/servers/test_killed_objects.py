"""Sources on a Ceph RADOS gateway: runs that are killed, and records that are replayed."""

import gzip
import signal

from builders import Build, hashes, open_corpus, published, sentence, write_corpus, write_jsonl
from command_line import until
from flaky_proxy import flaky_proxy
from many_runs import begin_raw, exit_codes
from prelude import Any, Path, json, pl, pytest
from rados_gateway import Gateway

from assets.raw.places.patch_files import read_patches
from assets.raw.taken_down_files import NO_RECORD
from corpus_loader.places.objects import Objects
from pipeline_defs.commands.main import main
from pipeline_defs.load_corpus import load_corpus

ENGINE = {"kind": "in_process", "workers": 1}
KEYS = ("a.jsonl", "b.jsonl.gz")
CUT = b'{"text": "cut\n'


def lines(*numbers: int) -> bytes:
    """JSON lines with a document per number."""
    filler = "and so on " * 100
    texts = (f"{n} {sentence(n)} {filler}" for n in numbers)
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def write(folder: Path, bucket: str, **changes: Any) -> Path:
    """Write a corpus, one of whose sources is on the gateway."""
    folder.mkdir()
    prose = {"name": "prose", "where": f"{bucket}/web"}
    notes = {"name": "notes", "where": "input/notes/*"}
    return write_corpus(folder, sources=[prose, notes], engine=ENGINE, part_bytes=65536, **changes)


def numbers(corpus: Any) -> list[int]:
    """The numbers of the documents, in the order of the parts."""
    return [int(text.partition(" ")[0]) for text in published(corpus)["text"]]


def part_hashes(config: Path) -> dict[str, str]:
    """Files of parts; records name their run."""
    found = hashes(config.parent / "store/raw/prose")
    return {name: sha256 for name, sha256 in found.items() if not name.startswith("_")}


def test_a_killed_run_gives_the_bytes_of_a_calm_one(
    gateway: Gateway, bucket: str, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Objects(bucket)
    for i in range(8):
        objects.put(f"web/{i}.jsonl", lines(*range(400 * i, 400 * i + 400)))
    for i in range(8, 12):
        content = lines(*range(400 * i, 400 * i + 400))
        objects.put(f"web/{i:03}.jsonl.gz", gzip.compress(content, mtime=0))
    with flaky_proxy(gateway.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        calm = write(tmp_path / "calm", bucket)
        build(open_corpus(calm), "raw")
        total = proxy.passed

        killed = write(tmp_path / "killed", bucket)
        before = proxy.passed
        for num_parts in (3, 9):
            run = begin_raw(killed)
            until(lambda least=num_parts: len(part_hashes(killed)) >= least)
            run.kill()
            assert exit_codes([run]) == [-signal.SIGKILL]
        assert not list((killed.parent / "store/raw/prose").glob("_manifests/*.json"))
        assert proxy.passed > before
        before = proxy.passed
        assert exit_codes([begin_raw(killed)]) == [0]
        assert proxy.passed - before < 0.95 * total, "finished parts are not read again"

    assert sorted(numbers(open_corpus(killed))) == list(range(4800))
    assert part_hashes(killed) == part_hashes(calm)


@pytest.mark.parametrize("is_store_there", [False, True], ids=["store-on-disk", "store-there"])
def test_bad_records_of_objects_are_replayed(
    is_store_there: bool,
    bucket: str,
    tmp_path: Path,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    objects = Objects(bucket)
    objects.put("web/a.jsonl", lines(*range(200)) + CUT + lines(*range(201, 400)))
    objects.put("web/b.jsonl.gz", gzip.compress(lines(400) + CUT + lines(402)))
    store = {"store": f"{bucket}/corpus", "scratch": {"folder": str(tmp_path / "scratch")}}
    config = write(tmp_path / "corpus", bucket, **(store if is_store_there else {}))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    build(load_corpus(), "raw")
    before = {part.fingerprint for part in load_corpus().store.newest("raw", "prose").parts}
    capsys.readouterr()
    assert main(["quarantine", "show", "prose", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["file"] for each in shown] == [f"{bucket}/web/{n}" for n in KEYS]

    patches = [
        {"file": each["file"], "position": each["position"], "record": {"text": f"{number} here"}}
        for each, number in zip(shown, (200, 401), strict=True)
    ]
    for number, patch in enumerate(patches, 1):
        file = write_jsonl(tmp_path / "patched.jsonl", [patch])
        assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0
        said = capsys.readouterr().out
        assert f"1 patches added, {number} in all" in said
        assert f"1 of {3 - number} records are no more in quarantine" in said
    corpus = load_corpus()
    assert sorted(numbers(corpus)) == list(range(403))
    now = {part.fingerprint for part in corpus.store.newest("raw", "prose").parts}
    assert len(before) > 4 and len(before - now) == 2, "only the parts of both records"

    objects.put("web/a.jsonl", lines(*range(400)))
    assert main(["quarantine", "replay", "prose"]) == 0
    assert "0 of 0 records are no more in quarantine" in capsys.readouterr().out
    assert sorted(numbers(load_corpus())) == list(range(403))

    [doc_id] = published(corpus).filter(pl.col("text") == "401 here")["doc_id"]
    assert main(["takedown", "--doc", doc_id, "--reason", "asked for"]) == 0
    build(load_corpus(), "raw")
    assert main(["takedown", "prove", "--purge"]) == 0, capsys.readouterr().out
    found = read_patches(load_corpus(), "prose")
    assert [patch.record for patch in found] == ['{"text": "200 here"}', NO_RECORD]
