"""What the page of `corpus report` is made of, told without reading any of it.

A night on which nothing changed writes no page: to make one takes 1.1 to 2.5 CPU s.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version

from corpus_loader.places.stage_names import GLOBAL_STAGES, PHASE_STAGES, SOURCE_STAGES
from pipeline_defs.commands.look.status import states_of
from resources.corpus import Corpus
from resources.runs.run_notes import RUNNING, read_notes
from resources.store.medium import medium_of
from resources.store.preview_files import page_path
from resources.store.records import fingerprint_of
from resources.store.scratch import place_of
from resources.tasks import GLOBAL


def has_current_page(corpus: Corpus) -> bool:
    """Return whether the page of the store is what would be written now."""
    path = page_path(corpus.store.root)
    try:
        return fingerprint_line(corpus) in medium_of(path.parent).read(path).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def fingerprint_line(corpus: Corpus) -> str:
    """Return a line of the page that is another one if anything that it is made of is.

    That is the kept manifests, the config, and of the records of runs what failed and drifted.
    """
    kept = [
        (newest.stage, newest.partition, newest.fingerprint, folder.manifest_numbers())
        for folder in corpus.store.partitions()
        if (newest := folder.newest_manifest())
    ]
    config, place = corpus.config.read_text("utf-8"), place_of(corpus.store.root)
    failed = failures(corpus, corpus.settings.source_names())
    versions = version("tokenmill"), platform.python_version()
    return f"<!-- made of {fingerprint_of(versions, place, config, kept, failed)} -->"


def failures(corpus: Corpus, sources: Sequence[str]) -> list[str]:
    """Return what has failed since it was built last, and the drifts of the last build."""
    root, phases = corpus.store.root, corpus.settings.phase_names()
    ended = [note for note in read_notes(root) if note.state not in RUNNING]
    states = {
        **states_of(root, ended, sources, SOURCE_STAGES),
        **states_of(root, ended, [GLOBAL], GLOBAL_STAGES),
        **states_of(root, ended, phases, PHASE_STAGES),
    }
    failed = [
        f"{name}: {stage} failed: {state.reason}"
        for name, stages in states.items()
        for stage, state in stages.items()
        if state.state == "failed"
    ]
    drifts = next((note.drifts for note in ended if note.job == "build_corpus"), ())
    return [*failed, *(f"drift: {line}" for line in drifts)]
