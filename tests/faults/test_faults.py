"""Faults, a sample by seed of what `make faults` tries: nothing is lost, everything is said."""

import random
import shutil
import subprocess

from faults.fault_kinds import KINDS, attempt
from faults.fault_runs import ENGINES, Site, make_site, run
from prelude import Iterator, Path, pytest

pytestmark = pytest.mark.slow

SEED = 12
SAMPLE = {  # a build takes 5 to 9 s, a trial two of them
    "kill": 1,
    "full disk": 1,
    "input changes": 1,
    "pipe among inputs": 1,
}
TOOLS = {"full disk": ("unshare", "-rm", "true")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store that was built without a fault."""
    site = make_site(tmp_path_factory.mktemp("faults") / "clean", ENGINES[0])
    assert run(site).code == 0
    yield site
    shutil.rmtree(site.folder)


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, n) for kind, count in SAMPLE.items() for n in range(count)]
)
def test_nothing_is_lost(kind: str, number: int, clean: Site, tmp_path: Path) -> None:
    tool = TOOLS.get(kind)
    if tool and (not shutil.which(tool[0]) or subprocess.run(tool).returncode):
        pytest.skip(f"{tool[0]} is missing, or may not work here")
    trial = list(KINDS[kind](clean, SAMPLE[kind], random.Random(SEED)))[number]

    assert attempt(trial, tmp_path / "trial", clean) is None, f"{trial.title} ({trial.engine})"
