"""Lines about what a source has that was not read, or not whole."""

from __future__ import annotations

from collections.abc import Sequence

from assets.raw.raw_records import Gap, RawNumbers, RawProvenance
from assets.raw.readers.archive_names import NESTED_ARCHIVE
from assets.raw.readers.input_record import Patch
from resources.store.records import Manifest

NUM_NAMED = 20  # files that a manifest or a message names
MOST = 3  # gaps of a stream that a message names


def unread_lines(manifest: Manifest[RawProvenance, RawNumbers]) -> list[str]:
    """Say in a line each of the files of a source that are not read, or not whole."""
    provenance, faulty = manifest.provenance, manifest.stats.numbers.faulty_files
    lines: list[str] = []
    if provenance.left_out and provenance.num_left_out:
        num_matched = provenance.num_left_out + provenance.num_files
        reasons = [f"{name} ({reason})" for name, reason in provenance.left_out.items()]
        lines.append(
            f"{manifest.partition}: {provenance.num_left_out:,} of {num_matched:,} files that "
            f"`where` matches are not read: {named(reasons, provenance.num_left_out)}. Convert "
            "them, or match fewer files with `where`."
        )
    if faulty:
        reasons = [
            f"{name} ({rows:,} damaged rows)" if rows else name
            for name, rows in sorted(faulty.items())
        ]
        lines.append(
            f"{manifest.partition}: {len(faulty):,} of {provenance.num_files:,} files could not "
            f"be read whole: {named(reasons, len(faulty))}. Their errors are in the table "
            "`quarantine`, each with a next step."
        )
    return lines + unread_members(manifest) + lost_entries(manifest)


def unread_members(manifest: Manifest[RawProvenance, RawNumbers]) -> list[str]:
    """Say in a line which members of archives and records of WARC files are left out, if any."""
    number = manifest.stats.numbers.num_unread_members
    if not number:
        return []
    of_parts = [part.stats.numbers.unread_members or {} for part in manifest.parts]
    found = {name: reason for each in of_parts for name, reason in each.items()}
    listed = named([f"{name} ({reason})" for name, reason in found.items()], number)
    if any(reason.endswith("_member") or reason == NESTED_ARCHIVE for reason in found.values()):
        what = "members of archives are not read"
        advice = "Unpack the archives and convert these, or leave them out."
    else:
        what = "records of WARC files are left out"
        advice = "They hold no page that was served as text, and no step is needed."
    return [f"{manifest.partition}: {number:,} {what}: {listed}. {advice}"]


def unused_patches(
    patches: Sequence[Patch], manifest: Manifest[RawProvenance, RawNumbers]
) -> list[str]:
    """Say in a line which patches of a source's files took the place of no record."""
    used, streams = manifest.stats.numbers.patched or {}, manifest.provenance.streams or {}
    of_files = {patch.name: patch for patch in patches if patch.file not in streams}
    left = [
        f"{patch.file}, row {patch.row}" for name, patch in of_files.items() if name not in used
    ]
    if not left:
        return []
    return [
        f"{manifest.partition}: {len(left):,} of {len(of_files):,} patches replace no record: "
        f"{named(left, len(left))}. Their records are gone or have changed: `corpus "
        f"quarantine show {manifest.partition}` has those that are in quarantine now."
    ]


def lost_entries(manifest: Manifest[RawProvenance, RawNumbers]) -> list[str]:
    """Say in a line for each stream what was gone before it was read."""
    streams = manifest.provenance.streams or {}
    return [
        f"{manifest.partition}: {sum(gap.count for gap in state.gaps):,} entries of {name} were "
        f"trimmed or deleted before they were read: {'; '.join(map(gap_text, state.gaps[-MOST:]))}"
        ". Build more often, or let the server keep more."
        for name, state in streams.items()
        if state.gaps
    ]


def gap_text(gap: Gap) -> str:
    """Describe a gap: the last entry known before it, and the first there behind it."""
    known = f"{gap.after} is known" if gap.after else "none is known"
    return f"{gap.count:,}, where {known} and the first there is {gap.first or 'none'}"


def named(items: Sequence[str], number: int) -> str:
    """Join the first NUM_NAMED of a number of items, and say how many follow."""
    shown = items[:NUM_NAMED]
    rest = f" and {number - len(shown):,} more" if number > len(shown) else ""
    return ", ".join(shown) + rest
