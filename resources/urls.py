"""URLs in one form, so that two spellings of one page are equal: RFC 3986, and IDNA for hosts.

Scheme and host are in lower case, a host's letters beyond ASCII are xn-- labels, the root's dot,
user info and the scheme's own port are gone; escapes are decoded where a plain character means the
same, and dot segments are resolved. A URL may be without a scheme, as users write it.

A fragment names a place in a page and is dropped, except routes (`#/a`, `#!a`), which are how some
sites name pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from unicodedata import normalize

START = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//")
PARTS = re.compile(r"([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
PORT = re.compile(r":(\d*)$")
OWN_PORTS = {"": (80, 443), "http": (80,), "https": (443,), "ftp": (21,)}
IGNORED = dict.fromkeys(map(ord, "\t\r\n"))  # browsers remove these anywhere in a URL
STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2})+")
NOT_IN_URLS = re.compile('[\x00-\x20"<>\\\\^`{|}\x7f-\x9f]')
MAY_CHANGE = re.compile(r"[^!#$&-;=?-\[\]_a-z~]")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True)
class Url:
    """A URL in normal form; letters beyond ASCII are as they are in all but the host.

    scheme  "" if none is given
    host    "" if there is none: then the path has all that comes before a query
    port    None for the scheme's own
    path    "/" if none is given
    query   without "?"; "" if there is none
    route   a fragment that names a page; "" if there is none
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str
    route: str

    @property
    def domain(self) -> str:
        """The host without a leading "www."."""
        return self.host.removeprefix("www.")

    @property
    def place(self) -> str:
        """Path and query, as rules of a robots.txt look at them."""
        return self.path + (f"?{self.query}" if self.query else "")

    def address(self, tracking_parameters: Sequence[str] = ()) -> str:
        """Return the address of a page, without scheme, "www.", case, last slashes and tracking."""
        port = "" if self.port is None else f":{self.port}"
        kept = without_tracking(self.query, tracking_parameters)
        query = (f"?{kept}" if kept else "") + (f"#{self.route}" if self.route else "")
        return f"{self.domain}{port}{self.path}{query}".rstrip("/").lower()


def parse_url(text: str) -> Url:
    """Bring a URL to its normal form; what has no host gets none, and is never an error."""
    text = text.translate(IGNORED).strip()
    start = START.match(text)
    parts = PARTS.fullmatch(text[start.end() :] if start else text)
    assert parts is not None, "every text matches"
    authority, path, query, fragment = (part or "" for part in parts.groups())
    scheme = (start[1] or "").lower() if start else ""
    host, port = host_and_port(authority.rpartition("@")[2])
    if authority and not host:
        return Url(scheme, "", None, unescaped(authority + path), unescaped(query), "")
    return Url(
        scheme,
        host,
        None if port in OWN_PORTS.get(scheme, ()) else port,
        without_dot_segments(unescaped(path)) or "/",
        unescaped(query),
        unescaped(fragment) if fragment.startswith(("/", "!")) else "",
    )


def host_and_port(authority: str) -> tuple[str, int | None]:
    """Return host and port of "host:port"; what can be no host gives ""."""
    found = PORT.search(authority)
    name = authority[: found.start()] if found else authority
    port = int(found[1]) if found and found[1] and len(found[1]) <= 5 else None
    return normal_host(name), port


def normal_host(name: str) -> str:
    """Return a host in lower case, with xn-- labels and without the root's dot; "" for no host."""
    if name.startswith("["):
        try:
            return f"[{IPv6Address(name[1:-1]).compressed}]"
        except ValueError:
            return ""
    name = unescaped(name)
    if not name.isascii():
        name = with_ascii_labels(name)
    name = name.lower().rstrip(".")
    is_host = name and not NOT_IN_URLS.search(name) and ".." not in f".{name}"
    return name if is_host and not set(name) & set("%:@[],;=()!*'&+$") else ""


def with_ascii_labels(name: str) -> str:
    """Return a host with xn-- labels: by UTS 46, as browsers do, or as Punycode where it forbids.

    It forbids what some hosts have: emoji, and underscores beside other letters.
    """
    import idna

    try:
        name = idna.uts46_remap(name, std3_rules=False, transitional=False)
    except idna.IDNAError:
        name = normalize("NFKC", name.lower())
    labels = re.split("[.。．｡]", name)
    return ".".join(label if label.isascii() else ascii_label(label) for label in labels)


def ascii_label(label: str) -> str:
    """Return the xn-- form of a label."""
    import idna

    try:
        return idna.alabel(label).decode()
    except idna.IDNAError:
        return "xn--" + label.encode("punycode", "surrogatepass").decode()


def unescaped(part: str) -> str:
    """Decode escapes of unreserved characters and of letters; spell all others in one way."""
    if not MAY_CHANGE.search(part):
        return part
    text = ESCAPES.sub(plain_characters, STRAY_PERCENT.sub("%25", part))
    return NOT_IN_URLS.sub(lambda found: escaped(found[0]), normalize("NFC", text))


def plain_characters(escapes: re.Match[str]) -> str:
    """Return a run of escapes with those decoded that mean a plain character."""
    text = bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "surrogateescape")
    return "".join(one if is_plain(one) else escaped(one) for one in text)


def is_plain(character: str) -> bool:
    """Check that a character means the same with and without an escape: it is no delimiter."""
    is_letter = character > "\x9f" and not "\ud800" <= character <= "\udfff"
    return is_letter or character in UNRESERVED


def escaped(character: str) -> str:
    """Return the escapes of a character, in upper case."""
    content = character.encode("utf-8", "surrogateescape")
    return "".join(f"%{byte:02X}" for byte in content)


def without_dot_segments(path: str) -> str:
    """Resolve "." and ".." in a path that begins with a slash, or is empty (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    segments = path.split("/")
    kept = segments[:1]
    for segment in segments[1:]:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    return "/".join([*kept, ""] if segments[-1] in (".", "..") else kept)


def without_tracking(query: str, parameters: Sequence[str]) -> str:
    """Leave parameters out of a query, by name; a name that ends in * means all that begin so."""
    if not query or not parameters:
        return query
    names = {name for name in parameters if not name.endswith("*")}
    starts = tuple(name[:-1] for name in parameters if name.endswith("*"))
    pairs = ((pair, pair.partition("=")[0].lower()) for pair in query.split("&"))
    return "&".join(
        pair for pair, name in pairs if name not in names and not name.startswith(starts)
    )


def domains_above(host: str) -> Iterator[str]:
    """Yield a host and the domains that it is in: a.b.org, b.org, org."""
    levels = host.split(".")
    for start in range(len(levels)):
        yield ".".join(levels[start:])
