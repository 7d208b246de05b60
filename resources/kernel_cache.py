"""Keep compiled kernels on disk, in a folder of their stage.

numba loads a compiled kernel from disk if the kernel's own file is unchanged: a change in another
file, of a function or constant that the kernel inlines, would go unnoticed. Here the folder's name
is a digest of all files that the kernels of a package may inline: those of the package itself and
of the packages that it `uses`. An edit in one stage therefore compiles that stage only, and
kernels may call across files. Values from anywhere else must come as arguments.

A package may have folders of kernels, one level deep.

The folder is in NUMBA_CACHE_DIR if that is set, else in `__pycache__` of the package or, where that
is read-only, in the user's cache folder. In `__pycache__` the last three versions are kept; a
process that still runs an older one compiles again and continues.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pkgutil
import shutil
import tempfile
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numba

from resources.store.disk import add_files

KEPT_VERSIONS = 3
NUMBA_LOCATORS = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,ZipCacheLocator"

_folders: dict[Path, Path] = {}  # package of kernels -> the folder of its compiled kernels


def keep_compiled(init_file: str, *, uses: Iterable[str] = ()) -> bool:
    """Keep the compiled kernels of the package of `init_file`; return whether there are none yet.

    Call it in the package's `__init__`. `uses` names the `__init__` files of packages whose
    functions these kernels inline. Raises OSError if no folder can be written to.
    """
    package = Path(init_file).parent
    digest = digest_of([package, *(Path(file).parent for file in uses)])
    folder = first_writable([place / f"numba-{digest}" for place in cache_places(package)])
    is_cold = not any(folder.iterdir())
    if is_cold:
        logging.getLogger("tokenmill").warning(
            "Compiling the kernels of %s (once per machine and version of the code) ...",
            package.parent.name,
        )
    remove_old_versions(package / "__pycache__", current=folder)
    _folders[package] = folder
    ours = f"{__name__}.{StageLocator.__name__}"
    locators = numba.config.CACHE_LOCATOR_CLASSES or NUMBA_LOCATORS
    if ours not in locators:
        numba.config.CACHE_LOCATOR_CLASSES = f"{ours},{locators}"
    return is_cold


class StageLocator:
    """Tell numba where the compiled kernels of a registered package are.

    See NUMBA_CACHE_LOCATOR_CLASSES in numba's documentation.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
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
        """Make the folder, if it was removed meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return the folder's name: it changes with every file that a kernel may inline."""
        return self.folder.name

    def get_disambiguator(self) -> str:
        """Return the function's line, which tells functions of one name apart."""
        return str(self.line)


def kernel_modules(package: str) -> list[str]:
    """Return the names of the modules of a package of kernels, of folders in it too."""
    return [m.name for m in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")]


def digest_of(folders: Iterable[Path]) -> str:
    """Return 16 hexadecimal digits that change with any Python file of the folders.

    Also of folders in them, but not in those: compiled kernels are many files.
    """
    digest = hashlib.sha256()
    for folder in folders:
        add_files(digest, folder, chain(folder.glob("*.py"), folder.glob("*/*.py")))
    return digest.hexdigest()[:16]


def cache_places(package: Path) -> list[Path]:
    """Return the folders in which compiled kernels may be kept, the preferred one first."""
    chosen = numba.config.CACHE_DIR
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    return [*([Path(chosen)] if chosen else []), package / "__pycache__", user]


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


def remove_old_versions(in_tree: Path, *, current: Path) -> None:
    """Remove folders of other versions, except the latest ones.

    Several processes may do so at once: numba takes a file that is gone for one never written.
    """
    others = [path for path in in_tree.glob("numba-*") if path != current]
    others.sort(key=changed_at, reverse=True)
    for path in others[KEPT_VERSIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def changed_at(path: Path) -> float:
    """Return a folder's time of change, 0 if another process has removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
