"""What a person does in the web UI, with the mouse: from one partition to the schedule."""

import subprocess

from browser import Browser, Page, running_browser, wait_for
from builders import sentence, write_corpus
from command_line import ROOT
from prelude import Iterator, Path, json, os, pytest, sys
from ui_server import running_ui

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that `corpus build` has built."""
    path = write_corpus(tmp_path_factory.mktemp("built"))
    names = {"TOKENMILL_CONFIG": str(path), "DAGSTER_HOME": str(path.parent / ".dagster")}
    command = [sys.executable, "-m", "pipeline_defs.commands.main", "build"]
    subprocess.run(command, cwd=ROOT, env=os.environ | names, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def ui(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str]]:
    """A browser, and the address of the corpus's UI."""
    with (
        running_ui(config, config.parent / ".dagster") as address,
        running_browser(tmp_path_factory.mktemp("profile")) as browser,
    ):
        yield browser, address


def manifests(config: Path, source: str) -> int:
    return len(list((config.parent / "store/raw" / source / "_manifests").iterdir()))


def materialize(page: Page, *choices: str) -> None:
    """Choose partitions in the dialog of the asset's button, and launch."""
    page.click("Materialize\u2026", lambda: "Partition selection" in page.text())
    for choice in choices:
        page.click(choice)
    if choices != ("All",):
        page.click("Launch runs to materialize")  # closes the list
    page.click("Launch ", lambda: "Partition selection" not in page.text())


def newest_status(runs: Page) -> str:
    """Status of the newest run in the list of runs, which is loaded again."""
    runs.send("Page.reload")
    wait_for(lambda: "Created at" in runs.text() and "View" in runs.text().split("Created at")[-1])
    words = runs.text().split("Created at")[-1].split("\n")
    return next((word for word in words if word in ("Success", "Failure")), "")


def test_what_a_person_does(ui: tuple[Browser, str], config: Path) -> None:
    browser, address = ui
    runs = browser.open(f"{address}/runs")
    assert newest_status(runs) == "Success" and "mix_corpus" in runs.text()
    assert "What changed since the state before" in browser.open(f"{address}/corpus_report").text()

    before = manifests(config, "prose"), manifests(config, "notes")
    with (config.parent / "input/prose/a.jsonl").open("a") as file:
        file.write(json.dumps({"text": sentence(900, 40)}) + "\n")
    asset = browser.open(f"{address}/assets/raw")
    materialize(asset, "Select a partition or create one", "prose")
    wait_for(lambda: manifests(config, "prose") == before[0] + 1, 240)
    assert manifests(config, "notes") == before[1]

    notes = config.parent / "input/notes/n.jsonl"
    notes.rename(notes.with_suffix(".away"))
    asset = browser.open(f"{address}/assets/raw")
    materialize(asset, "Select a partition or create one", "notes")
    wait_for(lambda: newest_status(runs) == "Failure", 240)
    checks = browser.open(f"{address}/assets/raw?view=checks")
    wait_for(lambda: "sources_complete" in checks.text())
    assert "Execution failed" not in checks.text()
    notes.with_suffix(".away").rename(notes)

    materialize(browser.open(f"{address}/assets/raw"), "All")
    backfills = browser.open(f"{address}/runs?tab=backfills&view=backfills")
    wait_for(lambda: "Completed" in backfills.text() or "Success" in backfills.text(), 240)

    nightly = browser.open(f"{address}/locations/tokenmill/schedules/nightly")
    switch = "document.querySelector('input[type=checkbox]')"
    wait_for(lambda: nightly.run(f"{switch}?.checked") is False)
    nightly.run(f"{switch}.click()")
    wait_for(lambda: "Next tick" in nightly.text() and nightly.run(f"{switch}.checked"))
