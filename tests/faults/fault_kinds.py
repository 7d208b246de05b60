"""Kinds of faults: each disturbs a build of the small corpus, then lets the same command finish.

A trial returns None if nothing was lost, else what was: a byte that differs from a build without
faults, a command that hangs, a fault that nothing tells of.
"""

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from faults.fault_runs import (
    BUILD,
    DAGSTER,
    ENGINES,
    KILLS,
    MODULE,
    VERIFY,
    Ending,
    Site,
    differences,
    finish,
    make_site,
    nothing_left_running,
    places,
    run,
    start,
    wait_for,
)
from prelude import Callable, Iterator, Path, os

from resources.store.store import Store

CLOCK = Path(__file__).with_name("jumping_clock")
# a store's; few of others
CALLS = ("fsync", "syncfs", "rename", "link", "ftruncate", "pwrite64", "mkdir")
ONE_SOURCE = (*DAGSTER, "asset", "materialize", *MODULE, "--select", "raw", "--partition", "prose")

Strike = Callable[[Site, Site], str | None]  # (disturbed, clean) -> what was lost


@dataclass(frozen=True)
class Trial:
    """One try of a kind of fault."""

    title: str
    engine: str
    strike: Strike


def attempt(trial: Trial, folder: Path, clean: Site) -> str | None:
    """Run a trial on a corpus of its own; return what was lost, or remove the corpus."""
    site = make_site(folder, trial.engine)
    with nothing_left_running(site):
        try:
            lost = trial.strike(site, clean)
        except subprocess.TimeoutExpired as error:
            lost = f"{error.cmd} hangs"
    if lost is None:
        shutil.rmtree(folder)
    return lost


def builds_the_same(site: Site, clean: Site) -> str | None:
    """Build without a fault; return what differs from the clean build."""
    ending = run(site)
    if ending.code:
        return f"the next build ends with {ending.code}: {ending.tail}"
    return differences(site.store, clean.store)


def fails_with(ending: Ending, *words: str) -> str | None:
    """Return what is wrong with the output of a command that had to fail and to say why."""
    if ending.code == 0:
        return "the command succeeded"
    missing = [word for word in words if word not in ending.output]
    return f"no word of {missing}: {ending.tail}" if missing else None


