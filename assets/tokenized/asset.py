"""Asset `tokenized`: token ids of every document, from the tokenizer of the corpus."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import UNSET
from msgspec.structs import asdict
from numpy.typing import NDArray

from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from assets.report.drift import judge_drift
from assets.text.document_ids import doc_heads
from assets.text.table_rows import count_bytes
from assets.tokenized.chat_template_files import (
    find_template,
    refusal_reasons,
    too_many_refused,
)
from assets.tokenized.chat_templates import ChatTemplate
from assets.tokenized.encode_chats import EncodedChats, encode_chats
from assets.tokenized.encode_documents import (
    TokenFormat,
    count_ids,
    doc_index,
    encode_documents,
)
from assets.tokenized.encoders import Encoders, load_encoders
from assets.tokenized.fill_in_the_middle import FillForm, count_modes
from assets.tokenized.round_trip import RoundTrip, round_trip
from assets.tokenized.token_spellings import token_kinds
from assets.tokenized.tokenized_records import (
    NO_TOKENS,
    REJECTED,
    TOKENIZED,
    TOKENIZER,
    MarkedTokenFacts,
    TextFit,
    TokenizedManifest,
    TokenizedNumbers,
    TokenizedProvenance,
    token_bytes,
)
from assets.tokenized.tokenizer import TokenizerError, fill_ids
from assets.tokenized.tokenizer_fit import (
    SHOWN_FAILURES,
    fertility_by_source,
    language_counts,
    report_markdown,
    round_trip_markdown,
    text_fits,
    totals,
    vocabulary_numbers,
    warn_of_fit,
)
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.profiles import Profile
from resources.reused_array import reused_array
from resources.settings.pipeline import Settings
from resources.source_states import state_of_all
from resources.stage import (
    Check,
    Conclusion,
    DriftCheck,
    MainTable,
    Metadata,
    Outlook,
    Stage,
    any_warnings,
    not_zero,
)
from resources.store.mapped_files import map_array
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, add_stats
from resources.store.store import StoreError, typed
from resources.store.summed_files import sum_of_files
from resources.tasks import Plan, Task, tasks_of

CHATS_VERSION = 3  # raised when conversations are encoded in another way; texts keep their parts

NO_OFFSETS = {"offsets": False}  # of the config of earlier versions: their parts stay

TOKEN_COLUMNS = {
    "doc_id": "the document",
    "tokens": "token ids of its text, the end-of-document id last",
    "loss_mask": "whether each token is learned, of conversations; or its weight in hundredths",
    "turns": "tokens of each turn's conversation, where `reasoning` is split_turns",
}
CHECKS = (
    Check(
        "round_trip",
        "the ids of documents decode to their text",
        lambda _, manifest, __: not_zero(manifest.stats.numbers.round_trip_failures),
    ),
    Check(
        "served_by_tokenizer",
        "every source and language has about as many bytes per token, and as few unknown "
        "and single-byte tokens, as the sample that trained the tokenizer",
        any_warnings,
    ),
    Check(
        "rendered_by_template",
        "the chat template refuses at most 5 % of a source's conversations, or `max_bad_share`",
        lambda corpus, manifest, _: too_many_refused(corpus, manifest) or "",
        refuses=True,
    ),
)


@dataclass(frozen=True)
class EncodeInputs:
    """Input of one task: a part's documents, the tokenizer.json, and the form to store ids in.

    `template` is that of conversations, None of other documents.
    """

    documents: KeptDocuments
    tokenizer: PublishedFile
    form: TokenFormat
    is_trained: bool
    template: ChatTemplate | None = None


def plan_tokenized(corpus: Corpus, source: str) -> Plan:
    """Plan one task per deduped part."""
    deduped = corpus.store.newest(DEDUPED, source)
    made = state_of_all(corpus, TOKENIZER)
    tokenizer = made.parts[0].stats.numbers
    config: dict[str, object] = {
        "begin_of_document": tokenizer.begin_of_document,
        "end_of_document": tokenizer.end_of_document,
        **NO_OFFSETS,
    }
    loaded = corpus.store.part_file(made, made.parts[0], TOKENIZER.name)
    is_trained = made.config["path"] is None
    fill = plan_fill(corpus.settings, source, loaded, is_trained=is_trained)
    if fill is not None:
        config["fill_in_the_middle"] = dataclasses.asdict(fill)
    form = TokenFormat(
        tokenizer.vocab_size,
        tokenizer.end_of_document_id,
        tokenizer.begin_of_document_id,
        fill,
    )
    template: ChatTemplate | None = None
    if corpus.settings.is_chat(source):
        found = find_template(corpus.settings.tokenizer, corpus.config.parent)
        of_source = corpus.settings.source(source)
        is_split = of_source.reasoning == "split_turns" and of_source.learn in ("all", "weights")
        learned = of_source.learned
        template = dataclasses.replace(
            found,
            learn=learned.get("learn", found.learn),
            roles=tuple(learned.get("roles", found.roles)),
            is_split=is_split,
        )
        config |= {"chat_template": template.source, "chats": CHATS_VERSION, **learned}
        config |= {"reasoning": of_source.reasoning} if is_split else {}
        config |= {f"template_{name}": value for name, value in template.variables}
    maker, tasks = tasks_of(corpus, TOKENIZED, source), []
    for part in deduped.parts:
        documents = kept_documents(corpus.store, deduped, part)
        inputs = EncodeInputs(documents, loaded, form, is_trained, template)
        made_of = [config, part.fingerprint, [tokenizer.tokenizer_fingerprint]]
        tasks.append(maker.task(part.name, made_of, inputs, work_bytes=documents.bytes))
    return Plan(tasks, config, provenance_of(tokenizer, deduped.fingerprint, template))


def plan_fill(
    settings: Settings, source: str, tokenizer: PublishedFile, *, is_trained: bool
) -> FillForm | None:
    """Return how documents of a source are rearranged, None if they are not.

    Raises TokenizerError if the tokenizer lacks the special tokens for it.
    """
    config = settings.source(source).fill_in_the_middle
    if config is None:
        return None
    tokens = settings.tokenizer.fill_in_the_middle_tokens
    ids = fill_ids(tokenizer.checked().read_bytes(), tokens, is_trained=is_trained)
    return FillForm(config.rate, config.spm_rate, config.seed, *ids)


def provenance_of(
    tokenizer: MarkedTokenFacts, deduped: str, template: ChatTemplate | None
) -> TokenizedProvenance:
    """Add the fingerprint of `deduped`, and what masks there are, to the tokenizer's facts."""
    names = MarkedTokenFacts.__struct_fields__
    return TokenizedProvenance(
        **{name: getattr(tokenizer, name) for name in names},
        deduped=deduped,
        has_loss_mask=template is not None or UNSET,
        has_loss_weights=(template is not None and template.learn == "weights") or UNSET,
    )


