"""Copies of URLs are there while parts are made of them, and no longer than that."""

import gzip
import io
import signal
import subprocess

import dagster as dg
from answering_site import Site, answering_site
from builders import Build, hashes, open_corpus, published, sentence, write_corpus
from prelude import Any, Iterator, Path, json, os, pl, pytest, sys

from assets.raw.places.downloads import fetch_copies
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.input_file import ChangedFileError
from pipeline_defs.commands.life.repair import repair
from pipeline_defs.commands.life.verify import find_faults
from resources.materialize import materialization
from resources.run_reports import read_report

TEXTS = [sentence(number) for number in range(200)]
LINES = [json.dumps({"text": text}).encode() + b"\n" for text in TEXTS]
BODY = b"".join(LINES)
MEMBERS = b"".join(gzip.compress(b"".join(LINES[i : i + 20])) for i in range(0, 200, 20))
UNCHANGED = (304, b"", dict[str, str]())
KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
import assets.raw.asset as asset
import resources.store.store as store
from builders import open_corpus, published
from every_stage import run_stage
from resources.materialize.materialization import typed
from pathlib import Path

def end(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

corpus = open_corpus(Path(sys.argv[1]))
if sys.argv[2] == "publication":
    store.Partition.commit = end
asset.remove_copies = end
for manifest in run_stage(corpus, asset.STAGE):
    asset.STAGE.conclude(corpus, typed(manifest, asset.STAGE))
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with answering_site(monkeypatch) as state:
        yield state


def sent(body: bytes, version: str = "v1") -> tuple[int, bytes, dict[str, str]]:
    return 200, body, {"ETag": f'"{version}"'}


def tables() -> bytes:
    """A Parquet file of many row groups."""
    written = io.BytesIO()
    pl.DataFrame({"text": TEXTS}).write_parquet(
        written, row_group_size=20, compression="uncompressed"
    )
    return written.getvalue()


def of_urls(folder: Path, site: Site, *names: str, source: Any = None, **changes: Any) -> Any:
    """A corpus of which the source `prose` is on the web."""
    web = {"name": "prose", "where": [f"http://{site.place}/{name}" for name in names]}
    notes = {"name": "notes", "where": "input/notes/*"}
    sources = [web | (source or {}), notes]
    return open_corpus(write_corpus(folder, sources=sources, **changes))


def copies(corpus: Any) -> list[bytes]:
    paths = sorted(corpus.downloads.iterdir())
    return [path.read_bytes() for path in paths if path.suffix != ".json"]


def computed(corpus: Any) -> int:
    """Parts of the URLs that the last run computed."""
    count: int = read_report(corpus.store.root, "raw", "prose").parts_computed
    return count


def texts(corpus: Any) -> list[str]:
    return published(corpus)["text"].to_list()


def lose_part(corpus: Any) -> None:
    """Remove a part of the URLs, with its record."""
    folder = corpus.store.root / "raw/prose"
    record = min(folder.glob("_parts/*.json"))
    for path in folder.glob(f"{record.stem}*"):
        path.unlink()
    record.unlink()


def test_what_is_published_needs_no_copy(site: Site, tmp_path: Path, build: Build) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.answers = [sent(BODY)]
    build(corpus, "raw")
    before = hashes(corpus.store.root / "raw")
    assert (copies(corpus), computed(corpus), texts(corpus)) == ([], 8, TEXTS)

    site.answers = [UNCHANGED]
    build(corpus, "raw")

    assert (copies(corpus), computed(corpus), site.answers) == ([], 0, [])
    assert site.asked[1]["If-None-Match"] == '"v1"'
    assert {k: v for k, v in hashes(corpus.store.root / "raw").items() if k in before} == before


def test_an_answer_of_the_same_etag_and_size_is_not_read(
    site: Site, tmp_path: Path, build: Build
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.answers = [sent(BODY), sent(BODY[::-1])]
    for _ in range(2):
        build(corpus, "raw")

    assert (copies(corpus), computed(corpus), texts(corpus)) == ([], 0, TEXTS)


@pytest.mark.parametrize("tag", ['W/"v1"', '"v1"', None])
def test_a_changed_url_is_downloaded_and_computed_again(
    site: Site, tmp_path: Path, build: Build, tag: str | None
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl", source={"max_shrink": None})
    body = BODY.replace(b"river", b"brook") if tag != '"v1"' else BODY[: len(BODY) // 2]
    body = body[: body.rindex(b"\n") + 1]
    headers = {} if tag is None else {"ETag": tag}
    site.answers = [(200, BODY, headers), (200, body, headers)]
    for _ in range(2):
        build(corpus, "raw")

    assert (copies(corpus), computed(corpus) > 0) == ([], True)
    assert texts(corpus) == [json.loads(line)["text"] for line in body.splitlines()]


@pytest.mark.parametrize("before", ["publication", "removal"])
def test_a_run_killed_before_publication_or_removal_costs_no_download(
    site: Site, tmp_path: Path, build: Build, before: str
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.answers = [sent(BODY)]
    place = Path(__file__).resolve().parents[1]
    arguments = [str(corpus.config), before, str(place), str(place.parent)]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=os.environ, timeout=120)
    assert (killed.returncode, copies(corpus)) == (-signal.SIGKILL, [BODY])

    site.answers = [UNCHANGED]
    build(corpus, "raw")

    assert (copies(corpus), computed(corpus), texts(corpus)) == ([], 0, TEXTS)


def test_a_lost_part_is_made_again_from_a_new_copy(
    site: Site, tmp_path: Path, build: Build
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.answers = [sent(BODY)]
    build(corpus, "raw")
    before = hashes(corpus.store.root / "raw")
    min((corpus.store.root / "raw/prose").glob("*.documents.*")).unlink()

    site.answers = [UNCHANGED, UNCHANGED, sent(BODY)]
    with dg.DagsterInstance.ephemeral() as instance:
        lines = list(repair(corpus, find_faults(corpus.store).faults, instance))

    assert len(lines) == 1 and lines[0].endswith("(1 computed, 7 as they were)")
    assert (find_faults(corpus.store).faults, copies(corpus)) == ([], [])
    assert hashes(corpus.store.root / "raw") == before


def test_a_url_that_changes_before_it_is_fetched_again_is_planned_again(
    site: Site, tmp_path: Path, dagster_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materialization, "RETRIES", dg.RetryPolicy(max_retries=1, delay=0))
    corpus = of_urls(tmp_path, site, "a.jsonl", source={"max_shrink": None})
    site.answers = [sent(BODY)]
    dagster_build(corpus, "raw")
    lose_part(corpus)

    site.answers = [UNCHANGED, sent(LINES[0], "v2"), UNCHANGED]
    dagster_build(corpus, "raw")

    assert (copies(corpus), site.answers, texts(corpus)) == ([], [], TEXTS[:1])
    assert site.asked[-1]["If-None-Match"] == '"v2"'


def test_a_copy_that_is_not_the_planned_file_is_refused(site: Site, tmp_path: Path) -> None:
    source = of_urls(tmp_path, site, "a.jsonl").settings.source("prose")
    folder = tmp_path / "store/_downloads"
    site.answers = [sent(BODY), sent(LINES[0], "v2")]
    files = find_inputs(source, tmp_path, folder).files
    files[0].path.unlink()

    with pytest.raises(ChangedFileError, match=rf"a\.jsonl has changed .*: {len(BODY):,} bytes"):
        fetch_copies(source, files, folder)


def test_a_source_whose_copy_cannot_be_fetched_again_fails_alone(
    site: Site, tmp_path: Path, build: Build, dagster_build: Build
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.answers = [sent(BODY)]
    build(corpus, "raw")
    lose_part(corpus)
    for path in (corpus.store.root / "raw/notes").rglob("*.json"):
        path.unlink()

    site.answers = [UNCHANGED, (404, b"", {})]
    result = dagster_build(corpus, "raw", raise_on_error=False)

    assert not result.success
    assert corpus.store.partition("raw", "notes").newest_manifest() is not None
    observed = [
        each.asset_observation_data.asset_observation
        for each in result.all_events
        if each.event_type_value == "ASSET_OBSERVATION"
    ]
    errors = [str(each.metadata["error"].value) for each in observed if "error" in each.metadata]
    assert len(errors) == 1 and "HTTP 404 Not Found, attempt 1 of 4" in errors[0]


def test_copies_are_kept_on_demand(site: Site, tmp_path: Path, build: Build) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl", keep_downloads=True)
    site.answers = [sent(BODY)]
    build(corpus, "raw")
    assert copies(corpus) == [BODY]

    lose_part(corpus)
    site.answers = [UNCHANGED]
    build(corpus, "raw")

    assert (copies(corpus), computed(corpus), texts(corpus)) == ([BODY], 1, TEXTS)


@pytest.mark.parametrize(("name", "body"), [("a.jsonl.gz", MEMBERS), ("a.parquet", tables())])
def test_cuts_of_a_file_are_known_without_its_copy(
    site: Site, tmp_path: Path, build: Build, dagster_home: Path, name: str, body: bytes
) -> None:
    corpus = of_urls(tmp_path, site, name)
    site.answers = [sent(body), UNCHANGED]
    build(corpus, "raw")
    assert computed(corpus) > 1 and texts(corpus) == TEXTS
    build(corpus, "raw")
    assert (computed(corpus), site.answers) == (0, [])

    [cuts] = dagster_home.glob("**/prose.borders")
    cuts.unlink()
    site.answers = [UNCHANGED, sent(body)]
    build(corpus, "raw")

    assert (computed(corpus), copies(corpus), site.answers) == (0, [], [])


def test_copies_beyond_a_size_cap_are_not_fetched_again(
    site: Site, tmp_path: Path, build: Build
) -> None:
    corpus = of_urls(tmp_path, site, "a.jsonl", "b.jsonl", source={"max_text_bytes": 100})
    site.answers = [sent(BODY), sent(BODY)]
    build(corpus, "raw")
    assert copies(corpus) == []
    lose_part(corpus)

    site.answers = [UNCHANGED, UNCHANGED, sent(BODY)]
    build(corpus, "raw")

    assert (site.paths[-1], site.answers, copies(corpus)) == ("/a.jsonl", [], [])