def kills(clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield kills, evenly over stages, engines and what is killed."""
    targets = [(target, engine) for target in KILLS for engine in ENGINES]
    draw.shuffle(targets)
    for index, (stage, num_files) in enumerate(islice(places(clean, draw), count)):
        target, engine = targets[index % len(targets)]
        title = f"{target} after {num_files} files of {stage}"
        yield Trial(title, engine, kill_at(stage, num_files, target))


def kill_at(stage: str, num_files: int, target: str) -> Strike:
    """Kill once a stage has published so many files."""

    def strike(site: Site, clean: Site) -> str | None:
        process = start(site)
        if wait_for(site, process, stage, num_files):
            KILLS[target](process)
        finish(site, process)
        before = published_parts(site)
        if lost := builds_the_same(site, clean):
            return lost
        after = published_parts(site)
        again = sorted(str(path) for path, when in before.items() if after.get(path) != when)
        return f"computed twice: {', '.join(again)}" if again else None

    return strike


def published_parts(site: Site) -> dict[Path, int]:
    """Return the records of all published parts, with the time of publication."""
    records = site.store.glob("*/*/_parts/[!.]*.json")
    return {path: path.stat().st_mtime_ns for path in records}


def failing_calls(_clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield system calls that fail from the nth of a process on, by strace."""
    for _ in range(count):
        call, nth, engine = draw.choice(CALLS), draw.randint(1, 12), draw.choice(ENGINES)
        error = draw.choice(("EIO", "ENOSPC"))
        yield Trial(f"{error} of {call} from number {nth} on", engine, fail_call(call, error, nth))


def fail_call(call: str, error: str, nth: int) -> Strike:
    """Let a system call fail from the nth of every process on."""

    def strike(site: Site, clean: Site) -> str | None:
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={nth}+")
        run(site, ("strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", *inject, *BUILD))
        return builds_the_same(site, clean)

    return strike


def full_disks(clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield disks that get full on the way."""
    sizes = [path.stat().st_size for path in clean.store.rglob("*") if path.is_file()]
    blocks = sum(-(-size // 4096) for size in sizes)
    for _ in range(count):
        some = int(blocks * draw.uniform(0.05, 0.8)) + 1
        strike = on_disk(f"nr_blocks={some}", "is full", "run the same command again")
        yield Trial(f"{some} of {blocks} blocks", draw.choice(ENGINES), strike)


def few_inodes(clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield disks that run out of inodes on the way."""
    inodes = sum(1 for _ in clean.store.rglob("*"))
    for _ in range(count):
        some = int(inodes * draw.uniform(0.1, 0.8)) + 1
        strike = on_disk(f"nr_inodes={some}", "No inodes", "run the same command again")
        yield Trial(f"{some} of {inodes} inodes", draw.choice(ENGINES), strike)


def read_only(_clean: Site, _count: int, _draw: random.Random) -> Iterator[Trial]:
    """Yield a store that cannot be written to."""
    strike = on_disk("ro", "Read-only file system", "run the same command again")
    yield Trial("", ENGINES[0], strike)


def on_disk(options: str, *words: str) -> Strike:
    """Build on a disk with mount options that make it fail, then on the same disk without them."""
    script = (
        'mount -t tmpfs -o "$1" none "$2"; store=$2 copy=$3; shift 3; "$@"; echo "ended with $?"; '
        'mount -o remount,rw,nr_blocks=1m,nr_inodes=1m "$store"; "$@"; code=$?; '
        'cp -a "$store/." "$copy"; exit $code'
    )

    def strike(site: Site, clean: Site) -> str | None:
        site.store.mkdir()
        copy = site.folder / "copy"
        copy.mkdir()
        arguments = (options, str(site.store), str(copy), *BUILD)
        ending = run(site, ("unshare", "-rm", "sh", "-c", script, "sh", *arguments))
        first, _, second = ending.output.partition("ended with ")
        code, _, rest = second.partition("\n")
        told = fails_with(Ending(int(code), first), *words)
        if told or ending.code:
            return told or f"the next build ends with {ending.code}: {rest[-2000:]}"
        return differences(copy, clean.store)

    return strike


def lost_files(clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield files of a finished store that are lost or cut."""
    files = sorted(p.relative_to(clean.store) for p in clean.store.glob("*/*/*.*") if p.is_file())
    for _ in range(count):
        some = draw.sample(files, 3)
        is_cut = draw.random() < 0.5
        title = f"{'cut' if is_cut else 'lost'}: {', '.join(map(str, some))}"
        yield Trial(title, ENGINES[0], lose(some, is_cut=is_cut))


def lose(files: Sequence[Path], *, is_cut: bool) -> Strike:
    """Remove files of a finished store, or cut their last byte off."""

    def strike(site: Site, clean: Site) -> str | None:
        shutil.copytree(clean.store, site.store)
        for name in files:
            path = site.store / name
            if is_cut and path.stat().st_size:
                os.truncate(path, path.stat().st_size - 1)
            else:
                path.unlink()
        return builds_the_same(site, clean)

    return strike


def little_memory(_clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield limits of the address space of every process."""
    for _ in range(count):
        kilobytes, engine = draw.randint(1_000_000, 4_000_000), draw.choice(ENGINES)
        yield Trial(f"{kilobytes} kB", engine, limit_memory(kilobytes))


def limit_memory(kilobytes: int) -> Strike:
    """Build under a limit, as far as it goes."""

    def strike(site: Site, clean: Site) -> str | None:
        run(site, ("sh", "-c", f'ulimit -v {kilobytes}; exec "$@"', "sh", *BUILD))
        return builds_the_same(site, clean)

    return strike


def jump(site: Site, clean: Site) -> str | None:
    """Build with a clock that jumps by up to a day, over inputs from the future."""
    for path in site.folder.glob("input/*/*"):
        os.utime(path, (2**32, 2**32))
    ending = run(replace(site, python_path=str(CLOCK)))
    if ending.code:
        return f"the build ends with {ending.code}: {ending.tail}"
    return differences(site.store, clean.store)


def change_input(how: str) -> Strike:
    """Change an input while it is read, then bring it back."""

    def strike(site: Site, clean: Site) -> str | None:
        path = site.folder / "input/prose/b.jsonl"
        content = path.read_bytes()
        process = start(site)
        wait_for(site, process, "raw", 1)
        match how:
            case "vanishes":
                path.unlink()
            case "grows":
                path.write_bytes(content + b'{"text": "one more"}\n')
            case _:
                path.write_bytes(content[: len(content) // 2])
        finish(site, process)
        path.write_bytes(content)
        ending = run(site)
        if ending.code:
            return f"the next build ends with {ending.code}: {ending.tail}"
        if documents_of(site.store) != documents_of(clean.store):  # an older state may stay
            return "the newest manifests of raw name other files"
        return verified(site)

    return strike


def documents_of(store: Path) -> dict[str, str]:
    """Return the sha256 of every file that the newest manifests of `raw` name."""
    raw = [partition for partition in Store(store).partitions() if partition.stage == "raw"]
    manifests = [manifest for each in raw if (manifest := each.newest_manifest())]
    return {
        f"{manifest.partition}/{file.path}": file.sha256
        for manifest in manifests
        for part in manifest.parts
        for file in part.files
    }


def verified(site: Site) -> str | None:
    """Return what `corpus verify` finds."""
    ending = run(site, VERIFY)
    return ending.tail if ending.code else None


def meet_a_pipe(site: Site, clean: Site) -> str | None:
    """Build with a FIFO among the inputs, which would block its reader for ever."""
    os.mkfifo(site.folder / "input/prose/pipe.jsonl")
    ending = run(site)
    if "pipe.jsonl" not in ending.output:
        return f"nothing tells of pipe.jsonl: {ending.tail}"
    return differences(site.store / "raw", clean.store / "raw", "*.parquet")


def run_at_once(second: Sequence[str]) -> Strike:
    """Start another command over the same store while the build works."""

    def strike(site: Site, clean: Site) -> str | None:
        first = start(site)
        wait_for(site, first, "raw", 1)
        other = start(site, second)
        codes = [finish(site, first).code, finish(site, other).code]
        if any(codes):
            output = (site.folder / "output").read_text(errors="replace")
            return f"the commands end with {codes}: {output[-4000:]}"
        return differences(site.store, clean.store)

    return strike


def two_runs(_clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield a second command beside the build: another build, or a backfill."""
    for _ in range(count):
        title, command = draw.choice((("a build", BUILD), ("a backfill of raw", ONE_SOURCE)))
        yield Trial(f"{title} beside a build", draw.choice(ENGINES), run_at_once(command))


def changing_inputs(_clean: Site, count: int, draw: random.Random) -> Iterator[Trial]:
    """Yield inputs that change while they are read."""
    for _ in range(count):
        how = draw.choice(("vanishes", "grows", "is cut"))
        yield Trial(f"b.jsonl {how}", draw.choice(ENGINES), change_input(how))


def pipes(_clean: Site, _count: int, _draw: random.Random) -> Iterator[Trial]:
    """Yield a FIFO in place of a file."""
    yield Trial("", ENGINES[0], meet_a_pipe)


def clocks(_clean: Site, _count: int, _draw: random.Random) -> Iterator[Trial]:
    """Yield a clock that jumps."""
    yield Trial("", ENGINES[0], jump)


KINDS: dict[str, Callable[[Site, int, random.Random], Iterator[Trial]]] = {
    "kill": kills,
    "failing system call": failing_calls,
    "full disk": full_disks,
    "no inodes": few_inodes,
    "read-only store": read_only,
    "lost or cut files": lost_files,
    "memory limit": little_memory,
    "two runs at once": two_runs,
    "input changes": changing_inputs,
    "pipe among inputs": pipes,
    "clock jumps": clocks,
}
