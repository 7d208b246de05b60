"""The commands that contributors know: make's targets, hooks, workflow, installation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import markers
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / ".ci"))

from install import pip_settings, uv_environment  # noqa: E402

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.M)


def test_help_has_a_line_for_every_target() -> None:
    explained = re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.M)
    phony = re.search(r"^\.PHONY: (.*)", MAKEFILE, re.M)
    assert phony and set(phony[1].split()) == set(explained) == set(TARGETS)


def test_the_workflow_runs_what_runs_everywhere() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert {str(s["with"]["python-version"]) for s in steps if "with" in s} == {"3.11"}
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions and all(re.fullmatch(r"\S+@[0-9a-f]{40}", action) for action in actions)

    targets = re.findall(r"\bmake (?:VENV=\S+ )?([a-z-]+)", (ROOT / ".ci/run").read_text())
    assert (
        {"corpus", "check", "test-peers", "servers", "cluster"}
        <= set(targets)
        <= set(TARGETS) | {"python"}
    )


def test_hooks_are_the_commands_of_make() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        command = hook["entry"].replace(".venv/bin", "$(BIN)")
        arguments = "" if hook.get("pass_filenames") is False else r" \."
        assert re.search(rf"^\t{re.escape(command)}{arguments}$", MAKEFILE, re.M), command
        assert hook["language"] in ("system", "unsupported")


def test_locks_have_hashes_and_name_no_registry() -> None:
    for lock in sorted(ROOT.glob("requirements*.lock")):
        text = lock.read_text()
        pins = re.findall(r"^\S+==\S+", text, re.M)
        assert pins and len(re.findall(r"^\S+==\S+( ; .*)? \\$", text, re.M)) == len(pins), lock
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text), lock


def test_make_installs_by_hashes_all_but_the_checkout() -> None:
    installs = re.findall(r"^\t@?(?:\$\((?:INSTALL|LOCKED)\)|.*pip install) .*$", MAKEFILE, re.M)
    locked = re.search(r"^LOCKED := \$\(INSTALL\) (.*)$", MAKEFILE, re.M)
    assert locked and "--require-hashes --constraint requirements.lock" in locked[1]
    ours = "--no-deps --no-build-isolation --editable . --editable ./corpus_loader"
    hashed = [each for each in installs if "$(LOCKED)" in each or "--require-hashes" in each]
    assert hashed and [each for each in installs if each not in hashed] == [f"\t@$(INSTALL) {ours}"]


LISTING = """\
:env:.find-links='/wheels'
global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'
global.find-links='/other /wheels'
global.index-url='https://mirror.example/simple'
global.timeout='30'
install.find-links='/third'
list.format='columns'
"""


def test_uv_gets_what_pip_is_configured_with() -> None:
    assert uv_environment(pip_settings(LISTING)) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_FIND_LINKS": "/wheels",
        "UV_HTTP_TIMEOUT": "30",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
    }
    assert uv_environment(pip_settings("global.find-links='/a /b'")) == {"UV_FIND_LINKS": "/a,/b"}
    assert uv_environment(pip_settings(":env:.extra-index-url=''")) == {}


@pytest.mark.parametrize(
    ("content", "fixtures", "fast", "peers"),
    [
        ("import numpy", {"tmp_path"}, True, False),
        ("import numpy", {"corpus"}, False, False),
        ("def f():\n    import dagster as dg", set(), False, False),
        ("from resources.engine.map_parts.worker import Worker", set(), False, False),
        ("from dedup_flow import run", set(), True, False),
        ("import format_folders\nformat_folders.peer('torch')", set(), False, True),
        ("import pytest\ntorch = pytest.importorskip('torch')", set(), False, True),
    ],
)
def test_markers_go_by_what_a_test_uses(
    content: str, fixtures: set[str], fast: bool, peers: bool, tmp_path: Path
) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(content)
    assert (markers.is_fast(file, fixtures), markers.needs_peers(file)) == (fast, peers)


@pytest.mark.slow
def test_no_id_is_made_of_the_clock_or_of_hashes(request: pytest.FixtureRequest) -> None:
    options = ["--collect-only", "-o", "addopts=--import-mode=importlib -q", "-p", "no:xdist"]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
    )
    assert {item.nodeid for item in request.session.items} <= {*listed.stdout.splitlines()}


def test_bytes_are_no_id(request: pytest.FixtureRequest) -> None:
    name = request.config.hook.pytest_make_parametrize_id
    assert name(config=request.config, val=b"\0", argname="data") == "data"


def test_slow_tests_are_not_fast_and_files_of_fast_tests_come_last(
    request: pytest.FixtureRequest,
) -> None:
    items = request.session.items
    is_fast = {item: item.get_closest_marker("fast") is not None for item in items}
    assert not [item.nodeid for item in items if is_fast[item] and item.get_closest_marker("slow")]
    others = (item for item in items if not item.get_closest_marker("slow"))
    files = {item.path: False for item in others if not is_fast[item]}
    are_fast = [files.get(item.path, True) for item in items]
    assert (are_fast == sorted(are_fast)) is True  # no difference of thousands is explained
