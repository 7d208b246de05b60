"""Ranges of files behind http(s) URLs, each with the proof that the file is the planned one."""

from __future__ import annotations

from assets.raw.places.downloads import (
    HEADERS,
    ascii_url,
    filled,
    hidden,
    refusal_of,
    variables_of,
    version_of_answer,
)
from assets.raw.places.file_digests import changed, removed
from assets.raw.readers.input_file import Fetch, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    OK,
    UNSATISFIABLE,
    StatusError,
    open_url,
    whole_body,
)
from corpus_loader.places.transports import Interrupted, Patience

GONE = frozenset({404, 410})


def fetch_of_url(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of the file behind a URL."""
    secrets = variables_of(file.place)
    address = ascii_url(filled(file.place, secrets))

    def fetch(start: int, stop: int) -> bytes:
        patience = Patience()
        while True:
            try:
                return _ask(address, file, start, stop)
            except StatusError as error:
                raise _refused(address, file, error) from None
            except Interrupted as error:
                fact = Interrupted(hidden(str(error), secrets), retry_after=error.retry_after)
                fault = f"{file.name} could not be read: {fact}, at byte {start:,}"
                patience.wait(fault, fact, "Check the network and the server, then build again.")

    return fetch


def _ask(address: str, file: InputFile, start: int, stop: int) -> bytes:
    """Request bytes [start, stop) once."""
    with open_url(address, {**HEADERS, "Range": f"bytes={start}-{stop - 1}"}) as answer:
        now = version_of_answer(answer)
        if now is None or now.digest != file.digest:
            size = "an unknown number of" if now is None else f"{now.bytes:,}"
            raise changed(file, f"{size} bytes of ETag {answer.headers.get('ETag')!s:.60} now")
        is_range = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-{stop - 1}/")
        is_whole = answer.status == OK and (start, stop) == (0, file.bytes)
        if not (is_range or is_whole):
            raise CorpusError(
                f"{file.name}: the server did not send bytes {start:,} to {stop:,}, as it did for "
                "planning. Build again, or download the file and name it in `where`."
            )
        return b"".join(whole_body(answer, stop - start))


def _refused(address: str, file: InputFile, error: StatusError) -> Exception:
    """Return the error of a status that another attempt will not change."""
    if error.status in GONE:
        return removed(file)
    if error.status == UNSATISFIABLE:
        return changed(file, "fewer now")
    return CorpusError(
        f"{file.name} could not be read ({refusal_of(error, address)}). Check the address and the "
        "credentials, a signed URL for its time, then build again: finished parts are kept."
    )
