"""Asset `tokenizer`: one for the whole corpus, trained on a sample of it or loaded from a file.

A trained tokenizer is kept while documents come and go (`tokenizer.retrain`): its part is planned
again as it is, and the manifest stays the same.
"""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import polars as pl
from msgspec import UNSET
from msgspec.structs import asdict, replace

from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.tokenized.encode_documents import TokenFormat, compared_texts, encode_with
from assets.tokenized.encoders import make_encoders
from assets.tokenized.kept_tokenizer import (
    MARKS,
    RETRAIN_COMMAND,
    Encoded,
    config_of,
    refusal,
    training_changes,
)
from assets.tokenized.sample_files import (
    Drawn,
    SampledSource,
    sample_documents,
    sample_warnings,
    sampled_sources,
    sources_as_then,
    wanted_bytes,
)
from assets.tokenized.token_spellings import token_kinds
from assets.tokenized.tokenized_records import (
    TOKENIZER,
    MarkedTokenFacts,
    SampledParts,
    TextFit,
    TokenizerNumbers,
    TokenizerProvenance,
)
from assets.tokenized.tokenizer import (
    MOST_FILE_BYTES,
    TokenizerError,
    canonical_json,
    token_facts,
    train_bpe,
)
from assets.tokenized.tokenizer_fit import language_counts, sum_by_language, sum_fits, text_fits
from assets.tokenized.trial import encode_once, faults_of, refuse_shared_ids, without_dropout
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.engine.fresh_process import call_in_fresh_process
from resources.errors import UsageError
from resources.settings.named_files import check_named_file, read_named_file
from resources.settings.tokenizer import TokenizerConfig
from resources.source_states import usable_states
from resources.stage import Conclusion, Metadata, Outlook, Stage, Table
from resources.store.disk import hash_file
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats, add_counts
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Plan, Task, tasks_of

NAME = TOKENIZER.name  # of its one part, and the kind of its file
TRIED = "tried-1"  # in the fingerprint of a loaded tokenizer: raised with what trial.py asks of it
RETRAIN = "retrain"

Sample = list[tuple[str, pl.DataFrame]]  # documents of a source; each source may come many times
TokenizerManifest = Manifest[TokenizerProvenance, TokenizerNumbers]


@dataclass(frozen=True)
class KeptTokenizer:
    """A tokenizer that was trained before, and the counts of its training."""

    file: PublishedFile
    stats: Stats[TokenizerNumbers]


@dataclass(frozen=True)
class TokenizerInputs:
    """Input of the one task: a file to load, a tokenizer to keep, or the sources to train on."""

    config: TokenizerConfig
    path: Path | None = None
    kept: KeptTokenizer | None = None
    sources: tuple[SampledSource, ...] = ()


def plan_tokenizer(corpus: Corpus, partition: str) -> Plan:
    """Plan one task: load the file of the config, keep the published tokenizer, or train one."""
    config = corpus.settings.tokenizer
    if config.path is not None:
        if RETRAIN in corpus.flags:
            refuse_loaded(config)
        path = corpus.config.parent / config.path
        check_named_file(path, MOST_FILE_BYTES)
        made_of = [config_of(config), [hash_file(path)[0]], TRIED]
        inputs = TokenizerInputs(config, path)
        task = tasks_of(corpus, TOKENIZER, partition).task(NAME, made_of, inputs, work_bytes=0)
        return Plan([task], config_of(config), TokenizerProvenance())
    kept = kept_manifest(corpus)
    return plan_training(corpus) if kept is None else plan_kept(corpus, kept)


def refuse_loaded(config: TokenizerConfig) -> None:
    """Raise UsageError if the config names a file, so that there is nothing to train."""
    if config.path is not None:
        raise UsageError(
            f"tokenizer.path names {config.path!r}, so that no tokenizer is trained. Take the key "
            "out of pipeline.yaml to train one."
        )


