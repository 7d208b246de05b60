"""Each recipe of CONTRIBUTING.md is enough: followed in a copy of the product, it runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from resources.settings.filtering.rules import PageRules

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PRODUCT = ("assets", "corpus_loader", "pipeline_defs", "resources", "tokenmill")
BLOCK = re.compile(r'^```(py|diff) title="(\S+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
MOST_FILES = 3

LYRICS = "[ar:Ann]\n[00:01.00]Bees fly.\n[00:02.50]<00:02.50>So.\n"
READ_LYRICS = """
import gzip
from pathlib import Path
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.read_chunks import plan_slices, read_chunks
from resources.settings.sources import SourceConfig

folder = Path("in")
folder.mkdir()
said = LYRICS.encode()
for name, data in {"a.lrc": said, "b.lrc.gz": gzip.compress(said), "c.lrc": said * 99}.items():
    (folder / name).write_bytes(data)
for named in ("auto", "lrc"):
    source = SourceConfig(name="s", where=("in",), format=named, max_record_bytes=1024)
    found = find_inputs(source, Path(), Path("store/downloads"))
    assert [file.format for file in found.files] == ["lrc"] * 3, found
    slices = [(file, each) for file in found.files for each in plan_slices(file, 1 << 20)]
    chunks = [c for file, each in slices for c in read_chunks(file, each, source, 1 << 20)]
    texts = [text for chunk in chunks for text in chunk.documents["text"]]
    assert texts[:2] == ["\\nBees fly.\\nSo."] * 2, texts
    assert [chunk.quarantine.height for chunk in chunks] == [0, 0, 1], chunks
"""
WRITE_TEXT_IDS = f"""
import sys
sys.path.append({str(ROOT / "tests")!r})
from pathlib import Path
from bucketed_corpus import build, planned, sequences

folder = Path("corpus")
folder.mkdir()
build(*planned(folder, [sequences(1, 3)], formats=["text_ids"]))
[written] = folder.rglob("text_ids-*")
assert sorted(path.name for path in written.iterdir()) == ["manifest.json", "shard-00000.txt"]
lines = (written / "shard-00000.txt").read_text().splitlines()
assert sorted(lines) == [" ".join([str(number)] * 8) for number in (1, 2, 3)], lines
"""

PRINT_SIZES = """
import os
from pathlib import Path
from pipeline_defs.commands.main import main
from resources.store.records import FileRecord, Manifest, PartRecord, Stats
from resources.store.store import Store

config = {"store": "store", "sources": [{"name": "web", "where": "in/*"}]}
config["phases"] = [{"name": "main", "weights": {"web": 1.0}}]
Path("pipeline.yaml").write_text(str(config))
os.environ["TOKENMILL_CONFIG"] = "pipeline.yaml"
assert main(["sizes"]) == 1
folder = Store(Path("store")).partition("raw", "web")
file = FileRecord("documents", "web.parquet", 3, 1234, "0" * 64, "")
part = PartRecord("p", "f" * 32, (file,), Stats())
with folder.writing(1):
    folder.commit(Manifest("raw", "web", "f" * 32, "1", {}, (part,), Stats()))
assert main(["sizes"]) == main(["sizes", "--json"]) == main(["sizes", "--help"]) == 0
"""

MEASURE_LENGTHS = """
from pathlib import Path
import polars as pl
from assets.deduped.deduped_records import DEDUPED, DedupedNumbers, DedupedProvenance
from assets.stages import BY_NAME
from corpus_loader.places.stage_names import SOURCE_STAGES
from resources.corpus import Corpus
from resources.settings.pipeline import load_settings
from resources.store.records import Manifest, Stats
from resources.store.store import PartWriter, Store

