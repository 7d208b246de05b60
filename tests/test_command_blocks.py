"""The command blocks of README and the tutorial run as they stand, on the shipped sample.

There is one build: a block that stands on both pages runs once. A block of output (`text`) belongs
to the commands before it: its lines are printed in this order, `...` for others between them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from documented import ON_THE_SAMPLE, PAGES, ROOT, blocks_of

pytestmark = pytest.mark.slow

SAMPLE_PAGES = [page for page in PAGES if page.name in ON_THE_SAMPLE]
SHOWN = [(page.name, block) for page in SAMPLE_PAGES for block in blocks_of(page)]
RUN = list(dict.fromkeys(b.text for _, b in SHOWN if b.language == "sh" and not b.not_run))
OUTPUTS = [  # page, the commands, what they print
    (page, before.text, block.text)
    for page, fences in ((page.name, blocks_of(page)) for page in SAMPLE_PAGES)
    for n, block in enumerate(fences)
    if block.language == "text"
    for before in [[b for b in fences[:n] if b.language == "sh" and not b.not_run][-1]]
]
MOST_NOT_RUN = 11


def run_block(text: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of a block in a folder; the folder that they end in is noted in `home`."""
    own = ("DAGSTER_", "TOKENMILL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return subprocess.run(
        ["bash", "-euc", f'{text}\npwd > "$FOLDER"'],
        cwd=folder,
        env=kept | {"PATH": path, "PYTHONPATH": str(ROOT), "FOLDER": str(home / "folder")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader begins."""
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def done(home: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """All blocks, run one after the other as a reader does."""
    outcomes, folder = {}, home
    for text in RUN:
        outcomes[text] = run_block(text, folder, home)
        if outcomes[text].returncode == 0:
            folder = Path((home / "folder").read_text().strip())
    return outcomes


@pytest.mark.parametrize("text", RUN, ids=lambda text: text.splitlines()[0])
def test_a_block_runs(text: str, done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    assert done[text].returncode == 0, done[text].stdout[-3000:]


@pytest.mark.parametrize(("page", "text", "shown"), OUTPUTS)
def test_a_block_prints_what_is_shown(
    page: str, text: str, shown: str, done: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    printed = iter([line.rstrip() for line in done[text].stdout.splitlines()])
    for line in (line.rstrip() for line in shown.splitlines() if line != "..."):
        assert any(each.startswith(line) for each in printed), f"{line!r} in {done[text].stdout}"


@pytest.mark.parametrize("page", sorted(ON_THE_SAMPLE))
@pytest.mark.usefixtures("done")
def test_the_corpus_is_read_as_shown(
    page: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home / "my_corpus")
    trained: list[Any] = []
    names: dict[str, Any] = {"train": trained.append}
    (code,) = (block.text for name, block in SHOWN if (name, block.language) == (page, "python"))
    exec(code, names)
    assert {tokens.shape[1] for tokens in trained} == {2048}
    samples = sum(len(tokens) for tokens in trained)
    assert names["state"]["cursor"] - 8 < samples <= names["state"]["cursor"] == 548


def test_few_blocks_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    marked = [(page.name, block) for page in PAGES for block in blocks_of(page) if block.not_run]
    with capsys.disabled():
        sys.stdout.write(f"\n{len(marked)} command blocks are not run:\n")
        sys.stdout.writelines(f"  {page}: {block.not_run}\n" for page, block in marked)
    assert len(marked) <= MOST_NOT_RUN
    assert len(RUN) > 8 and len(OUTPUTS) > 8