def kept_manifest(corpus: Corpus) -> TokenizerManifest | None:
    """Return the tokenizer that stays, None if one is to be trained.

    Raises UsageError if it stays, but the config asks for another one.
    """
    config = corpus.settings.tokenizer
    if config.path is not None or config.retrain == "always" or RETRAIN in corpus.flags:
        return None
    newest = corpus.store.newest_or_none(TOKENIZER, GLOBAL)
    if newest is None:
        return None
    sources = corpus.settings.source_names()
    changes = training_changes(newest.config, config_of(config), sources)
    if changes and config.retrain == "never":
        fill_tokens = config.fill_in_the_middle_tokens.all
        raise UsageError(refusal(changes, encoded_sources(corpus), fill_tokens))
    return None if changes else newest


def encoded_sources(corpus: Corpus) -> list[Encoded]:
    """Return what is encoded of each source of the config."""
    found = []
    for name in corpus.settings.source_names():
        try:
            newest = corpus.store.newest_or_none(stage_names.TOKENIZED, name)
        except StoreError:
            continue  # of a source that failed: it is named there
        if newest is not None:
            stats = newest.stats
            found.append(Encoded(name, stats.rows_kept, stats.text_bytes, stats.tokens))
    return found


def plan_training(corpus: Corpus) -> Plan:
    """Plan the training on a sample of what `deduped` has now."""
    config = corpus.settings.tokenizer
    sample, sources, left_out = sources_now(corpus)
    task = tasks_of(corpus, TOKENIZER, GLOBAL).task(
        NAME,
        [config_of(config), [[each.source, *each.parts] for each in sample]],
        TokenizerInputs(config, sources=sources),
        work_bytes=sum(source.available for source in sources),
    )
    return Plan([task], config_of(config), TokenizerProvenance(sample), left_out)


def sources_now(
    corpus: Corpus,
) -> tuple[tuple[SampledParts, ...], tuple[SampledSource, ...], dict[str, str]]:
    """Return what a training reads of `deduped` now, and the sources that are left out, with why.

    Raises TokenizerError if there is no document.
    """
    weights = corpus.settings.tokenizer.weights
    names = [name for name in corpus.settings.source_names() if name in (weights or [name])]
    states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
    sample = tuple(
        SampledParts(name, tuple(part.fingerprint for part in manifest.parts))
        for name, manifest in states.items()
    )
    sources = tuple(sampled_sources(corpus, sample, states))
    if not any(source.available for source in sources):
        raise TokenizerError(why_nothing_is_left(corpus, states))
    return sample, sources, left_out


def plan_kept(corpus: Corpus, kept: TokenizerManifest) -> Plan:
    """Plan the published part as it is, or the same tokenizer with other marks around documents.

    If its file is lost, it is trained on its own sample again, as long as that is still there.
    """
    config, part = corpus.settings.tokenizer, kept.parts[0]
    marks = {key: value for key, value in config_of(config).items() if key in MARKS}
    tasks = tasks_of(corpus, TOKENIZER, GLOBAL)
    if not marks.items() <= kept.config.items():
        file = corpus.store.part_file(kept, part, NAME)
        inputs = TokenizerInputs(config, kept=KeptTokenizer(file, part.stats))
        now = kept.config | marks
        task = tasks.task(NAME, [now, [part.fingerprint]], inputs, work_bytes=0)
        return Plan([task], now, kept.provenance)
    inputs = TokenizerInputs(config)
    task = tasks.with_fingerprint(part.name, part.fingerprint, inputs, work_bytes=0)
    if task.published() is None and kept.provenance.sample is not UNSET:
        sources = tuple(sources_as_then(corpus, kept.provenance.sample))
        inputs = TokenizerInputs(config, sources=sources)
        task = tasks.with_fingerprint(part.name, part.fingerprint, inputs, work_bytes=0)
    return Plan([task], kept.config, kept.provenance)