def encode_part(task: Task[EncodeInputs]) -> list[PartRecord]:
    """Encode one part; publish its ids, an index of its documents and the count of each id."""
    inputs, writer = task.payload, task.writer()
    documents = read_kept(inputs.documents, ["doc_id", "text", "lang"])
    encoders = load_encoders(inputs.tokenizer.checked().read_text(encoding="utf-8"))
    all_ids, rejected, reasons = documents["doc_id"], dict[str, int](), dict[str, int]()
    if inputs.template is None:
        encoded = encode_documents(documents, encoders, inputs.form, reused_array)
        if num_lost := documents.height - encoded.height:
            rejected[NO_TOKENS] = num_lost
    else:
        chats = encode_chats(documents, encoders, inputs.form, inputs.template)
        encoded = chats.encoded if inputs.template.is_split else chats.encoded.drop("turns")
        documents = as_rendered(documents, chats)
        rejected = dict(sorted(Counter(chats.rejected["reason"]).items()))
        reasons = refusal_reasons(chats.rejected)
        writer.write_parquet(REJECTED, chats.rejected)
    used = count_ids(encoded["tokens"], inputs.form.vocab_size)
    checked = check_round_trip(task, documents, encoded, encoders)
    writer.write_arrow("tokens", encoded)
    writer.write_arrays("doc_index", *doc_index(all_ids))
    writer.write_arrays("vocabulary", used)
    fill, kept_ids = inputs.form.fill, encoded["doc_id"]
    kinds = token_kinds(encoders.reference, inputs.form.vocab_size, inputs.form.marks)
    counts = language_counts(documents, encoded, inputs.form.marks_of(kept_ids), kinds)
    numbers = TokenizedNumbers(
        **asdict(counts),
        round_trip_documents=checked.num_compared,
        round_trip_failures=len(checked.failed),
        round_trip_failed=dict.fromkeys(checked.failed[:SHOWN_FAILURES], 1),
        fill_in_the_middle=UNSET if fill is None else count_modes(doc_heads(kept_ids), fill),
        template_refusals=reasons or UNSET,
    )
    return [writer.publish(part_stats(documents, encoded, rejected, numbers))]


