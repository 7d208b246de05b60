"""What is imported is left out of garbage collection; all else is collected as before."""

import gc
from collections.abc import Iterator

import pytest

from pipeline_defs.lasting_imports import lasting_imports


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_made_inside_is_never_collected() -> None:
    gc.unfreeze()
    with lasting_imports():
        was_enabled = gc.isenabled()

    assert not was_enabled and gc.isenabled()
    assert gc.get_freeze_count() > 1000


def test_garbage_is_collected_again_after_an_error() -> None:
    with pytest.raises(ImportError), lasting_imports():
        raise ImportError

    assert gc.isenabled()
