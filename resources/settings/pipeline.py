"""pipeline.yaml: the whole corpus in one declarative file, checked when the code location loads.

Each top-level key has a module of its own. This module puts their models together, resolves the
overrides of a source and reports every mistake in one line with the file, the line, the key path,
the value and the values allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpus_loader.places.url_secrets import redacted
from resources.settings.annotations import (
    Annotator,
    AskAnnotator,
    ClassifyAnnotator,
    FileAnnotator,
    Teacher,
    TopicsAnnotator,
)
from resources.settings.buckets import (
    PERCENTILE,
    TOKENS,
    VALIDATION,
    BucketConfig,
    bucket_names,
    check_count,
    class_names,
)
from resources.settings.conditions import check_condition
from resources.settings.dedup import DedupConfig
from resources.settings.disclosure import DisclosureConfig
from resources.settings.engine import EngineConfig
from resources.settings.faults import (
    KeyPath,
    PlacedError,
    dotted,
    faults_of,
    nearest,
    place,
)
from resources.settings.filtering.classifier import ClassifierConfig
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.language_rules import (
    language_faults,
    required_faults,
    skipped_rules,
    source_layer,
    undetected_faults,
    without_rules,
)
from resources.settings.filtering.presets import DOMAINS, expand_presets, lay_over
from resources.settings.frozen_model import FrozenModel
from resources.settings.full_source import Source
from resources.settings.holdout import HoldoutConfig
from resources.settings.key_types import NAME
from resources.settings.named_files import NamedFileError, YamlError, read_yaml
from resources.settings.operations import NotifyConfig, ScheduleConfig
from resources.settings.phases import (
    PhaseConfig,
    ValidationPhase,
    class_draws,
    continues_fault,
)
from resources.settings.shards import MASK_FORMATS, ShardConfig
from resources.settings.sources import InputPlaces, url_faults
from resources.settings.tokenizer import CHATML_TOKENS, TokenizerConfig
from resources.settings.tracking import UrlConfig
from resources.store.records import DEFAULT_COMPRESSION, Compression
from resources.store.store_place import ScratchConfig, absolute, check_store, root_of

CONFIG_VARIABLE = "TOKENMILL_CONFIG"
STORE_VARIABLE = "TOKENMILL_STORE"
DEFAULT_CONFIG = "pipeline.yaml"
NO_LINE_EDITS = {
    **{"c4": None, "refinedweb": None},
    **{"remove_copyright": False, "remove_gutenberg": False},
}
MOST_FAULTS = 100  # shown at once


class SettingsError(ValueError):
    """A faulty pipeline.yaml; the message lists every mistake with its place, without secrets."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class Settings(FrozenModel):
    """Content of pipeline.yaml."""

    store: Annotated[str, AfterValidator(check_store)] = Field(
        description="folder of the corpus, relative to pipeline.yaml, or s3://bucket/prefix (gs, "
        "az); credentials come from the environment"
    )
    scratch: ScratchConfig = Field(
        default=ScratchConfig(),
        description="copies of files that a machine works on, where the store is a URL",
    )
    keep_manifests: int = Field(
        default=3, ge=1, description="past states of each partition that are kept, for rollback"
    )
    keep_run_days: int | None = Field(
        default=90,
        ge=1,
        description="days after which Dagster's records of a run are removed. Those of the newest "
        "120 runs stay, and of runs that made what the corpus has now; null: all stay",
    )
    keep_downloads: bool = Field(
        default=False,
        description="keeps the copies of files from web servers that send no ranges. false: they "
        "are removed when their parts are published, and downloaded again if a part is lost",
    )
    part_bytes: int = Field(
        default=64 << 20,
        ge=1 << 10,
        description="bytes of text in a part, the unit of work, retry and memory",
    )
    compression: Compression = Field(
        default=DEFAULT_COMPRESSION,
        description="compression of tables in the store, of which the text is written three times. "
        "zstd: to half of it; lz4: to two thirds, faster; none: fastest",
    )
    sources: tuple[Source, ...] = Field(min_length=1, description="sources of documents")
    on_source_error: Literal["continue", "stop"] = Field(
        default="continue",
        description="when a source fails. continue: the others are built, its last good state "
        "stays, and the run fails at its end; stop: the run fails at once",
    )
    filters: FilterConfig = Field(
        default=FilterConfig(), description="normalisation, language and quality rules"
    )
    classifier: ClassifierConfig | None = Field(
        default=None, description="classifier of good and bad documents, trained on examples"
    )
    dedup: DedupConfig = Field(
        default=DedupConfig(), description="removal of duplicates and repeats"
    )
    annotations: tuple[Annotator, ...] = Field(
        default=(),
        exclude_if=lambda annotators: not annotators,
        description="what models, people or other programs say of documents, by annotator",
    )
    tokenizer: TokenizerConfig = Field(
        default=TokenizerConfig(),
        validate_default=True,
        description="tokenizer of the whole corpus",
    )
    buckets: BucketConfig = Field(
        default=BucketConfig(), description="training sequences from documents"
    )
    holdout: HoldoutConfig | None = Field(
        default=None,
        exclude_if=lambda config: config is None,
        description="documents that are held out of training, for validation; null: none",
    )
    shards: ShardConfig = Field(default=ShardConfig(), description="shuffled output files")
    phases: tuple[PhaseConfig, ...] = Field(
        min_length=1, description="mixes of the sources, in training order"
    )
    schedule: ScheduleConfig = Field(
        default=ScheduleConfig(), description="automatic rebuilding of the corpus"
    )
    urls: UrlConfig = Field(default=UrlConfig(), description="which URLs mean one page")
    notify: NotifyConfig = Field(
        default=NotifyConfig(), description="hook that is called when a run fails"
    )
    disclosure: DisclosureConfig = Field(
        default=DisclosureConfig(), description="what forms about the training content say of you"
    )
    engine: EngineConfig = Field(
        default=EngineConfig(), description="computation of parts, which never changes the output"
    )

    @field_validator("sources", "phases")
    @classmethod
    def check_names(cls, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """Refuse names that are no plain folder names and partition keys, or are used twice."""
        names = [item.name for item in items]
        faults: list[tuple[KeyPath, str]] = []
        first: dict[str, int] = {}
        for index, name in enumerate(names):
            if not re.fullmatch(NAME, name):
                faults.append(((index, "name"), f"{name!r} must match {NAME}"))
            if first.setdefault(name, index) != index:
                faults.append(((index, "name"), f"{name!r} is used before; rename one"))
        if faults:
            raise PlacedError(faults)
        return items

    @field_validator("tokenizer")
    @classmethod
    def add_fill_tokens(cls, tokenizer: TokenizerConfig, info: ValidationInfo) -> TokenizerConfig:
        """Add the tokens of `fill_in_the_middle`, if a source uses it, to the special tokens."""
        sources: Iterable[Source] = info.data.get("sources", ())
        is_used = any(source.fill_in_the_middle is not None for source in sources)
        return tokenizer.with_fill_tokens() if is_used else tokenizer

    @model_validator(mode="after")
    def check_references(self) -> Self:
        """Refuse names of sources and buckets that do not exist, and overrides of no effect."""
        names = self.source_names()
        faults = [
            *unknown_names("source", names, self.phase_references()),
            *self.useless_caps(),
            *unknown_names("bucket", bucket_names(self.buckets), self.bucket_references()),
            *unknown_names("source", names, self.stage_references()),
            *self.annotation_faults(),
            *self.class_faults(),
            *self.holdout_faults(),
            *self.course_faults(),
            *self.override_faults(),
            *url_faults(self.inputs()),
            *self.chat_faults(),
        ]
        if faults:
            raise PlacedError(faults)
        return self

    def phase_references(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, name) of every source that a phase names."""
        for index, phase in enumerate(self.phases):
            for keys, source in phase.references():
                yield ("phases", index, *keys), source

    def useless_caps(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of caps on sources of which a phase takes nothing."""
        names = tuple(self.source_names())
        for index, phase in enumerate(self.phases):
            for source in phase.epochs:
                if source in names and source not in phase.named_sources(names):
                    yield (
                        ("phases", index, "epochs", source),
                        "no source of this phase: its cap would do nothing. Remove it, or give "
                        "the source a share",
                    )

    def annotation_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of names that two annotators have, and of unknown columns."""
        names = [annotator.name for annotator in self.annotations]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield ("annotations", index, "name"), f"{name!r} is there twice. Rename one"
        teachers = self.teachers
        for index, annotator in enumerate(self.annotations):
            if not isinstance(annotator, ClassifyAnnotator):
                continue
            if annotator.by not in teachers:
                fault = f"is no annotator of kind file or ask; there are: {', '.join(teachers)}"
                yield ("annotations", index, "by"), f"{annotator.by!r} {fault}"
                continue
            try:
                check_condition(annotator.good, teachers[annotator.by].given_columns)
            except ValueError as error:
                yield ("annotations", index, "good"), str(error)
        classes = self.buckets.classes
        named = classes and (("score", "number", classes.score), ("label", "label", classes.label))
        for key, kind, given in named or ():
            is_meant = kind == "label" or (given or "").partition(".")[0] in names
            if given and is_meant and self.annotator_of(given, kind) is None:
                all_columns = ((each.name, each.given_columns.items()) for each in self.annotations)
                known = [f"{n}.{c}" for n, columns in all_columns for c, k in columns if k == kind]
                there = ", ".join(known) or "none"
                message = f"{given!r} is no {kind} of an annotator; there are: {there}"
                yield ("buckets", "classes", key), message

    def annotator_of(self, name: str | None, kind: str = "number") -> Annotator | None:
        """Return the annotator that a number or label is of: `edu` of edu.score; None if none."""
        annotator, _, column = (name or "").partition(".")
        found = (a for a in self.annotations if a.name == annotator)
        return next((a for a in found if a.given_columns.get(column) == kind), None)

    def class_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of classes without scores, and of phases beside classes."""
        classes = self.buckets.classes
        is_ranked = classes is not None and classes.limits and classes.score == PERCENTILE
        if is_ranked and not self.has_percentiles():
            yield (
                ("buckets", "classes", "score"),
                f"no source has {PERCENTILE!r}: set `filters.rules.quality.min_percentile` to 0, "
                "which rejects nothing and stores it",
            )
        for index, phase in enumerate(self.phases):
            if not phase.draws_classes:
                continue
            place: KeyPath = ("phases", index, "lengths" if phase.upsample is None else "upsample")
            if phase.lengths and (classes is None or classes.score != TOKENS):
                limits = [border for border in phase.lengths if border] or [8192]
                yield (
                    place,
                    f"needs classes by length: set `buckets.classes` to {{score: tokens, limits: "
                    f"{limits}}}. Classes by a score and by length at once are not possible",
                )
                continue
            if classes is None:
                yield place, "weighs classes, of which there are none: set `buckets.classes`"
                continue
            try:
                class_draws(phase, classes.limits, ())
            except ValueError as error:
                yield place, str(error)

    def holdout_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of what cannot be where documents are held out."""
        if not self.holds_out:
            return
        for index, phase in enumerate(self.phases):
            if phase.name == VALIDATION:
                message = f"{VALIDATION!r} is the name of the documents that `holdout` holds out"
                yield ("phases", index, "name"), f"{message}. Rename the phase"
        classes = self.buckets.classes
        try:
            check_count(self.buckets, 1 + (len(class_names(classes.limits)) if classes else 0))
        except ValueError as error:
            yield ("buckets",), str(error)

    def course_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of phases that cannot go on with the order of another."""
        for index, phase in enumerate(self.phases):
            if fault := continues_fault(phase, self.phases):
                yield ("phases", index, "continues"), fault

    def has_percentiles(self) -> bool:
        """Return whether the filters of some source store the percentile of quality."""
        try:
            groups = [self.laid_filters(name).rules.quality for name in self.source_names()]
        except ValidationError:
            return True  # unknown: `override_faults` has what is wrong
        return any(group is not None and group.min_percentile is not None for group in groups)

    def bucket_references(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, name) of every bucket that a phase names."""
        for index, phase in enumerate(self.phases):
            for position, bucket in enumerate(phase.buckets or ()):
                yield ("phases", index, "buckets", position), bucket

    def stage_references(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, name) of every source that a stage's config names."""
        for index, annotator in enumerate(self.annotations):
            for position, name in enumerate(annotator.sources or ()):
                yield ("annotations", index, "sources", position), name
        if self.classifier is not None:
            for side, sources in (("good", self.classifier.good), ("bad", self.classifier.bad)):
                yield from ((("classifier", side, i), name) for i, name in enumerate(sources))
        yield from ((("dedup", "priority", i), name) for i, name in enumerate(self.dedup.priority))
        yield from ((("tokenizer", "weights", name), name) for name in self.tokenizer.weights or ())

    def inputs(self) -> Iterator[tuple[KeyPath, InputPlaces]]:
        """Yield (key path, places) of everything whose files share the folder of downloads."""
        for index, source in enumerate(self.sources):
            yield ("sources", index), source
        sets = self.dedup.decontamination.sets if self.dedup.decontamination else ()
        for index, evaluation_set in enumerate(sets):
            yield ("dedup", "decontamination", "sets", index), evaluation_set
        for index, annotator in enumerate(self.annotations):
            if isinstance(annotator, FileAnnotator):
                yield ("annotations", index), annotator

    @property
    def file_annotators(self) -> list[FileAnnotator]:
        """The annotators whose answers are in files."""
        return [each for each in self.annotations if isinstance(each, FileAnnotator)]

    @property
    def topics(self) -> list[TopicsAnnotator]:
        """The annotators that find topics in the corpus."""
        return [each for each in self.annotations if isinstance(each, TopicsAnnotator)]

    @property
    def asking(self) -> list[AskAnnotator]:
        """The annotators that ask language models."""
        return [each for each in self.annotations if isinstance(each, AskAnnotator)]

    @property
    def classifying(self) -> list[ClassifyAnnotator]:
        """The annotators that learn from the answers of others."""
        return [each for each in self.annotations if isinstance(each, ClassifyAnnotator)]

    @property
    def teachers(self) -> dict[str, Teacher]:
        """The annotators that a classifier may learn from, by name."""
        found: tuple[Teacher, ...] = (*self.file_annotators, *self.asking)
        return {each.name: each for each in found}

    def is_chat(self, name: str) -> bool:
        """Return whether a source of that name is made of conversations."""
        return name in self.by_name and self.by_name[name].kind == "chat"

    def chat_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of what conversations need and the config does not have."""
        chats = [name for name in self.source_names() if self.is_chat(name)]
        if not chats:
            return
        tokenizer = self.tokenizer
        lacking = [token for token in CHATML_TOKENS if token not in tokenizer.special_tokens]
        if tokenizer.path is None and tokenizer.chat_template is None and lacking:
            yield (
                ("tokenizer", "special_tokens"),
                f"source {chats[0]!r} has conversations, whose template (ChatML) needs "
                f"{', '.join(lacking)}. Add them, or set tokenizer.chat_template",
            )
        places: list[tuple[KeyPath, tuple[str, ...] | None, list[str]]]
        places = [(("shards",), self.shards.formats, chats)]
        every = tuple(self.source_names())
        for index, phase in enumerate(self.phases):
            named = [name for name in phase.named_sources(every) if name in chats]
            places.append((("phases", index), phase.formats, named))
        for keys, formats, names in places:
            for wrong in (name for name in formats or () if name not in MASK_FORMATS if names):
                yield (
                    (*keys, "formats"),
                    f"{wrong} has no place for loss masks, which source {names[0]!r} (kind: chat) "
                    "has: shards would teach all of its tokens. Leave the source out",
                )

    def override_faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of every fault in the filters of a source."""
        for index, name in enumerate(self.source_names()):
            try:
                filters = self.laid_filters(name)
                own = self.source(name).filters
                faults = [*self.missing_models(filters), *undetected_faults(filters, own)]
                if self.source(name).kind == "chat" and "lines" in own:
                    faults.append((("lines",), "has no effect on `kind: chat`. Remove it"))
                for message in language_faults(self.source(name), filters):
                    yield ("sources", index, "language"), f"{message} (source {name!r})"
                for message in required_faults(self.source(name), filters):
                    yield ("sources", index, "require_language"), f"{message} (source {name!r})"
            except ValidationError as error:
                faults = list(faults_of(error, FilterConfig))
            for keys, message in faults:
                yield ("sources", index, "filters", *keys), f"{message} (in source {name!r})"

    def missing_models(self, filters: FilterConfig) -> Iterator[tuple[KeyPath, str]]:
        """Yield (key path, message) of every threshold on a score whose model is not configured."""
        rules = filters.rules.quality
        if rules is None:
            return
        if rules.min_score is not None and self.classifier is None:
            yield ("rules", "quality", "min_score"), "needs a classifier: set `classifier`, or null"
        if rules.min_fasttext_score is not None and filters.fasttext is None:
            yield ("rules", "quality", "min_fasttext_score"), "needs `filters.fasttext`, or null"
        has_model = filters.ranks_fasttext or self.classifier is not None
        if rules.min_percentile is not None and not has_model:
            yield (
                ("rules", "quality", "min_percentile"),
                ("needs a score: set `classifier` or `filters.fasttext`, or null"),
            )

    def source_names(self) -> list[str]:
        """Return the names of the sources, in the file's order."""
        return [source.name for source in self.sources]

    def phase_names(self) -> list[str]:
        """Return the names of the phases, in the file's order, and of what is held out of them."""
        return [*(phase.name for phase in self.phases), *([VALIDATION] if self.holds_out else [])]

    @property
    def holds_out(self) -> bool:
        """Return whether documents of any source are held out of training."""
        return self.holdout is not None or any(source.holdout for source in self.sources)

    def source(self, name: str) -> Source:
        """Return the source of that name."""
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, Source]:
        """The sources by their names: with 10,000, to look for each took half a minute."""
        return {source.name: source for source in self.sources}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which may have other sources."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("by_name", None)
        return copied

    def phase(self, name: str) -> PhaseConfig:
        """Return the phase of that name; that of validation is made of what is held out."""
        if name == VALIDATION and self.holds_out:
            formats = dict.fromkeys(each for phase in self.phases for each in phase.formats)
            if any(map(self.is_chat, self.source_names())):
                formats = {each: None for each in formats if each in MASK_FORMATS}
            return ValidationPhase(name=VALIDATION, weighting="natural", formats=tuple(formats))
        return next(phase for phase in self.phases if phase.name == name)

    def filters_for(self, name: str) -> FilterConfig:
        """Return the filters of a source, without rules on a language that is not detected."""
        laid = self.laid_filters(name).with_tracking_parameters(self.urls.tracking_parameters)
        return without_rules(laid, skipped_rules(laid, self.source(name).filters, self.filters))

    def skipped_rules(self, name: str) -> list[str]:
        """Name the rules on the language that do not apply to a source: it detects none."""
        return skipped_rules(self.laid_filters(name), self.source(name).filters, self.filters)

    def laid_filters(self, name: str) -> FilterConfig:
        """Return the filters of a source: domain, presets, the file's keys, and its own on top."""
        source = self.source(name)
        given = expand_presets(lay_over(self.filters.given, source.filters), source.domain)
        if source.kind == "chat":  # a line may be all that a message has
            given = lay_over(given, {"lines": NO_LINE_EDITS})
        lowest = lay_over(DOMAINS[source.domain], source_layer(source))
        return FilterConfig.model_validate(lay_over(lowest, given))


