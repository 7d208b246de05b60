"""Keep compiled kernels on disk, in a folder per package of kernels and version of its code.

numba loads a compiled kernel from disk if the kernel's own file is unchanged: a change in another
file, of a function or constant that the kernel inlines, would go unnoticed. Here the folder's name
is a digest of all files that the kernels of a package may inline: those of the package itself and
of the packages that it `uses`. An edit in one stage therefore compiles that stage only, and
kernels may call across files. Values from anywhere else must come as arguments.

A package may have folders of kernels, one level deep.

The folders are in NUMBA_CACHE_DIR if that is set, else in the user's cache, which all checkouts and
installations share: $XDG_CACHE_HOME/tokenmill/kernels, or ~/.cache/tokenmill/kernels. Where that is
read-only, they are in `__pycache__` of the package. The versions of a package that were used last
are kept; a process that still runs an older one compiles again and continues.

numba believes what it finds in a file. So each has its digest beside it, and one that is not what
was written (after a power cut many are empty) is removed before numba sees it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pkgutil
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numba
import xxhash
from numba.core import event
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from resources.store.disk import add_files

KEPT_VERSIONS = 8  # of a package; 5 MB each
COMPILE, LOCK = "numba:compile", "numba:compiler_lock"  # events of numba
NUMBA_LOCATORS = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,ZipCacheLocator"

_folders: dict[Path, Path] = {}  # package of kernels -> the folder of its compiled kernels
_written = threading.local()  # .locators: of kernels that this thread is about to write


def keep_compiled(init_file: str, *, uses: Iterable[str] = ()) -> None:
    """Keep the compiled kernels of the package of `init_file`.

    Call it in the package's `__init__`. `uses` names the `__init__` files of packages whose
    functions these kernels inline. Raises OSError if no folder can be written to.
    """
    package = Path(init_file).parent
    digest = digest_of([package, *(Path(file).parent for file in uses)])
    name = f"{package.parent.name}-{digest}"
    folder = first_writable([place / name for place in cache_places(package)])
    if damaged := remove_damaged(folder):
        logging.getLogger("tokenmill").error(
            "Compiling kernels of %s again: %d files in %s do not match their digests.",
            *(package.parent.name, damaged, folder),
        )
    elif not any(folder.iterdir()):
        logging.getLogger("tokenmill").warning(
            "Compiling the kernels of %s (once per machine and version of the code) ...",
            package.parent.name,
        )
    os.utime(folder)  # it is in use: older ones are removed first
    remove_old_versions(folder)
    _folders[package] = folder
    ours = f"{__name__}.{StageLocator.__name__}"
    locators = numba.config.CACHE_LOCATOR_CLASSES or NUMBA_LOCATORS
    if ours not in locators:
        numba.config.CACHE_LOCATOR_CLASSES = f"{ours},{locators}"
        listen_to_numba()


class StageLocator:
    """Tell numba where the compiled kernels of a registered package are.

    See NUMBA_CACHE_LOCATOR_CLASSES in numba's documentation.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self.name = function.__name__.strip("<>")
        self.line = function.__code__.co_firstlineno
        self.folder = folder

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        """Return a locator for a function of a registered package, else None."""
        packages = (package for package in Path(py_file).parents if package in _folders)
        return next((cls(py_func, _folders[package]) for package in packages), None)

    def get_cache_path(self) -> str:
        """Return the folder of the compiled kernels."""
        return str(self.folder)

    def ensure_cache_path(self) -> None:
        """Make the folder, if it was removed meanwhile: numba is about to write into it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _written.__dict__.setdefault("locators", []).append(self)

    def write_digests(self) -> None:
        """Write a digest beside each file of the kernel."""
        for path in self.folder.glob(f"*.{self.name}-{self.line}.py*.nb[ic]"):
            digest_file(path).write_text(digest_of_file(path))

    def get_source_stamp(self) -> str:
        """Return the folder's name: it changes with every file that a kernel may inline."""
        return self.folder.name

    def get_disambiguator(self) -> str:
        """Return the function's line, which tells functions of one name apart."""
        return str(self.line)


class CompilerListener(event.Listener):  # type: ignore[misc]
    """Make numba ready to compile when it begins to, and write digests when it has compiled."""

    def on_start(self, event: event.Event) -> None:
        """Let numba be ready to compile; the event follows a kernel that is not on disk."""
        if event.kind == COMPILE and vars(cpu_target.target_context).pop("refresh", None):
            cpu_target.target_context.refresh()

    def on_end(self, event: event.Event) -> None:
        """Write the digests of what the thread wrote, which lets go of numba's lock."""
        for locator in _written.__dict__.pop("locators", ()) if event.kind == LOCK else ():
            with suppress(OSError):  # removed by another process, or no space: compiled again
                locator.write_digests()