def as_rendered(documents: pl.DataFrame, chats: EncodedChats) -> pl.DataFrame:
    """Return the conversations that are encoded, with the text that their tokens spell."""
    texts = chats.encoded.select("doc_id").with_columns(chats.texts.alias("text"))
    return texts.join(documents.drop("text"), on="doc_id", how="left", maintain_order="left")


def check_round_trip(
    task: Task[EncodeInputs], documents: pl.DataFrame, encoded: pl.DataFrame, encoders: Encoders
) -> RoundTrip:
    """Compare documents with their decoded ids; TokenizerError if a trained tokenizer loses text.

    A loaded tokenizer may lose text (a normalizer does): its failures are counted.
    """
    checked = round_trip(documents, encoded, encoders, task.payload.form)
    if checked.failed and task.payload.is_trained:
        raise TokenizerError(
            f"{len(checked.failed):,} of {checked.num_compared:,} documents of "
            f"{task.partition}/{task.name} do not decode to their text, the first "
            f"{checked.failed[0]}: a tokenizer that is trained here loses nothing, so its file is "
            "damaged or an encoder is wrong. Please report it."
        )
    return checked


def part_stats(
    documents: pl.DataFrame,
    encoded: pl.DataFrame,
    rejected: dict[str, int],
    numbers: TokenizedNumbers,
) -> Stats[TokenizedNumbers]:
    """Count the documents, texts and tokens of a part."""
    num_tokens = int(encoded["tokens"].list.len().cast(pl.Int64).sum())
    return Stats(
        rows_in=encoded.height + sum(rejected.values()),
        rows_kept=encoded.height,
        rejected=rejected,
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(encoded.schema["tokens"]),
        text_bytes=count_bytes(documents["text"]),
        numbers=numbers,
    )


def describe_tokenized(corpus: Corpus, manifest: TokenizedManifest) -> Metadata:
    """Report text per token, use of the vocabulary, and the result of the round trip."""
    used = vocabulary_use(corpus, manifest)
    numbers = manifest.stats.numbers
    in_bytes, in_chars, _ = totals(numbers)
    return {
        **report_markdown(numbers, used),
        **vocabulary_numbers(used),
        "bytes_per_token": in_bytes,
        "chars_per_token": in_chars,
        "round_trip": round_trip_markdown(numbers),
        "round_trip_failures": numbers.round_trip_failures,
        **fill_numbers(manifest.stats),
    }


def fill_numbers(stats: Stats[TokenizedNumbers]) -> Metadata:
    """Return the documents that are rearranged, and their special tokens; {} without the option."""
    modes = stats.numbers.fill_in_the_middle
    if modes is UNSET:
        return {}
    rearranged = modes.get("psm", 0) + modes.get("spm", 0)
    return {
        "fill_in_the_middle_documents": rearranged,
        "fill_in_the_middle_share": rearranged / max(1, stats.rows_kept),
        "fill_in_the_middle_psm": modes.get("psm", 0),
        "fill_in_the_middle_spm": modes.get("spm", 0),
        "fill_in_the_middle_tokens": modes.get("special_tokens", 0),
    }


