"""Rules and formats that a package adds: examples/plug_ins, installed for the length of a test."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import Build, open_corpus, write_corpus, write_jsonl

from resources.engine.ray_driver import code_digest
from resources.settings import plug_ins
from resources.settings.pipeline import SettingsError
from resources.settings.plug_ins import PlugInError

EXAMPLES = Path(__file__).parents[2] / "examples/plug_ins"
ADDED: dict[str, Any] = {
    "filters": {"plug_ins": ["shouting"], "rules": {"custom": {"shouting": 0.5}}},
    "shards": {"target_bytes": 2048, "formats": ["megatron", "json_lines"]},
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of packages in which the example is installed, as pip would."""
    site = tmp_path / "site"
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLES / "tokenmill_examples", site / "tokenmill_examples")
    about = site / f"tokenmill_examples-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [[f"[{group}]", *(f"{k} = {v}" for k, v in names.items())] for group, names in groups]
    (about / "entry_points.txt").write_text("\n".join(line for each in lines for line in each))
    monkeypatch.syspath_prepend(str(site))
    forget()
    yield site
    forget()


def forget() -> None:
    """Look at the installed packages again, as a new process does."""
    invalidate_caches()
    for name in [name for name in sys.modules if name.startswith("tokenmill_examples")]:
        del sys.modules[name]
    plug_ins.plug_ins.cache_clear()
    code_digest.cache_clear()


def test_a_package_adds_a_rule_and_a_format(installed: Path, tmp_path: Path, build: Build) -> None:
    corpus = open_corpus(write_corpus(tmp_path, **ADDED))
    write_jsonl(tmp_path / "input/prose/loud.jsonl", [{"text": "BUY NOW"}])
    build(corpus)
    decisions = pl.read_parquet(tmp_path / "store/filtered/prose/*decisions*.parquet")
    rejected = decisions.filter(pl.col("reasons").list.contains("custom.shouting"))
    assert rejected["custom_shouting"].to_list() == [6 / 7]
    (folder,) = (tmp_path / "store/sharded/prose").glob("json_lines-*")
    index = json.loads((folder / "index.json").read_bytes())
    rows = sum(len((folder / file["name"]).read_text().splitlines()) for file in index["files"])
    parts = corpus.store.newest("sharded", "prose").parts
    assert rows == sum(part.stats.rows_kept for part in parts)


def test_other_code_of_a_plug_in_makes_its_stages_again(
    installed: Path, tmp_path: Path, build: Build
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, **ADDED))
    build(corpus)
    before = {name: corpus.store.newest(name, "prose") for name in ("raw", "filtered", "sharded")}
    on_nodes = code_digest()
    with (installed / "tokenmill_examples/writer.py").open("a") as file:
        file.write("\n# changed\n")
    forget()
    assert code_digest() != on_nodes
    build(corpus)
    after = {name: corpus.store.newest(name, "prose") for name in before}
    assert {name for name in before if before[name].parts != after[name].parts} == {
        "filtered",
        "sharded",
    }
    assert len([*(tmp_path / "store/sharded/prose").glob("json_lines-*")]) == 2  # a trainer reads


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"filters": ADDED["filters"]}, "'shouting' is not one of the rules here: none. Correct"),
        ({"shards": ADDED["shards"]}, "'json_lines' is not one of the formats here: parquet, meg"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        open_corpus(write_corpus(tmp_path, **change))


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("tokenmill_examples.nowhere:RULES", "cannot be imported: ModuleNotFoundError"),
        ("tokenmill_examples.writer:JSON_LINES", "is a ShardFormat; it must be a list"),
    ],
)
def test_a_wrong_entry_point_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch, entry: str, fault: str
) -> None:
    wrong = EntryPoint("shouting", entry, "tokenmill.rules")
    monkeypatch.setitem(plug_ins.plug_ins("rules"), "shouting", wrong)
    with pytest.raises(PlugInError, match=fault):
        plug_ins.load_plug_in("rules", "shouting", list)
