"""Everything that we use of Dagster's private modules, with the reason for each.

Dagster may change these in any release. `CHECKED_VERSION` is the last one in which they were found
to do what is said here; a test fails under any other, until someone has looked at them again.
"""

# `corpus build` runs commands of Dagster in its own process: one more costs 2 s of imports each.
from dagster._cli import ENV_PREFIX, create_dagster_cli

# `corpus ui` serves Dagster's web application behind a guard of requests. `dagster-webserver` has
# no place for one, and `dagster dev` starts it as a process of its own; these are what both do.
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget

CHECKED_VERSION = "1.13.27"
# `delete_run` leaves the database of a run, emptied, and what its steps wrote to standard error.
FILES_OF_RUN = ("history/runs/{}.db*", "storage/{}")  # in $DAGSTER_HOME
DAEMON_MODULE = "dagster._daemon"  # what `dagster-daemon` runs, which may not be on the path

__all__ = [
    "CHECKED_VERSION",
    "DAEMON_MODULE",
    "ENV_PREFIX",
    "FILES_OF_RUN",
    "ProxyServerManager",
    "WorkspaceFileTarget",
    "WorkspaceProcessContext",
    "create_dagster_cli",
]