def listen_to_numba() -> None:
    """Listen to numba's compiler, and spare processes that only load kernels what it needs.

    numba makes itself ready to compile before it loads a kernel, too: 0.9 CPU s in each process,
    nearly all of it imports. What a loaded kernel needs is the memory of arrays.
    """
    cpu_target.target_context.refresh = partial(rtsys.initialize, cpu_target.target_context)
    for kind in (COMPILE, LOCK):
        event.register(kind, CompilerListener())


def digest_file(path: Path) -> Path:
    """Return where the digest of a compiled file is."""
    return path.with_name(f"{path.name}.xxh3")


def digest_of_file(path: Path) -> str:
    """Return the xxh3_128 of a compiled file in hex; small as they are, read at once."""
    return xxhash.xxh3_128_hexdigest(path.read_bytes())


def remove_damaged(folder: Path) -> int:
    """Remove compiled files that do not match their digests; return their number.

    Then the marks go, too, that say what is compiled already: they are the files without a suffix.
    """
    damaged = [path for path in folder.glob("*.nb[ic]") if not is_whole(path)]
    for path in [*damaged, *(path for path in folder.iterdir() if damaged and not path.suffix)]:
        path.unlink(missing_ok=True)
    return len(damaged)


def is_whole(path: Path) -> bool:
    """Return whether a compiled file is what was written."""
    try:
        return digest_file(path).read_text() == digest_of_file(path)
    except (OSError, UnicodeDecodeError):
        return False


def kernel_modules(package: str) -> list[str]:
    """Return the names of the modules of a package of kernels, of folders in it too."""
    return [m.name for m in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")]


def digest_of(folders: Iterable[Path]) -> str:
    """Return 16 hexadecimal digits that change with any Python file of the folders.

    Also of folders in them, but not in those: compiled kernels are many files.
    """
    digest = hashlib.sha256(f"{numba.__version__}, with digests".encode())
    for folder in folders:
        add_files(digest, folder, chain(folder.glob("*.py"), folder.glob("*/*.py")))
    return digest.hexdigest()[:16]


def cache_places(package: Path) -> list[Path]:
    """Return the folders in which compiled kernels may be kept, the preferred one first."""
    chosen = numba.config.CACHE_DIR
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    user = [cache / "tokenmill/kernels"] if cache.is_absolute() else []  # no home: it stays "~"
    return [*([Path(chosen)] if chosen else []), *user, package / "__pycache__"]


def folder_of(package: str) -> Path:
    """Return the folder of the compiled kernels of a package."""
    return _folders[Path(str(import_module(package).__file__)).parent]


def fallback_line(package: str) -> str | None:
    """Say where compiled kernels are kept, if it is not where they should be."""
    folder = folder_of(package)
    preferred = cache_places(Path(str(import_module(package).__file__)).parent)[0]
    if folder.parent == preferred:
        return None
    return (
        f"Compiled kernels are kept in {folder.parent}, since {preferred} cannot be written to: "
        "set NUMBA_CACHE_DIR to a folder that can."
    )


@contextmanager
def compiling_alone(package: str) -> Iterator[None]:
    """Wait until no other process compiles kernels that are kept where those of a package are."""
    with open(folder_of(package).parent / "compiling.lock", "a") as lock:
        with suppress(OSError):  # a file system without locks: both compile
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def num_compiled(package: str) -> int:
    """Return the number of kernels of a package that are compiled by now."""
    return sum(1 for _ in folder_of(package).glob("*.nbi"))


def num_kernels(package: str) -> int:
    """Return the number of kernels that a package defines."""
    folder = Path(str(import_module(package).__file__)).parent
    return sum(path.read_text("utf-8").count("\n@njit(") for path in folder.rglob("*.py"))


def first_writable(folders: Iterable[Path]) -> Path:
    """Return the first folder that can be made and written to; OSError if none can."""
    tried = list(folders)
    for folder in tried:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    raise OSError(f"No folder to keep compiled kernels in: tried {tried}. Set NUMBA_CACHE_DIR.")


def remove_old_versions(current: Path) -> None:
    """Remove folders of other versions of a package, except those that were used last.

    Several processes may do so at once: numba takes a file that is gone for one never written.
    """
    prefix = current.name.rpartition("-")[0]
    others = [path for path in current.parent.glob(f"{prefix}-*") if path != current]
    others.sort(key=changed_at, reverse=True)
    for path in others[KEPT_VERSIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def changed_at(path: Path) -> float:
    """Return a folder's time of change, 0 if another process has removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
