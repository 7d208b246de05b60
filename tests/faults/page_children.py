"""`make faults`: disturb the processes that read HTML pages, and count what that did to the corpus.

PYTHONPATH=tests .venv/bin/python -m faults.page_children --disturbances 200

After each disturbed build the same command runs once more, and its store is compared with one that
was built without disturbance. As processes read on, a build meets up to MOST_IN_BUILD of them.
"""

import argparse
import random
import resource
import shutil
import signal
import subprocess
import tempfile

from builders import open_corpus, sentence, write_corpus
from faults.fault_runs import (
    BUILD,
    ENGINES,
    Site,
    descendants,
    differences,
    finish,
    make_site,
    nothing_left_running,
    run,
    start,
)
from faults.fault_table import write
from prelude import Callable, Counter, Path, os, sys, time

NUM_PAGES = 150
MOST_IN_BUILD = 10
COMMAND = (*BUILD, "--to", "raw")
MARK = b"html_child.py"
Strike = Callable[[subprocess.Popen[str], int], None]  # the command, a process that reads pages


def interrupt(command: subprocess.Popen[str], _child: int) -> None:
    """Press Ctrl-C: the terminal interrupts all processes of the command's group."""
    os.killpg(command.pid, signal.SIGINT)


def kill(_command: subprocess.Popen[str], child: int) -> None:
    """Kill a process, as the system does for want of memory."""
    os.kill(child, signal.SIGKILL)


def take_memory(_command: subprocess.Popen[str], child: int) -> None:
    """Leave a process no memory but what it has."""
    resource.prlimit(child, resource.RLIMIT_AS, (1 << 26, 1 << 26))


STRIKES: dict[str, Strike] = {"SIGINT": interrupt, "SIGKILL": kill, "memory": take_memory}


def page_site(folder: Path, engine: str) -> Site:
    """Write a corpus of pages: as files, and in a web archive."""
    site = make_site(folder, engine)
    paragraphs = "".join(f"<p>{sentence(number)}</p>" for number in range(200))
    pages = [f"<main><p>{sentence(n)}</p>{paragraphs}</main>" for n in range(NUM_PAGES)]
    for number, page in enumerate(pages):
        path = folder / f"input/pages/{number:03d}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(page)
    with (folder / "input/archive.warc").open("wb") as archive:
        for page in pages:
            body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}".encode()
            head = f"WARC-Type: response\r\nContent-Length: {len(body)}\r\n"
            mime = "Content-Type: application/http; msgtype=response\r\n"
            archive.write(b"WARC/1.0\r\n" + f"{head}{mime}\r\n".encode() + body + b"\r\n\r\n")
    write_corpus(
        folder,
        engine={"kind": engine, "workers": 2},
        part_bytes=200_000,
        sources=[
            {"name": "prose", "where": "input/pages/*.html"},
            {"name": "notes", "where": "input/archive.warc"},
        ],
    )
    return site


def readers_of_pages(command: subprocess.Popen[str]) -> list[int]:
    """Return the processes below a command that read pages."""
    found = []
    for pid in descendants(command.pid):
        try:
            is_reader = MARK in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if is_reader:
            found.append(pid)
    return found


def disturb(site: Site, strike: Strike, most: int, draw: random.Random) -> tuple[int, int]:
    """Build with up to so many disturbances; return their number, and the exit code."""
    command, num_done = start(site, COMMAND), 0
    while command.poll() is None and num_done < most:
        if readers := readers_of_pages(command):
            time.sleep(draw.uniform(0, 0.3))
            try:
                strike(command, draw.choice(readers))
            except ProcessLookupError:
                continue  # it had done its work
            num_done += 1
    return num_done, finish(site, command).code


def quarantined(site: Site) -> int:
    """Return the number of records in quarantine, in parts that no manifest names, too."""
    folders = site.store.glob("raw/*")
    corpus = open_corpus(site.config, site.store)
    partitions = [corpus.store.partition("raw", folder.name) for folder in folders]
    names = ((each, path.name) for each in partitions for path in each.records.glob("[!.]*.json"))
    records = (partition.read_record(name) for partition, name in names)
    return sum(record.stats.quarantined for record in records if record is not None)


def main() -> int:
    """Run builds until there were so many disturbances; the exit code is 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disturbances", type=int, default=200)
    options = parser.parse_args()
    folder, draw = Path(tempfile.mkdtemp(prefix="faults-")), random.Random(options.seed)
    clean = page_site(folder / "clean", ENGINES[0])
    assert run(clean, COMMAND).code == 0
    write(f"{'':<10}{'done':>8}{'builds':>8}{'failed':>8}{'in quarantine':>16}{'differing':>12}")
    is_lost = False
    for (name, strike), share in zip(STRIKES.items(), (0.1, 0.45, 0.45), strict=True):
        counts = Counter[str]()
        while counts["done"] < round(share * options.disturbances):
            most = min(MOST_IN_BUILD, round(share * options.disturbances) - counts["done"])
            site = page_site(folder / f"{name}-{counts['builds']}", draw.choice(ENGINES))
            counts += try_one(site, clean, strike, 1 if strike is interrupt else most, draw)
        is_lost |= counts["in quarantine"] > 0 or counts["differing"] > 0
        columns = (8, 8, 8, 16, 12)
        names = ("done", "builds", "failed", "in quarantine", "differing")
        row = (f"{counts[each]:>{width}}" for each, width in zip(names, columns, strict=True))
        write(f"{name:<10}{''.join(row)}")
    return int(is_lost)


def try_one(
    site: Site, clean: Site, strike: Strike, most: int, draw: random.Random
) -> Counter[str]:
    """Disturb a build, finish it, and count what happened."""
    with nothing_left_running(site):
        num_done, code = disturb(site, strike, most, draw)
        num_bad = quarantined(site)
        again = run(site, COMMAND)
        lost = again.tail if again.code else differences(site.store, clean.store)
    num_bad = max(num_bad, quarantined(site))
    if lost or num_bad:
        write(f"{site.folder} ({site.engine}): {num_bad} in quarantine; {lost}")
    else:
        shutil.rmtree(site.folder)
    counts = {"done": num_done, "builds": 1, "failed": code != 0, "in quarantine": num_bad}
    return Counter(counts | {"differing": lost is not None})


if __name__ == "__main__":
    sys.exit(main())
