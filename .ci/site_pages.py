"""Collect the pages of the site in a folder: docs/, README and its neighbours, and the reference.

`python .ci/site_pages.py FOLDER`. The reference of settings and commands is written from the
code, so it is never older than it. Links between the pages are made those of one flat folder.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from pipeline_defs.commands.build.config import Key, default_text, keys_of, meaning
from pipeline_defs.commands.main import app
from resources.settings.pipeline import Settings

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {  # pages at the root of the repository, by their names on the site
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
SETTINGS = """# Settings

Every key of `pipeline.yaml`, as `corpus config` prints it. Unknown keys are refused.

"""


def collect(folder: Path) -> None:
    """Write all pages into a folder that is made again."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for name, page in BESIDE.items():
        shutil.copyfile(ROOT / name, folder / page)
    (folder / "settings.md").write_text(SETTINGS + "\n".join(settings()), encoding="utf-8")
    (folder / "all_commands.md").write_text(commands(), encoding="utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(with_links(page.read_text(encoding="utf-8")), encoding="utf-8")


def with_links(text: str) -> str:
    """Return a page with links to pages that were moved; what is not on the site is no link."""
    for name, page in BESIDE.items():
        text = re.sub(rf"\]\(((?:\.\./)*){name}", lambda to, page=page: to_root(to[1], page), text)
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)*(?:sample_data|examples|deploy)/[^)]*\)", r"\1", text)


def to_root(up: str, page: str) -> str:
    """Return the begin of a link to a page that was beside docs/ and is now in it."""
    return f"]({up.removeprefix('../')}{page}"


def settings() -> Iterator[str]:
    """Yield the lines of the page of settings: a list for each key at the top."""
    for top, keys in groupby(keys_of(Settings, ""), top_of):
        yield f"## {top}\n"
        for key in keys:
            yield f"* `{key.path}`: {as_written(meaning(key.field) + default_text(key.field))}"
        yield ""


def top_of(key: Key) -> str:
    """Return the key at the top of pipeline.yaml that a key is below."""
    return re.split(r"[\[.]", key.path)[0]


def as_written(text: str) -> str:
    """Return a text as Markdown that shows it as it is written."""
    return re.sub(r"([\\`*_{}\[\]])", r"\\\1", escape(text, quote=False))


def commands() -> str:
    """Return the page of commands, from the command's own help."""
    text = app.generate_docs(output_format="markdown", heading_level=1)
    return text.replace("```console", "```text")


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
