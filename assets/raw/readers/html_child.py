"""Extract the main text of HTML pages in a process of its own: run as a script by page_texts.py.

    page: one byte, the length of the charset; the charset; the page
    answer: "+" and the text, or "-" and an error

A limit ends this process and not its parent. CPU time counts, not the clock's, so that a busy
machine quarantines the same pages.
"""

import resource
import sys
import time
from multiprocessing.connection import Connection

CPU_SECONDS = 10  # real pages take 3 ms
MEMORY_BYTES = 2 << 30  # of address space: a page of 64 MiB takes up to 20 times its size


def main_text(body: bytes, charset: str) -> str:
    """Return the main text of a page; without a charset, as the page says or looks like."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    encoding = charset or detect_encoding(body, from_html_meta=True) or "utf-8"
    return str(extract_plain_text(bytes_to_str(body, encoding), main_content=True))


def answer(request: bytes) -> bytes:
    """Return the answer to a page."""
    end = 1 + request[0]
    try:
        return b"+" + main_text(request[end:], request[1:end].decode()).encode()
    except (ValueError, RuntimeError, LookupError, MemoryError) as error:
        return f"-{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")


def serve(pages: Connection) -> None:
    """Answer page after page until the parent closes the connection."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            request = pages.recv_bytes()
        except EOFError:
            return
        until = int(time.process_time()) + 1 + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        pages.send_bytes(answer(request))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
