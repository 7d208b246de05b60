"""`corpus ui`: Dagster's web UI and daemon, as `dagster dev` runs them, behind a guard.

One code server loads the definitions for both; the web server runs in this process, because its
guard is a layer around it (ui_guard.py). All of it ends with the command. With `--workspace` the
code server and the daemon run elsewhere, and this is the web server alone.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, get_args

import dagster as dg
import uvicorn
import yaml
from cyclopts import Parameter
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pipeline_defs.commands.look.ui_guard import Guard, hosts_of
from pipeline_defs.dagster_internals import (
    DAEMON_MODULE,
    ProxyServerManager,
    WorkspaceFileTarget,
    WorkspaceProcessContext,
)
from pipeline_defs.load_corpus import load_corpus
from resources.dagster_home import PROJECT, prepare_home
from resources.errors import UsageError
from resources.source_faults import CORPUS_REPORT
from resources.stage import Group
from resources.store.medium import medium_of
from resources.store.preview_files import PAGE_ADDRESS, page_path
from resources.store.scratch import place_of

ADDRESS = "127.0.0.1"
POLL_MILLISECONDS = 2000  # as `dagster dev`: how often the page asks for news
SECONDS_TO_END = 5  # for open requests, and for the daemon
UNFOLDED = ",".join(f"global@global:{group}" for group in get_args(Group))
FIRST_PAGE = f"/asset-groups~/{CORPUS_REPORT}?expanded={UNFOLDED}"


def ui(
    *,
    port: Annotated[int, Parameter(help="Port on 127.0.0.1; 0 takes a free one.")] = 3000,
    host_name: Annotated[
        tuple[str, ...], Parameter(help="NAME or NAME:PORT that browsers use; may be repeated.")
    ] = (),
    address: Annotated[
        str, Parameter(help="Address to listen on; a login is up to a proxy before it.")
    ] = ADDRESS,
    workspace: Annotated[
        Path | None,
        Parameter(help="Dagster's workspace file, of a code server that runs elsewhere."),
    ] = None,
) -> int:
    """Serve the web UI until Ctrl-C; the exit code is 1 if the daemon ends by itself."""
    store = None
    if workspace is None:
        store = load_corpus().store.root  # mistakes are said here, and not in a page
    elif not workspace.is_file():
        raise UsageError(f"--workspace: no file {str(workspace)!r}; deploy/workspace.yaml is one")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        bound = stack.enter_context(listen(port, address))
        hosts = hosts_of(host_name, bound.getsockname()[1])
        prepare_home(store)
        instance = stack.enter_context(dg.DagsterInstance.get())
        daemon = None
        if workspace is None:
            workspace = stack.enter_context(code_server(instance))
            daemon = stack.enter_context(running_daemon(workspace))
        target = WorkspaceFileTarget([str(workspace)])
        context = WorkspaceProcessContext(instance, target, version=__version__)
        app = guarded_app(stack.enter_context(context), hosts, store)
        serve(app, bound, daemon, f" of {place_of(store)}" if store else "")
        if daemon is not None:
            code = daemon.returncode
            sys.stderr.write(f"Dagster's daemon ended by itself (exit code {code}).\n")
            return 1
    return 0


@contextmanager
def listen(port: int, address: str = ADDRESS) -> Iterator[socket.socket]:
    """Yield a socket that listens on an address, the loopback one by default."""
    if port not in range(2**16):
        raise UsageError(f"--port {port} is no number from 0 to 65535")
    try:
        bound = socket.create_server((address, port))
    except OSError as error:
        raise UsageError(
            f"port {port} of {address} cannot be used: {error}. Choose another: corpus ui --port"
        ) from error
    with bound:
        yield bound


@contextmanager
def code_server(instance: dg.DagsterInstance) -> Iterator[Path]:
    """Load the code location in a server of its own; yield a workspace file that leads to it."""
    target = WorkspaceFileTarget([str(PROJECT / "workspace.yaml")])
    with (
        ProxyServerManager(instance, target, code_server_log_level="WARNING") as servers,
        tempfile.TemporaryDirectory(prefix="tokenmill-ui-") as folder,
    ):
        workspace = Path(folder) / "workspace.yaml"
        workspace.write_text(yaml.safe_dump({"load_from": servers.get_code_server_specs()}))
        yield workspace


@contextmanager
def running_daemon(workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon, which starts schedules, sensors and backfills."""
    command = [sys.executable, "-m", DAEMON_MODULE, "run", "--log-level", "warning"]
    daemon = subprocess.Popen([*command, "--workspace", str(workspace)])
    try:
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            daemon.kill()


def guarded_app(
    context: WorkspaceProcessContext, hosts: frozenset[str], store: Path | None = None
) -> Starlette:
    """Return Dagster's web application with the guard as its outermost layer.

    It has the page of `corpus report`, if the store is known.
    """
    app = create_app_from_workspace_process_context(context, "", POLL_MILLISECONDS)
    app.router.routes.insert(0, Route("/", to_first_page))
    if store is not None:
        page = page_path(store)

        def report_page(_: Request) -> Response:
            if medium_of(page.parent).bring(page):
                return HTMLResponse(page.read_bytes())
            return PlainTextResponse("No report yet: a build of all phases writes it.\n", 404)

        app.router.routes.insert(0, Route(PAGE_ADDRESS, report_page))
    app.add_middleware(Guard, hosts=hosts)
    return app


def to_first_page(_: Request) -> RedirectResponse:
    """Lead to the report in the graph of all stages: Dagster's own page lacks runs of builds."""
    return RedirectResponse(FIRST_PAGE)


def serve(
    app: Starlette, bound: socket.socket, daemon: subprocess.Popen[bytes] | None, served: str
) -> None:
    """Answer requests until a signal comes or the daemon, if it is ours, ends."""
    options = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=SECONDS_TO_END)
    server = uvicorn.Server(options)

    def end_with(process: subprocess.Popen[bytes]) -> None:
        process.wait()
        server.should_exit = True

    if daemon is not None:
        threading.Thread(target=end_with, args=(daemon,), daemon=True).start()
    host, port = bound.getsockname()[:2]
    sys.stdout.write(f"The web UI{served} is at http://{host}:{port} (Ctrl-C ends it)\n")
    if served:
        sys.stdout.write(f"The report is at http://{host}:{port}{PAGE_ADDRESS}\n")
    sys.stdout.flush()
    server.run(sockets=[bound])
