"""Imports run one way, and loading stays light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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


def test_the_loader_needs_numpy_only() -> None:
    optional = {"obstore", "torch", "transformers", "lightning", "accelerate"}
    for path in sorted((ROOT / "corpus_loader").rglob("*.py")):
        roots = {module.split(".")[0] for module in imported_modules(path)}
        foreign = roots - set(sys.stdlib_module_names) - {"numpy", "corpus_loader"}
        assert foreign <= optional, path

    every = "from corpus_loader import *"
    assert not modules_after(every) & (optional | {"assets", "polars"})
    assert "numpy" in modules_after(every)
    assert "numpy" not in modules_after("import corpus_loader.places.url_secrets")


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after a statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def module_names(*tops: str) -> list[str]:
    """Every module below the folders but the compiled kernels, which take time to load."""
    paths = [path.relative_to(ROOT) for top in tops for path in (ROOT / top).rglob("*.py")]
    dotted = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
    need_torch = ("corpus_loader.torch_dataset", "corpus_loader.trainers.", "corpus_loader.prove.")
    return sorted(d for d in dotted if "kernels" not in d and not d.startswith(need_torch))


def test_stages_read_published_files_through_their_check() -> None:
    """`Store.path_of` and `unchecked_path` give a path without comparing the file's hash."""
    unchecked = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "assets").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "store.path_of(" in line or "unchecked_path" in line or "folder.folder / file" in line
        if "has_size(" not in line and "published_file(" not in line
    }
    assert unchecked == set()


def test_stages_load_without_dagster() -> None:
    names = [name for name in module_names("assets", "corpus_loader")]

    assert "dagster" not in modules_after("import " + ", ".join(names))


def test_importing_any_module_reads_no_config_and_starts_nothing(tmp_path: Path) -> None:
    names = ", ".join(module_names("assets", "corpus_loader", "resources"))
    code = f"import {names}, threading; assert threading.active_count() == 1"
    environment = os.environ | {
        "TOKENMILL_CONFIG": str(tmp_path / "no.yaml"),
        "TOKENMILL_STORE": str(tmp_path / "store"),
    }

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)

    assert not list(tmp_path.glob("store"))


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
