"""Any text gives defined scores, no crash, and work that grows as the text does.

Work is counted and not timed. Kernels run as plain Python in a process without numba's compiler,
where the executed lines of the stage are counted; `count_text` has a counter of its own.
Run as a script, this file is that process.
"""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import numba
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from assets.filtered.classifier.classifier import (
    Classifier,
    QualityScale,
    score_quality,
    train_classifier,
)
from assets.filtered.code_score import count_code
from assets.filtered.filter_documents import filter_documents
from assets.filtered.language.detect_language import _cut_paragraphs, dominant_scripts
from assets.filtered.line_edits import edit_lines
from assets.filtered.normalize import normalize_text
from assets.filtered.pii.find_pii import SCANS, find_once, find_pii
from assets.filtered.pii.scan import Scan, Span
from assets.filtered.rules.custom import CustomRule
from assets.filtered.score_counts import FilterData
from assets.filtered.word_lists import WordLists, count_listed
from resources.settings.filtering.classifier import ClassifierConfig
from resources.settings.filtering.filter_steps import (
    C4Lines,
    LinesConfig,
    NormalizeConfig,
    PiiConfig,
    RefinedWebLines,
)
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import RuleGroup, RulesConfig
from resources.settings.limits import Share

PROFANITY = {"en": ("fuck", "shit", "holy shit"), "*": ("merde",)}
VOCABULARY = {"drugs": ("aspirin", "beta blocker"), "anatomy": ("heart",)}
NORMALIZE = {"mojibake": True, "bidi_marks": True, "trailing_spaces": True, "max_blank_lines": 2}
LINES = {"c4": {}, "refinedweb": {}, "remove_copyright": True, "remove_gutenberg": True}
GOOD = ["a patient was given aspirin", "the river runs by the town", "to be or not to be"]
BAD = ["buy cheap pills now", "win money fast", "login register cart checkout"]

PROSE = (
    "The house of the baker stands by the river, and with it a mill that grinds all day. "
    "Who comes from town has to cross an old bridge, which was built when nobody had a car.\n"
)
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\n"
JWT_OR_KEY = "eyJ" + "a" * 8 + "AK" + "IA" + "0" * 16
WORDS = "word f*ck don't holy shit beta blocker items in cart javascript lorem ipsum"

