"""examples/plug_ins, installed for a test as pip would install it."""

from __future__ import annotations

import shutil
import sys
import tomllib
from importlib import invalidate_caches
from pathlib import Path

from assets.raw.readers import formats
from resources.engine.ray_driver import code_digest
from resources.settings import plug_ins

EXAMPLES = Path(__file__).parents[1] / "examples/plug_ins"


def install(site: Path) -> Path:
    """Write the package into a folder of packages, which must be on Python's path; return it."""
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLES / "tokenmill_examples", site / "tokenmill_examples")
    about = site / f"tokenmill_examples-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [[f"[{group}]", *(f"{k} = {v}" for k, v in names.items())] for group, names in groups]
    (about / "entry_points.txt").write_text("\n".join(line for each in lines for line in each))
    return site


def forget() -> None:
    """Look at the installed packages again, as a new process does."""
    invalidate_caches()
    for name in [name for name in sys.modules if name.startswith("tokenmill_examples")]:
        del sys.modules[name]
    plug_ins.plug_ins.cache_clear()
    plug_ins.digest_of.cache_clear()
    formats.foreign_format.cache_clear()
    formats.foreign_endings.cache_clear()
    code_digest.cache_clear()
