"""One secret of each kind in a build from a real server: it works, and is recorded nowhere."""

import base64
import subprocess
import urllib.parse
from threading import Event
from typing import Any, ClassVar

import dagster as dg
from builders import SHARED_TEXT, hashes, open_corpus, sentence, write_corpus
from prelude import Iterator, Path, json, os, pl, pytest, sys
from served import Answering, served

from assets.raw.places import downloads
from corpus_loader.places import transports
from pipeline_defs.commands.main import main
from pipeline_defs.definitions import build_defs
from resources.run_reports import read_report

ROOT = Path(__file__).resolve().parents[2]
MARK = "s3cret"
USER, PASSWORD, TOKEN, SIGNATURE, VARIABLE, HOOK, FROM_NETRC = (
    f"{MARK}-{kind}" for kind in ("user", "pass word", "token", "signature", "var", "hook", "netrc")
)

REASONS = {
    "gone": "HTTP 404 Not Found, attempt 1 of 4",
    "late": "TimeoutError: timed out, attempt 4 of 4",
    "refused": "[Errno 111] Connection refused>, attempt 4 of 4",
    "away": "which is not http(s), attempt 1 of 4",
}


class Site(Answering):
    """Gives documents to who has the secret of a path, each with an ETag; other answers fail."""

    texts: ClassVar[dict[str, list[str]]] = {}
    sent: ClassVar[list[str]] = []  # paths whose documents were sent
    released = Event()

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        user = self.headers.get("Authorization", "")
        is_allowed = {
            "user": user == basic(f"{USER}:{PASSWORD}"),
            "netrc": user == basic(f"me:{FROM_NETRC}"),
            "token": query.get("token", "").startswith(TOKEN),
            "signed": query.get("X-Amz-Signature", "").startswith(SIGNATURE),
            "variable": query.get("key") == VARIABLE,
            "hook": f"/{HOOK}/" in url.path,
        }
        if url.path.endswith("late.jsonl"):
            self.released.wait(20)
        elif url.path.endswith("away.jsonl"):
            self.answer(302, {"Location": f"ftp://{MARK}:{MARK}@127.0.0.1{self.path}"}, b"")
        elif "gone" in url.path:
            self.send_error(404, f"nothing at {self.path}, {self.headers['Authorization']}")
        elif not is_allowed[url.path.split("/")[1]]:
            self.send_error(403)
        elif self.headers.get("If-None-Match") == '"v1"':
            self.answer(304, {}, b"")
        else:
            self.sent.append(url.path)
            lines = (json.dumps({"text": text}) + "\n" for text in self.texts[url.path])
            body = "".join(lines).encode()
            self.answer(200, {"ETag": '"v1"', "Content-Length": str(len(body))}, body)


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Host and port of the server; the environment has the secrets that belong there."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {FROM_NETRC}\n")
    for name, value in {"NETRC": str(netrc), "SITE_KEY": VARIABLE, "SITE_HOOK": HOOK}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(downloads, "READ_SECONDS", 0.3)
    monkeypatch.setattr(Site, "sent", [])
    monkeypatch.setattr(Site, "texts", {path: texts(n) for n, path in enumerate(PATHS)})
    Site.released.clear()
    with served(Site) as url:
        yield url.removeprefix("http://")
        Site.released.set()


PATHS = (
    "/user/a.jsonl",
    "/token/b.jsonl",
    "/signed/c.jsonl",
    "/netrc/d.jsonl",
    "/variable/e.jsonl",
    f"/hook/{HOOK}/f.jsonl",
    "/token/quiz.jsonl",
)


def texts(number: int) -> list[str]:
    return [sentence(100 * number + i, 20 + i) for i in range(12)]


def urls(place: str, version: int, name: str = "") -> dict[str, list[str]]:
    """URLs by source; those that are signed have a new signature in each version."""
    user = f"{USER}:{urllib.parse.quote(PASSWORD)}@"
    return {
        "prose": [
            f"http://{user}{place}/user/{name or 'a'}.jsonl",
            f"http://{place}/token/{name or 'b'}.jsonl?token={TOKEN}{version}",
            f"http://{place}/signed/{name or 'c'}.jsonl?X-Amz-Date={version}"
            f"&X-Amz-Signature={SIGNATURE}{version}",
        ],
        "notes": [
            f"http://{place}/netrc/{name or 'd'}.jsonl",
            f"http://{place}/variable/{name or 'e'}.jsonl?key=${{SITE_KEY}}",
            f"http://{place}/hook/${{SITE_HOOK}}/{name or 'f'}.jsonl",
        ],
    }


def corpus_of(folder: Path, where: dict[str, list[str]], place: str, version: int) -> Any:
    quiz = f"http://{place}/token/quiz.jsonl?token={TOKEN}{version}"
    config = write_corpus(
        folder,
        sources=[{"name": name, "where": places} for name, places in where.items()],
        dedup={"decontamination": {"sets": [{"name": "quiz", "where": quiz}]}},
    )
    return open_corpus(config)