# A unit that is repeated to the size wanted.
REPEATED = {
    "one word": "word ",
    "one character": "x",
    "blanks": " ",
    "newlines": "\n",
    "blank lines": "\n \n",
    "short lines": "a\n",
    "same line": "the same line.\n",
    "addresses without a name": "a@",
    "addresses": "ab@cd.co ",
    "digits": "1-",
    "card numbers": "4111 1111 1111 1111 ",
    "account numbers": "AA11 1111 1111 1111 ",
    "IP addresses": "8.8.8.8 ",
    "small IP addresses": "1.2.3.4 ",
    "password words": "password is ",
    "phone numbers": "+49 170 123456 ",
    "keys": "api_key=" + "a1B2c3D4" * 4 + " ",
    "keys in a token": JWT_OR_KEY,
    "brackets": "(",
    "square brackets": "[",
    "citations": "[1]",
    "spaced letters": "f.u.c.k.",
    "masked words": "f*ck ",
    "symbols": "a1",
    "apostrophes": "a'",
    "PEM marks": "-----BEGIN ",
    "PEM heads": PEM,
    "angles": "<",
    "tags": "<a",
    "scripts": "<script>",
    "HTML comments": "<!--",
    "quotes": '"',
    "mixed quotes": "'\" ",
    "users of URLs": "http://a:b",
    "hosts of URLs": "a://b:c@",
    "connection strings": "a:bcd@tcp(",
    "phones after a word": "tel:1234567",
    "domains in a row": "a@b.c1",
    "triple quotes": '  """',
    "comments": "/*",
    "closed comments": "*/ /*",
    "mojibake": "Ã",
    "mojibake words": "Ã© ",
    "combining marks": "\u0301",
    "marks in two orders": "\u0301\u0323",
    "joined emoji": "👩\u200d🚀",
    "Han": "漢",
    "right to left": "שלום ",
    "NUL": "\0",
    "items in cart": "items in cart ",
    "notices": "© 2019 A.\n",
    "base64": "A1" * 40 + " ",
    "listed words": WORDS,
}
NASTY = [
    *("", " ", "\n\t\r\n ", "a", "é", "漢", "word", "\x00", "\x00" * 9, "a\x00b", "\ufeff"),
    *("\ufffd", "\u0301", "e\u0301\u0323", "\u0301" * 300, "\u200d", "\u202e\u202d", "🙂🙂🙂"),
    *("👩‍👩‍👧‍👦" * 9, "שלום עולם", "مرحبا بالعالم.", "日本語日本語。" * 20, "한국어"),
    *("ไทยไม่มีเว้นวรรค", "\u2028\u2029\x85", "\U0010ffff", "\uffff\ufffe", "\ue000", "𝕬𝖑𝖕𝖍𝖆"),
    *("ﬁ½²Ⅻ", "İıſß", "\U000e0001"),
    # Of two classes each: white space that is a control, capitals that are no letters.
    *("a\x85\x85b l:Ⓚ’u Ⅸ’b ²x 🅐c ª", "a\x1c\x85b. Ⓘ’@z» aⒷ-Ⓒd"),
    *("...", "…", "###", "{", "}", "[", "[]", "-", "•", '"', "'''", "<", "<!", "</", "{}", "[1]"),
    *(
        "NaN",
        "1e999",
        "-0",
        "null",
        "\\",
        "\\x00",
        "$.path",
        "<?xml version=",
        '{"a": 1}',
        "%s {0}",
    ),
    *("@", "a@b", "://", "+1", "0.0.0.0", "::", PEM, PEM + "+" * 99 + "!", JWT_OR_KEY),
]
# The first of each are good, as is the first text.
LANGS = ("en", None, "python", "html", "c", "zh-Hans", "xx", "", "_", "\0")
LICENSES = ("MIT", None, "gpl", "", "\0")
URLS = ("https://Good.example/a", None, "", "http://", "//@:/?#", "http://[::1", "\0", "漢://漢.漢")
METAS = ('{"path": "a.html"}', None, "", "{", "[]", "3", '{"path": "a.py"}', '{"path": 3}', '"')
METAS += ('{"path": null}',)
NUMBERS_OR_NULL = {
    "paragraph_lang_share": "no letters, or no wanted language",
    "comment_share": "code of an unknown language",
    "visible_html_share": "no HTML",
    "visible_html_chars": "no HTML",
    "data_file_chars": "no data file",
    "foreign_domain": "no URL",
    "opted_out": "no URL",
    "quality_score": "no words",
    "quality_percentile": "no words",
    "other_language": "no sure language, or a text that is too short",
}
FIXED = ("doc_id", "kept", "reasons", "detected_lang", "num_bytes", "license", "lang", "pii_spans")


def every_threshold(group: type[RuleGroup]) -> dict[str, Any]:
    """Return a threshold for every rule of a group, most of them so that no score exceeds it."""
    given: dict[str, Any] = {}
    for field, info in group.model_fields.items():
        if not isinstance(info.json_schema_extra, dict):
            continue
        is_share = info.annotation == Share
        if field.startswith("min_"):
            given[field] = 0
        elif field.startswith("max_"):
            given[field] = 1 if is_share else 10**9
        elif isinstance(info.default, bool):
            given[field] = True
    return given


def every_rule() -> dict[str, Any]:
    """Return all groups with all rules except that of a fastText model, which needs a file."""
    rules = {
        name: every_threshold(next(a for a in get_args(info.annotation) if a is not type(None)))
        for name, info in RulesConfig.model_fields.items()
        if name != "custom"
    }
    rules["quality"]["min_fasttext_score"] = None
    rules["language"]["allowed"] = ["en", "fr"]
    listed = {"allowed_licenses": ["mit"], "blocked_licenses": ["gpl"], "url_substrings": ["spam"]}
    words = {"url_words": ["xxx"], "url_soft_words": ["adult"], "required": ["url", "meta.path"]}
    rules["metadata"] |= {**listed, **words}
    return rules


def everything(**changes: Any) -> FilterConfig:
    given = {
        "normalize": NORMALIZE,
        "language": {"script_check": True},
        "lines": LINES,
        "pii": {},
        "rules": every_rule(),
    }
    return FilterConfig.model_validate(given | changes)


