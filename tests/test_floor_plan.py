"""The floor plan: a folder per stage, imports in one direction, no cycles.

Computed from the syntax tree of every module; imports inside functions and under TYPE_CHECKING
count.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("corpus_loader", "resources", "assets", "pipeline_defs", "tokenmill")  # the lower first
STAGES = ("raw", "filtered", "deduped", "annotated", "tokenized", "bucketed", "sharded", "mixed")
SHARED = ("text", "report")  # below every stage
ROLES = {"__init__.py", "asset.py", "config.py", "report.py"}
TOUCHES_DISK = ("places", "readers", "formats")
NAMED_FOR_THEIR_CONTENT = {  # modules that touch the disk, too
    "bucketed/document_groups.py",
    "bucketed/previous_holdout.py",
    "filtered/language/fasttext_model.py",
    "sharded/pinned_shards.py",
}
IMPURE = {"dagster", "pathlib", "os", "shutil", "tempfile", "urllib", "http", "socket"}
PURE_RESOURCES = (
    "resources.absorbed_runs",
    "resources.charts",
    "resources.content_windows",
    "resources.materialize.excerpts",
    "resources.settings",
    "resources.errors",
    "resources.kernel_cache",
    "resources.made_once",
    "resources.numbers_between",
    "resources.profiles",
    "resources.reused_array",
    "resources.store.records",
    "resources.urls",
)

MOST_LINES = {
    "assets.filtered.asset": 25_950,
    "assets.mixed.asset": 21_250,
    "assets.raw.asset": 26_900,  # the form of texts, by which takedowns are told
    "assets.raw.readers.read_chunks": 9_000,
}

Arrow = tuple[str, str]


@cache
def modules() -> dict[str, Path]:
    """Path of every module of the project, relative to its root, by dotted name."""
    paths = [path.relative_to(ROOT) for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports_of(path: Path) -> set[str]:
    """Dotted names that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in modules() else str(node.module))
    return names


@cache
def arrows() -> frozenset[Arrow]:
    """(importer, imported) of all modules of the project."""
    return frozenset(
        (name, imported)
        for name, path in modules().items()
        for imported in imports_of(path)
        if imported in modules() and imported != name
    )


def cycles(pairs: Iterable[Arrow]) -> list[list[str]]:
    """Strongly connected components of more than one node: reachability both ways."""
    graph = defaultdict(set)
    for importer, imported in pairs:
        if importer != imported:
            graph[importer].add(imported)

    @cache
    def reached(start: str) -> frozenset[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for following in graph[waiting.pop()] - seen:
                seen.add(following)
                waiting.append(following)
        return frozenset(seen)

    tangled = sorted(node for node in list(graph) if node in reached(node))
    return sorted(
        {tuple(b for b in tangled if b in reached(a) and a in reached(b)): None for a in tangled}
    )  # type: ignore[return-value]


def room(name: str, depth: int) -> str:
    """The folder of a module, cut at a depth."""
    return "/".join(modules()[name].parent.parts[:depth])


def test_imports_run_one_way() -> None:
    level = {top: number for number, top in enumerate(TOPS)}
    upward = [(a, b) for a, b in arrows() if level[a.split(".")[0]] < level[b.split(".")[0]]]
    assert not upward


def test_a_stage_imports_only_earlier_stages_and_what_stages_share() -> None:
    order = {name: number for number, name in enumerate((*SHARED, *STAGES))}
    stages = {name: name.split(".")[1] for name in modules() if name.startswith("assets.")}
    later = [
        (a, b)
        for a, b in arrows()
        if a in stages and b in stages and stages[a] != "stages"
        if stages[b] == "stages" or order[stages[b]] > order[stages[a]]
    ]
    assert not later


def test_stages_know_the_records_of_others_and_not_their_work() -> None:
    """Only the list of stages imports an asset; `*_records.py` has what others may know of it."""
    importers = {a for a, b in arrows() if a.startswith("assets.") and b.endswith("asset")}
    assert importers == {"assets.stages"}


@pytest.mark.parametrize(
    "name", sorted({name for name in modules() if name.endswith("asset")} | {*MOST_LINES})
)
def test_an_asset_and_the_readers_reach_few_lines_by_their_imports(name: str) -> None:
    start, reached, waiting = name, set[str](), [name]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += [b for a, b in arrows() if a == name]
    lines = sum((ROOT / modules()[name]).read_text("utf-8").count("\n") for name in reached)
    assert lines <= MOST_LINES.get(start, 25_000)


def test_no_modules_import_each_other() -> None:
    assert not cycles(arrows())


def test_readers_know_no_place() -> None:
    places = "assets.raw.places"
    assert not [b for a, b in arrows() if "raw.readers" in a and b.startswith(places)]


@pytest.mark.parametrize("depth", [1, 2])
def test_no_folders_import_each_other(depth: int) -> None:
    assert not cycles((room(a, depth), room(b, depth)) for a, b in arrows())


def test_the_folders_of_assets_are_the_flow() -> None:
    folders = {path.name for path in (ROOT / "assets").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == {*STAGES, *SHARED}


@pytest.mark.parametrize("top", ["assets", "resources"])
def test_a_module_name_is_used_once(top: str) -> None:
    names = Counter(p.name for p in modules().values() if p.parts[0] == top)
    assert {name for name, n in names.items() if n > 1} <= ROLES


def test_only_modules_named_so_know_dagster_or_the_disk() -> None:
    impure: dict[str, set[str]] = {}
    for path in modules().values():
        is_pure = path.parts[0] == "assets" and not (
            path.name in ("asset.py", "stages.py")
            or path.stem.endswith(("_asset", "_files"))
            or path.as_posix().removeprefix("assets/") in NAMED_FOR_THEIR_CONTENT
            or set(path.parts) & set(TOUCHES_DISK)
        )
        if is_pure:
            used = {
                name
                for name in imports_of(path)
                if name.split(".")[0] in IMPURE
                or (name.startswith("resources") and not name.startswith(PURE_RESOURCES))
            }
            if used:
                impure[str(path)] = used
    assert not impure
