"""A trace for people. Texts and URLs are untrusted: control characters are shown as signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from pipeline_defs.commands.look.document_lines import likeness, print_lines
from pipeline_defs.commands.terminal.output import ONE_LINE

NOT_THERE = "not there: see `corpus summary` for what is materialized"


def print_row(found: Mapping[str, Any]) -> None:
    """Print a row of a shard: where it is, then its documents in their order."""
    console = Console(soft_wrap=True, highlight=False)
    print_lines(console, safe(row_facts(found)))
    pointed = found.get("token", {}).get("document")
    for number, document in enumerate(found["documents"]):
        console.rule()
        mark = " <- the token" if number == pointed else ""
        console.print(Text(f"{document['doc_id']}{mark}", "bold"))
        print_lines(console, safe(document_facts(document)))


def row_facts(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is said of a row itself."""
    if "phase" in found:
        yield "sample", f"{found['sample']:,} of phase {found['phase']} (seed {found['seed']})"
        yield (
            "epoch",
            f"{found['epoch']} of the phase, {found['source_epoch']} of {found['source']}",
        )
        yield "data", f"{found['data']}: the fingerprint of its mixture"
    yield "shard", f"{found['shard']}, row {found['row']:,}"
    padding = found["stored_tokens"] - found["num_tokens"]
    yield "tokens", f"{found['num_tokens']:,} and {padding:,} of padding"
    if token := found.get("token"):
        where = f"{token['position']:,} (id {token['id']})"
        if token["document"] is None:
            yield "token", f"{where}: padding"
        else:
            yield "token", f"{where}: number {token['index']:,} of its document{at_byte(token)}"


def at_byte(token: Mapping[str, Any]) -> str:
    """Where the token starts in the text, if that was kept."""
    return "" if token["byte"] is None else f", from byte {token['byte']:,} of its text on"


def document_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is said of a document in a row."""
    first, length, start = (document[key] for key in ("position", "tokens", "start"))
    yield "tokens", f"{first:,} to {first + length - 1:,}: its {start:,} to {start + length - 1:,}"
    yield from origin_facts(document)
    yield "text", document["text"]


def origin_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Where a document came from."""
    if "source" not in document:
        yield "origin", "not among the tokenized documents that are still there"
        return
    origin = document["origin"] or {}
    yield "source", document["source"]
    yield "origin", f"{origin.get('file')}, row {origin.get('row')}"
    for name in ("url", "id", "lang", "license"):
        yield name, document[name]


def print_document(found: Mapping[str, Any]) -> None:
    """Print a document's way through the stages, one line or more for each."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(f"{found['doc_id']} ({found['source']})", "bold"))
    raw = found["raw"]
    print_lines(console, safe([("raw", NOT_THERE)] if raw is None else origin_facts(raw)))
    for stage, tell in STAGES.items():
        print_lines(console, safe([(stage, tell(found[stage]))]))


def tell_filtered(found: Mapping[str, Any]) -> str:
    """What the filters decided."""
    return "kept" if found["kept"] else f"rejected: {', '.join(found['reasons'])}"


def tell_cluster(found: Mapping[str, Any] | None) -> str:
    """Which cluster the document is in."""
    if found is None:
        return "no copy of it was found"
    cluster = f"cluster {found['cluster_id']} of {found['cluster_size']:,}"
    if found["method"] is None:
        return f"stays for {cluster}"
    survivor = f"{found['kept_doc_id']} ({found['kept_source']})"
    how = f"{found['method']}, similarity {likeness(found['similarity'])}"
    return f"a copy ({how}) of {survivor}, {cluster}"


def tell_deduped(found: Mapping[str, Any] | None) -> str:
    """Whether it was kept, and what was cut."""
    if found is None:
        return NOT_THERE
    cuts = [f"{each['step']} cut {each['cut_chars']:,} characters" for each in found["changes"]]
    return ", ".join(["kept" if found["kept"] else "removed", *cuts])


def tell_tokens(found: Mapping[str, Any] | None) -> str:
    """How long it is."""
    return "has none of it" if found is None else f"{found['tokens']:,} tokens"


def tell_rows(found: list[dict[str, Any]]) -> str:
    """Where its tokens lie."""
    rows = [
        f"shard {each['shard']}, row {each['row']:,}: {each['tokens']:,} tokens from its "
        f"{each['start']:,} on, at {each['position']:,}"
        for each in found
    ]
    return "; ".join(rows) or "has none of it"


STAGES: dict[str, Any] = {
    "filtered": tell_filtered,
    "duplicates": tell_cluster,
    "deduped": tell_deduped,
    "tokenized": tell_tokens,
    "sharded": tell_rows,
}


def safe(facts: Any) -> dict[str, str]:
    """Facts as lines that do nothing to the terminal; those that are not known are left out."""
    return {name: str(fact).translate(ONE_LINE) for name, fact in facts if fact is not None}
