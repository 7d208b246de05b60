"""Recognise what a file holds by its first bytes, where its name says something else."""

import re

from assets.raw.readers.input_file import Compression

MAGIC: tuple[tuple[re.Pattern[bytes], str, Compression | None], ...] = (
    (re.compile(rb"\x1f\x8b"), "gzip", "gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "zst"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", "bz2"),
    (re.compile(rb"\xfd7zXZ\0"), "xz", "xz"),
)
FRAME = 0xFD2FB528  # RFC 8878 3.1
SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
FRAME_HEADER_BYTES = 14  # of the largest header of a frame without its magic number: 1 + 1 + 4 + 8
UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
POINTER_BYTES = 1024  # that a pointer of Git LFS has at most, by its specification
POINTERS = (
    (
        re.compile(
            rb"version https://(git-lfs|hawser)\.github\.com/spec/v1\r?\n(.+\n)*oid sha256:"
        ),
        "this is a Git LFS pointer: run `git lfs pull` in the repository that the file is from",
    ),
    (
        re.compile(rb"(\.\./|\.git)*/annex/objects/[^\n]+\n?\Z"),
        "this is a git-annex pointer: run `git annex get` in the repository that the file is from",
    ),
)
HTML_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(?><!--.*?-->\s*)*+<(!doctype\s+html|html|head|title)\b",
    re.IGNORECASE | re.DOTALL,
)
TITLE = re.compile(rb"<(title|h1)\b[^>]*>([^<]+)", re.IGNORECASE)
STORE_ERROR = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<Error>.{0,200}?<Code>([^<]+)", re.DOTALL)
ERROR_TITLE = re.compile(
    r"\b[45]\d\d\b|not found|forbidden|denied|unauthorized|error|unavailable|sign in|log ?in|"
    r"bad gateway|too many requests|just a moment|moved permanently",
    re.IGNORECASE,
)
PAGE_FORMATS = frozenset({"html", "md", "txt"})  # that a page in HTML may be an input of
TITLE_CHARS = 80
SAVED_PAGE = (
    "this is {0}: get the file again from its own address, with the credentials that it needs"
)
PROBED_BYTES = 64  # of text in UTF-16 without its mark; ASCII letters have a zero byte each


def foreign_content(
    head: bytes, own: Compression | None = None, file_format: str | None = None
) -> str:
    """Return what the first bytes are if they are not what a file's name says, and what to do.

    That is other bytes than UTF-8 text, a pointer to a file, or a page in place of one; else "".
    `own` is the compression that the bytes should have.
    """
    if len(head) <= POINTER_BYTES:
        for pattern, said in POINTERS:
            if pattern.match(head):
                return said
    if page := _saved_page(head, file_format):
        return page
    for magic, name, compression in MAGIC:
        if compression != own and magic.match(head):
            instead = f" in place of .{own}" if own else ""
            return f"this is {name}: add .{compression} to the file's name{instead}"
    encoding = _wide_encoding(head)
    if encoding and not (encoding == "UTF-16" and file_format == "html"):  # its mark is decoded
        return f"this is {encoding}: convert it with iconv -f {encoding} -t UTF-8"
    return ""


def packed_as(head: bytes) -> Compression | None:
    """Return the compression that the first bytes of a file tell."""
    return next((packed for magic, _, packed in MAGIC if magic.match(head)), None)


def _saved_page(head: bytes, file_format: str | None) -> str:
    """Return that a page was saved as a file of records; as text, only a page about an error."""
    if error := file_format not in PAGE_FORMATS and STORE_ERROR.match(head):
        return f"{SAVED_PAGE.format('an error of an object store')} (it says {_shown(error[1])!r})"
    if file_format == "html" or not HTML_PAGE.match(head):
        return ""
    title = _shown(found[2]) if (found := TITLE.search(head)) else ""
    if file_format in PAGE_FORMATS and not ERROR_TITLE.search(title):
        return ""
    return SAVED_PAGE.format("an HTML page") + (f" (its title is {title!r})" if title else "")


def _shown(text: bytes) -> str:
    return " ".join(text.decode("utf-8", "replace").split())[:TITLE_CHARS]


def plain_content(head: bytes, own: Compression) -> str:
    """Return that the first bytes are text and not compressed, and what to do; else ""."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else the last character is cut
            return ""
        text = head[: error.start].decode()
    if not text or "\0" in text:
        return ""
    kind = "JSON" if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else "text"
    return f"this is plain {kind}: remove .{own} from the file's name"


def zstd_window(head: bytes) -> int:
    """Return the window that a zst frame needs, in bytes (RFC 8878 3.1.1.1); 0 if it is none."""
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        return 0
    if head[4] & 0x20:  # a single segment, whose window is its content
        return content_of_frame(head)
    exponent, mantissa = head[5] >> 3, head[5] & 7
    base = 1 << (10 + exponent)
    return base + base // 8 * mantissa


def _wide_encoding(head: bytes) -> str:
    if head.startswith(UTF_32):
        return "UTF-32"
    if head.startswith(UTF_16):
        return "UTF-16"
    probe = head[:PROBED_BYTES]
    even, odd = probe[::2], probe[1::2]
    if len(probe) >= 8 and not any(odd) and all(even):
        return "UTF-16LE"
    return "UTF-16BE" if len(probe) >= 8 and not any(even) and all(odd) else ""


def content_of_frame(head: bytes) -> int:
    """Return the size of the content that the first frame's header tells, 0 if it does not."""
    if len(head) < 5 or int.from_bytes(head[:4], "little") != FRAME:
        return 0
    descriptor = head[4]
    size = (descriptor >> 5 & 1, 2, 4, 8)[descriptor >> 6]
    start = 4 + header_size(descriptor) - size
    told = int.from_bytes(head[start : start + size], "little")
    return told + 256 if size == 2 else told


def header_size(descriptor: int) -> int:
    """Return the size of a frame's header, by its first byte (RFC 8878 3.1.1.1)."""
    is_single = descriptor >> 5 & 1
    content = (is_single, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    return 1 + (1 - is_single) + dictionary + content
