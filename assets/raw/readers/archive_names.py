"""Names of the members of archives, and reasons for which members and records are left out.

Names are only ever data, and never a path on this machine.
"""

from __future__ import annotations

ARCHIVES = frozenset({"zip", "tar", "tgz", "gz", "zst", "bz2", "xz", "7z", "rar", "jar"})
FIELD_FILTER = "field_filter"  # what becomes of a record that a filter skips
OTHER_MEMBER = "other_member"
NESTED_ARCHIVE = "nested_archive"
ATTACHMENT, OUTPUT, NAVIGATION = "attachment", "notebook_output", "navigation_document"
MEMBER_KINDS = ("link", "device", "sparse", "unknown")
OTHER_STATUS, OTHER_CONTENT_TYPE, OTHER_RECORD = "http_status", "other_content_type", "other_record"
OTHER_NAMESPACE, REDIRECT, EMPTY_PAGE = "other_namespace", "redirect", "empty_page"  # of a wiki
EMPTY_POST, OTHER_POST, OTHER_XML = "empty_post", "other_post", "other_xml"
RECORD_TYPES = (  # of WARC
    *("warcinfo", "request", "metadata", "revisit", "continuation"),
    *("response", "resource", "conversion"),
)
LEFT_OUT = frozenset(  # all reasons: what is left out for them is no document that was lost
    {OTHER_MEMBER, NESTED_ARCHIVE, OTHER_STATUS, OTHER_CONTENT_TYPE, OTHER_RECORD}
    | {OTHER_NAMESPACE, REDIRECT, EMPTY_PAGE, EMPTY_POST, OTHER_POST, OTHER_XML}
    | {ATTACHMENT, OUTPUT, NAVIGATION}
    | {f"{kind}_member" for kind in MEMBER_KINDS}
    | {f"{kind}_record" for kind in RECORD_TYPES}
)


def name_error(name: str) -> str:
    """Return what is wrong with a name that leads out of its archive; else ""."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or name[1:3] in (":/", ":\\"):
        return f"member {name[:200]!r} has an absolute name"
    return f"member {name[:200]!r} leads out of its archive" if ".." in parts else ""


def shown_name(name: str) -> bytes | None:
    """Return the name of a member that is left out, for the user; None of a hidden one."""
    is_hidden = name.rpartition("/")[2].startswith(".") or name.startswith("__MACOSX/")
    return None if is_hidden else name.encode("utf-8", "backslashreplace")


def why_left_out(suffix: str) -> str:
    """Return the reason for which a member of a format that is not read is left out."""
    return NESTED_ARCHIVE if suffix.rpartition(".")[2] in ARCHIVES else OTHER_MEMBER


def why_left_out_of_warc(record_type: str) -> str:
    """Return the reason for which a record of a type that is not read is left out."""
    return f"{record_type}_record" if record_type in RECORD_TYPES else OTHER_RECORD
