"""Imports run one way, and loading stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"assets", "corpus_loader", "pipeline_defs", "resources"}
FORBIDDEN = {
    "assets/transforms": {"dagster", "resources", "pipeline_defs"},
    "resources": {"pipeline_defs"},
}
HEAVY = ["numba", "scipy", "datasketch", "langdetect", "tokenizers", "fasttext", "fastokens"]


def imported_modules(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_lower_layers_import_nothing_above(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        roots = {module.split(".")[0] for module in imported_modules(path)}
        assert not roots & FORBIDDEN[folder], path


def test_resources_use_only_the_transforms_of_assets() -> None:
    for path in sorted((ROOT / "resources").glob("*.py")):
        used = {module for module in imported_modules(path) if module.split(".")[0] == "assets"}
        assert all(module.startswith("assets.transforms") for module in used), path


def test_assets_use_only_the_partitions_of_pipeline_defs() -> None:
    for path in sorted((ROOT / "assets").glob("*.py")):
        used = {m for m in imported_modules(path) if m.split(".")[0] == "pipeline_defs"}
        assert used <= {"pipeline_defs.partitions"}, path


def test_the_loader_needs_numpy_only() -> None:
    optional = {"obstore", "torch"}
    for path in sorted((ROOT / "corpus_loader").glob("*.py")):
        roots = {module.split(".")[0] for module in imported_modules(path)}
        foreign = roots - set(sys.stdlib_module_names) - {"numpy", "corpus_loader"}
        assert foreign <= optional, path

    assert not modules_after("import corpus_loader") & (optional | {"assets", "polars"})


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after a statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_transforms_load_without_dagster() -> None:
    names = [path.stem for path in (ROOT / "assets/transforms").glob("*.py")]
    statement = "import " + ", ".join(f"assets.transforms.{name}" for name in names)

    assert "dagster" not in modules_after(statement)


def test_loading_the_code_location_imports_nothing_heavy() -> None:
    loaded = modules_after("import pipeline_defs.definitions")

    assert not loaded & set(HEAVY)


def test_no_file_names_a_package_registry_or_a_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.lock", "*.toml", "Makefile", ".ci"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split():
        content = (ROOT / name).read_text(encoding="utf-8")
        assert "--index-url" not in content and "://" not in content.replace("://127", ""), name
