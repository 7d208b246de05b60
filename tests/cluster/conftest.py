"""Ray's folder, which the clusters of these tests share."""

import shutil
import tempfile

from prelude import Iterator, Path, pytest


@pytest.fixture(scope="module")
def ray_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for Ray; its logs stay in pytest's temporary folder, in ray_logs of the module."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets need a short path
    yield folder
    kept = tmp_path_factory.mktemp("ray_logs")
    for logs in [*folder.glob("*.log"), *folder.glob("session_2*/logs")]:
        shutil.move(logs, kept / "-".join(logs.relative_to(folder).parts))
    shutil.rmtree(folder, ignore_errors=True)
