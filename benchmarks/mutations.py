"""Change the product in one place at a time, and see which test notices.

    nice python benchmarks/mutations.py benchmarks/mutations.csv [--minutes 30]
    nice python benchmarks/mutations.py after.csv --repeat benchmarks/mutations.csv

Draws --count places with a fixed --seed over all modules of the product, by lines: a comparison, a
limit, a number, and/or, a condition, a call, a default. Each change is made in a copy of the tree,
and the three test files that import the module most directly run until the first failure, without
tests that are marked slow. A test that fails without the change, too, is no catch. Rows are
appended: the same command goes on where it stopped. --repeat makes the caught changes of another
file again, wherever their lines are by now, and runs the tests that caught them.

A change of a compiled kernel takes up to a minute to compile: these come last, --no-kernels leaves
them out.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from markers import starts_something  # noqa: E402

ROOMS = ("assets", "corpus_loader", "pipeline_defs", "resources")
TEST_FILES = 3
KERNEL_FACTOR = 4  # kernels of a stage are compiled again: up to a minute
NOT_HERE = {"peers", "servers", "cluster", "faults", "examples"}  # they need more, or hours
VERBS = "pipeline_defs/commands"  # main.py there imports the module of a verb by its name
OPERATOR = re.compile(r"is\s+not|not\s+in|[<>=!]=|[<>]|\b(?:is|in|and|or)\b")
LEFT_BEHIND = (".git", ".venv*", ".dagster", "corpus_store", "node_modules", ".hypothesis")
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "is": "is not"}
OPPOSITE |= {"is not": "is", "in": "not in", "not in": "in"}
NEIGHBOUR = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OTHER_WORD = {"and": "or", "or": "and"}
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
Span = tuple[int, int]  # of a source text, in characters


@dataclass(frozen=True)
class Mutation:
    """A change of whole lines of a module; `number` is its place in the draw."""

    number: int
    module: str
    line: int
    function: str
    kind: str
    before: str
    after: str

    @property
    def is_kernel(self) -> bool:
        """Check that numba compiles the module."""
        return "kernels" in Path(self.module).parts


@dataclass(frozen=True)
class Outcome:
    """What became of a change: caught, survived, timeout, gone (from the code), no tests."""

    result: str
    test: str
    seconds: float


class Source:
    """The text of a module, and the places of its syntax tree in it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.lines = self.text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the character at a line and a column, which ast counts in bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> Span:
        """Return the characters of a node."""
        first = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return first, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def changes(source: Source) -> Iterator[tuple[str, str, Span, str]]:
    """Yield (function, kind, characters, what stands there instead) of every possible change."""
    pending: deque[tuple[str, ast.AST]] = deque([("", source.tree)])
    while pending:
        function, node = pending.popleft()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        for kind, span, new in changes_of(source, node):
            yield function, kind, span, new
        if not isinstance(node, ast.JoinedStr):  # Python 3.11 has wrong places within f-strings
            skipped = [getattr(node, name, None) for name in ("annotation", "returns")]
            children = ast.iter_child_nodes(node)
            pending.extend((function, child) for child in children if child not in skipped)