def why_nothing_is_left(corpus: Corpus, sources: Iterable[str]) -> str:
    """Return why there is no document to train on: the documents read, and what removed them."""
    filtered = [corpus.store.newest(FILTERED, source).stats for source in sources]
    deduped = [corpus.store.newest(DEDUPED, source).stats for source in sources]
    rejected = [*(stats.rejected for stats in filtered), *(stats.rejected for stats in deduped)]
    removed = Counter(add_counts(rejected))
    removed["copies"] = sum(stats.duplicates for stats in deduped)
    reasons = ", ".join(f"{name} {count:,}" for name, count in removed.most_common() if count)
    read = sum(stats.rows_in for stats in filtered)
    return (
        f"no document is left to train the tokenizer on, of {read:,}"
        + (f". Removed by {reasons}: `corpus rules sample` shows their texts" if reasons else "")
        + ". Change the rule, or the sources."
    )


def make_tokenizer(task: Task[TokenizerInputs]) -> list[PartRecord]:
    """Train or load, check, and publish the canonical tokenizer.json."""
    inputs = task.payload
    config = inputs.config
    if inputs.kept is not None:
        tokenizer_json = inputs.kept.file.checked().read_text(encoding="utf-8")
        facts = asdict(token_facts(tokenizer_json, config))
        earlier = inputs.kept.stats
        stats = replace(earlier, numbers=replace(earlier.numbers, **facts))
    elif inputs.path is not None:
        tokenizer_json, loaded, off = load_tokenizer(inputs.path, config)
        stats = Stats(numbers=TokenizerNumbers(**asdict(loaded), switched_off=off or UNSET))
    elif inputs.sources:
        sample, drawn = draw_sample(inputs.sources, config)
        tokenizer_json = train_bpe((documents["text"] for _, documents in sample), config)
        stats = trained_stats(inputs, tokenizer_json, sample, drawn)
    else:
        raise TokenizerError(
            f"the file of the published tokenizer is missing in {task.folder.folder}, and so are "
            "documents that it was trained on, so that it cannot be made again. Put a copy of the "
            f"file there, or name it in tokenizer.path; `{RETRAIN_COMMAND}` trains another one."
        )
    writer = task.writer()
    writer.write_text(NAME, "json", tokenizer_json)
    return [writer.publish(stats)]


def load_tokenizer(path: Path, config: TokenizerConfig) -> tuple[str, MarkedTokenFacts, list[str]]:
    """Load and try a tokenizer.json; TokenizerError names the file and its fault.

    Returns its canonical form, facts for later stages, and what is switched off in it.
    """
    try:
        canonical = canonical_json(read_named_file(path, MOST_FILE_BYTES).decode())
        refuse_shared_ids(canonical)
        facts = token_facts(canonical, config)
        tokenizer_json, off = without_dropout(canonical)
        if off:
            tokenizer_json = canonical_json(tokenizer_json)
            facts = token_facts(tokenizer_json, config)
        for fault in faults_of(tokenizer_json, partial(call_in_fresh_process, encode_once)):
            raise TokenizerError(fault)
        return tokenizer_json, facts, off
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"{path}: not a tokenizer.json: not UTF-8 ({error}). Check tokenizer.path, and save "
            "the file as UTF-8."
        ) from None
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error


def trained_stats(
    inputs: TokenizerInputs, tokenizer_json: str, sample: Sample, drawn: dict[str, Drawn]
) -> Stats[TokenizerNumbers]:
    """Count the sample that a tokenizer was trained on, its fit, and the unfilled entries."""
    facts = token_facts(tokenizer_json, inputs.config)
    available = {source.name: source.available for source in inputs.sources}
    rows = sum(taken.documents for taken in drawn.values())
    text_bytes = sum(taken.bytes for taken in drawn.values())
    numbers = TokenizerNumbers(
        **asdict(facts),
        entries_unfilled=inputs.config.vocab_size - facts.vocab_size,
        sample_documents={name: taken.documents for name, taken in drawn.items()},
        sample_bytes={name: taken.bytes for name, taken in drawn.items()},
        sample_wanted_bytes=wanted_bytes(available, inputs.config),
        sample_takes_all_of=[name for name, taken in drawn.items() if taken.share >= 1],
        served=fit_to_sample(tokenizer_json, facts, sample),
    )
    return Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)


