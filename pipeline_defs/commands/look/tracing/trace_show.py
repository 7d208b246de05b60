"""Print traces. Texts and URLs are untrusted: control characters are shown as signs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UnsetType
from rich.console import Console
from rich.text import Text

from pipeline_defs.commands.look.document_lines import likeness, print_lines
from pipeline_defs.commands.look.lineage import Origin
from pipeline_defs.commands.look.tracing.trace_document import (
    Decision,
    DocumentTrace,
    Hit,
    Membership,
    ShardRow,
    Tokenized,
)
from pipeline_defs.commands.look.tracing.trace_rows import Row, RowDocument, SampleRow, TokenPlace
from pipeline_defs.commands.terminal.output import one_line

NOT_THERE = "not there: see `corpus summary` for what is materialized"
Line = tuple[str, str | None]  # name and text; None: not known


def print_row(row: Row) -> None:
    """Print a row of a shard: its place, then its documents in their order."""
    console = Console(soft_wrap=True, highlight=False)
    print_lines(console, safe(row_lines(row)))
    pointed = None if isinstance(row.token, UnsetType) else row.token.document
    for number, document in enumerate(row.documents):
        console.rule()
        mark = " <- the token" if number == pointed else ""
        console.print(Text(f"{document.doc_id}{mark}", "bold"))
        print_lines(console, safe(document_lines(document)))


def row_lines(row: Row) -> Iterator[Line]:
    """Yield lines about the row itself."""
    if isinstance(row, SampleRow):
        yield "sample", f"{row.sample:,} of phase {row.phase} (seed {row.seed})"
        yield "epoch", f"{row.epoch} of the phase, {row.source_epoch} of {row.source}"
        yield "data", f"{row.data}: the fingerprint of its mixture"
    removed = ": removed, no longer drawn" if row.is_removed is True else ""
    yield "shard", f"{row.shard}, row {row.row:,}{removed}"
    padding = row.stored_tokens - row.num_tokens
    yield "tokens", f"{row.num_tokens:,} and {padding:,} of padding"
    if not isinstance(row.token, UnsetType):
        yield "token", token_text(row.token)


def token_text(token: TokenPlace) -> str:
    """Describe a token of a row."""
    place = f"{token.position:,} (id {token.id})"
    if token.document is None:
        return f"{place}: padding"
    at_byte = f", from byte {token.byte:,} of its text on" if isinstance(token.byte, int) else ""
    return f"{place}: number {token.index:,} of its document{at_byte}"


def document_lines(document: RowDocument) -> Iterator[Line]:
    """Yield lines about a document in a row."""
    first, length, start = document.position, document.tokens, document.start
    yield "tokens", f"{first:,} to {first + length - 1:,}: its {start:,} to {start + length - 1:,}"
    if isinstance(document.source, UnsetType):
        yield "origin", "not among the tokenized documents that are still there"
    else:
        yield from origin_lines(document)
    yield "text", document.text


def origin_lines(document: RowDocument | Origin) -> Iterator[Line]:
    """Yield lines about the origin of a document."""
    yield "source", known(document.source)
    origin = None if isinstance(document.origin, UnsetType) else document.origin
    file, row = (origin.file, origin.row) if origin else (None, None)
    yield "origin", f"{file}, row {row}"
    for name in ("url", "id", "lang", "license"):
        yield name, known(getattr(document, name))


def known(value: str | UnsetType | None) -> str | None:
    """Return a value, None if it is not set."""
    return None if isinstance(value, UnsetType) else value


def print_document(trace: DocumentTrace) -> None:
    """Print the result of each stage for a document, one line or more for each."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(f"{trace.doc_id} ({trace.source})", "bold"))
    raw = [("raw", NOT_THERE)] if trace.raw is None else origin_lines(trace.raw)
    print_lines(console, safe(raw))
    lines = {
        "filtered": filtered_text(trace.filtered),
        "duplicates": cluster_text(trace.duplicates, trace.kept_split),
        "deduped": deduped_text(trace),
        "tokenized": tokens_text(trace.tokenized),
        "sharded": held_out_text(trace) + rows_text(trace.sharded, trace.removed_rows),
        "leakage": leakage_text(trace),
        "bucketed": left_out_text(trace),
    }
    print_lines(console, safe(lines.items()))


