"""Tell whether a run has so much to compute that each of its steps should have a process.

Only what is here is looked at: the notes of runs, and input files with the digests that are known
of them. A plan would ask the store, and servers, a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf

from assets.raw.places.file_digests import FileDigest, FileStatus
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.observed_inputs import known_files
from assets.raw.raw_inputs import text_bytes
from resources.corpus import Corpus
from resources.engine.map_parts import AUTO_PROCESS_BYTES
from resources.errors import InputError
from resources.runs.run_notes import read_notes
from resources.settings.sources import is_elsewhere


def needs_processes(corpus: Corpus, run_id: str) -> bool:
    """Return whether the steps of a run, of which there is a note, should be processes."""
    engine = corpus.settings.engine
    if engine.steps != "auto" or engine.kind == "ray":
        return engine.steps == "multiprocess"
    notes = {note.run_id: note for note in read_notes(corpus.store.root)}
    own = notes.pop(run_id)
    alike = (note for note in notes.values() if note.is_like(own))
    last = next(alike, None)
    is_built = last is not None and last.state == "success" and last.versions == own.versions
    names = corpus.settings.source_names()
    read = [name for name in own.partitions or names if name in names]
    return sum(new_bytes(corpus, name, is_built=is_built) for name in read) >= AUTO_PROCESS_BYTES


def new_bytes(corpus: Corpus, name: str, *, is_built: bool) -> float:
    """Return the bytes of text in the input files of a source that are not `is_built` already.

    What is on other machines is much when it is read first, and little afterwards.
    """
    source, known = corpus.settings.source(name), known_files(corpus, name)
    if is_elsewhere(source):
        return 0.0 if is_built else inf

    def mark(files: Sequence[FileStatus]) -> list[FileDigest]:
        built = [is_built and known.is_known(file) for file in files]
        return [
            FileDigest(file.bytes, "" if b else "new") for file, b in zip(files, built, strict=True)
        ]

    with suppress(InputError):  # `raw` reports it
        found = find_inputs(source, corpus.config.parent, corpus.downloads, mark).files
        return sum(text_bytes(file) for file in found if file.digest)
    return 0.0
