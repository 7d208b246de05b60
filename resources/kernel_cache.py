"""Keep compiled kernels on disk, in a folder of their stage.

numba loads a compiled kernel from disk if the kernel's own file is unchanged: a change in another
file, of a function or constant that the kernel inlines, would go unnoticed. Here the folder's name
is a digest of all files that the kernels of a package may inline: those of the package itself and
of the packages that it `uses`. An edit in one stage therefore compiles that stage only, and
kernels may call across files. Values from anywhere else must come as arguments.

What loads kernels pays for no more than that, in every process: numba would make itself ready to
compile, and import SciPy, which it needs for linear algebra in kernels. Both took 0.5 s of CPU, and
coverage, which it imports where that is installed, 0.1 s.

A package may have folders of kernels, one level deep.

The folder is in NUMBA_CACHE_DIR if that is set, else in `__pycache__` of the package or, where that
is read-only, in the user's cache folder. In `__pycache__` the last three versions are kept; a
process that still runs an older one compiles again and continues.
"""

from __future__ import annotations

import hashlib
import logging
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any, Self

from resources.hidden_module import hidden

with hidden("scipy"), hidden("coverage"):
    import numba
    import numba.np.arraymath  # the other one that looks for it
    from llvmlite import binding as llvm
    from numba.core.caching import FunctionCache, _CacheLocator
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys
    from numba.misc.appdirs import AppDirs

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
    if ours not in (numba.config.CACHE_LOCATOR_CLASSES or ""):
        numba.config.CACHE_LOCATOR_CLASSES = (
            f"{ours},{numba.config.CACHE_LOCATOR_CLASSES or NUMBA_LOCATORS}"
        )
    return is_cold


class StageLocator(_CacheLocator):  # type: ignore[misc]
    """Tell numba where the compiled kernels of a registered package are; see numba's
    NUMBA_CACHE_LOCATOR_CLASSES."""

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

    def get_source_stamp(self) -> str:
        """Return the folder's name: it changes with every file that a kernel may inline."""
        return self.folder.name

    def get_disambiguator(self) -> str:
        """Return the function's line, which tells functions of one name apart."""
        return str(self.line)


def load_overload(cache: FunctionCache, signature: Any, context: Any) -> Any:
    """Load a compiled kernel; numba refreshes its context itself before it compiles one."""
    rtsys.initialize(context)  # the memory of arrays
    return cache._load_overload(signature, context)


FunctionCache.load_overload = load_overload


class LoadedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A compiled kernel from disk, whose bitcode is parsed if another kernel inlines it.

    numba parses it at once, to list the symbols that it defines: most of what loading a kernel
    took.
    """

    bitcode = b""
    _shared_module: Any  # what other kernels inline

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Self:
        name, _, (machine_code, bitcode) = state
        library: Self = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        library.bitcode = bitcode
        return library

    def _get_module_for_linking(self) -> Any:
        if self.bitcode and self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self.bitcode)
        return super()._get_module_for_linking()

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, 0 if there is none."""
        if self.bitcode:
            return int(self._codegen._engine.get_function_address(name))
        return int(super().get_pointer_to_function(name))


JITCPUCodegen._library_class = LoadedLibrary


def load_compiled(package: str) -> Iterator[int]:
    """Load what is compiled of a package of kernels, without a call.

    Yields after each module, which takes 10 ms, the number of kernels loaded. numba otherwise loads
    a kernel at its first call: for all stages that is 0.4 s of CPU in every process. The cache
    lists the argument types that each kernel has been compiled for; one that is written with its
    types is loaded when it is imported.
    """
    modules = []
    for name in kernel_modules(package):
        modules.append(import_module(name))
        yield 0
    named = names_in_python(package.partition(".")[0])
    for module in modules:
        kernels = [k for k in vars(module).values() if isinstance(k, CPUDispatcher)]
        called = [k for k in kernels if k.__name__ in named and k._can_compile]
        yield sum(load_kernel(k) for k in called if isinstance(k._cache, FunctionCache))


def kernel_modules(package: str) -> list[str]:
    """Return the names of the modules of a package of kernels, of folders in it too."""
    return [m.name for m in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")]


def names_in_python(root: str) -> set[str]:
    """Return the names that functions use in the imported modules below a package.

    A kernel without its name among them is called by kernels only, and is part of those on disk: to
    load all took three times as long.
    """
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] == root]
    values = chain.from_iterable(vars(module).values() for module in modules)
    functions = (value for value in values if isinstance(value, FunctionType))
    return set(chain.from_iterable(function.__code__.co_names for function in functions))


def load_kernel(kernel: CPUDispatcher) -> int:
    """Load what is compiled of a kernel for this CPU, return the number of signatures."""
    signatures = [
        key[0]
        for key in kernel._cache._cache_file._load_index()
        if key == kernel._cache._index_key(key[0], kernel.targetctx.codegen())
    ]
    for signature in signatures:
        kernel.compile(signature)  # nothing to do where it is loaded already
    return len(signatures)


def digest_of(folders: Iterable[Path]) -> str:
    """Return 16 hexadecimal digits that change with any Python file of the folders.

    Also of folders in them, but not in those: compiled kernels are many files.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(chain(folder.glob("*.py"), folder.glob("*/*.py"))):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def cache_places(package: Path) -> list[Path]:
    """Return the folders in which compiled kernels may be kept, the preferred one first."""
    user = AppDirs(appname="numba", appauthor=False).user_cache_dir
    chosen = [numba.config.CACHE_DIR] if numba.config.CACHE_DIR else []
    return [Path(place) for place in (*chosen, package / "__pycache__", user)]


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