def filtered_text(decision: Decision) -> str:
    """Describe the decision of the filters."""
    verdict = "kept" if decision.kept else f"rejected: {', '.join(decision.reasons)}"
    if isinstance(decision.other_language, UnsetType):
        return verdict
    return f"{verdict}; in {decision.other_language}, none of its source's languages"


def cluster_text(member: Membership | None, kept_split: str | UnsetType) -> str:
    """Describe the document's cluster, and whether the one that stays for it is held out."""
    if member is None:
        return "no copy of it was found"
    cluster = f"cluster {member.cluster_id} of {member.cluster_size:,}"
    if member.method is None:
        return f"stays for {cluster}"
    survivor = f"{member.kept_doc_id} ({member.kept_source})"
    measure = f"{member.method}, similarity {likeness(member.similarity)}"
    held = "" if isinstance(kept_split, UnsetType) else f", which is held out for {kept_split}"
    return f"a copy ({measure}) of {survivor}{held}, {cluster}"


def deduped_text(trace: DocumentTrace) -> str:
    """Describe the result of `deduped`: what removed the document, and what was cut."""
    deduped, member = trace.deduped, trace.duplicates
    if deduped is None:
        return NOT_THERE
    cuts = [f"{cut.step} cut {cut.cut_chars:,} characters" for cut in deduped.changes]
    hits = [hit_text(hit) for hit in deduped.contamination]
    if deduped.kept:
        return ", ".join(["kept", *cuts, *hits])
    if not trace.filtered.kept:
        return "has none of it: `filtered` rejected it"
    if member is not None and member.method is not None:
        return f"removed as a copy of {member.kept_doc_id}"
    rejected = [
        f"removed by {cut.step}: too little of it is left"
        for cut in deduped.changes
        if cut.is_rejected
    ]
    return ", ".join(["removed" if hits else "", *hits, *rejected, *cuts]).removeprefix(", ")


def hit_text(hit: Hit) -> str:
    """Describe an item of an evaluation set that a document has, by its first passage."""
    return (
        f"contaminated by item {hit.item} of evaluation set {hit.set} ({hit.item_share:.0%} of it; "
        f"bytes {hit.start:,} to {hit.stop:,}: {hit.passage!r})"
    )


def leakage_text(trace: DocumentTrace) -> str | None:
    """Say what a document for training has in common with a held-out one."""
    if isinstance(leakage := trace.leakage, UnsetType):
        return None
    verdict = "in no sequence for it" if leakage.is_left_out else "stays in training"
    shared = f"{leakage.share:.1%} of its 13-grams are in the held-out {leakage.held_doc_id}"
    return f"{shared}: {verdict}"


def left_out_text(trace: DocumentTrace) -> str | None:
    """Say for what `bucketed` leaves out documents of the source, if a document is in no row."""
    if isinstance(trace.left_out, UnsetType):
        return None
    reasons = ", ".join(f"{count:,} for {reason}" for reason, count in trace.left_out.items())
    return f"leaves out documents of {trace.source}: {reasons}"


def tokens_text(tokenized: Tokenized | None) -> str:
    """Describe the document's length."""
    return "has none of it" if tokenized is None else f"{tokenized.tokens:,} tokens"


def held_out_text(trace: DocumentTrace) -> str:
    """Begin the line of a document that is held out of training."""
    return "" if isinstance(trace.split, UnsetType) else f"held out for {trace.split}: "


def rows_text(rows: Sequence[ShardRow], removed: int) -> str:
    """Describe the places of the document's tokens."""
    texts = [
        f"shard {row.shard}, row {row.row:,}: {row.tokens:,} tokens from its "
        f"{row.start:,} on, at {row.position:,}"
        for row in rows
    ]
    if removed:
        texts.append(f"removed rows with tokens of it, no longer drawn: {removed:,}")
    return "; ".join(texts) or "has none of it"


def safe(lines: Iterable[Line]) -> dict[str, str]:
    """Return lines that are safe on a terminal; those that are not known are left out."""
    return {name: one_line(text) for name, text in lines if text is not None}
