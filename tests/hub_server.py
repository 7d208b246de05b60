"""A stand-in for the Hugging Face hub on the loopback address, with the host of its large files.

It has what the hub's HTTP API has for datasets: revisions, references, listings in pages, and files
by ranges, of which Parquet is on another host behind a redirect, as files in LFS are. It takes
new repositories, LFS objects (one PUT each, at the other host), commits and tags.
Faults happen when told to: 503s, connections that are cut, and a token that is needed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from served import Answering, served

from corpus_loader.places import transports

API = re.compile(
    r"/api/datasets/(?P<repository>[^/]+/[^/]+)(?:/(?P<what>[^/]+)(?:/(?P<rest>.*))?)?"
)
BATCH = re.compile(r"/datasets/(?P<repository>[^/]+/[^/]+)\.git/info/lfs/objects/batch")
FILE = re.compile(r"/datasets/(?P<repository>[^/]+/[^/]+)/resolve/(?P<sha>[^/]+)/(?P<path>.+)")
Files = Mapping[str, bytes]


class Request(NamedTuple):
    """A request that was answered: `served` bytes of a file, by the hub or its other host."""

    host: str
    path: str
    served: int
    token: str


class Answer(NamedTuple):
    """An answer of the stand-in."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


@dataclass
class Repository:
    """The commits of a dataset, by hash, and the names that point to them; its LFS objects."""

    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    token: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: Files, branch: str = "main") -> str:
        """Add a commit with these files to a branch."""
        parts = [len(self.commits), *sorted(files.items())]
        sha = hashlib.sha1(repr(parts).encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.branches[branch] = sha
        return sha

    def take(self, what: str, revision: str, body: bytes) -> Answer:
        """Answer a question before an upload, a tag or a commit."""
        sha = self.find(revision)
        files = dict(self.commits[sha or ""])
        if what == "paths-info":
            paths = urllib.parse.parse_qs(body.decode()).get("paths", [])
            return as_json([item(path, files[path]) for path in paths if path in files])
        if what == "preupload":
            answers = [
                {
                    "path": path,
                    "uploadMode": "lfs" if is_large(path) else "regular",
                    "shouldIgnore": False,
                    "oid": oid_of(path, files[path]) if path in files else None,
                }
                for path in (each["path"] for each in json.loads(body)["files"])
            ]
            return as_json({"files": answers})
        if what == "tag":
            name = json.loads(body)["tag"]
            assert name not in self.tags
            self.tags[name] = sha or ""
            return as_json({})
        for line in map(json.loads, body.splitlines()):
            kind, value = line["key"], line["value"]
            if kind == "header":
                self.messages.append(f"{value['summary']}\n\n{value['description']}")
                if value.get("parentCommit", sha) != sha:
                    return Answer(412, b'{"error": "main has moved"}')
            elif kind == "deletedFile":
                del files[value["path"]]
            elif kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            else:
                files[value["path"]] = self.objects[value["oid"]]
        made = self.commit(files, revision)
        return as_json(
            {"success": True, "commitUrl": f"/datasets/x/commit/{made}", "commitOid": made}
        )

    def find(self, revision: str) -> str | None:
        """Return the commit of a revision."""
        sha = {**self.tags, **self.branches}.get(revision, revision)
        return sha if sha in self.commits else None


@dataclass
class Hub:
    """The repositories of a hub, what was asked of it, and the faults that are still to come."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    page_files: int = 1000
    busy: int = 0  # requests that get a 503, every third
    cuts: int = 0  # next answers with a file that end half way, README.md excepted
    seconds: float = 0.0  # before an answer with a file
    address: str = ""
    other_host: str = ""
    sent: list[int] = field(default_factory=list)  # bytes of each LFS object that came
    before_object: Callable[[], object] = lambda: None

    def add(self, name: str, files: Files, token: str = "") -> str:
        """Add a repository with one commit."""
        self.repositories[name] = Repository(token=token)
        return self.repositories[name].commit(files)

    def served(self) -> int:
        """Return the bytes of files that were sent, README.md excepted."""
        return sum(each.served for each in self.requests if not each.path.endswith("README.md"))

    def answer(self, host: str, url: str, token: str, span: str) -> Answer:
        """Answer a request."""
        parts = urllib.parse.urlsplit(url)
        path = urllib.parse.unquote(parts.path)
        if self.busy and len(self.requests) % 3 == 0:
            self.busy -= 1
            return Answer(503, b"{}", {"Retry-After": "0"})
        if found := FILE.fullmatch(path):
            refused = self.refusal(found["repository"], token) if host == "hub" else None
            return refused or self.file(host, found, span)
        found = API.fullmatch(path)
        if host != "hub" or found is None:
            return Answer(404)
        if refused := self.refusal(found["repository"], token):
            return refused
        repository = self.repositories[found["repository"]]
        if found["what"] == "refs":
            kinds = {"branches": repository.branches, "tags": repository.tags}
            listed = {
                kind: [{"name": n, "ref": n, "targetCommit": sha} for n, sha in names.items()]
                for kind, names in kinds.items()
            }
            return as_json(listed | {"converts": []})
        revision, _, folder = (found["rest"] or "main").partition("/")
        sha = repository.find(revision)
        if sha is None:
            return Answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        if found["what"] in ("revision", None):
            return as_json({"sha": sha, "id": found["repository"], "tags": [], "siblings": []})
        return self.listing(repository.commits[sha], folder, parts)

    def take(self, url: str, body: bytes, token: str) -> Answer:
        """Answer a POST or PUT."""
        path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
        if path.startswith("/objects/"):
            _, _, owner, name, oid = path.split("/")
            self.before_object()
            assert hashlib.sha256(body).hexdigest() == oid
            self.repositories[f"{owner}/{name}"].objects[oid] = body
            self.sent.append(len(body))
            return Answer(200)
        if path.startswith("/verify/"):
            oid = json.loads(body)["oid"]
            return Answer(200 if oid in self.repositories[path[8:]].objects else 404)
        if path == "/api/validate-yaml":
            return as_json({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in self.repositories:
                return Answer(403 if self.refusal(name, token) else 409, b"{}")
            self.add(name, {".gitattributes": b"*.parquet filter=lfs\n"})
            self.repositories[name].messages.append(asked["visibility"])
            return as_json({"url": f"{self.address}/datasets/{name}"})
        found = BATCH.fullmatch(path) or API.fullmatch(path)
        assert found is not None, path
        if refused := self.refusal(found["repository"], token):
            return refused
        repository, asked = self.repositories[found["repository"]], found.groupdict()
        if "what" not in asked:
            return self.batch(found["repository"], json.loads(body)["objects"])
        return repository.take(asked["what"], asked["rest"], body)

    def batch(self, name: str, objects: list[dict[str, object]]) -> Answer:
        """Say which LFS objects are wanted, and where to send them."""
        for each in objects:
            if each["oid"] not in self.repositories[name].objects:
                each["actions"] = {
                    "upload": {"href": f"{self.other_host}/objects/{name}/{each['oid']}"},
                    "verify": {"href": f"{self.address}/verify/{name}"},
                }
        return as_json({"transfer": "basic", "objects": objects})

    def refusal(self, name: str, token: str) -> Answer | None:
        """Refuse a request without the token of a repository, as for one that is not there."""
        repository = self.repositories.get(name)
        if repository is None or (repository.token and f"Bearer {repository.token}" != token):
            headers = {"X-Error-Code": "RepoNotFound"}
            return Answer(404 if token else 401, b"{}", headers)
        return None

    def listing(self, files: Files, folder: str, url: urllib.parse.SplitResult) -> Answer:
        """List one page of the files below a folder, and link to the next."""
        start = f"{folder}/" if folder else ""
        below = sorted(path for path in files if path.startswith(start))
        if folder and not below:
            return Answer(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        query = dict(urllib.parse.parse_qsl(url.query))
        if query.get("recursive", "").lower() != "true":
            below = sorted({start + path.removeprefix(start).split("/")[0] for path in below})
        first = int(query.get("cursor", 0))
        page = [item(path, files.get(path)) for path in below[first : first + self.page_files]]
        following = first + self.page_files
        query["cursor"] = str(following)
        link = f'<{self.address}{url.path}?{urllib.parse.urlencode(query)}>; rel="next"'
        headers = {"Link": link} if following < len(below) else {}
        return Answer(200, json.dumps(page).encode(), headers)

    def file(self, host: str, found: re.Match[str], span: str) -> Answer:
        """Send a range of a file, or to the other host."""
        repository = self.repositories[found["repository"]]
        sha = repository.find(found["sha"]) or ""
        content = repository.commits[sha].get(found["path"])
        if content is None:
            return Answer(404, b"", {"X-Error-Code": "EntryNotFound"})
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if host == "hub" and is_large(found["path"]):
            oid = oid_of(found["path"], content)
            headers |= {"X-Linked-ETag": f'"{oid}"', "X-Linked-Size": str(len(content))}
            return Answer(302, b"", {**headers, "Location": self.other_host + found[0]})
        headers["ETag"] = f'"{item(found["path"], content)["oid"]}"'
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", span)
        if wanted is None:
            return Answer(200, content, headers)
        start, stop = int(wanted[1]), int(wanted[2] or len(content)) + 1
        if start >= len(content):
            return Answer(416)
        part = content[start:stop]
        headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
        return Answer(206, part, headers)


def as_json(value: object) -> Answer:
    """Answer with JSON."""
    return Answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def oid_of(path: str, content: bytes) -> str:
    """Return the name of a file's object: in LFS, else in git."""
    if is_large(path):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(path: str) -> bool:
    """Return whether a file is in LFS."""
    return path.endswith(".parquet")


def item(path: str, content: bytes | None) -> dict[str, object]:
    """Return a file, or a folder, as a listing has it."""
    if content is None:
        return {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    own = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    lfs = {"lfs": own}
    basics = {"type": "file", "path": path, "oid": oid, "size": len(content)}
    return basics | (lfs if is_large(path) else {})


@contextmanager
def hub_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve a hub, and point HF_ENDPOINT at it; no token and no credentials are known."""
    hub = Hub()
    with ExitStack() as stack:
        for host in ("hub", "other"):
            handler = type("Handler", (_Handler,), {"hub": hub, "host": host})
            address = stack.enter_context(served(handler))
            hub.address, hub.other_host = hub.address or address, address
        monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
        monkeypatch.setenv("NETRC", "/dev/null")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


class _Handler(Answering):
    hub: Hub
    host: str

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "")
        answer = self.hub.answer(self.host, self.path, token, self.headers.get("Range", ""))
        body = answer.body
        is_file = FILE.fullmatch(self.path) is not None and answer.status < 300
        time.sleep(self.hub.seconds if is_file else 0.0)
        if is_file and self.hub.cuts and not self.path.endswith("README.md"):
            self.hub.cuts -= 1
            body = body[: len(body) // 2]
        self.hub.requests.append(Request(self.host, self.path, len(body) * is_file, token))
        self.respond(answer, body)

    def do_HEAD(self) -> None:
        token = self.headers.get("Authorization", "")
        self.respond(self.hub.answer(self.host, self.path, token, ""), b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.hub.take(self.path, body, self.headers.get("Authorization", ""))
        self.respond(answer, answer.body)

    do_PUT = do_POST

    def respond(self, answer: Answer, body: bytes) -> None:
        headers = {"Content-Length": str(len(answer.body)), **answer.headers}
        self.answer(answer.status, headers, body)

    def do_CONNECT(self) -> None:
        self.hub.requests.append(Request("beyond", self.path, 0, ""))
        self.send_error(403)
