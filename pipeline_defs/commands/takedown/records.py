"""`corpus takedown list`, `withdraw` and `export`: the requests that a store has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter
from msgspec import UNSET

from assets.text.takedown_files import TAKEN_DOWN
from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.takedown.find import SEARCHED, names_by_source, stage_records
from pipeline_defs.commands.terminal import Json, Positive, alone_on, say
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.store.store import Store
from resources.takedowns import Takedown, add_takedown, read_recorded, task_name

NUMBERS = ("number", "documents", "parts", "withdraws", "withdrawn_by")
REQUESTS: dict[str, Any] = {
    **dict.fromkeys(("kind", "date", "reason", "form", "sources"), pl.String),
    **dict.fromkeys(NUMBERS, pl.Int64),
    "near": pl.Boolean,
}


def requests_of(store: Store) -> pl.DataFrame:
    """Return the requests of a store in the order of coming.

    `form` is of their hashes, `withdraws` and `withdrawn_by` are numbers.
    """
    recorded = read_recorded(store.root)
    withdrawn = {each.withdraws: number for number, each in enumerate(recorded, 1)}
    rows = []
    for number, each in enumerate(recorded, 1):
        form = f"marks of ids, texts and passages in form {each.text_form or 1}"
        if each.addresses or each.domains:
            form = f"sha256 of a {each.kind} in form {each.form.version if each.form else 1}"
        rows.append(
            {
                "number": number,
                "kind": each.kind,
                "date": each.date or None,
                "reason": each.reason,
                "form": "" if each.withdraws else form,
                "near": each.near,
                "documents": each.documents,
                "parts": sum(map(len, each.parts.values())),
                "sources": ", ".join(each.parts),
                "withdraws": each.withdraws or None,
                "withdrawn_by": withdrawn.get(number),
            }
        )
    return pl.DataFrame(rows, REQUESTS)


def list_requests(*, json: Json = False) -> int:
    """Print the requests."""
    store = load_corpus().store
    nothing = "No takedown is recorded: `corpus takedown` records one."
    answer("takedowns", requests_of(store), nothing, json=json)
    return 0


def export(
    path: Annotated[Path, Parameter(help="File to write: audit.csv or audit.jsonl.")], /
) -> int:
    """Write the requests to a file."""
    if path.suffix not in (".csv", ".jsonl"):
        raise UsageError(f"{path} is neither .csv nor .jsonl. Name one such as audit.csv.")
    store = load_corpus().store
    table = requests_of(store)
    if table.is_empty():
        raise UsageError(f"No takedown is recorded in {store}: nothing was written.")
    try:
        table.write_csv(path) if path.suffix == ".csv" else table.write_ndjson(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    say(f"{path}: {table.height:,} requests.")
    return 0


def withdraw(
    number: Annotated[Positive, Parameter(help="Number of the request in `corpus takedown list`.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; it is kept as written, so name nobody in it.")],
    date: Annotated[str | None, Parameter(help="Date; kept as written.")] = None,
) -> int:
    """Record that a request no longer holds."""
    store = load_corpus().store
    with alone_on(store.root, "corpus takedown withdraw"):
        requests = requests_of(store)
        if number > requests.height:
            raise UsageError(f"There is no takedown {number}; there are {requests.height:,}.")
        by, withdraws = requests.select("withdrawn_by", "withdraws").row(number - 1)
        if by or withdraws:
            what = f"is withdrawn by {by}" if by else "withdraws another"
            raise UsageError(f"Takedown {number} {what}. `corpus takedown list` has all.")
        wanted = read_recorded(store.root)[number - 1]
        dated = UNSET if date is None else date
        parts = parts_since(store, wanted)
        took = Takedown("withdraw", reason, parts=parts, date=dated, withdraws=number)
        own = add_takedown(store.root, took)
    say(
        f"Takedown {own} withdraws {number} ({wanted.documents:,} documents). Documents that no "
        "other request means come back with the next build, from your input files. Next: corpus "
        "build"
    )
    return 0


def parts_since(store: Store, wanted: Takedown) -> dict[str, tuple[str, ...]]:
    """Return the tasks that have left out documents or items and are not named by a request.

    They were read after it, so that their fingerprint is that of a part with the documents.
    """
    tasks = (
        (folder.name, task_name(record.name))
        for folder, record in stage_records(store, SEARCHED)
        if record.stats.rejected.get(TAKEN_DOWN)
    )
    return names_by_source(
        (source, task) for source, task in tasks if task not in wanted.parts.get(source, ())
    )
