"""Dagster's records in PostgreSQL: many writers at once, and a server that is killed."""

import shutil
import subprocess
import tempfile
from contextlib import suppress

import dagster as dg
import psutil
from builders import Build, hashes, open_corpus, write_corpus
from command_line import LONGEST_SECONDS, start, until
from many_runs import begin_runs, exit_codes
from postgres_server import USER, PostgresServer, free_port
from prelude import Iterator, Path, os, pytest, re, time

from pipeline_defs.commands.unexpected_errors import records_fault

CORPUS = "pipeline_defs.commands.main"
MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


def test_twenty_runs_at_once_are_recorded_whole(tmp_path: Path, records: PostgresServer) -> None:
    codes = exit_codes(begin_runs(tmp_path, 20))

    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs()
        materialized = [
            len(instance.get_records_for_run(run.run_id, of_type=MATERIALIZED).records)
            for run in runs
        ]
        kinds = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        assert all(type(kind).__module__.startswith("dagster_postgres") for kind in kinds)
    assert codes == [0] * 20
    assert [run.status for run in runs] == [SUCCESS] * 20
    assert materialized == [2] * 20  # sources


def test_no_run_succeeds_in_silence_when_the_server_is_killed_under_twenty(
    tmp_path: Path, records: PostgresServer
) -> None:
    runs = begin_runs(tmp_path, 20)
    until(lambda: len(list(tmp_path.glob("*/store/raw/*/_manifests/*.json"))) > 5)
    records.kill()
    records.start()
    codes = exit_codes(runs)
    with dg.DagsterInstance.get() as instance:
        recorded = [run.status for run in instance.get_runs()]
    again = exit_codes(begin_runs(tmp_path, 20))

    assert recorded.count(SUCCESS) == codes.count(0)
    assert again == [0] * 20
    with dg.DagsterInstance.get() as instance:
        assert {run.status for run in instance.get_runs()} <= {SUCCESS, FAILURE}
        assert len(instance.get_runs(dg.RunsFilter(statuses=[SUCCESS]))) == 20 + codes.count(0)


def test_a_killed_server_fails_the_run_and_the_same_command_finishes_it(
    tmp_path: Path, records: PostgresServer, build: Build
) -> None:
    config = write_corpus(tmp_path)
    run = start(config, CORPUS, "build", "--to", "filtered")
    until(lambda: list(tmp_path.glob("store/raw/*/_parts/*.json")), run)
    records.kill()
    failed = run.wait(LONGEST_SECONDS)
    log = (tmp_path / "out.log").read_text()
    records.start()
    finished = start(config, CORPUS, "build", "--to", "filtered").wait(LONGEST_SECONDS)

    assert failed == 1
    assert "Start the database again, then run the same command" in log.splitlines()[-1]
    assert finished == 0
    with dg.DagsterInstance.get() as instance:
        assert {each.status for each in instance.get_runs()} == {SUCCESS, FAILURE}
    assert re.search(r"raw, all 2: .* [1-9]\d* reused", (tmp_path / "out.log").read_text())
    undisturbed = open_corpus(config, tmp_path / "other")
    build(undisturbed, "raw", "filtered")
    assert files_of(tmp_path / "store") == files_of(tmp_path / "other")


POOL = """
[databases]
postgres = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = scram-sha-256
auth_file = {folder}/users
unix_socket_dir =
pool_mode = session
max_client_conn = 500
server_login_retry = 1
query_wait_timeout = 120
ignore_startup_parameters = extra_float_digits,options
"""


@pytest.fixture
def pool(tmp_path: Path, records: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a PgBouncer before the server, to which Dagster connects, as docs/cluster.md."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "apt-get install pgbouncer"
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        folder, port = Path(name), free_port()
        text = POOL.format(server=records.port, port=port, folder=folder)
        (folder / "pool.ini").write_text(text)
        (folder / "users").write_text(f'"{USER}" "{records.password}"')
        if os.geteuid() == 0:  # it refuses root
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, "postgres")
        as_user = ["-u", "postgres"] if os.geteuid() == 0 else []
        pooler = subprocess.Popen([program, "-q", *as_user, str(folder / "pool.ini")])
        monkeypatch.setenv("DAGSTER_POSTGRES_PORT", str(port))
        yield port
        pooler.terminate()
        pooler.wait()


def test_a_failover_of_30_seconds_behind_a_pool_ends_no_run(
    tmp_path: Path, records: PostgresServer, pool: int
) -> None:
    config = write_corpus(tmp_path)
    run = start(config, CORPUS, "build", "--to", "filtered")
    until(lambda: list(tmp_path.glob("store/raw/*/_parts/*.json")), run)
    until(lambda: killed_between_statements(records, psutil.Process(run.pid), pool), run)
    time.sleep(30)
    assert run.poll() is None
    records.start()

    assert run.wait(LONGEST_SECONDS) == 0, (tmp_path / "out.log").read_text()[-2000:]
    with dg.DagsterInstance.get() as instance:
        assert [each.status for each in instance.get_runs()] == [SUCCESS]


def killed_between_statements(records: PostgresServer, run: psutil.Process, pool: int) -> bool:
    """Kill the server, unless a statement of a run is on its way: that one fails with it.

    Dagster connects for each statement.
    """
    stopped, ports = list[psutil.Process](), set[int]()
    for process in (run, *run.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            process.suspend()
            stopped.append(process)
            ports |= {each.raddr.port for each in process.net_connections() if each.raddr}
    if pool not in ports:
        records.kill()
    for process in stopped:
        process.resume()
    return pool not in ports


def files_of(store: Path) -> dict[str, str]:
    """Hashes of what a store publishes."""
    return {name: value for name, value in hashes(store).items() if not name.startswith(".")}


def test_a_variable_that_is_not_set_is_named(
    records: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_POSTGRES_PORT")
    with pytest.raises(dg.DagsterInvalidConfigError) as raised:
        dg.DagsterInstance.get()
    assert "variable DAGSTER_POSTGRES_PORT, which is not set" in (records_fault(raised.value) or "")
