"""Guard of the web UI: refuse what another web page, or another name, sends to it.

Dagster's web server trusts whoever reaches its port, and any web page that you look at reaches it
through your browser. A request passes if

- its Host is a name that we serve. A page whose name was pointed to 127.0.0.1 (DNS rebinding) has
  the server's origin in the browser's eyes, but its own name in Host;
- its Origin, if it has one, is this server's. Browsers send Origin with every POST, every
  WebSocket and every cross-origin fetch; programs such as curl send none, and no page can hide it;
- its Sec-Fetch-Site, if it has one, names no other site, unless a link leads here: this covers
  what has no Origin, such as images and scripts of another page;
- it has a JSON or GraphQL body, if it is no GET. A page cannot send these types elsewhere without
  a preflight, which is refused; it can send forms and plain text;
- it is no GET with a mutation. A link is enough to send one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resources.errors import UsageError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
JUDGED = ("host", "origin", "content-type", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
BODIES = ("application/json", "application/graphql")
RESPONSE_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]+)?")
SHOWN = 100  # characters of a refused value


class Guard:
    """ASGI middleware that answers 403, with the reason, to what `refusal` refuses."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, or pass it on and add headers to the answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif reason := refusal(scope, self.hosts):
            answer = PlainTextResponse(f"Refused: {reason}\n", status_code=403)
            await answer(scope, receive, with_headers(send))
        else:
            await self.app(scope, receive, with_headers(send))


def hosts_of(names: Iterable[str], port: int) -> frozenset[str]:
    """Return the values of Host that name this server.

    A name without a port is meant with ours, and without any: a proxy may listen on 80 or 443.
    """
    hosts: set[str] = set()
    for name in (*LOOPBACK, *(name.lower() for name in names)):
        if not (found := HOST.fullmatch(name)):
            raise UsageError(f"--host-name {name!r} is no NAME or NAME:PORT, such as box.example")
        hosts |= {name} if found["port"] else {name, f"{name}:{port}"}
    return frozenset(hosts)


def refusal(scope: Scope, hosts: frozenset[str]) -> str | None:
    """Return why a request is refused: header, value, and what to do; None if it passes."""
    headers = Headers(scope=scope)
    method = scope.get("method", "GET")  # a WebSocket's handshake is a GET
    for name in JUDGED:
        if len(headers.getlist(name)) > 1:
            return f"the header {name.title()} occurs more than once; send it once."
    if reason := foreign_host(headers, hosts) or foreign_origin(headers, method):
        return reason
    if method not in ("GET", "HEAD"):
        return unsafe_body(headers)
    return mutation_by_get(QueryParams(scope["query_string"]))


def foreign_host(headers: Headers, hosts: frozenset[str]) -> str | None:
    """Refuse a Host that does not name this server."""
    host = headers.get("host", "").lower()
    if host in hosts:
        return None
    return (
        f"the header Host is {host[:SHOWN]!r}, and this server is {', '.join(sorted(hosts))}. "
        "If the name is yours, allow it: corpus ui --host-name "
        f"{shlex.quote(host[:SHOWN] or 'NAME')}"
    )


def foreign_origin(headers: Headers, method: str) -> str | None:
    """Refuse what a page of another origin sends, except a link that leads here."""
    host, origin = headers["host"].lower(), headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
        return (
            f"the header Origin is {origin[:SHOWN]!r}, but Host is {host!r}: a page of another "
            "origin may not use this server. Open the UI under one name; for a proxy, let it pass "
            "Host on, and allow its name: corpus ui --host-name NAME"
        )
    site = headers.get("sec-fetch-site", "none")
    is_link = (
        method == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    if site in ("none", "same-origin") or is_link:
        return None
    return (
        f"the header Sec-Fetch-Site is {site[:SHOWN]!r}: a page of another origin may link to this "
        "server, and not use it. Open the UI in a tab of its own; no option allows this."
    )


def unsafe_body(headers: Headers) -> str | None:
    """Refuse a body of a type that any page can send anywhere; parameters do not count."""
    given = headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() in BODIES:
        return None
    return (
        f"the header Content-Type is {given[:SHOWN]!r}, and only {' or '.join(BODIES)} may change "
        "something. Send JSON (curl -H 'Content-Type: application/json'); no option allows this."
    )


def mutation_by_get(parameters: QueryParams) -> str | None:
    """Refuse a mutation in the address, whatever the path: routes are matched after us."""
    if all(is_query(text) for text in parameters.getlist("query")):
        return None
    return (
        "the address has a GraphQL mutation, and a link must not change anything. "
        "Send it by POST, as application/json; no option allows this."
    )


def is_query(text: str) -> bool:
    """Return whether a GraphQL document only reads; Dagster refuses what cannot be parsed."""
    try:
        definitions = parse(text, no_location=True).definitions
    except GraphQLError:
        return True
    return all(
        node.operation == OperationType.QUERY
        for node in definitions
        if isinstance(node, OperationDefinitionNode)
    )


def with_headers(send: Send) -> Send:
    """Wrap `send` to add headers against frames and readers of other origins."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in RESPONSE_HEADERS.items():
                headers.append(name, value)
        await send(message)

    return send_with_headers
