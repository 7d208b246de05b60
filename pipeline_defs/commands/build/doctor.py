"""`corpus doctor`: what goes wrong on other people's machines, looked for before a build meets it.

What can be tried is tried: files are written, linked and locked where the store will be, and every
remote place is asked once. Nothing of it is left behind. The checks run at the same time and have
WAIT_SECONDS: a dead network disk is one of the things to be found.
"""

from __future__ import annotations

import email.utils
import os
import platform
import socket
import sys
import tempfile
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assets.raw.places.hub_files import HUB_URL, MAIN, find_commit, hub_token
from assets.raw.places.object_files import bucket_at, url_pattern
from assets.stages import BY_NAME
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.object_stores import open_objects
from corpus_loader.places.url_secrets import masked, shown
from corpus_loader.places.urls import Url
from pipeline_defs.commands.build.checks import (
    Check,
    Finding,
    Remark,
    brief_retries,
    run_checks,
)
from pipeline_defs.commands.build.config import SCHEMA, schema_text
from pipeline_defs.commands.build.first_look import check_source, first_byte
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import HOME_VARIABLE, dagster_home, refuse_other_store
from resources.engine.cost import cpu_limit, memory_bytes
from resources.engine.system_errors import WAYS, SystemFault, explain, nearest, other_folders
from resources.runs.run_lock import close, try_take
from resources.settings.engine import EngineConfig
from resources.settings.pipeline import config_path
from resources.settings.sources import InputPlaces
from resources.store.disk import TEMPORARY_PREFIX, sync_all, sync_file, write_temporary
from resources.store.scratch import scratch_of

WORKER_BYTES = 1_200_000_000  # at most, of a worker process with parts of 64 MiB
LOW_BYTES = {"store": 5e9, "temporary files": 1e9, "shared memory": 8e6, "records": 2e8}
LOW_INODES = 20_000
SKEW_SECONDS, REFUSED_SECONDS = 60.0, 900.0  # object stores refuse requests that are older
NETWORK_DISKS = ("nfs", "cifs", "smb", "9p", "fuse", "lustre", "gpfs", "ceph", "beegfs")
OTHER_DISK = "Put `store` on a local disk such as ext4 or XFS, or on an object store."
ASKED = ("http://", "https://", "hf://", "s3://", "gs://", "az://")
KEYS = {  # of the environment, where clients take credentials from
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    "gs": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"),
    "az": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID"),
}


def doctor(
    *,
    port: Annotated[int, Parameter(help="Port of the web UI that is to be free.")] = 3000,
    json: Json = False,
) -> int:
    """Check this machine, the store and remote places; the exit code is 1 with a fault."""
    os.environ[HOME_VARIABLE] = str(dagster_home().absolute())  # as every build does
    found: list[Corpus] = []
    findings = run_checks({"pipeline.yaml": partial(read_config, found)})
    corpus = found[0] if found else None
    with brief_retries():
        findings += run_checks(
            machine_checks(corpus, port) | (store_checks(corpus) if corpus else {})
        )
        findings += run_checks(source_checks(corpus, findings) if corpus else {})
    if json:
        print_json(findings)
    else:
        say(*(f"{each.state:<8} {each.check}: {each.text}" for each in findings))
    return int(any(each.state == "fault" for each in findings))


def read_config(found: list[Corpus]) -> str:
    """Load the corpus of pipeline.yaml, which is added to `found`."""
    path = config_path()
    if not path.exists():
        raise Remark(
            f"none at {path}, so no store and no remote place is looked at. Run `corpus init`, or "
            "name another: --config PATH."
        )
    found.append(load_corpus())
    schema = path.with_name(SCHEMA)
    if schema.exists() and schema.read_text("utf-8", "replace") != schema_text():
        raise Remark(f"{schema} is of another version. Run: corpus config --schema > {schema}")
    return str(path)


def machine_checks(corpus: Corpus | None, port: int) -> dict[str, Check]:
    """Return the checks that need no config; the working folder stands for an unknown store."""
    workers = (corpus.settings.engine if corpus else EngineConfig()).num_workers()
    root = corpus.store.root if corpus else Path.cwd()
    folders = zip(WAYS, (root, *other_folders()), strict=True)
    return {
        "python": python,
        "cores": partial(cores, workers),
        "memory": partial(memory, workers),
        **{f"room for {kind}": partial(room, kind, folder) for kind, folder in folders},
        "file system": partial(file_system, nearest(str(root))),
        "clock": partial(clock, nearest(str(root))),
        HOME_VARIABLE: partial(records, corpus),
        "port": partial(port_free, port),
        "proxy": proxy,
    }


def python() -> str:
    """Name the versions; only Linux has what a build needs."""
    fact = f"{platform.python_version()} at {sys.executable}, tokenmill {version('tokenmill')}"
    if sys.platform != "linux":
        raise SystemFault(f"{fact}, on {platform.system()}. Use Linux, or a container of it.")
    return fact