def run(corpus: Any, job: str = "build_corpus", only: str | None = None) -> bool:
    """Run a job, or one asset of it, with Dagster's real records."""
    selection = [dg.AssetKey(only)] if only else None
    with dg.DagsterInstance.get() as instance:
        return (
            build_defs(corpus)
            .resolve_job_def(job)
            .execute_in_process(instance=instance, asset_selection=selection, raise_on_error=False)
            .success
        )


def leaks(*folders: Path) -> dict[str, bytes]:
    """The surroundings of each secret in any file of the folders, also inside compressed tables."""
    found: dict[str, bytes] = {}
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += pl.read_parquet(path).write_ndjson().encode()
        for form in (MARK, basic(f"{USER}:{PASSWORD}")[6:], basic(f"me:{FROM_NETRC}")[6:]):
            if (at := content.find(form.encode())) >= 0:
                found[str(path)] = content[max(at - 200, 0) : at + 80]
    return found


def test_secrets_work_and_are_recorded_nowhere(
    tmp_path: Path, dagster_home: Path, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "corpus"
    corpus = corpus_of(folder, urls(place, 1), place, 1)
    assert run(corpus) and run(corpus, "mix_corpus")

    assert sorted(Site.sent) == sorted(PATHS)
    files = corpus.store.newest("raw", "notes").provenance["files"]
    assert set(files) == {
        f"http://{place}/netrc/d.jsonl",
        f"http://{place}/variable/e.jsonl",
        f"http://{place}/hook/${{SITE_HOOK}}/f.jsonl",
    }
    assert leaks(corpus.store.root, dagster_home) == {}

    before = hashes(corpus.store.root)
    renewed = corpus_of(folder, urls(place, 2), place, 2)
    assert run(renewed)

    assert len(Site.sent) == len(PATHS), "a renewed signature was downloaded again"
    assert read_report(corpus.store.root, "raw", "prose").parts_computed == 0
    assert hashes(corpus.store.root) == before
    shown = capfd.readouterr()
    assert shown.err and MARK not in shown.out + shown.err


@pytest.mark.parametrize("name", ["gone", "late", "refused", "away"])
def test_failures_show_no_secret(
    tmp_path: Path,
    dagster_home: Path,
    place: str,
    capfd: pytest.CaptureFixture[str],
    name: str,
) -> None:
    host = "127.0.0.1:9" if name == "refused" else place
    user = "" if name == "gone" else f"{USER}:{urllib.parse.quote(PASSWORD)}@"  # else netrc
    query = f"token={TOKEN}&X-Amz-Signature={SIGNATURE}&key=${{SITE_KEY}}"
    url = f"http://{user}{host}/hook/${{SITE_HOOK}}/{name}.jsonl?{query}"
    corpus = corpus_of(tmp_path / "corpus", {"prose": [url], "notes": ["input/notes/*"]}, place, 1)

    assert not run(corpus, only="raw")

    shown = capfd.readouterr()
    identity = f"http://{host}/hook/${{SITE_HOOK}}/{name}.jsonl"
    assert f"{identity} could not be fetched (" in shown.err and REASONS[name] in shown.err
    assert MARK not in shown.out + shown.err
    records = b"".join(path.read_bytes() for path in dagster_home.rglob("*.db*"))
    assert b"could not be fetched" in records
    assert leaks(tmp_path / "corpus/store", dagster_home) == {}


def test_commands_show_no_secret(
    tmp_path: Path,
    place: str,
    dagster_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    corpus = corpus_of(tmp_path / "corpus", urls(place, 1), place, 1)
    assert run(corpus, only="raw")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    first = urls(place, 1)["prose"]

    for arguments in (["summary"], ["verify"], ["init", str(tmp_path / "new"), *first]):
        assert main(arguments) == 0
    assert main(["init", str(tmp_path / "other"), urls(place, 1, "gone")["prose"][0]]) == 2
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_defs.commands.main", "build", "--to", "raw"],
        cwd=ROOT,
        env=os.environ | {"SITE_KEY": ""},
        capture_output=True,
        text=True,
    )

    assert done.returncode != 0 and "SITE_KEY is not set" in done.stdout + done.stderr
    shown = capfd.readouterr()
    assert "keep secrets in netrc or a variable" in shown.out
    assert MARK not in shown.out + shown.err + done.stdout + done.stderr
    assert leaks(dagster_home) == {}
    assert MARK in (tmp_path / "new/pipeline.yaml").read_text()  # as it was given


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    pl.DataFrame({"a": [[{"b": f"{SHARED_TEXT} {MARK}"}]] * 99}).write_parquet(
        tmp_path / "x.parquet"
    )
    (tmp_path / "y.log").write_text(f"Authorization: {basic(f'{USER}:{PASSWORD}')}")
    (tmp_path / "z.log").write_text("nothing")

    assert {Path(path).name for path in leaks(tmp_path)} == {"x.parquet", "y.log"}