config = Path("pipeline.yaml")
config.write_text(
    "{store: store, sources: [{name: s, where: in/*}], phases: [{name: p, weights: {s: 1}}]}"
)
corpus = Corpus(load_settings(config), config, Store(Path("store")))
writer = PartWriter(corpus.store.partition("deduped", "s"), "p", "f" * 32)
writer.write_parquet("documents", pl.DataFrame({"doc_id": ["a"], "text": ["Bees fly."]}))
stats = Stats(1, 1, numbers=DedupedNumbers())
parts = (writer.publish(stats),)
about = DedupedProvenance("")
corpus.store.partition("deduped", "s").commit(
    Manifest("deduped", "s", "f" * 64, DEDUPED.code_version, {}, parts, stats, about)
)
stage = BY_NAME["lengths"]
[task] = stage.plan(corpus, "s").tasks
[record] = stage.work(task)
assert pl.read_parquet(task.published_file("lengths")[0].checked()).rows() == [("a", 9)]
assert "lengths" in SOURCE_STAGES
"""

KEEP_ON_DISK = """
from pathlib import Path
from corpus_loader.places.remote import open_files
from resources.store.store_place import ScratchConfig, root_of
from resources.store.records import Manifest, Stats
from resources.store.store import PartWriter, Store

place = Path("remote").absolute()
url = f"disk:/{place}"
scratch = ScratchConfig(folder="scratch")
folder = Store(root_of(url, Path("pipeline.yaml").absolute(), scratch)).partition("raw", "web")
with folder.writing(1):
    writer = PartWriter(folder, "p", "f" * 32)
    writer.write_text("note", "txt", "Bees fly.")
    folder.commit(Manifest("raw", "web", "f" * 32, "1", {}, (writer.publish(Stats()),), Stats()))
assert folder.newest_manifest().parts[0].name == "p"
[note] = place.glob("raw/web/p-*.note.txt")
files = open_files(url, "first", "cache", None)
assert files.newest("raw/web/_manifests") == "raw/web/_manifests/00000001.json"
assert files.read(f"raw/web/{note.name}") == b"Bees fly."
"""


REJECT_CAPITALS = """
import polars as pl
from assets.filtered.filter_documents import filter_documents
from resources.settings.filtering.filters import FilterConfig

rules = {"page": {"max_capitals": 0.5} | dict.fromkeys(OFF)}
config = FilterConfig.model_validate({"language": {"backend": "none"}, "rules": rules})
texts = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["BUY NOW, eh", "Ab, aB.", "bees fly."]})
kept, decisions = filter_documents(texts.with_columns(lang=pl.lit("en")), config)
assert decisions["reasons"].to_list() == [["page.too_many_capitals"], [], []], decisions
assert decisions["uppercase_share"].to_list() == [0.75, 0.5, 0.0], decisions
"""
PAGE_RULES = [*PageRules.model_fields][1:]


def follow(recipe: str, folder: Path) -> list[str]:
    """Copy the product to a folder, make the changes of a recipe, and return the changed files."""
    for room in PRODUCT:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    _, _, text = (ROOT / "CONTRIBUTING.md").read_text().partition(f"\n### {recipe}\n")
    blocks = BLOCK.findall(re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0])
    for kind, name, content in blocks:
        path = folder / name
        if kind == "py":
            assert not path.exists(), f"{name} is not new"
            path.write_text(content)
        else:
            path.write_text(changed(path.read_text(), content))
    return [name for _, name, _ in blocks]


def changed(text: str, diff: str) -> str:
    """Return a text with the lines of a diff: each new one follows, or replaces, that before it."""
    for before, line in pairwise(diff.splitlines()):
        if line.startswith("+"):
            known = f"{before[1:]}\n"
            assert text.count(known) == 1, f"{before[1:]!r} is not in the file, or not once"
            kept = "" if before.startswith("-") else known
            text = text.replace(known, f"{kept}{line[1:]}\n")
    return text


@pytest.mark.parametrize(
    ("recipe", "script", "said"),
    [
        ("A quality rule", f"ROOT, OFF = {str(ROOT)!r}, {PAGE_RULES}{REJECT_CAPITALS}", ""),
        ("A reader", f"LYRICS = {LYRICS!r}\n{READ_LYRICS}", ""),
        ("A verb", PRINT_SIZES, r"raw +1,234 *\n.*\"bytes\": 1234.*Print the bytes of each stage"),
        ("A shard format", WRITE_TEXT_IDS, ""),
        ("A stage between two others", MEASURE_LENGTHS, ""),
        ("A store backend", KEEP_ON_DISK, ""),
    ],
)
def test_a_recipe_of_contributing_works(
    tmp_path: Path, recipe: str, script: str, said: str
) -> None:
    files = follow(recipe, tmp_path)
    assert 0 < len(files) <= MOST_FILES + (recipe == "A stage between two others")

    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout, re.DOTALL), done.stdout
