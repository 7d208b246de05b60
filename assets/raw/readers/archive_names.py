"""Names of the members of archives: only ever data, and never a path on this machine."""

from __future__ import annotations

from resources.settings.sources import FileFormat

MEMBER_FORMATS: dict[str, FileFormat] = {
    **{"jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "csv": "csv", "tsv": "tsv"},
    **{"txt": "txt", "md": "md", "markdown": "md", "html": "html", "htm": "html"},
}
ARCHIVES = frozenset({"zip", "tar", "tgz", "gz", "zst", "bz2", "xz", "7z", "rar", "jar"})
OTHER_MEMBER = "other_member"  # reasons for which members are left out
NESTED_ARCHIVE = "nested_archive"


def name_error(name: str) -> str:
    """Return what is wrong with a name that leads out of its archive; else ""."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or name[1:3] in (":/", ":\\"):
        return f"member {name[:200]!r} has an absolute name"
    return f"member {name[:200]!r} leads out of its archive" if ".." in parts else ""


def why_left_out(suffix: str) -> str:
    """Return the reason for which a member of a format that is not read is left out."""
    return NESTED_ARCHIVE if suffix.rpartition(".")[2] in ARCHIVES else OTHER_MEMBER
