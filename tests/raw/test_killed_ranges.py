"""A run that is killed while it reads from a web server goes on without a row lost or doubled."""

import gzip
import signal

from builders import Build, hashes, open_corpus, published, sentence, write_corpus
from command_line import until
from many_runs import begin_raw, exit_codes
from prelude import Any, Path, json, pl
from range_site import RangeSite, range_site

ENGINE = {"kind": "in_process", "workers": 1}


def lines(*numbers: int) -> bytes:
    """JSON lines with a document per number."""
    return b"".join(json.dumps({"text": sentence(n), "n": n}).encode() + b"\n" for n in numbers)


def files() -> dict[str, bytes]:
    """Files that are read by ranges, and compressed ones that are read front to back."""
    plain = {f"{i}.jsonl": lines(*range(100 * i, 100 * i + 100)) for i in range(8)}
    packed = {
        f"{i}.jsonl.gz": gzip.compress(lines(*range(100 * i, 100 * i + 100)), mtime=0)
        for i in range(8, 12)
    }
    return plain | packed


def write(folder: Path, site: RangeSite) -> Path:
    """Write a corpus, one of whose sources is on a web server."""
    folder.mkdir()
    prose = {"name": "prose", "where": [site.url(name) for name in site.files]}
    notes = {"name": "notes", "where": "input/notes/*"}
    return write_corpus(folder, sources=[prose, notes], engine=ENGINE, part_bytes=4096)


def numbers(config: Path) -> list[int]:
    corpus: Any = open_corpus(config)
    return sorted(published(corpus)["meta"].str.json_path_match("$.n").cast(pl.Int64).to_list())


def finished(config: Path) -> dict[str, str]:
    """Parts of `raw`; manifests have the time of a file, and records the runs."""
    found = hashes(config.parent / "store/raw/prose")
    return {name: sha256 for name, sha256 in found.items() if not name.startswith("_")}


def test_a_killed_run_gives_the_bytes_of_a_calm_one(tmp_path: Path, build: Build) -> None:
    with range_site() as site:
        site.files |= files()
        calm = write(tmp_path / "calm", site)
        build(open_corpus(calm), "raw")
        total = site.num_bytes

        killed = write(tmp_path / "killed", site)
        site.asked.clear()
        site.seconds = 0.02
        for share in (0.3, 0.6):
            run = begin_raw(killed)
            until(lambda least=share * total: site.num_bytes > least)
            run.kill()
            assert exit_codes([run]) == [-signal.SIGKILL]
        assert not list((killed.parent / "store/raw/prose").glob("_manifests/*.json"))
        begun = set(finished(killed))
        site.seconds = 0.0
        site.asked.clear()
        assert exit_codes([begin_raw(killed)]) == [0]

    assert begun and site.num_bytes < 0.95 * total, "finished parts are not read again"
    assert numbers(killed) == list(range(1200))
    assert finished(killed) == finished(calm)