def filter_data() -> FilterData:
    labels = np.array([True] * len(GOOD) + [False] * len(BAD))
    training = ClassifierConfig(labelled="-", buckets=1 << 10, held_out=1e-9)
    capitals = pl.col("text").str.count_matches(r"\p{Lu}") / pl.col("text").str.len_chars().clip(1)
    return FilterData(
        profanity=PROFANITY,
        vocabulary=VOCABULARY,
        blocked_domains=frozenset({"bad.example"}),
        allowed_domains=frozenset({"good.example"}),
        custom=(CustomRule("capitals", capitals, maximum=0.3),),
        classifier=train_classifier(pl.Series(GOOD + BAD), labels, training),
        scale=QualityScale({"*": np.array([0.2, 0.5, 0.8])}),
    )


def documents(texts: list[str]) -> pl.DataFrame:
    """Build documents of bad texts, with languages, URLs and metadata that are as bad."""
    ids = [f"{row:032x}" for row in range(len(texts))]
    columns = {
        name: pl.Series(list(islice(cycle(values), len(texts))), dtype=pl.String)
        for name, values in (("lang", LANGS), ("url", URLS), ("meta", METAS), ("license", LICENSES))
    }
    return pl.DataFrame(
        {"doc_id": ids, "id": ids, "text": texts, **columns}, schema_overrides={"text": pl.String}
    )