def vocabulary_use(corpus: Corpus, manifest: TokenizedManifest) -> NDArray[np.uint64]:
    """Add up the count of each id over the parts, uint64 [vocab_size]."""

    def add(files: Iterator[Path]) -> bytes:
        used = np.zeros(manifest.provenance.vocab_size, np.uint64)
        for path in files:
            used += map_array(path, np.uint64, used.shape)
        return used.tobytes()

    return np.frombuffer(sum_of_files(corpus.store, manifest, "vocabulary", add), np.uint64)


def counts_by_source(corpus: Corpus, tokenizer: str) -> dict[str, TokenizedNumbers]:
    """Return the published counts of every source encoded with the tokenizer, by fingerprint."""
    counts: dict[str, TokenizedNumbers] = {}
    for name in corpus.settings.source_names():
        try:
            newest = corpus.store.partition(TOKENIZED.name, name).newest_manifest()
        except StoreError:
            continue  # of a source that failed: it is named there
        if newest is None or newest.code_version != TOKENIZED.code_version:
            continue  # records of another version cannot be read
        manifest = typed(newest, TOKENIZED)
        if manifest.provenance.tokenizer_fingerprint == tokenizer:
            counts[name] = manifest.stats.numbers
    return counts


def compare_fertility(corpus: Corpus, manifest: TokenizedManifest) -> Conclusion:
    """Compare the text per token of all sources, and with that of the tokenizer's sample."""
    tokenizer = manifest.provenance.tokenizer_fingerprint
    fits, table = corpus.once(tokenizer, lambda: fits_of_all(corpus, tokenizer))
    own = [each for each in fits if each.source == manifest.partition]
    others = [each for each in fits if each.source != manifest.partition]
    made = state_of_all(corpus, TOKENIZER).parts[0].stats.numbers
    is_same = made.tokenizer_fingerprint == tokenizer
    at_training = made.served if is_same and made.served is not UNSET else ()
    return Conclusion(
        warn_of_fit(own, at_training, others),
        {"fertility_by_source": table},
    )


def fits_of_all(corpus: Corpus, tokenizer: str) -> tuple[list[TextFit], str]:
    """Return the fits of all sources, and their table: 500 sources were read 250,000 times."""
    counts = counts_by_source(corpus, tokenizer)
    return text_fits(counts), fertility_by_source(counts)


def profile_of_tokenized(
    _: Corpus, __: TokenizedManifest, parts: Sequence[PartRecord[TokenizedNumbers]]
) -> Profile:
    """Return the tokens per byte of some parts."""
    stats = add_stats(part.stats for part in parts)
    return Profile(
        stats.rows_in, numbers={"tokens per byte": stats.tokens / max(1, stats.text_bytes)}
    )


def settings_of(settings: Settings) -> dict[str, object]:
    """Return the settings of the stage; those of sources only if one uses them."""
    fills = {
        source.name: source.fill_in_the_middle.model_dump(mode="json")
        for source in settings.sources
        if source.fill_in_the_middle is not None
    }
    learned = {source.name: source.learned for source in settings.sources if source.learned}
    keys = {"chat_template"} | ({"fill_in_the_middle_tokens"} if fills else set())
    dump = settings.tokenizer.model_dump(mode="json", include=keys) | NO_OFFSETS
    used = {"fill_in_the_middle": fills, "learn": learned}
    return dump | {key: by_source for key, by_source in used.items() if by_source}


STAGE = Stage(
    *TOKENIZED.fields(),
    description="Token ids of every document, the end-of-document id last.",
    group="tokenize",
    partitions="source",
    after=(stage_names.DEDUPED, stage_names.TOKENIZER),
    outlook=Outlook("same", cpu_per_mb=0.0105, first_seconds=0.5),
    kinds=frozenset({"arrow"}),
    settings=settings_of,
    plan=plan_tokenized,
    work=encode_part,
    main_table=MainTable("tokens", TOKEN_COLUMNS),
    preload=("tokenizers", "pyarrow.parquet"),
    describe=describe_tokenized,
    checks=CHECKS,
    conclude=compare_fertility,
    drift=DriftCheck(profile_of_tokenized, judge_drift),
)
