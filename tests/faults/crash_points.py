"""`make faults`: end commands at a file-system call, or let it fail, and give them again.

A process that has imported all and computed nothing forks a child for each point. An audit hook of
Python (PEP 578) counts the child's calls on files of the corpus, and at the n-th of them the child
is killed, or the call fails as on a broken or a full disk. The same command, given again, has to
leave the bytes of one that was not disturbed, and no other file. Calls that Polars and pyarrow make
for themselves are not counted: what they write is named by the calls before and after.

PYTHONPATH=tests .venv/bin/python -m faults.crash_points --points 1000 --only night
"""

import argparse
import errno
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import traceback
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Literal, get_args

from builders import open_corpus, records, sentence, write_jsonl
from prelude import Any, Callable, Counter, Path, os, pytest, re, sys, time

Fault = Literal["kill", "EIO", "ENOSPC"]
CALLS = {
    *("open", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir"),
    *("os.scandir", "os.truncate", "os.utime", "shutil.copyfile", "shutil.rmtree"),
}
TESTS = Path(__file__).resolve().parent.parent
LONGEST_SECONDS = 300
FAILED, UNDISTURBED = 1, -1  # an exit code; a point that no command reaches
TARGET = "hf://acme/corpus"
HUB_FILES, TABLE_ROWS = "hub.txt", "rows.txt"
RANDOM = re.compile(r"\d{15,}|(?<=/v)\d+")  # ids of Iceberg's snapshots and metadata, in names


@dataclass(frozen=True)
class Command:
    """What is given in a folder that `prepare` has made; one of few points is slow."""

    name: str
    prepare: Callable[[Path], None]
    give: Callable[[Path], None]
    share: float = 1.0


@dataclass(frozen=True)
class Point:
    """The n-th call of a command, and what happens to it."""

    command: str
    number: int
    fault: Fault

    def __str__(self) -> str:
        return f"{self.command}, call {self.number}, {self.fault}"


def build(folder: Path) -> None:
    """Build the corpus of a folder, without Dagster."""
    from every_stage import build as build_stages

    from assets.stages import used_stages

    corpus = open_corpus(folder / "pipeline.yaml")
    corpus.store.remove_temporaries()  # as the executor of a run does
    build_stages(corpus, used_stages(corpus.settings).values())


def verb(*words: str) -> Callable[[Path], None]:
    """Return a verb of `corpus`; whatever its code is, it has to be the same in the end."""
    from pipeline_defs.commands.main import main

    def give(_: Path) -> None:
        main(words)

    return give


def with_inputs(folder: Path) -> None:
    """Write the inputs of every stage; a source that fails stops all, else it is in the history."""
    from every_stage import write_inputs

    sources = [{"name": n, "where": f"input/{n}/*", "license": "CC0-1.0"} for n in NAMES]
    engine = {"kind": "in_process", "workers": 1}
    write_inputs(folder, sources=sources, engine=engine, on_source_error="stop")


NAMES = ("prose", "notes")


def built(folder: Path) -> None:
    """Build once."""
    with_inputs(folder)
    build(folder)


def edited(folder: Path) -> None:
    """Build, then bring a file, take one away, and edit a document."""
    built(folder)
    write_jsonl(folder / "input/prose/d.jsonl", records(*(sentence(700 + i) for i in range(9))))
    (folder / "input/prose/b.jsonl").unlink()
    notes = folder / "input/notes/n.jsonl"
    notes.write_text(notes.read_text().replace("river", "rover", 1))


def built_twice(folder: Path) -> None:
    """Build two states."""
    edited(folder)
    build(folder)


def tagged(folder: Path) -> None:
    """Build two states, of which the first has a tag."""
    built(folder)
    verb("states", "tag", "v1")(folder)
    (folder / "input/prose/b.jsonl").unlink()
    build(folder)


def damaged(folder: Path) -> None:
    """Build, then flip a bit of a published table."""
    built(folder)
    path = sorted((folder / "store/filtered/prose").glob("*.decisions.*"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # other stages may have a second name for its content
    path.write_bytes(data)


def built_by_an_older_version(folder: Path) -> None:
    """Build as a version that has changed in `filtered` since did."""
    from assets.filtered.filtered_records import FILTERED

    with_inputs(folder)
    object.__setattr__(FILTERED, "code_version", "0")  # for this fork, which ends
    build(folder)


def take_down(folder: Path) -> None:
    """Take a document down by its text unless that is noted already, and build."""
    text = folder / "taken.txt"
    text.write_text(sentence(203))
    if not [*(folder / "store/_takedowns").glob("0*.json")]:  # two requests are two notes
        verb("takedown", "--match", str(text), "--reason", "asked", "--date", "2026-01-02")(folder)
    build(folder)


def push(folder: Path) -> None:
    """Push to a hub that has nothing, and write down what it has then."""
    from hub_server import hub_server

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        with hub_server(patch) as hub:
            verb("push", TARGET)(folder)
            found = hub.repositories["acme/corpus"]
            files = found.commits[found.branches["main"]]
            lines = [f"{name} {len(content)}\n" for name, content in sorted(files.items())]
    (folder / "store" / HUB_FILES).write_text("".join(lines))


def push_iceberg(folder: Path) -> None:
    """Push Iceberg tables, and write down their rows: names and metadata are not the same."""
    from pyiceberg.table import StaticTable

    verb("push", "iceberg")(folder)
    lines = []
    for path in sorted((folder / "store").glob("iceberg-*/*/metadata/v*.metadata.json")):
        rows = StaticTable.from_metadata(str(path)).scan().to_pandas()
        lines.append(f"{path.parts[-4:-2]} {len(rows)} {zlib.crc32(rows.to_json().encode())}\n")
    (folder / "store" / TABLE_ROWS).write_text("".join(lines))


COMMANDS = {
    each.name: each
    for each in (
        Command("build", with_inputs, build, 2),
        Command("night", edited, build, 2),
        Command("gc", built_twice, verb("states", "gc", "--keep", "1", "--delete")),
        Command("repair", damaged, verb("verify", "--repair"), 0.3),
        Command("rollback", tagged, verb("states", "rollback", "prose", "--to", "v1")),
        Command("takedown", built, take_down, 1),
        Command("push", built, push, 0.5),
        Command("push iceberg", built, push_iceberg, 0.5),
        Command("report", built, verb("report")),
        Command("upgrade", built_by_an_older_version, build),
    )
    if each.name != "push iceberg" or find_spec("pyiceberg")
}


def in_child(folder: Path, act: Callable[[Path], None], at: int, fault: Fault) -> tuple[int, int]:
    """Run something in a fork, with one of its calls disturbed; return its status and its calls."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = FAILED
        try:
            output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ |= {
                "DAGSTER_HOME": str(folder / "home"),
                "TOKENMILL_CONFIG": str(folder / "pipeline.yaml"),
            }
            signal.alarm(LONGEST_SECONDS)
            calls = count_calls(folder, at, fault)
            act(folder)
            os.write(writer, str(calls[0]).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - the fork must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    with open(reader) as answer:
        return os.waitstatus_to_exitcode(status), int(answer.read() or 0)


def count_calls(folder: Path, at: int, fault: Fault) -> list[int]:
    """Count the calls of this process on files below a folder, and disturb one of them."""
    calls, lock, below = [0], threading.Lock(), f"{folder}/"

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CALLS or not str(arguments[0]).startswith(below):
            return
        with lock:
            calls[0] += 1
            is_hit = calls[0] == at + 1
        if is_hit and fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif is_hit:
            code = getattr(errno, fault)
            raise OSError(code, os.strerror(code), str(arguments[0]))

    sys.addaudithook(hook)
    return calls


def files_of(folder: Path) -> dict[str, bytes]:
    """Read every file of the store of a folder, by its name in it; the report names the folder."""
    store, own = folder / "store", re.compile(rb"%s|made of \w{32}" % re.escape(bytes(folder)))
    found: dict[str, bytes] = {}
    for path in (each for each in sorted(store.rglob("*")) if each.is_file()):
        name = RANDOM.sub("0", str(path.relative_to(store)))
        is_random = re.match("iceberg-.*(metadata/|digests.json)", name)
        while name in found:  # one more of a kind that has one is left over
            name += "'"
        found[name] = b"" if is_random else own.sub(b"", path.read_bytes())
    return found


def loss_at(point: Point, templates: Path, expected: Mapping[str, Mapping[str, bytes]]) -> str:
    """Return what is lost or left over after a point, and the same command again; else ""."""
    command = COMMANDS[point.command]
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        folder = Path(name) / "corpus"
        shutil.copytree(templates / point.command, folder)
        in_child(folder, command.give, point.number, point.fault)
        code, _ = in_child(folder, command.give, UNDISTURBED, point.fault)
        if code:
            return f"the command ends with {code}: {(folder / 'output').read_text()[-800:]}"
        found, wanted = files_of(folder), expected[point.command]
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        left = sorted({*found} - {*wanted})
        return "; ".join(
            f"{len(names)} {what}, {names[0]}"
            for what, names in (("differ or are missing", differing), ("are left over", left))
            if names
        )


def try_point(
    point: Point, templates: Path, expected: Mapping[str, Mapping[str, bytes]]
) -> tuple[Point, str]:
    """Return a point with its loss."""
    return point, loss_at(point, templates, expected)


def warm() -> None:
    """Import all, and load the kernels, before the first fork."""
    with tempfile.TemporaryDirectory() as name:
        with_inputs(Path(name))
        os.environ["TOKENMILL_CONFIG"] = str(Path(name, "pipeline.yaml"))
        os.environ["TOKENMILL_SERVER_STAGES"] = ",".join(import_module("assets.stages").BY_NAME)
        for module in ("every_stage", "pipeline_defs.commands.main", "pipeline_defs.server_image"):
            import_module(module)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which the image of a server ignores


def main() -> int:
    """Try points spread over the commands; the exit code is 1 if anything is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--only", choices=COMMANDS, help="this command")
    options = parser.parse_args()
    warm()
    start, lost = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="crash-points-") as name:
        templates, expected, calls = Path(name), {}, {}
        for command in COMMANDS.values() if not options.only else [COMMANDS[options.only]]:
            folder = templates / command.name
            folder.mkdir()
            (folder / "home").mkdir()
            assert in_child(folder, command.prepare, UNDISTURBED, "kill")[0] == 0, folder
            done = templates / "done" / command.name
            shutil.copytree(folder, done)
            code, calls[command.name] = in_child(done, command.give, UNDISTURBED, "kill")
            assert code == 0 and calls[command.name], (done / "output").read_text()
            expected[command.name] = files_of(done)
        points = points_of(calls, options.points, random.Random(options.seed))
        attempt = partial(try_point, templates=templates, expected=expected)
        with get_context("fork").Pool() as pool:
            for point, loss in pool.imap_unordered(attempt, points):
                lost[point.command] += bool(loss)
                if loss:
                    sys.stdout.write(f"{point}: {loss}\n")
                    sys.stdout.flush()
    tried = Counter(point.command for point in points)
    sys.stdout.write(f"\n{'command':<16}{'calls':>8}{'tried':>8}{'lost':>8}\n")
    for name, count in tried.items():
        sys.stdout.write(f"{name:<16}{calls[name]:>8}{count:>8}{lost[name]:>8}\n")
    sys.stdout.write(f"{len(points)} points in {time.monotonic() - start:.0f} s\n")
    return int(any(lost.values()))


def points_of(calls: Mapping[str, int], number: int, seeded: random.Random) -> list[Point]:
    """Draw points from the calls of each command, by its share."""
    shares = sum(COMMANDS[name].share for name in calls)
    found = []
    for name, num_calls in calls.items():
        wanted = max(1, round(number * COMMANDS[name].share / shares))
        at = sorted(seeded.choices(range(num_calls), k=wanted))
        found += [Point(name, n, seeded.choice(get_args(Fault))) for n in at]
    seeded.shuffle(found)
    return found


def try_in_a_process(*options: str) -> str:
    """Try points in a process which has computed nothing when it forks; return its table."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "faults.crash_points", *options]
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, cwd=TESTS.parent, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
