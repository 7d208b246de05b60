"""numba kernels, cached on disk by the content of the whole package.

numba takes a compiled kernel from disk if the kernel's own file has not changed: a change in
another file, of a function or constant the kernel uses, would go unnoticed. Here the cache folder
is named by a digest of all files of this package, so any change compiles all kernels anew (1 to 2
minutes of CPU, once per machine), and kernels may call across files. They must not use values from
outside this package but as arguments.
The folder is in NUMBA_CACHE_DIR if that is set, else in `__pycache__` here or, where that is
read-only, in the user's cache folder. It is set in numba's configuration of this process, so that
kernels of others which are imported later are cached there too. In `__pycache__` the folders of
the last three versions are kept; a process that still runs an older one compiles again and goes on.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numba
from numba.misc.appdirs import AppDirs

_HERE = Path(__file__).parent
_IN_TREE = _HERE / "__pycache__"
_KEPT_VERSIONS = 3


def _digest_of(folder: Path) -> str:
    """Return 16 hexadecimal digits that change with any Python file of the folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _first_writable(folders: Iterable[Path]) -> Path:
    """Return the first folder that can be made and written to; OSError: none can."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    raise OSError(f"no folder to keep compiled kernels in: tried {folders}. Set NUMBA_CACHE_DIR.")


def _cache_folder() -> Path:
    own = AppDirs(appname="numba", appauthor=False).user_cache_dir
    chosen = [numba.config.CACHE_DIR] if numba.config.CACHE_DIR else []
    places = [Path(place) for place in (*chosen, _IN_TREE, own)]
    return _first_writable([place / f"numba-{_digest_of(_HERE)}" for place in places])


def _remove_old_versions(current: Path) -> None:
    """Remove folders of other versions from `__pycache__`, but for the latest ones.

    Several processes may do so at once: numba takes a file that is gone for one never written.
    """
    others = [path for path in _IN_TREE.glob("numba-*") if path != current]
    others.sort(key=_changed_at, reverse=True)
    for path in others[_KEPT_VERSIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed by another process
        return 0.0


_folder = _cache_folder()
_remove_old_versions(_folder)
numba.config.CACHE_DIR = str(_folder)