def cores(workers: int) -> str:
    """Compare the workers with the cores whose time they may use."""
    own, limit = len(os.sched_getaffinity(0)), cpu_limit()
    usable = own if limit is None else min(own, max(1, int(limit)))
    fact = f"{own}{f', and the time of {limit:g}' if limit else ''}; {workers} workers"
    if workers > usable:
        raise Remark(f"{fact}. Set `engine.workers: {usable}`.")
    return fact


def memory(workers: int) -> str:
    """Compare the memory that may be used with what the workers may need."""
    total, needed = memory_bytes(), workers * WORKER_BYTES
    fact = f"{total / 1e9:.1f} GB; {workers} workers may need {needed / 1e9:.1f} GB"
    if total < needed:
        usable = max(1, total // WORKER_BYTES)
        raise Remark(f"{fact}. Set `engine.workers: {usable}`, or a smaller `part_bytes`.")
    return fact


def room(kind: str, folder: Path) -> str:
    """Write to a folder, or where it will be made, and look at what is left of its disk."""
    place = nearest(str(folder))
    try:
        with tempfile.TemporaryFile(dir=place, prefix=TEMPORARY_PREFIX) as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        fact, remedy = explain(error, error.errno or 0, folder)
        raise SystemFault(f"{fact}. {remedy}.") from None
    disk = os.statvfs(place)
    free, inodes = disk.f_bavail * disk.f_frsize, disk.f_favail if disk.f_files else None
    few = "" if inodes is None else f" and {inodes:,} inodes"
    fact = f"{free / 1e9:,.2f} GB{few} are free in {folder}"
    if free < LOW_BYTES[kind] or (inodes is not None and inodes < LOW_INODES):
        raise Remark(f"{fact}. Make room{WAYS[kind]}; `corpus estimate` says what a build takes.")
    return fact


def file_system(place: Path) -> str:
    """Do what a store does with a disk, in a temporary folder on it."""
    fact = f"{place} ({disk_type(place)})"
    with tempfile.TemporaryDirectory(dir=place, prefix=TEMPORARY_PREFIX) as name:
        target, lock = Path(name, "target"), Path(name, "lock")
        target.write_bytes(b"")
        try:
            step = "rename"
            os.replace(write_temporary(target.parent, "new", b""), target)
            step = "hard links"
            os.link(target, target.with_name("link"))
            step = "locks"
            held = [each for each in (try_take(lock), try_take(lock)) if each is not None]
            for descriptor in held:
                close(descriptor)
            step = "fsync"
            sync_file(target)
            sync_all(target.parent)
        except OSError as error:
            raise SystemFault(f"{fact} refuses {step} ({error.strerror}). {OTHER_DISK}") from None
    if len(held) > 1:
        raise SystemFault(f"{fact} gives one lock to two. {OTHER_DISK}")
    if disk_type(place).startswith(NETWORK_DISKS):
        raise Remark(f"{fact} may lock for one machine only. Build on one, or use an object store.")
    return f"{fact} has rename, hard links, locks and fsync"


def disk_type(place: Path) -> str:
    """Return the type of the file system of a path, as the system names it."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    over = (each for each in enumerate(mounts) if place.resolve().is_relative_to(each[1][0]))
    return max(((len(at), n, kind) for n, (at, kind) in over), default=(0, 0, "unknown"))[2]


def clock(place: Path) -> str:
    """Compare the clock with that of the store's disk, which may be another machine's."""
    with tempfile.NamedTemporaryFile(dir=place, prefix=TEMPORARY_PREFIX) as file:
        now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        return with_skew(f"{now}, beside the disk of {place}", os.fstat(file.fileno()).st_mtime)


def with_skew(fact: str, their_time: float) -> str:
    """Return a fact unless another clock differs; those of answers have whole seconds."""
    late = their_time - time.time()
    if abs(late) < SKEW_SECONDS:
        return f"{fact}; clocks differ by {abs(late):.0f} s"
    text = f"{fact}; its clock differs by {late:+,.0f} s. Set the clock of this machine."
    raise Remark(text) if abs(late) < REFUSED_SECONDS else SystemFault(text)


def records(corpus: Corpus | None) -> str:
    """Check that Dagster's records are of this store, on a disk that can lock them."""
    home = dagster_home()
    if corpus is not None:
        refuse_other_store(corpus.store.root)
    if (disk := disk_type(nearest(str(home)))).startswith(NETWORK_DISKS):
        raise Remark(f"{home} is on {disk}, and SQLite needs locks. Name a folder of a local disk.")
    return f"{home}{'' if home.exists() else ', which will be made'}"


def port_free(port: int) -> str:
    """Look whether the web UI could listen."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise Remark(f"{port} is taken ({error.strerror}). Use: corpus ui --port 0") from None
    return f"{port} is free for `corpus ui`"


def proxy() -> str:
    """Name the proxies of the environment; Dagster's processes talk to each other on localhost."""
    proxies = urllib.request.getproxies_environment()
    used = [f"{name} by {masked(url)}" for name, url in sorted(proxies.items()) if name != "no"]
    if used and not urllib.request.proxy_bypass_environment("localhost"):  # type: ignore[attr-defined]
        raise Remark(f"{', '.join(used)}, for localhost too. Set no_proxy=localhost,127.0.0.1")
    return ", ".join(used) or "none in the environment"


def store_checks(corpus: Corpus) -> dict[str, Check]:
    """Return the checks of the store, and of buckets, hosts and repositories of the input."""
    checks: dict[str, Check] = {"versions": partial(store_versions, corpus)}
    if scratch := scratch_of(corpus.store.root):
        checks[scratch.remote.url] = partial(ask_store, scratch.remote.url)
    for _, places in corpus.settings.inputs():
        for place in asked_places(places):
            checks.setdefault(root_of(place), partial(ask_for, places.name, place, places))
    return checks


def asked_places(places: InputPlaces) -> Iterator[Url]:
    """Yield the places of an input that can be asked; for a crawl, the server of its files."""
    for where in places.where:
        place = Url(places.base_url) if where.kind == "crawl" else where
        if place.lower().startswith(ASKED):
            yield place


def source_checks(corpus: Corpus, findings: Sequence[Finding]) -> dict[str, Check]:
    """Return a check of each source's files and first records, if its places have answered."""
    faulty = {each.check for each in findings if each.state == "fault"}
    return {
        f"source {source.name}": partial(check_source, corpus, source)
        for source in corpus.settings.sources
        if not source.is_stream and faulty.isdisjoint(map(root_of, asked_places(source)))
    }


def store_versions(corpus: Corpus) -> str:
    """Compare the code that made the store's newest states with that which is here."""
    partitions, others = list(corpus.store.partitions()), Counter[str]()
    for partition in partitions:
        stage, newest = BY_NAME.get(partition.stage), partition.newest_manifest()
        if newest is not None and (stage is None or stage.code_version != newest.code_version):
            others[partition.stage] += 1
    if others:
        raise Remark(
            f"other versions of the code made {', '.join(others)}. The next build computes them "
            "again: `corpus build --dry-run` says what it takes."
        )
    return f"{len(partitions)} partitions, all of this version of the code"


def ask_store(url: str) -> str:
    """Write a new object, which a second PUT must not replace; list and delete it."""
    objects, folder = open_objects(url), ".doctor"
    key = f"{folder}/{uuid.uuid4().hex}"
    with credentials_told(url):
        objects.create(key, b"first")
    try:
        is_replaced = objects.create(key, b"second")
        times = [info.modified for info in objects.list_objects(folder) if info.key == key]
    finally:
        objects.delete(key)
    if is_replaced or not times:
        fact = "a second PUT replaced a new key" if is_replaced else "a new key is not listed"
        raise SystemFault(f"{fact}. Use a store with `If-None-Match: *` and current listings.")
    return with_skew("written, listed, deleted", times[0].timestamp())


def root_of(place: Url) -> str:
    """Return the URL of the bucket, host or repository that a place is of."""
    return "/".join(shown(place).split("/")[: 5 if place.kind == "hub" else 3])


def ask_for(name: str, place: Url, places: InputPlaces) -> str:
    """Send a request to a remote place of the input; a fault has the name of a source."""
    try:
        return ask(place, places)
    except Remark:
        raise
    except Exception as error:
        raise CorpusError(f"source {name!r}: {error}") from error


def ask(place: Url, places: InputPlaces) -> str:
    """Send a request to a remote place of the input."""
    if place.kind == "web":
        return ask_web(place)
    if place.kind == "hub":
        found = HUB_URL.fullmatch(place)
        commit = find_commit(found["repository"] if found else place, places.revision or MAIN)
        return f"commit {commit.sha[:12]}, with{'' if hub_token() else 'out'} a token"
    pattern = url_pattern(place)
    with credentials_told(place):
        first = next(bucket_at(pattern.root).each_object(pattern.start), None)
    return f"lists {first.key if first else 'nothing'}"


def ask_web(url: str) -> str:
    """Ask for the first byte of a file."""
    with first_byte(url) as answer:
        date, fact = answer.headers.get("Date"), f"HTTP {answer.status}"
    return with_skew(fact, email.utils.parsedate_to_datetime(date).timestamp()) if date else fact


@contextmanager
def credentials_told(url: str) -> Iterator[None]:
    """Add to an object store's error which credentials are set."""
    try:
        yield
    except CorpusError as error:
        scheme, file = url.partition(":")[0], Path("~/.aws/credentials").expanduser()
        names = [name for name in KEYS.get(scheme, ()) if os.environ.get(name)]
        text = f"Credentials: {', '.join(names) or 'none in the environment'}"
        if scheme == "s3" and not names and file.exists():
            text += f"; {file} is not read: aws configure export-credentials --format env"
        raise CorpusError(f"{error} {text}.") from None
