"""`corpus doctor` finds what stops a build on this machine, and leaves nothing behind."""

import shutil
import socket
import subprocess
from dataclasses import replace

from answering_site import answering_site
from builders import Build, open_corpus, write_corpus
from prelude import Path, json, os, pytest, re, sys, time
from verbs import Cli

from assets.stages import BY_NAME
from pipeline_defs.commands.build import checks, doctor
from pipeline_defs.commands.build.checks import Remark, run_checks
from pipeline_defs.commands.build.doctor import cores, file_system, with_skew
from resources.dagster_home import note_store
from resources.engine import cost
from resources.engine.cost import cpu_limit, memory_bytes
from resources.engine.system_errors import SystemFault
from resources.settings.pipeline import CONFIG_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
NO_SUCH_KEY = b"<Error><Code>InvalidAccessKeyId</Code></Error>"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of a small corpus, which the environment names; no proxies, a second for tries."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "0")
    monkeypatch.setenv(CONFIG_VARIABLE, str(path := write_corpus(tmp_path)))
    return path


def write_sources(config: Path, *places: str) -> None:
    """Write a config with sources at these places."""
    sources = [{"name": f"s{i}", "where": place} for i, place in enumerate(places)]
    phase = {"name": "all", "weighting": "natural"}
    config.write_text(json.dumps({"store": "store", "sources": sources, "phases": [phase]}))


def findings(cli: Cli, code: int, *words: str) -> dict[str, tuple[str, str]]:
    """State and text of the checks of `corpus doctor`, by name."""
    rows = json.loads(cli.out("doctor", "--json", *words, code=code))
    return {row["check"]: (row["state"], row["text"]) for row in rows}


def test_a_sound_machine_is_ok_and_stays_as_it_was(config: Path, cli: Cli) -> None:
    before = sorted(config.parent.rglob("*"))

    lines = cli.out("doctor", "--port", "0").splitlines()

    assert sorted(config.parent.rglob("*")) == before
    states = {line.split(":")[0][9:]: line[:8].strip() for line in lines}
    assert len(states) == len(lines) == 16
    assert {states[name] for name in ("python", "file system", "clock", "port", "proxy")} == {"ok"}
    assert "fault" not in states.values()


def test_without_a_config_the_machine_is_checked(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "none.yaml"))

    found = findings(cli, 0)

    assert found["pipeline.yaml"][0] == "warning" and "corpus init" in found["pipeline.yaml"][1]
    assert found["file system"][0] == "ok" and "versions" not in found


def test_a_mistake_in_the_config_is_a_fault(config: Path, cli: Cli) -> None:
    config.write_text(config.read_text() + "dedpu: {}\n")
    state, text = findings(cli, 1)["pipeline.yaml"]
    assert state == "fault" and "dedpu: unknown key (did you mean 'dedup'?)" in text


def test_an_old_schema_and_the_records_of_another_store_are_named(
    config: Path, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / ".pipeline.schema.json").write_text("{}")
    (tmp_path / "other").mkdir()
    note_store(tmp_path / "other")

    found = findings(cli, 1)

    assert found["pipeline.yaml"][0] == "warning" and "config --schema" in found["pipeline.yaml"][1]
    assert found["DAGSTER_HOME"][0] == "fault"
    assert f"of another store, {tmp_path / 'other'}" in found["DAGSTER_HOME"][1]


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run(("unshare", "-rm", "true")).returncode != 0,
    reason="no namespace of mounts can be made here",
)
def test_full_read_only_and_crowded_disks_are_told_apart(config: Path, dagster_home: Path) -> None:
    store, temporary = config.parent / "store", config.parent / "temporary"
    for folder in (store, temporary):
        folder.mkdir()
    script = (
        f"mount -t tmpfs -o size=32k none {store} && mount -t tmpfs -o ro none {dagster_home}"
        f" && mount -t tmpfs -o nr_inodes=9 none {temporary}"
        " && mount -t tmpfs -o size=4m none /dev/shm"
        f' && exec "$0" -m pipeline_defs.commands.main doctor --json'
    )
    settings = os.environ | {"TOKENMILL_STORE": str(store), "TMPDIR": str(temporary)}
    command = ("unshare", "-rm", "sh", "-c", script, sys.executable)
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert found["room for store"]["state"] == found["room for records"]["state"] == "fault"
    assert f"The disk of {store} on " in found["room for store"]["text"]
    assert (
        f"Read-only file system for user 0 in {dagster_home}" in found["room for records"]["text"]
    )
    assert found["room for temporary files"]["state"] == "warning"
    assert found["room for shared memory"]["state"] == "warning"
    assert " inodes are free" in found["room for temporary files"]["text"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_of_another_user_is_a_fault(config: Path, cli: Cli) -> None:
    (config.parent / "store").mkdir(mode=0o500)
    assert findings(cli, 1)["room for store"][0] == "fault"


def test_a_disk_without_links_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as exFAT does

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(SystemFault, match=r"refuses hard links \(Operation not permitted\). Put"):
        file_system(tmp_path)
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "dagster_home"])