def unknown_names(
    noun: str, names: list[str], references: Iterable[tuple[KeyPath, str]]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield (key path, message) of every reference that is not among `names`."""
    among = {*names}
    for keys, name in references:
        if name not in among:
            known = f"the {noun}s are {', '.join(names)}"
            yield keys, f"unknown {noun}{nearest(name, names)}; {known}"


def config_path() -> Path:
    """Return the config file: $TOKENMILL_CONFIG, or pipeline.yaml in the current folder."""
    return Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG).absolute()


def store_root(settings: Settings, config: Path) -> Path:
    """Return the root of the store: of $TOKENMILL_STORE, or of `store`.

    A folder is relative to the config file, or to the working folder if the variable names it. A
    store behind a URL has its scratch as root, which is made here.
    """
    override = os.environ.get(STORE_VARIABLE)
    if override is None or not override:
        return root_of(settings.store, config, settings.scratch)
    try:
        return root_of(absolute(check_store(override)), config, settings.scratch)
    except ValueError as error:
        raise SettingsError(f"{STORE_VARIABLE}: {error}") from None


def load_settings(path: Path) -> Settings:
    """Read and check a config file; SettingsError lists every mistake in it."""
    try:
        content, lines = read_yaml(path)
    except NamedFileError as error:
        raise SettingsError(
            f"{error}. Write one, or name another: --config PATH, or {CONFIG_VARIABLE}."
        ) from error
    except YamlError as error:
        raise SettingsError(str(error)) from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected a mapping with `store`, `sources` and `phases`.")
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        faults = [
            f"{path}{place(keys, lines)}{dotted(keys)}: {message}"
            for keys, message in faults_of(error, Settings)
        ]
        if (more := len(faults) - MOST_FAULTS) > 0:
            faults[MOST_FAULTS:] = [f"and {more:,} more mistakes"]
        raise SettingsError("\n".join(faults)) from None


def check_ledger(settings: Settings, config: Path) -> None:
    """Refuse a `dedup.ledger` that does not exist, with a SettingsError."""
    name = settings.dedup.ledger
    if name is not None and not (config.parent / name).is_file():
        raise SettingsError(
            f"{config}: dedup.ledger: no file {name!r} (looked for {config.parent / name}). Write "
            "it with `corpus duplicates ledger` in the other build, or leave the key out."
        )
