"""Take the pictures of the web UI that the docs show: make_screenshots.py PIPELINE_YAML OUT.

The corpus is built already. Run it with the folder `tests` on PYTHONPATH, and look at the pictures.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from browser import running_browser
from ui_server import running_ui

PAGES = {  # name, path in the UI
    "ui-lineage": "/asset-groups/",
    "ui-runs": "/runs",
    "ui-asset": "/assets/filtered",
    "ui-checks": "/assets/filtered?view=checks",
    "report-page": "/corpus_report",
}
SECONDS = 15  # until a page is drawn


def main() -> None:
    """Open the pages and write a picture of each."""
    config, out = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as profile,
        running_ui(config, config.parent / ".dagster", Path(profile)) as address,
        running_browser(Path(profile)) as browser,
    ):
        for name, path in PAGES.items():
            page = browser.open(address + path)
            time.sleep(SECONDS)
            page.screenshot(out / f"{name}.png")


if __name__ == "__main__":
    main()