def changes_of(source: Source, node: ast.AST) -> Iterator[tuple[str, Span, str]]:
    """Yield the changes of a node itself, not of those below it."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        between = source.span(node.left)[1], source.span(node.comparators[0])[0]
        yield from word_changes("comparison", source, between, OPPOSITE)
        yield from word_changes("limit", source, between, NEIGHBOUR)
    elif isinstance(node, ast.BoolOp):
        between = source.span(node.values[0])[1], source.span(node.values[1])[0]
        yield from word_changes("and/or", source, between, OTHER_WORD)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        first, stop = source.span(node.test)
        if source.text[first:stop] != "TYPE_CHECKING":
            yield "condition", (first, stop), f"(not ({source.text[first:stop]}))"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", source.span(node), "pass"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", source.span(node), str(node.value + 1)
    elif isinstance(node, ast.arguments):
        for default in filter(None, [*node.defaults, *node.kw_defaults]):
            if isinstance(default, ast.Constant) and type(default.value) in (bool, str):
                new = not default.value if isinstance(default.value, bool) else default.value + "x"
                yield "default", source.span(default), repr(new)


def word_changes(
    kind: str, source: Source, between: Span, others: dict[str, str]
) -> Iterator[tuple[str, Span, str]]:
    """Yield the change of the operator that stands between two operands."""
    found = OPERATOR.search(source.text, *between)
    if found and found[0] in others:
        yield kind, found.span(), others[found[0]]


def as_lines(source: Source, span: Span, new: str) -> tuple[int, str, str]:
    """Return the number of the first line that changes, and the lines before and after."""
    first = source.text.rfind("\n", 0, span[0]) + 1
    stop = source.text.find("\n", span[1])
    stop = len(source.text) if stop < 0 else stop
    after = source.text[first : span[0]] + new + source.text[span[1] : stop]
    return source.text.count("\n", 0, first) + 1, source.text[first:stop], after


def draw(root: Path, count: int, seed: int) -> list[Mutation]:
    """Draw changes: a module by its lines, then one of its places."""
    rng = random.Random(seed)
    paths = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    sources = {path: Source(path) for path in paths}
    weights = [len(sources[path].lines) for path in paths]
    every = {path: list(changes(source)) for path, source in sources.items()}
    drawn: dict[tuple[Path, Span, str], Mutation] = {}
    while len(drawn) < count:
        path = rng.choices(paths, weights)[0]
        if not every[path]:
            continue
        kinds = sorted({kind for _, kind, _, _ in every[path]})
        kind = rng.choice(kinds)  # else most changes would be of numbers
        function, _, span, new = rng.choice([each for each in every[path] if each[1] == kind])
        if not is_valid(source := sources[path], span, new):
            continue
        line, before, after = as_lines(source, span, new)
        module = path.relative_to(root).as_posix()
        mutation = Mutation(len(drawn) + 1, module, line, function, kind, before, after)
        drawn.setdefault((path, span, kind), mutation)
    return list(drawn.values())


def is_valid(source: Source, span: Span, new: str) -> bool:
    """Check that a changed module can be parsed, and is another program."""
    try:
        changed = ast.parse(source.text[: span[0]] + new + source.text[span[1] :])
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(source.tree)


@cache
def importers(root: Path) -> dict[Path, set[Path]]:
    """Return the files of a tree that import each file, inside functions too."""
    found: dict[Path, set[Path]] = defaultdict(set)
    folders = [root / room for room in (*ROOMS, "tests")]
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        for name in imported_names(path):
            for place in (root / name.replace(".", "/"), root / "tests" / name.replace(".", "/")):
                found[place.with_suffix(".py")].add(path)
                found[place / "__init__.py"].add(path)
    for path in (root / VERBS).glob("*/*.py"):
        found[path].add(root / VERBS / "main.py")
    return found


def imported_names(path: Path) -> set[str]:
    """Return the modules that a file imports, and the names of what it takes out of them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def nearest_tests(root: Path, module: Path, count: int = TEST_FILES) -> list[str]:
    """Return the test files with the fewest imports between them and a module, nearest first."""
    seen, ring, nearest = {module}, {module}, list[Path]()
    while ring and len(nearest) < count:
        ring = {path for each in ring for path in importers(root).get(each, ())} - seen
        seen |= ring
        tests = {path for path in ring if path.name.startswith("test_")}
        tests = {path for path in tests if not NOT_HERE & set(path.relative_to(root).parts)}
        nearest += sorted(tests, key=lambda path: (-alike(path, module), path))
    return [path.relative_to(root).as_posix() for path in nearest[:count]]


def alike(test: Path, module: Path) -> int:
    """Return how much of its name a test file shares with a module, and with its folders."""
    words = set(test.stem.split("_")) - {"test"}
    return 2 * len(words & set(module.stem.split("_"))) + (test.parent.name in module.parts)


def changed_text(root: Path, mutation: Mutation) -> tuple[Path, str] | None:
    """Find the lines of a change, in its module or where they are by now; None if they are gone."""
    own = root / mutation.module
    others = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    for path in [own, *(each for each in others if each != own)]:
        if not path.is_file() or mutation.before not in (text := path.read_text(encoding="utf-8")):
            continue
        places = [found.start() for found in re.finditer(re.escape(mutation.before), text)]
        if path != own and len(places) > 1:
            continue
        start = min(places, key=lambda each: abs(text.count("\n", 0, each) + 1 - mutation.line))
        stop = start + len(mutation.before)
        return path, text[:start] + mutation.after + text[stop:]
    return None


def try_out(tree: Path, mutation: Mutation, tests: list[str], seconds: float) -> Outcome:
    """Run tests on a copy of the tree with a change; the copy is as before at the end."""
    found = changed_text(tree, mutation)
    if found is None or not tests:
        return Outcome("no tests" if found else "gone", "", 0)
    path, text = found
    kept, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    began = time.monotonic()
    try:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (mutation.number, mutation.number))  # compiled modules go by time and size
        code, said = run_in_turn(tree, tests, seconds)
    finally:
        path.write_bytes(kept)
        os.utime(path, ns=times)
    result, test = result_of(code, said)
    if result == "caught" and "::" in test:
        again, _ = run_tests(tree, [test.split("[")[0]], 2 * seconds)
        result = {0: "caught", 5: "caught", None: "timeout"}.get(again, "fails without it")
    return Outcome(result, test, round(time.monotonic() - began, 1))


