"""A small corpus, the command that builds it, and ways to disturb that command from outside.

A disturbance is tied to the files that a stage has published, never to seconds: a busy machine
meets it at the same place of the flow.
"""

import random
import signal
import subprocess
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch

from builders import hashes, write_corpus
from prelude import Iterator, Path, os, sys, time

ROOT = Path(__file__).resolve().parents[2]
CORPUS = (sys.executable, "-m", "pipeline_defs.commands.main")
BUILD = (*CORPUS, "build")
VERIFY = (*CORPUS, "verify")
DAGSTER = (sys.executable, "-m", "dagster")
MODULE = ("-m", "pipeline_defs.definitions")
LONGEST_SECONDS = float(os.environ.get("TOKENMILL_LONGEST_SECONDS", 300))  # of one command
POLL_SECONDS = 0.001


ENGINES = ("in_process", "processes")


@dataclass(frozen=True)
class Site:
    """A corpus on disk, its store (behind `url` if that is given), and how it is computed."""

    folder: Path
    store: Path
    home: Path
    engine: str
    python_path: str = ""
    url: str = ""

    @property
    def config(self) -> Path:
        """The corpus' pipeline.yaml."""
        return self.folder / "pipeline.yaml"


@dataclass(frozen=True)
class Ending:
    """The exit code and the output of a command that has ended."""

    code: int
    output: str

    @property
    def tail(self) -> str:
        """The last lines of the output."""
        return self.output[-3000:]


def make_site(folder: Path, engine: str) -> Site:
    """Write the corpus, with an empty store."""
    folder.mkdir(parents=True)
    write_corpus(folder, engine={"kind": engine, "workers": 2})
    home = folder / "dagster_home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return Site(folder, folder / "store", home, engine)


def start(site: Site, command: Sequence[str] = BUILD) -> subprocess.Popen[str]:
    """Start a command over the corpus in a process group of its own; its output goes to a file."""
    paths = {
        "DAGSTER_HOME": str(site.home),
        "PYTHONPATH": os.pathsep.join(filter(None, (site.python_path, str(ROOT)))),
        "TOKENMILL_CONFIG": str(site.config),
        "TOKENMILL_STORE": site.url or str(site.store),
    }
    with open(site.folder / "output", "a") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | paths,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def finish(site: Site, process: subprocess.Popen[str]) -> Ending:
    """Wait for a command; one that hangs is killed, and TimeoutExpired raised."""
    try:
        code = process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        kill_everything(process)
        raise
    return Ending(code, (site.folder / "output").read_text(errors="replace"))


def run(site: Site, command: Sequence[str] = BUILD) -> Ending:
    """Run a command over the corpus to its end."""
    (site.folder / "output").unlink(missing_ok=True)
    return finish(site, start(site, command))


def published(store: Path, stage: str) -> int:
    """Count the files under their final names, manifests and records of a stage."""
    names = (path.name for path in (store / stage).rglob("*"))
    return sum(not name.startswith(".") for name in names)


def wait_for(site: Site, process: subprocess.Popen[str], stage: str, num_files: int) -> bool:
    """Wait until a stage has published so many files; False if the command ended before."""
    end = time.monotonic() + LONGEST_SECONDS
    while published(site.store, stage) < num_files:
        if process.poll() is not None:
            return False
        assert time.monotonic() < end, f"{stage} has not published {num_files} files"
        time.sleep(POLL_SECONDS)
    return process.poll() is None


def descendants(pid: int) -> list[int]:
    """Return the processes below one, parents before their children."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has just ended
        children.setdefault(parent, []).append(int(status.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def kill_everything(process: subprocess.Popen[str]) -> None:
    """Kill a command and all processes below it, in whatever group they are."""
    for pid in [process.pid, *descendants(process.pid)]:
        kill(pid)
    process.wait()


def kill_parent(process: subprocess.Popen[str]) -> None:
    """Kill the command alone."""
    process.kill()
    process.wait()


def kill_worker(process: subprocess.Popen[str]) -> None:
    """Kill the youngest process that has no children: a worker, or a step."""
    below = descendants(process.pid)
    leaves = [pid for pid in below if not descendants(pid) and is_python_worker(pid)]
    if leaves:
        kill(max(leaves))


def is_python_worker(pid: int) -> bool:
    """Return whether a process is neither a server of processes nor a tracker of resources."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"resource_tracker" not in command


def kill(pid: int) -> None:
    """Send SIGKILL to a process that may have ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


KILLS = {"everything": kill_everything, "parent": kill_parent, "worker": kill_worker}


def places(clean: Site, draw: random.Random) -> Iterator[tuple[str, int]]:
    """Yield a stage and a number of its files, for ever; every stage once in a round."""
    stages = sorted(folder.name for folder in clean.store.iterdir() if folder.is_dir())
    while True:
        draw.shuffle(stages)
        for stage in stages:
            yield stage, draw.randint(0, published(clean.store, stage) - 1)


@contextmanager
def nothing_left_running(site: Site) -> Iterator[None]:
    """Kill what still works on a site at the end: a killed parent may leave others behind."""
    try:
        yield
    finally:
        marker = str(site.store).encode()
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                is_ours = marker in environment.read_bytes()
            except OSError:
                continue
            if is_ours:
                kill(int(environment.parent.name))


def differences(store: Path, clean: Path, pattern: str = "*") -> str | None:
    """Return the files that are not the same in two stores, None if there are none."""
    mine, theirs = (
        {name: digest for name, digest in hashes(root).items() if fnmatch(name, pattern)}
        for root in (store, clean)
    )
    names = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
    return f"{len(names)} files differ from {clean}: {', '.join(names[:9])}" if names else None
