"""Previews: files of the store with what is shown of a partition's documents, for people.

    <store>/_previews/raw/web.md

and the page of `corpus report`, <store>/_previews/report/all.html

They hold text, so that they are in the store, where takedowns reach them, and not in Dagster's
records, which link to them. They follow from the newest state, and are no part of any fingerprint.
"""

from __future__ import annotations

from pathlib import Path

from resources.store.disk import make_folder, remove_temporaries, write_temporary
from resources.store.medium import medium_of

PREVIEWS = "_previews"
SUFFIX = ".md"
SUM = ".sum"  # of what the parts have, beside the preview: summed_files.py
REPORT = "report"
PAGE = f"{REPORT}/all.html"
PAGE_ADDRESS = "/corpus_report"  # in the web UI


def preview_path(root: Path, stage: str, partition: str) -> Path:
    """Return the path of a partition's preview."""
    return root / PREVIEWS / stage / f"{partition}{SUFFIX}"


def page_path(root: Path) -> Path:
    """Return the path of the page of `corpus report`."""
    return root / PREVIEWS / PAGE


def write_preview(path: Path, content: str) -> None:
    """Write a preview, or remove the one that is there if there is nothing to show."""
    medium = medium_of(path.parent)
    if path.parent.name == REPORT:  # a command writes there that waits for no run
        remove_temporaries(path.parent)
    if content:
        make_folder(path.parent)
        medium.publish(write_temporary(path.parent, path.name, content.encode()), path)
    else:
        medium.remove_all([path])