def test_locks_that_hold_nothing_and_network_disks_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "disk_type", lambda _: "nfs4")
    with pytest.raises(Remark, match="may lock for one machine only"):
        file_system(tmp_path)
    monkeypatch.setattr(doctor, "try_take", lambda path: os.open(path, os.O_RDWR | os.O_CREAT))
    with pytest.raises(SystemFault, match="gives one lock to two"):
        file_system(tmp_path)


def test_a_taken_port_and_a_proxy_for_localhost_are_warnings(
    config: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@proxy.example:3128")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = findings(cli, 0, "--port", str(port))
    assert found["port"][0] == found["proxy"][0] == "warning"
    assert f"{port} is taken" in found["port"][1]
    assert "no_proxy=localhost" in found["proxy"][1] and "secret" not in found["proxy"][1]

    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert findings(cli, 0, "--port", "0")["proxy"][0] == "ok"


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/a/b", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}),
        ("0::/of/the/host", {"cpu.max": "150000 100000"}),
        (
            "4:cpu,cpuacct:/a\n0::/",
            {"cpu/a/cpu.cfs_quota_us": "75000", "cpu/a/cpu.cfs_period_us": "50000"},
        ),
    ],
    ids=["v2", "container", "v1"],
)
def test_limits_of_groups_above_count(
    groups: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"memory/m/memory.limit_in_bytes": "4096", "memory.max": "4096\n"}
    for name, content in (files | limits).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "groups").write_text(f"{groups}\n5:memory:/m\n")
    monkeypatch.setattr(cost, "GROUPS", tmp_path)
    monkeypatch.setattr(cost, "PROCESS_GROUPS", tmp_path / "groups")

    assert (cpu_limit(), memory_bytes()) == (1.5, 4096)
    with pytest.raises(Remark, match=r"the time of 1.5; 8 workers. Set `engine.workers: 1`"):
        cores(8)
    (tmp_path / "groups").unlink()
    assert cpu_limit() is None and memory_bytes() > 1 << 28


def test_remote_places_are_asked_once_and_secrets_stay_hidden(
    config: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("PASSWORD", "hunter22")
    with answering_site(monkeypatch) as site:
        site.answers += [(401, b"", {})] * 2
        monkeypatch.setenv("HF_ENDPOINT", f"http://{site.place}")
        urls = [f"http://{site.place}/${{PASSWORD}}/{name}.txt" for name in "ab"]
        write_sources(config, "hf://me/private", *urls)
        found = findings(cli, 1)
    assert sorted(site.paths) == ["/api/datasets/me/private/revision/main", "/hunter22/a.txt"]
    assert found["hf://me/private"][0] == "fault" and "HF_TOKEN" in found["hf://me/private"][1]
    assert found[f"http://{site.place}"][0] == "fault"
    assert "401" in found[f"http://{site.place}"][1] and "hunter22" not in str(found)


@pytest.mark.parametrize(("late", "error"), [(-7200, SystemFault), (120, Remark)])
def test_another_clock_is_told(late: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=re.escape(f"its clock differs by {late:+,d} s. Set")):
        with_skew("HTTP 200", time.time() + late)


def test_a_bucket_that_refuses_names_the_credentials(
    config: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("[default]")
    with answering_site(monkeypatch) as site:
        site.answers += [(403, NO_SUCH_KEY, {})] * 9
        for name, value in {
            "HOME": str(tmp_path),
            "AWS_ENDPOINT_URL": f"http://{site.place}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_SKIP_SIGNATURE": "true",
        }.items():
            monkeypatch.setenv(name, value)
        write_sources(config, "s3://corpora/in/*.jsonl")
        state, text = findings(cli, 1)["s3://corpora"]
    assert state == "fault" and "HTTP 403 InvalidAccessKeyId" in text
    assert text.endswith(
        f"Credentials: none in the environment; {tmp_path / '.aws/credentials'} is not read: "
        "aws configure export-credentials --format env."
    )


def test_a_store_of_other_code_is_a_warning(
    config: Path, cli: Cli, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(config, config.parent / "store")
    build(corpus, "raw")
    monkeypatch.setenv("TOKENMILL_STORE", str(corpus.store.root))
    assert findings(cli, 0)["versions"] == ("ok", "2 partitions, all of this version of the code")

    monkeypatch.setitem(BY_NAME, "raw", replace(BY_NAME["raw"], code_version="0"))
    assert findings(cli, 0)["versions"][1].startswith("other versions of the code made raw.")


def test_what_never_answers_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "WAIT_SECONDS", 0.05)
    slow, quick = run_checks({"dead disk": lambda: time.sleep(5) or "", "quick": lambda: "fine"})
    assert (slow.state, quick.state) == ("fault", "ok") and "no answer in 0.05 s" in slow.text
