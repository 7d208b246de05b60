"""The engine on a cluster says what is missing before anything runs."""

from prelude import pytest, sys

from resources.engine.ray_driver import connect
from resources.engine.system_errors import SystemFault
from resources.settings.engine import EngineConfig


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as where the extra is not installed
    with pytest.raises(SystemFault, match=r"pip install 'tokenmill\[ray\]'"):
        connect(EngineConfig(kind="ray"))
