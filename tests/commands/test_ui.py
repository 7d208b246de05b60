"""`corpus ui`: what it serves to its own pages and to programs, and what it refuses."""

import socket

from browser import running_browser, wait_for
from builders import write_corpus
from prelude import Any, Iterator, Path, json, pytest
from ui_server import running_ui

from pipeline_defs.commands.look.ui import listen
from pipeline_defs.commands.look.ui_guard import hosts_of, refusal
from pipeline_defs.commands.main import main
from resources.errors import UsageError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / ".dagster/dagster.yaml"
HOSTS = hosts_of(["box.example", "other:8080"], 3000)
MUTATION = "query=mutation{deleteRun(runId:%22x%22){__typename}}"


def judged(method: str = "GET", query: str = "", **headers: str) -> str | None:
    """The refusal of a request to localhost:3000, or None."""
    given = {"host": "localhost:3000"} | {k.replace("_", "-"): v for k, v in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "query_string": query.encode(), "headers": raw}
    return refusal(scope, HOSTS)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"host": "127.0.0.1:3000"},
        {"host": "[::1]:3000"},
        {"host": "LOCALHOST:3000"},
        {"host": "box.example"},  # behind a proxy on port 80 or 443
        {"host": "box.example:3000"},
        {"host": "other:8080"},
        {"query": "query={version}"},
        {"query": "asset-selection=key:raw&query=key:raw"},  # an address of the UI, no GraphQL
        {"method": "POST", "content_type": "application/json"},  # curl, Dagster's own client
        {"method": "POST", "content_type": "Application/JSON; charset=utf-8"},
        {"method": "POST", "content_type": "application/json", "origin": "http://localhost:3000"},
        {"origin": "https://box.example", "host": "box.example"},
        {"sec_fetch_site": "same-origin"},
        {
            "sec_fetch_site": "cross-site",
            "sec_fetch_mode": "navigate",
            "sec_fetch_dest": "document",
        },
    ],
    ids=str,
)
def test_requests_of_the_ui_and_of_programs_pass(request_: dict[str, str]) -> None:
    assert judged(**request_) is None


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"host": "evil.example:3000"}, "Host is 'evil.example:3000'"),
        ({"host": "localhost:3001"}, "Host is 'localhost:3001'"),
        ({"host": "localhost.:3000"}, "--host-name localhost.:3000"),
        ({"host": "other:3000"}, "Host is 'other:3000'"),
        ({"host": ""}, "Host is ''"),
        ({"host": "x;\x1b[2J$(reboot)"}, "--host-name 'x;"),
        ({"origin": "http://localhost:8000"}, "Origin is 'http://localhost:8000'"),
        ({"origin": "http://127.0.0.1:3000"}, "Origin is 'http://127.0.0.1:3000'"),
        ({"origin": "null"}, "Origin is 'null'"),
        ({"sec_fetch_site": "cross-site"}, "Sec-Fetch-Site is 'cross-site'"),
        ({"sec_fetch_site": "same-site"}, "Sec-Fetch-Site is 'same-site'"),
        (
            {
                "sec_fetch_site": "cross-site",
                "sec_fetch_mode": "navigate",
                "sec_fetch_dest": "iframe",
            },
            "Sec-Fetch-Site",
        ),
        ({"method": "POST"}, "Content-Type is ''"),
        ({"method": "POST", "content_type": "text/plain; application/json"}, "Content-Type is"),
        ({"method": "POST", "content_type": "multipart/form-data"}, "Content-Type is"),
        ({"method": "OPTIONS", "origin": "http://a.example"}, "Origin is"),
        ({"method": "DELETE"}, "Content-Type is"),
        ({"query": MUTATION}, "GraphQL mutation"),
        ({"query": f"query={{version}}&{MUTATION}"}, "GraphQL mutation"),
        ({"query": "query=query+a{version}+mutation+b{x}&operationName=b"}, "GraphQL mutation"),
        ({"query": "query=subscription{x}"}, "GraphQL mutation"),
        ({"query": "query=mutation" + "{a" * 90 + "}" * 90}, "GraphQL mutation"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_refusal_names_header_and_value(request_: dict[str, str], reason: str) -> None:
    assert reason in (judged(**request_) or "")


def test_a_header_that_occurs_twice_is_refused() -> None:
    hosts = [(b"host", b"localhost:3000"), (b"host", b"evil.example")]
    scope = {"type": "websocket", "query_string": b"", "headers": hosts}
    assert "Host occurs more than once" in (refusal(scope, HOSTS) or "")


def test_a_wrong_name_or_port_is_said() -> None:
    with pytest.raises(UsageError, match="is no NAME or NAME:PORT"):
        hosts_of(["http://box.example"], 3000)
    with listen(0) as bound, pytest.raises(UsageError, match=r"cannot be used: .*in use"):
        listen(bound.getsockname()[1]).__enter__()
    with pytest.raises(UsageError, match="is no number from 0 to 65535"):
        listen(70_000).__enter__()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `corpus ui` over a small corpus of 500 sources."""
    folder = tmp_path_factory.mktemp("served")
    home = folder / "dagster_home"
    sources = ["prose", "notes", *(f"more-{number}" for number in range(498))]
    of_notes = [{"name": name, "where": "input/notes/*"} for name in sources]
    config = write_corpus(folder, sources=of_notes)
    with running_ui(config, home) as address:
        assert (home / "dagster.yaml").read_bytes() == SHIPPED.read_bytes()
        assert f"The report is at {address}/corpus_report\n" in (folder / "log").read_text()
        yield address


LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""
STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
SELECTOR = {
    "repositoryLocationName": "tokenmill",
    "repositoryName": "__repository__",
    "pipelineName": "build_corpus",
}
TAGS = [
    {"key": "dagster/asset_partition_range_start", "value": "prose"},
    {"key": "dagster/asset_partition_range_end", "value": "notes"},
]


def test_the_ui_shows_the_graph_and_starts_and_ends_a_run(served: str, tmp_path: Path) -> None:
    with running_browser(tmp_path / "profile") as browser:
        first = browser.open(served)  # the graph, unfolded around the report, which is linked
        link = "document.querySelector('a[href=\"/corpus_report\"]') !== null"
        wait_for(lambda: first.run(link), 120)
        assert "expanded=" in first.run("location.search")
        page = browser.open(f"{served}/asset-groups/")
        groups = {"ingest", "curate", "tokenize"}  # folded, where there are several
        wait_for(lambda: groups <= set(page.run("document.body.innerText").split()), 120)
        table = browser.open(f"{served}/assets/raw?view=partitions")
        wait_for(lambda: "500 Partitions" in table.run("document.body.innerText"), 120)

        def ask(query: str, **variables: Any) -> Any:
            body = json.dumps(json.dumps({"query": query, "variables": variables}))
            headers = "{'Content-Type': 'application/json'}"
            options = f"{{method: 'POST', headers: {headers}, body: {body}}}"
            return page.run(f"fetch('/graphql', {options}).then(a => a.json())")["data"]

        execution = {"selector": SELECTOR, "mode": "default", "executionMetadata": {"tags": TAGS}}
        launched = ask(LAUNCH, p=execution)["launchRun"]
        run = launched["run"]["runId"]
        assert ask(TERMINATE, id=run)["terminateRun"]["__typename"] == "TerminateRunSuccess"
        ends = ("CANCELED", "FAILURE", "SUCCESS")
        wait_for(lambda: ask(STATUS, id=run)["runOrError"]["status"] in ends)


def test_only_the_loopback_address_is_bound(served: str) -> None:
    port = int(served.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        pass
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port)):
        pass


def test_a_broken_config_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "no.yaml"))
    assert main(["ui", "--port", "0"]) == 2
    assert "no.yaml" in capsys.readouterr().err


def test_a_workspace_that_is_not_there_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--port", "0", "--workspace", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml'; deploy/workspace.yaml is one" in capsys.readouterr().err