def run_in_turn(tree: Path, tests: list[str], seconds: float) -> tuple[int | None, str]:
    """Run the tests of pure functions first: most changes are caught there, in a few seconds."""
    pure = [test for test in tests if not starts_something(tree / test.split("::")[0])]
    fast = run_tests(tree, pure, seconds, "fast") if pure else (5, "")
    if fast[0] not in (0, 4, 5):
        return fast
    others = run_tests(tree, tests, seconds, "not fast and not slow")
    return fast if others[0] == 5 else others


def result_of(code: int | None, said: str) -> tuple[str, str]:
    """Return what an exit code of pytest means, and the first test that failed."""
    if code in (None, 0, 4, 5):  # 4: there is no such test, 5: none has the marks
        return {None: "timeout", 0: "survived"}.get(code, "no tests"), ""
    return "caught", next(iter(FAILED.findall(said)), f"exit code {code}")


def run_tests(
    tree: Path, tests: list[str], seconds: float, marks: str = "not slow"
) -> tuple[int | None, str]:
    """Return pytest's exit code and output; None for the code after so many seconds."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x"]
    command += ["-q", "-rfE", "--tb=no", "-m", marks]
    command += [f"--basetemp={tree.parent}/tests", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a third of a start is compiling modules
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # their imports take two seconds
    environment |= {"COLUMNS": "500", "TMPDIR": str(tree.parent)}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of an earlier run, none if there was none."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def of_row(row: dict[str, str]) -> Mutation:
    """Return the change that a row tells of."""
    texts = {field.name: row[field.name] for field in fields(Mutation)}
    return Mutation(**texts | {"number": int(row["number"]), "line": int(row["line"])})  # type: ignore[arg-type]


def tests_of_row(row: dict[str, str]) -> list[str]:
    """Return the test that caught a change, or the nearest ones if it has gone."""
    file, _, name = row["test"].split("[")[0].partition("::")
    if (ROOT / file).is_file() and (not name or f"def {name}(" in (ROOT / file).read_text()):
        return [f"{file}::{name}" if name else file]
    found = changed_text(ROOT, of_row(row))
    return nearest_tests(ROOT, found[0]) if found else []


def planned(options: argparse.Namespace) -> list[tuple[Mutation, list[str]]]:
    """Return the changes to make and the tests of each, those of kernels last."""
    if options.repeat:
        rows = [row for row in read_rows(options.repeat) if row["result"] == "caught"]
        every = {of_row(row): tests_of_row(row) for row in rows}
    else:
        drawn = draw(ROOT, options.count, options.seed)
        every = {each: nearest_tests(ROOT, ROOT / each.module) for each in drawn}
    done = {int(row["number"]) for row in read_rows(options.out)}
    left = [each for each in every.items() if each[0].number not in done]
    left = [each for each in left if not (options.no_kernels and each[0].is_kernel)]
    return sorted(left, key=lambda each: (each[0].is_kernel, each[0].number))


def work_through(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Mutation, Outcome]]:
    """Try all changes that are left, in copies of the tree side by side, until the time is over."""
    trees: queue.Queue[Path] = queue.Queue()
    for number in range(options.workers):
        tree = folder / str(number) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_BEHIND), symlinks=True)
        trees.put(tree)
    end = time.monotonic() + 60 * options.minutes

    def one(each: tuple[Mutation, list[str]]) -> tuple[Mutation, Outcome] | None:
        mutation, tests = each
        tree = trees.get()
        try:
            seconds = options.seconds * (KERNEL_FACTOR if mutation.is_kernel else 1)
            late = time.monotonic() + seconds > end
            return None if late else (mutation, try_out(tree, mutation, tests, seconds))
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(options.workers) as pool:
        yield from filter(None, pool.map(one, planned(options)))


def main() -> None:
    """Append a row for each change, and print how many there are of each result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="CSV file; rows that it has are not made again")
    parser.add_argument("--repeat", type=Path, help="make the caught changes of this file again")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="for the tests of one change")
    parser.add_argument("--minutes", type=float, default=600, help="begin no change after these")
    parser.add_argument("--workers", type=int, default=1, help="copies of the tree at work")
    parser.add_argument("--no-kernels", action="store_true", help="leave out what numba compiles")
    options = parser.parse_args()
    names = [field.name for model in (Mutation, Outcome) for field in fields(model)]
    is_new = not options.out.is_file()
    with (
        options.out.open("a", newline="", encoding="utf-8") as file,
        tempfile.TemporaryDirectory() as folder,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(names)
        for mutation, outcome in work_through(options, Path(folder)):
            writer.writerow(astuple(mutation) + astuple(outcome))
            file.flush()
            print(mutation.number, mutation.module, mutation.kind, outcome.result, outcome.test)
    print(dict(Counter(row["result"] for row in read_rows(options.out))))


if __name__ == "__main__":
    main()
