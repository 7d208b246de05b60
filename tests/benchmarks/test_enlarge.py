"""The corpus that benchmarks draw from real lines, and its nights."""

import gzip
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from resources.settings.pipeline import load_settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from enlarge import Night, Recipe, change, enlarge  # noqa: E402

SAMPLE = ROOT / "sample_data"
RECIPE = Recipe(bytes=2_000_000, seed=3)
Texts = dict[str, list[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enlarged sample, to be copied before it is changed."""
    folder = tmp_path_factory.mktemp("enlarged") / "corpus"
    enlarge(SAMPLE, folder, RECIPE)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def texts_of(folder: Path) -> Texts:
    """Texts by file."""
    found: Texts = {}
    for name, content in files_of(folder).items():
        if ".jsonl" in name:
            plain = gzip.decompress(content) if name.endswith(".gz") else content
            found[name] = [json.loads(line)["text"] for line in plain.splitlines()]
    return found


def test_a_corpus_has_its_size_its_sources_and_its_duplicates(made: Path) -> None:
    texts = texts_of(made)
    assert {name.split("/")[0] for name in texts} == {
        "books",
        "code",
        "multilingual",
        "reference",
        "science",
        "web",
    }
    every = [text for listed in texts.values() for text in listed]
    assert 0.9 < sum(len(text.encode()) for text in every) / RECIPE.bytes < 1.3
    repeated = sum(count - 1 for count in Counter(every).values())
    assert 0.02 < repeated / len(every) < 0.12


def test_equal_arguments_make_equal_bytes(made: Path, tmp_path: Path) -> None:
    enlarge(SAMPLE, tmp_path / "again", RECIPE)
    assert files_of(tmp_path / "again") == files_of(made)


@pytest.mark.parametrize("night", get_args(Night))
def test_a_night_changes_what_it_names_and_nothing_else(
    made: Path, tmp_path: Path, night: Night
) -> None:
    changed = [tmp_path / "first", tmp_path / "second"]
    for folder in changed:
        shutil.copytree(made, folder)
        change(SAMPLE, folder, night)
    assert files_of(changed[0]) == files_of(changed[1])

    before, after = files_of(made), files_of(changed[0])
    differing = {name for name in after if before.get(name) != after[name]} - {"enlarged.json"}
    expected = {
        "new": {"web/web-new-001.jsonl.gz"},
        "append": {"web/web-000.jsonl"},
        "remove": {"web/web-002.jsonl"},
        "edit": {"web/web-002.jsonl"},
        "source": {"source-1/source-1.jsonl", "pipeline.yaml"},
        "threshold": {"pipeline.yaml"},
    }
    assert differing == expected[night]


def test_a_night_takes_or_edits_one_document(made: Path, tmp_path: Path) -> None:
    old = texts_of(made)["web/web-002.jsonl"]
    for night in ("remove", "edit"):
        shutil.copytree(made, tmp_path / night)
        change(SAMPLE, tmp_path / night, night)
    removed = texts_of(tmp_path / "remove")["web/web-002.jsonl"]
    edited = texts_of(tmp_path / "edit")["web/web-002.jsonl"]
    middle = len(old) // 2
    assert removed == old[:middle] + old[middle + 1 :]
    assert edited[middle].endswith(old[middle]) and edited[middle] != old[middle]
    assert edited[:middle] + edited[middle + 1 :] == removed


def test_pipeline_yaml_is_valid_after_every_night(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "corpus")
    for night in [*get_args(Night), "source", "threshold"]:
        change(SAMPLE, tmp_path / "corpus", night)
    settings = load_settings(tmp_path / "corpus/pipeline.yaml")
    assert settings.source_names()[-2:] == ["source-5", "source-7"]
    page = settings.filters.rules.page
    assert page is not None and page.max_boilerplate == 0.24
    assert page.max_keyword_spam == 0.25