def draw_sample(
    sources: tuple[SampledSource, ...], config: TokenizerConfig
) -> tuple[Sample, dict[str, Drawn]]:
    """Draw the sample, a part at a time; TokenizerError if it has no document."""
    drawn = {source.name: Drawn() for source in sources}
    sample = list(sample_documents(sources, config, drawn))
    if not any(taken.documents for taken in drawn.values()):
        available = sum(source.available for source in sources)
        raise TokenizerError(
            f"no document to train the tokenizer on: a sample of {config.sample_bytes:,} bytes of "
            f"{', '.join(drawn)} ({available:,} bytes). Raise tokenizer.sample_bytes."
        )
    return sample, drawn


def fit_to_sample(tokenizer_json: str, facts: MarkedTokenFacts, sample: Sample) -> list[TextFit]:
    """Encode the sample, a part in each thread, and count its tokens by source and language."""
    form = TokenFormat(facts.vocab_size, facts.end_of_document_id, facts.begin_of_document_id)
    encoders = make_encoders(tokenizer_json)
    encoder = encoders.exact_on(compared_texts(pl.concat(documents for _, documents in sample)))
    kinds = token_kinds(encoders.reference, form.vocab_size, form.marks)

    def served(part: tuple[str, pl.DataFrame]) -> list[TextFit]:
        name, documents = part
        encoded = encode_with(encoder, encoders.reference, documents, form)
        return text_fits({name: language_counts(documents, encoded, form.num_marks, kinds)})

    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        return sum_by_language(chain.from_iterable(pool.map(served, sample)))


def describe_tokenizer(corpus: Corpus, manifest: TokenizerManifest) -> Metadata:
    """Describe the fit to the sample by source, and the rows of a padded vocabulary."""
    numbers = manifest.parts[0].stats.numbers
    served = numbers.served
    by_source: dict[str, list[TextFit]] = {}
    for each in served or ():
        by_source.setdefault(each.source, []).append(each)
    rows = [
        (name, round(fit.bytes_per_token, 3), round(fit.share(fit.byte_tokens), 4), fit.tokens)
        for name, fit in ((name, sum_fits(of_source)) for name, of_source in by_source.items())
    ]
    columns = ("source", "bytes_per_token", "single_byte_share", "tokens")
    padded = corpus.settings.tokenizer.rows_of(numbers.vocab_size)
    return {
        "served": Table(columns, rows) if rows else None,
        "padded_vocab_size": padded if padded > numbers.vocab_size else None,
    }


def warn_of_sample(corpus: Corpus, manifest: TokenizerManifest) -> Conclusion:
    """Warn of sources that had less text than their share, and of what is switched off."""
    numbers = manifest.parts[0].stats.numbers
    if numbers.switched_off is not UNSET:
        names = ", ".join(numbers.switched_off)
        return Conclusion(
            [
                f"the tokenizer's file asks for {names}, which is switched off: the "
                "same text must have the same ids in every build"
            ]
        )
    if numbers.sample_wanted_bytes is UNSET or numbers.sample_bytes is UNSET:
        return Conclusion()
    return Conclusion(sample_warnings(numbers.sample_wanted_bytes, numbers.sample_bytes))


STAGE = Stage(
    *TOKENIZER.fields(),
    description="The byte-level BPE of the whole corpus: trained on a seeded sample, or loaded.",
    group="tokenize",
    partitions="none",
    after=(stage_names.DEDUPED,),
    outlook=Outlook(
        reaches_all=True,
        is_kept=lambda settings: bool(
            settings.tokenizer.path or settings.tokenizer.retrain != "always"
        ),
        cpu_per_mb=0.0056,
        first_seconds=1.0,
    ),
    kinds=frozenset({"huggingface"}),
    settings=lambda settings: config_of(settings.tokenizer),
    plan=plan_tokenizer,
    work=make_tokenizer,
    preload=("tokenizers", "pyarrow.parquet"),
    describe=describe_tokenizer,
    conclude=warn_of_sample,
    flags={RETRAIN: "train the next tokenizer, on the documents that `deduped` has now"},
)
