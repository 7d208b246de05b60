"""The files that a filter config names: lists of words and domains, vocabularies, custom rules.

They are read once per process and content: the digests are part of the key, and of the fingerprint
of every part that depends on them.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec
import polars as pl

from assets.filtered.opt_out import (
    OptOut,
    describe_faults,
    newest_files,
    parse_entries,
    with_suffix_faults,
)
from assets.filtered.rules.custom import (
    CUSTOM_COLUMNS,
    CustomRule,
    check_custom_rules,
    custom_scores,
)
from assets.filtered.rules.opened_files import opened_files
from assets.filtered.score_counts import FilterData
from corpus_loader.places.files import FileState, state_of
from resources.engine.fresh_process import call_in_fresh_process
from resources.engine.system_errors import errno_of, is_final
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import OptOutRules
from resources.settings.named_files import NamedFileError, check_named_file
from resources.settings.plug_ins import load_plug_in, with_identity
from resources.store.disk import hash_file
from resources.urls import parse_url

NAMES = ("robots.txt", "ai.txt")
MOST_TEXT_BYTES = 500 * 1024  # RFC 9309: what follows may be ignored
TRIED_DOCUMENTS = 64  # with custom rules
TRIED_CHARACTERS = 5_000  # of each
SHOWN_CHARACTERS = 60

Scores = dict[str, list[float | None]]
Rows = list[dict[str, str | None]]


class Snapshot(msgspec.Struct, frozen=True):
    """A file of a site as it was on a date; `sha256` is that of the text in UTF-8."""

    url: str
    date: datetime.date
    sha256: str
    text: str


def read_snapshots(paths: Iterable[Path]) -> dict[str, tuple[str, ...]]:
    """Return the newest texts of each host; ValueError that names a wrong line."""
    snapshots: dict[tuple[str, str], dict[str, str]] = {}
    for path in paths:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        place, date, text = checked(line)
                    except (ValueError, msgspec.MsgspecError) as error:
                        raise ValueError(f"{path}: line {number}: {error}") from error
                    snapshots.setdefault(place, {})[date] = text
    return dict(newest_files(snapshots))


def checked(line: bytes) -> tuple[tuple[str, str], str, str]:
    """Return host and name of the file of a snapshot, its date and its text."""
    snapshot = msgspec.json.decode(line, type=Snapshot)
    content = snapshot.text.encode()
    if (found := hashlib.sha256(content).hexdigest()) != snapshot.sha256.lower():
        raise ValueError(
            f"the sha256 of its text is {found}, not {snapshot.sha256!r:.80}: the snapshot is not "
            "as it was taken. Take it again."
        )
    url = parse_url(snapshot.url)
    name = url.path.rpartition("/")[2].lower()
    if name not in NAMES or not url.host:
        raise ValueError(f"{snapshot.url!r:.200} is no URL of a robots.txt or an ai.txt")
    return (
        (url.domain, name),
        snapshot.date.isoformat(),
        content[:MOST_TEXT_BYTES].decode(errors="ignore"),
    )


DATA = Path(__file__).parent / "data"
T = TypeVar("T")
MOST_BYTES = 64 << 20  # of a list or vocabulary: 4 million domains, 400 MB in memory
MODEL = "filters.fasttext.path"  # checked when it is loaded, and of any size
OPT_OUT = "filters.rules.opt_out"
CUSTOM_FILES = "filters.custom_files"
LARGE_FILE_BYTES = 16 << 20  # below, hashing takes at most 10 ms
OURS = [
    f"{Path(__file__).parents[2]}/{each}"
    for each in ("assets", "resources", "corpus_loader", "tokenmill")
]
PACKAGES = tuple(f"{os.path.realpath(each)}/" for each in (sys.prefix, sys.base_prefix, *OURS))
PROFANITY = DATA / "profanity.json"
VOCABULARY = DATA / "medical_vocabulary.json"
NEW_IMPORT = (
    "CustomRule is no longer in assets.transforms. Write "
    "`from tokenmill.plugins import CustomRule`."
)


class FilterFileError(ValueError):
    """A file of the filter config is missing or wrong; the message names the file and its fault."""


class _Profanity(msgspec.Struct):
    languages: dict[str, tuple[str, ...]]


class _Vocabulary(msgspec.Struct):
    categories: dict[str, tuple[str, ...]]


def files_of(config: FilterConfig, folder: Path) -> dict[str, Path]:
    """Return every file that the config's rules look at, by the key that names it.

    Raises FilterFileError for one that does not exist.
    """
    rules = config.rules
    named: dict[str, str | None] = {
        "filters.custom": config.custom,
        MODEL: config.fasttext.path if config.fasttext else None,
        "filters.words.vocabulary_file": config.words.vocabulary_file if rules.medical else None,
    }
    if config.uses_profanity:
        for language, name in config.words.profanity_files.items():
            named[f"filters.words.profanity_files.{language}"] = name
    if rules.metadata:
        for key in ("blocked_domains_file", "allowed_domains_file"):
            named[f"filters.rules.metadata.{key}"] = getattr(rules.metadata, key)
    named |= {f"{CUSTOM_FILES}.{name}": name for name in config.custom_files if config.custom}
    named |= opt_out_files(rules.opt_out or OptOutRules(), folder)
    files = {key: (folder / name) for key, name in named.items() if name is not None}
    for key, path in files.items():
        if not path.exists():
            raise FilterFileError(
                f"{key}: no file {named[key]!r} (looked for {path}). Correct it, or leave it out."
            )
        try:
            check_named_file(path, sys.maxsize if key == MODEL else MOST_BYTES)
        except NamedFileError as error:
            raise FilterFileError(f"{key}: {error}.") from error
    if config.uses_profanity and config.words.builtin_profanity:
        files["profanity"] = PROFANITY
    if rules.medical and not config.words.vocabulary_file:
        files["vocabulary"] = VOCABULARY
    return files


def opt_out_files(rules: OptOutRules, folder: Path) -> dict[str, str | None]:
    """Return the files of opt-outs; of a folder, those with JSON lines."""
    named = {f"{OPT_OUT}.domains_file": rules.domains_file}
    if rules.snapshots is None or not (folder / rules.snapshots).is_dir():
        return named | {f"{OPT_OUT}.snapshots": rules.snapshots}
    paths = sorted((folder / rules.snapshots).glob("*.jsonl"))
    return named | {f"{OPT_OUT}.snapshots/{path.name}": str(path) for path in paths}


def digests_of(config: FilterConfig, folder: Path) -> tuple[str, ...]:
    """Return "key=sha256" of every file in `files_of`, sorted by key; plug-ins follow."""
    files = sorted(files_of(config, folder).items())
    added = [f"filters.plug_ins={with_identity('rules', name)}" for name in config.plug_ins]
    return (*(f"{key}={_digest_of(path)}" for key, path in files), *added)


def _digest_of(path: Path) -> str:
    """Return a sha256; a large file is read again only if its state is another one."""
    state = state_of(path.stat())
    return hash_file(path)[0] if state.bytes < LARGE_FILE_BYTES else _digest_of_large(path, state)


@lru_cache(maxsize=256)
def _digest_of_large(path: Path, _: FileState) -> str:
    return hash_file(path)[0]


def load_filter_data(
    config: FilterConfig, folder: Path, digests: tuple[str, ...] | None = None
) -> FilterData:
    """Read the files that the config names; `digests` is their content as it was planned.

    Raises FilterFileError if a file is missing or wrong, or has changed since the plan.
    """
    current = digests_of(config, folder)
    if digests is not None and current != digests:
        changed = sorted({digest.split("=")[0] for digest in set(current) ^ set(digests)})
        raise FilterFileError(
            f"{', '.join(changed)}: changed while the run was under way. Run again."
        )
    return _load(config.model_dump_json(), folder, current)


@lru_cache(maxsize=32)
def _load(config_json: str, folder: Path, _: tuple[str, ...]) -> FilterData:
    config = FilterConfig.model_validate_json(config_json)
    files = files_of(config, folder)
    blocked, blocked_faults = _domains(config, files, "blocked_domains")
    allowed, allowed_faults = _domains(config, files, "allowed_domains")
    vocabulary = files.get("filters.words.vocabulary_file", files.get("vocabulary"))
    return FilterData(
        profanity=_profanity(files),
        vocabulary=_decode(vocabulary, _Vocabulary).categories if vocabulary else {},
        blocked_domains=blocked,
        allowed_domains=allowed,
        list_faults=(*filter(None, (blocked_faults, allowed_faults)),),
        custom=custom_rules(config, folder),
        fasttext_path=str(files[MODEL]) if config.fasttext else None,
        opt_out=_opt_out(config, files) if config.rules.opt_out else OptOut(),
    )


def _domains(config: FilterConfig, files: dict[str, Path], name: str) -> tuple[frozenset[str], str]:
    """Return the addresses of a list of `rules.metadata`, and which entries can match nothing."""
    group = config.rules.metadata
    key = f"filters.rules.metadata.{name}"
    lists = {key: getattr(group, name) if group else ()}
    if path := files.get(f"{key}_file"):
        lists[f"{key}_file: {path}"] = _text_of(f"{key}_file", path).splitlines()
    parsed = {place: parse_entries(lines) for place, lines in lists.items()}
    faults = filter(None, (describe_faults(table, place) for place, table in parsed.items()))
    addresses = pl.concat(parsed.values()).filter(pl.col("fault").is_null())["address"]
    return frozenset(addresses), "; ".join(faults)


def _opt_out(config: FilterConfig, files: dict[str, Path]) -> OptOut:
    """Return the opt-outs; FilterFileError for an entry that can match nothing, or all sites."""
    rules = config.rules.opt_out
    assert rules is not None, "asked for if there are such rules"
    lists: dict[str, Sequence[str]] = {f"{OPT_OUT}.domains": rules.domains}
    if path := files.get(key := f"{OPT_OUT}.domains_file"):
        lists[f"{key}: {path}"] = _text_of(key, path).splitlines()
    tracking, addresses = rules.tracking_parameters or (), set[str]()
    for place, lines in lists.items():
        table = with_suffix_faults(parse_entries(lines, tracking))
        if faults := describe_faults(table, place):
            raise FilterFileError(f"{faults}. Correct the list: nobody else would notice.")
        addresses |= set(table["address"])
    snapshots = [path for key, path in files.items() if key.startswith(f"{OPT_OUT}.snapshots")]
    try:
        texts = read_snapshots(snapshots)
    except ValueError as error:
        raise FilterFileError(f"{OPT_OUT}.snapshots: {error}") from error
    return OptOut(frozenset(addresses), texts, rules.agents, tracking)


def _profanity(files: dict[str, Path]) -> dict[str, tuple[str, ...]]:
    lists: dict[str, tuple[str, ...]] = {}
    if "profanity" in files:
        lists |= _decode(files["profanity"], _Profanity).languages
    prefix = "filters.words.profanity_files."
    for key, path in files.items():
        if key.startswith(prefix):
            language = key.removeprefix(prefix)
            lists[language] = (*lists.get(language, ()), *_terms_of(key, path))
    return lists


def _decode(path: Path, record: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FilterFileError(f"{path}: {error}. See assets/filtered/data for the form.") from error


def _text_of(key: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FilterFileError(f"{key}: {path} is not UTF-8: {error}. Convert it.") from error


def _terms_of(key: str, path: Path) -> Iterator[str]:
    """Yield the terms of a list; FilterFileError for one that can match nothing."""
    for number, line in enumerate(_text_of(key, path).splitlines(), 1):
        term = line.strip()
        if not term or term.startswith("#"):
            continue
        if not any(map(str.isalnum, term)):
            raise FilterFileError(
                f"{key}: {path}: line {number}: {term!r:.80} has no letter or digit, and would "
                "match nothing. Remove it."
            )
        yield term


def custom_rules(config: FilterConfig, folder: Path) -> tuple[CustomRule, ...]:
    """Return the custom rules of a config: of its file, then of packages.

    Raises FilterFileError that names the file or the package, and its fault.
    """
    files = tuple(_digest_of(folder / name) for name in config.custom_files)
    own = load_custom_rules(folder / config.custom, files) if config.custom else ()
    try:
        added = [load_plug_in("rules", name, list) for name in config.plug_ins]
        return check_custom_rules([*own, *chain.from_iterable(added)])
    except ValueError as error:
        raise FilterFileError(f"filters.plug_ins: {error}") from error


def load_custom_rules(path: Path, digests: tuple[str, ...] = ()) -> tuple[CustomRule, ...]:
    """Run a file of custom rules, once per content and that of its files, and check its examples.

    Raises FilterFileError that names the file and its fault.
    """
    if path.suffix != ".py":
        raise FilterFileError(f"filters.custom: {path} is no Python file: its name must end in .py")
    return _run_custom_rules(path, path.read_bytes(), digests)


@lru_cache(maxsize=32)
def _run_custom_rules(path: Path, source: bytes, _: tuple[str, ...]) -> tuple[CustomRule, ...]:
    """Compile the source itself: Python's cache would miss a second edit within a second."""
    module = ModuleType(f"tokenmill_custom_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
        return check_custom_rules(getattr(module, "RULES", None))
    except Exception as error:
        if is_final(errno_of(error)):
            raise  # of the machine
        hint = NEW_IMPORT if is_old_import(error) else f"{type(error).__name__}: {error}"
        raise FilterFileError(f"filters.custom: {path}: {hint}") from error


def is_old_import(error: Exception) -> bool:
    """Return whether a file imports the folder in which `CustomRule` used to be."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return name is not None and name.startswith("assets.transforms")


def read_tried(path: Path) -> Rows:
    """Read some documents of a raw part, and the beginning of their texts."""
    documents = pl.scan_parquet(path).select(list(CUSTOM_COLUMNS)).head(TRIED_DOCUMENTS)
    text = pl.col("text").str.slice(0, TRIED_CHARACTERS)
    return documents.with_columns(text).collect().to_dicts()


def scores_of(config_json: str, folder: str, rows: Rows) -> Scores:
    """Return the scores that the custom rules of a FilterConfig give to documents, by rule."""
    config = FilterConfig.model_validate_json(config_json)
    documents = pl.DataFrame(rows, schema=CUSTOM_COLUMNS)
    scores = custom_scores(documents, custom_rules(config, Path(folder)))
    return {name.removeprefix("custom_"): scores[name].to_list() for name in scores.columns}


def scores_and_files(config_json: str, folder: str, rows: Rows) -> tuple[Scores, list[str]]:
    """Return what `scores_of` does, and the files that the config's own rules open.

    For a process of its own, in which the rules are not loaded yet.
    """
    own = FilterConfig.model_validate_json(config_json).model_copy(update={"plug_ins": ()})
    opened = opened_files(lambda: scores_of(own.model_dump_json(), folder, rows))
    return scores_of(config_json, folder, rows), opened


def undeclared_files(config: FilterConfig, folder: Path, opened: Iterable[str]) -> list[str]:
    """Return the files of the project, and beside the rules, that the config does not name."""
    named = [
        os.path.realpath(folder / name) for name in (config.custom or "", *config.custom_files)
    ]
    base = os.path.realpath(folder)
    inside = f"{base}/", f"{os.path.dirname(named[0])}/"
    return [
        os.path.relpath(path, base)
        for path in opened
        if path.startswith(inside) and not path.startswith(PACKAGES) and path not in named
    ]


def try_custom_rules(config: FilterConfig, folder: Path, rows: Rows) -> None:
    """Raise FilterFileError if a rule gives a document another score in a second process.

    So it does if the file of the rules opens one that `custom_files` does not name.

    A rule is Python: it may draw numbers, ask the clock, or hash a text, which Python does in
    another way in each process. Then every build would keep other documents.

    A rule that raises here is not tried: the part that it fails says where, and is tried again.
    """
    arguments = config.model_dump_json(), str(folder), rows
    try:
        here = scores_of(*arguments)
    except Exception:  # noqa: BLE001  a rule may raise anything
        return
    there, opened = call_in_fresh_process(scores_and_files, *arguments)
    if unknown := undeclared_files(config, folder, opened):
        raise FilterFileError(
            f"filters.custom: {config.custom} opens {unknown[0]!r}, so that a change of that file "
            f"would change no document. Add it: {CUSTOM_FILES}: [{', '.join(unknown)}]"
        )
    for name, scores in here.items():
        pairs = zip(rows, scores, there[name], strict=True)
        different = [(row, one, other) for row, one, other in pairs if one != other]
        if different:
            row, one, other = different[0]
            raise FilterFileError(
                f"filters: custom rule {name!r} gives {len(different)} of "
                f"{len(rows)} documents another score in a second process, first {one} and "
                f"{other} to {(row['text'] or '')[:SHOWN_CHARACTERS]!r}: every build would keep "
                "other documents. Leave out random numbers, `hash`, the clock, and the order of "
                "sets."
            )