def bad_texts() -> list[str]:
    texts = [*NASTY, *(unit * (1 + 2500 // len(unit)) for unit in REPEATED.values())]
    pairs = zip(texts, texts[1:] + texts[:1], strict=True)
    mixed = [f"{PROSE}{one}\n\n{PROSE}{other}" for one, other in pairs]
    return [PROSE, *texts, *(text * 2 for text in texts), *mixed, "  ".join(texts)]


def numbers(decisions: pl.DataFrame) -> pl.DataFrame:
    return decisions.drop(FIXED, strict=False)


VARIANTS = {
    "all": {},
    "no line corrections": {"lines": {}},
    "tags": {"lines": {}, "pii": {"action": "tag"}},
    "langdetect": {"language": {"backend": "langdetect"}},
    "code": {"language": {"backend": "none"}, "normalize": {"nfc": False, "form_feeds": False}},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_score_of_every_text_is_a_number_or_a_null_that_is_documented(
    changes: dict[str, Any],
) -> None:
    source = documents(bad_texts())

    _, decisions = filter_documents(source, everything(**changes), filter_data())

    scores = numbers(decisions)
    if changes.get("language", {}).get("backend") == "none":
        assert scores["lang_score"].is_null().all()
        scores = scores.drop("lang_score")
    assert len(scores.columns) > 70
    assert set(scores.dtypes) == {pl.Float64}
    given = scores.fill_null(0)
    assert given.select(pl.all().is_finite().all() & (pl.all() >= 0).all()).row(0) == (True,) * len(
        given.columns
    )
    nulls = {name for name in scores.columns if scores[name].has_nulls()}
    assert nulls <= NUMBERS_OR_NULL.keys()


def test_every_rule_there_is_is_tried_and_shares_lie_between_nothing_and_everything() -> None:
    _, decisions = filter_documents(documents(bad_texts()), everything(), filter_data())

    tried = {
        info.json_schema_extra["score"]
        for annotation in (info.annotation for info in RulesConfig.model_fields.values())
        for group in get_args(annotation)
        if isinstance(group, type) and issubclass(group, RuleGroup)
        for info in group.model_fields.values()
        if isinstance(info.json_schema_extra, dict)
    }
    assert tried - set(decisions.columns) == {"fasttext_score"}
    densities = ["lang_score", "quality_score", "vocabulary_density", "profanity_density"]
    shares = [name for name in decisions.columns if name.endswith("_share")] + densities
    assert len(shares) > 35
    beyond = decisions.select(pl.max_horizontal(shares).max() > 1)
    assert not beyond.item()


def test_the_empty_text_has_nothing_of_everything() -> None:
    _, decisions = filter_documents(documents([""]), everything(), filter_data())

    scores = numbers(decisions).row(0, named=True)
    nulls = {"paragraph_lang_share", "quality_score", "quality_percentile", "data_file_chars"}
    nulls |= {"other_language"}
    assert {name for name, score in scores.items() if score is None} == nulls
    assert {name for name, score in scores.items() if score} == set()


def test_no_bad_text_is_lost_and_a_second_run_is_the_same() -> None:
    source, config, data = documents(bad_texts()), everything(), filter_data()

    kept, decisions = filter_documents(source, config, data)
    again = filter_documents(source, config, data)

    is_kept = decisions["kept"]
    assert decisions["doc_id"].to_list() == source["doc_id"].to_list()
    assert kept["doc_id"].to_list() == source.filter(is_kept)["doc_id"].to_list()
    assert (is_kept == (decisions["reasons"].list.len() == 0)).all()
    assert kept["doc_id"][0] == source["doc_id"][0]
    assert kept.height < source.height
    assert_frame_equal(again[0], kept)
    assert_frame_equal(again[1], decisions)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_kept_texts_are_valid(changes: dict[str, Any]) -> None:
    source = documents(bad_texts())
    config = everything(**changes, rules={"length": None})

    kept, decisions = filter_documents(source, config)

    assert kept.height == source.height
    decoded = [text.decode("utf-8") for text in kept["text"].cast(pl.Binary).to_list()]
    assert decoded == kept["text"].to_list()
    assert decisions["num_bytes"].to_list() == [len(text.encode()) for text in decoded]


def test_what_normalisation_and_redaction_leave_they_leave_again() -> None:
    config = everything(normalize=NORMALIZE | {"mojibake": False}, lines={}, rules={"length": None})

    kept, _ = filter_documents(documents(bad_texts()), config)
    again, _ = filter_documents(kept, config)

    assert again["text"].to_list() == kept["text"].to_list()


def test_documents_are_judged_the_same_alone_and_together() -> None:
    # 40 ms a call: every other one of the texts, without the mixed ones.
    source = documents(bad_texts()[: len(NASTY) + len(REPEATED) + 1 : 2])
    config, data = everything(), filter_data()

    kept, decisions = filter_documents(source, config, data)
    alone = [filter_documents(row, config, data) for row in source.iter_slices(1)]

    assert_frame_equal(pl.concat([one for one, _ in alone]), kept)
    assert_frame_equal(pl.concat([one for _, one in alone]), decisions)


# 50 MB were tried by hand: these take 0.7 to 5.5 s, lines of one letter 10, and at most 1.3 GB.
# Worst: 46 s for different words of mojibake; for nothing but e-mail addresses 31 s and 2.3 GB,
# card numbers 57 s and 2.1 GB, IP addresses 94 s and 3.3 GB.
MEGABYTES = 8
LONG = {
    "one line without blanks": lambda size: "x" * size,
    "one line of words": lambda size: "word " * (size // 5),
    "the same line a million times": lambda size: "a line.\n" * (size // 8),
    "a million different lines": lambda size: "\n".join(f"{i:07}" for i in range(size // 8)),
    "blanks": lambda size: "a" + " " * size + "a",
    "right to left": lambda size: "مرحبا بالعالم " * (size // 26),
    "Han": lambda size: "漢" * (size // 3),
    "emoji": lambda size: "👩\u200d🚀" * (size // 11),
    "combining marks": lambda size: "x" + "\u0301" * (size // 2),
}


@pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
def test_long_documents_are_judged(make: Callable[[int], str]) -> None:
    text = make(MEGABYTES * 1_000_000)
    source = documents([text, "", text[:1000]])

    _, decisions = filter_documents(source, everything(lines={}), filter_data())

    assert decisions["char_count"][0] == len(text.rstrip())
    assert decisions["char_count"][1] == 0


def repeat(unit: str, size: int) -> str:
    """Repeat the unit up to `size` bytes; a character is not cut."""
    return (unit * (size // len(unit) + 1)).encode()[:size].decode(errors="ignore")


def worst_texts(size: int) -> dict[str, str]:
    """Return texts of about `size` bytes, by name."""
    texts = {name: repeat(unit, size) for name, unit in REPEATED.items()}
    texts["distinct words"] = " ".join(f"{i:07}" for i in range(size // 8))
    texts["distinct lines"] = "\n".join(f"line {i:07}" for i in range(size // 13))
    texts["distinct mojibake"] = " ".join(f"Ã©{i:07}" for i in range(size // 12))
    texts["PEM body"] = PEM + " " * (size // 4) + "+" * (size // 2) + "!"
    return texts


# What is counted in a process without numba: every pass over a text but count_text, and the
# language model, which reads 4 kB of a text at most.
Step = Callable[[pl.Series], Any]


def constant(value: str, texts: pl.Series) -> pl.Series:
    return pl.Series([value] * len(texts), dtype=pl.String)


def count_code_of(name: str, texts: pl.Series) -> pl.DataFrame:
    return count_code(texts, constant(name, texts))


def steps() -> dict[str, Step]:
    model = Classifier(np.ones(1 << 10, np.float32), 0.0, 2, 20_000)
    lists = WordLists(("the", "be"), PROFANITY, VOCABULARY)
    lines = LinesConfig(
        c4=C4Lines(end_marks=None, min_words=0, max_word_length=20),
        refinedweb=RefinedWebLines(),
        remove_copyright=True,
    )
    normalize = NormalizeConfig.model_validate(NORMALIZE)
    named: dict[str, Step] = {
        "normalize": lambda texts: normalize_text(texts, normalize),
        "lines": lambda texts: edit_lines(texts, lines),
        "lists": lambda texts: count_listed(texts, constant("en", texts), lists),
        "paragraphs": _cut_paragraphs,
        "scripts": dominant_scripts,
        "quality": lambda texts: score_quality(texts, model),
        "pii": lambda texts: find_pii(texts, PiiConfig()),
    }
    for name in ("py", "c", "html"):
        named[f"code {name}"] = partial(count_code_of, name)
    return named


WATCHED = tuple(os.path.join("assets", room, "") for room in ("filtered", "text"))


class LineCounter:
    """Count the executed lines of the stage's files and of those on texts."""

    def __init__(self) -> None:
        self.lines = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Follow calls into these files, and no others."""
        path = frame.f_code.co_filename
        return self.count if any(folder in path for folder in WATCHED) else None

    def count(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Count one line."""
        self.lines += event == "line"
        return self.count

    def lines_of(self, step: Step, text: str) -> int:
        """Return the number of lines that a step executes for one text."""
        texts, self.lines = pl.Series([text]), 0
        sys.settrace(self.trace)
        step(texts)
        sys.settrace(None)
        return self.lines


SIZES = (96, 192, 384)
MAKES_TABLES = "made once: é © me@example.org 93.184.216.34 4111 1111 1111 1111 my password is x1"


def read_bytes(size: int, data: NDArray[np.uint8], at: int) -> np.uint64:
    return np.uint64(int.from_bytes(data[int(at) : int(at) + size].tobytes(), "little"))


def mark_bytes(data: NDArray[np.uint8], at: int, first: int, number: int) -> np.uint64:
    values = data[int(at) : int(at) + 64].tolist()
    return np.uint64(sum(1 << i for i, value in enumerate(values) if 0 <= value - first < number))


def copy_64(
    data: NDArray[np.uint8], at: int, target: NDArray[np.uint8], place: int, _: tuple[int, int]
) -> None:
    target[int(place) : int(place) + 64] = data[int(at) : int(at) + 64]


def prepare_kernels() -> None:
    """Make the kernels run as plain Python; before any of them is imported."""
    for name in ("uint8", "uint16"):  # to NumPy uint8(1) + 255 is 0, to numba it is 256
        setattr(numba, name, int)
    from assets.filtered import kernels
    from assets.text import kernels as text_kernels
    from assets.text.kernels import many_bytes

    for size in (4, 8):  # numba's intrinsics have no Python version
        setattr(many_bytes, f"read_{size}", partial(read_bytes, size))
    many_bytes.mark_bytes, many_bytes.copy_64 = mark_bytes, copy_64
    for name, function in {
        "count_ones": int.bit_count,
        "first_one": lambda word: f"1{word:064b}"[::-1].index("1"),
        "size_of": int.bit_length,
    }.items():
        setattr(many_bytes, name, lambda word, do=function: np.uint64(do(int(word))))
    # A text is read in segments: small ones, so that the work per text shows.
    sizes = {"CHUNK_BYTES": SIZES[0], "_CHUNK_BYTES": SIZES[0], "BUFFER_WORDS": 64}
    for package in (text_kernels, kernels):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name in sizes.keys() & vars(module).keys():
                setattr(module, name, sizes[name])


def count_all_lines() -> Iterator[tuple[str, list[int]]]:
    """Yield the name of a step and a text, and the lines executed for the sizes."""
    prepare_kernels()
    counter = LineCounter()
    texts = [worst_texts(size) for size in SIZES]
    for step_name, step in steps().items():
        step(pl.Series([MAKES_TABLES]))
        for name in texts[0]:
            lines = [counter.lines_of(step, of_size[name]) for of_size in texts]
            yield f"{step_name}: {name}", lines


def test_twice_the_text_is_twice_the_executed_lines() -> None:
    environment = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    found = subprocess.run(
        [sys.executable, __file__], env=os.environ | environment, capture_output=True, check=True
    )
    counted: dict[str, list[int]] = json.loads(found.stdout)

    assert len(counted) == len(steps()) * len(worst_texts(100))
    idle = {name.split(":")[0] for name, lines in counted.items() if not max(lines)}
    assert not idle, "no line of these steps was counted"
    # What is done once for any text cancels out, and 2 is linear, 4 quadratic. Fewer than 30 lines
    # a byte may come by leaps, as limits are reached; one line for each two bytes would be 190.
    growth = {
        name: (last - middle) / max(middle - first, 30 * SIZES[0])
        for name, (first, middle, last) in counted.items()
    }
    assert {name: ratio for name, ratio in growth.items() if ratio > 3} == {}


@pytest.mark.parametrize("name", worst_texts(100))
def test_twice_the_text_is_twice_the_table_slots_and_ngrams(name: str) -> None:
    from assets.filtered.kernels.text_scores import count_work

    sizes = (100_000, 200_000, 400_000)
    small, middle, large = (count_work(pl.Series([worst_texts(size)[name]])) for size in sizes)

    assert large - middle <= 3 * max(middle - small, 10_000)  # tables grow by leaps
    assert large <= 20 * sizes[-1]


RUN = r"[*+]|\{\d+,\}"


def bare(pattern: str) -> str:
    """Leave out characters, and groups in which nothing runs without end: they end soon."""
    rest = re.sub(r"\\.|\[[^]]+\]", "", pattern)
    group = re.compile(r"\((?:\?:)?([^()]*)\)")
    while found := group.search(rest):
        kept = f"<{found[1]}>" if re.search(RUN, found[1]) else ""
        rest = rest[: found.start()] + kept + rest[found.end() :]
    return rest


def test_a_candidate_pattern_has_alternatives_or_runs_without_end_but_not_both() -> None:
    # With both, a match waits for the other alternative's run to end, each time to the same end.
    patterns = {scan.candidate: bare(scan.candidate) for scan in SCANS}

    assert [
        pattern for pattern, rest in patterns.items() if "|" in rest and re.search(RUN, rest)
    ] == []
    assert bare(r"a(?:b|c{1,3})*|(?:d|e+)\+") == "a*|<d|e+>"


@pytest.mark.parametrize(
    "text",
    [
        JWT_OR_KEY * 40_000,  # 20 minutes, when each match read on to the end of the text
        PEM + " " * 5_000 + "+" * 10_000 + "!",  # days, when all divisions into runs were tried
        (PEM + "\"'+" * 5_000 + "!\n") * 50,
    ],
    ids=["keys in a token", "PEM body", "PEM bodies"],
)
def test_texts_that_once_took_hours_end(text: str) -> None:
    _, counts = find_pii(pl.Series([text]), PiiConfig())

    assert counts["pii_private_key"].item() == 0


@pytest.mark.parametrize(
    "unit",
    [
        *("password is ", "password=", "password: 'abc12!' ", "pwd ", "senha: a1b2c3 ", "密码："),
        *("PASS=x ", "1.2.3.4 ", "8.8.8.8 ", "ip 1.2.3.4 ", "123-45-6789 ", "ssn 078-05-1121 "),
        *("01 23 45 67 89 ", '"a b"@example.org ', "joe@ex.png ", "a/b@c.org/", "é@é.рф "),
        *("http://a:b@c.de ", "1.2.3.4\n"),
    ],
)
@pytest.mark.parametrize("gap", ["", "\n"])
def test_a_text_that_repeats_itself_is_checked_as_often_whatever_its_size(
    unit: str, gap: str
) -> None:
    calls = []
    for size in (100_000, 200_000):
        called = [0]
        scans = [scan._replace(check=partial(count_call, called, scan)) for scan in SCANS]
        find_once(pl.Series([(unit + gap) * (size // len(unit + gap))]), scans)
        calls += called

    # Those at the ends stand in a text of their own.
    assert calls[1] <= calls[0] + 20
    assert calls[0] < 4_000


def count_call(called: list[int], scan: Scan, text: str, start: int, end: int) -> Iterator[Span]:
    called[0] += 1
    return scan.check(text, start, end)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's numbers overflow aloud, numba's and C's do not
    np.seterr(all="ignore")
    sys.stdout.write(json.dumps(dict(count_all_lines())))
