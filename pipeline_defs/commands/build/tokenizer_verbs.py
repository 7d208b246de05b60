"""`corpus tokenizer`: train the next one on purpose, or print where the published one is.

A training materializes the asset `tokenizer` with the run config that asks for it, on the documents
that `deduped` has now. Everything behind it is then stale: the next build encodes all sources
again. The manifest before it is kept, as of any stage.
"""

from __future__ import annotations

from msgspec import UNSET

from assets.tokenized.kept_tokenizer import encoded_again
from assets.tokenized.sample_files import sources_as_then
from assets.tokenized.tokenized_records import TOKENIZER, TextFit, TokenizerNumbers
from assets.tokenized.tokenizer_asset import (
    RETRAIN,
    TokenizerManifest,
    draw_sample,
    encoded_sources,
    fit_to_sample,
    refuse_loaded,
)
from assets.tokenized.tokenizer_fit import sum_fits
from corpus_loader.places import stage_names
from pipeline_defs.commands.terminal import say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.store.records import required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL

SHOWN_DIGITS = 12


def retrain() -> int:
    """Train the next tokenizer and show what it changes; the exit code is that of the run."""
    corpus = load_corpus()
    refuse_loaded(corpus.settings.tokenizer)
    prepare_home(corpus.store.root)
    before, text_before = published(corpus)
    from pipeline_defs.commands.build.dagster_commands import renew

    if code := renew(corpus.store.root, TOKENIZER, RETRAIN):
        return code
    now = corpus.store.newest(TOKENIZER, GLOBAL)
    numbers = now.parts[0].stats.numbers
    title = f"tokenizer {numbers.tokenizer_fingerprint[:SHOWN_DIGITS]}"
    if before is not None and before.tokenizer_fingerprint == numbers.tokenizer_fingerprint:
        say(f"{title} is as it was: documents and config are those it was made of.")
        return 0
    stats = now.parts[0].stats
    say(
        f"{title}: {numbers.vocab_size:,} entries, trained on {stats.text_bytes:,} bytes of "
        f"{stats.rows_kept:,} documents"
    )
    earlier = earlier_fit(corpus, now, before, text_before)
    say(*fit_lines(earlier, numbers.served or []))
    if encoded := encoded_sources(corpus):
        say(f"`corpus build` encodes again {encoded_again(encoded)}.")
    return 0


def path() -> int:
    """Print the path of the published tokenizer.json."""
    corpus = load_corpus()
    newest = corpus.store.newest(TOKENIZER, GLOBAL)
    file = required_file(newest, newest.parts[0], stage_names.TOKENIZER)
    say(str(corpus.store.path_of(newest, file).resolve()))
    return 0


def published(corpus: Corpus) -> tuple[TokenizerNumbers | None, str]:
    """Return numbers and tokenizer.json of the published tokenizer; (None, "") without one."""
    try:
        newest = corpus.store.newest_or_none(TOKENIZER, GLOBAL)
        if newest is None:
            return None, ""
        part = newest.parts[0]
        file = corpus.store.part_file(newest, part, stage_names.TOKENIZER)
        return part.stats.numbers, file.checked().read_text(encoding="utf-8")
    except (StoreError, OSError):
        return None, ""  # of another version, or damaged: the next one is trained for that


def earlier_fit(
    corpus: Corpus, now: TokenizerManifest, before: TokenizerNumbers | None, text: str
) -> list[TextFit]:
    """Return the fit of the tokenizer before to the sample of the one now; none without it."""
    if before is None or now.provenance.sample is UNSET:
        return []
    sources = tuple(sources_as_then(corpus, now.provenance.sample))
    if not sources:
        return []
    sample, _ = draw_sample(sources, corpus.settings.tokenizer)
    return fit_to_sample(text, before, sample)


def fit_lines(before: list[TextFit], now: list[TextFit]) -> list[str]:
    """Write bytes per token on the sample by source, with the tokenizer before and now."""
    sources = list(dict.fromkeys(each.source for each in now))
    width = max((len(source) for source in sources), default=0)
    lines = []
    for source in sources:
        then, fit = (
            sum_fits(each for each in served if each.source == source) for served in (before, now)
        )
        change = f", {then.bytes_per_token:.3f} before" if then.tokens else ""
        lines.append(f"{source:<{width}}  {fit.bytes_per_token:.3f} bytes per token{change}")
    return lines
