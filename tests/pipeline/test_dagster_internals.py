"""Private modules of Dagster are used in one place, which was read for the installed version."""

import dagster as dg
from prelude import Path, re

from pipeline_defs.dagster_internals import CHECKED_VERSION

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("pipeline_defs", "assets", "resources", "corpus_loader")


def test_the_internals_were_checked_for_this_version_of_dagster() -> None:
    assert dg.__version__ == CHECKED_VERSION, (
        f"Dagster {dg.__version__} is installed. Read each use in pipeline_defs/"
        "dagster_internals.py, run the tests of `corpus build` and `corpus ui`, and set "
        "CHECKED_VERSION."
    )


def test_one_module_uses_private_modules_of_dagster() -> None:
    private = re.compile(r"\bdagster(_\w+)?\._\w+")
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    users = {path.name for path in files if private.search(path.read_text())}

    assert users == {"dagster_internals.py"}
