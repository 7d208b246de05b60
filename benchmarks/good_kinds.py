"""Texts that are no prose and yet good, made with a seed: tables, logs, formulas, dialogues, verse.

They are clean text in the training of the models of pages (page_kinds.py), and what text_kinds.py
measures with. Sentences and words are those of real pages; a page belongs to the half for tuning or
to the half kept aside, and so do the languages of good_kinds.yaml. As in planted_junk.py, families
with `is_kept_aside` are never for tuning.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from planted_junk import LEAST_PAGE, Page

GOOD_KINDS = (
    *("prose", "table", "log", "formulas", "dialogue", "code", "verse", "list", "notation"),
)
SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+|\n+|(?<=[。！？])")
WHOLE = re.compile(  # from a letter or a quotation mark to the mark of a sentence
    r"[^\W\d_«“„「¿¡][^{}<>|=`*#]*[.!?。！？।…]$|"
    r"[«“„「¿¡][^{}<>|=`*#]*[.!?。！？।…»”“」]$"
)
PAGES_TRIED = 20  # for a sentence
CHARACTERS = (5, 14)  # of a line of verse in a script without blanks
LENGTHS = (120, 6_000)  # characters
LEAST_ABOUT = 300  # of a text about notices: a shorter one is little but the notice


class Words(msgspec.Struct, frozen=True):
    """Content of good_kinds.yaml, by language."""

    kept_aside: list[str]
    changes: dict[str, list[str]]
    links: dict[str, list[str]]
    columns: dict[str, list[str]]
    speakers: dict[str, list[str]]
    about: dict[str, list[str]]
    about_aside: dict[str, list[str]]
    units: list[str]


HERE = Path(__file__).parent
WORDS = msgspec.convert(yaml.safe_load((HERE / "good_kinds.yaml").read_text()), Words)
NOTICES: dict[str, dict[str, list[str]]] = yaml.safe_load((HERE / "notices.yaml").read_text())


@lru_cache(maxsize=4096)
def sentences_of(text: str) -> list[str]:
    """Return the sentences of a page, and its lines."""
    parts = [part.strip() for part in SENTENCE.split(text[:40_000])]
    return [part for part in dict.fromkeys(parts) if "|" not in part]


class GoodText(NamedTuple):
    """A text, its kind, the name of its family, and its language."""

    text: str
    kind: str
    family: str
    lang: str


class Draw:
    """A seeded generator with pages of one language and source code."""

    def __init__(
        self, key: str, lang: str, pages: Sequence[Page], code: Sequence[str], *, is_tuning: bool
    ) -> None:
        self.random = random.Random(f"{key}/{is_tuning}")
        self.lang, self.pages, self.code, self.is_tuning = lang, pages, code, is_tuning
        self.page = self.random.choice(pages)
        self.used: set[str] = set()
        self.length = int(LENGTHS[0] * (LENGTHS[1] / LENGTHS[0]) ** self.random.random() ** 2)

    def sentence(self, least: int = 20, most: int = 160, *, is_whole: bool = False) -> str:
        """Draw a sentence of the page, or of another one if the text has all of its sentences.

        is_whole: it ends as sentences do, and is no line of a manual or a table.
        """
        for _ in range(PAGES_TRIED):
            unused = [
                part
                for part in sentences_of(self.page.text)
                if least <= len(part) <= most and part not in self.used
            ]
            if is_whole:
                unused = [part for part in unused if WHOLE.match(part)]
            if unused:
                self.used.add(chosen := self.random.choice(unused))
                return chosen
            self.page = self.random.choice(self.pages)
        return self.page.text[:most].strip()

    def lines(self, text: str, least: int, most: int) -> list[str]:
        """Break a text into lines of words; of characters in scripts without blanks."""
        is_spaced = len(text.split()) * 12 > len(text)
        units = text.split() if is_spaced else re.findall(r"[\w.-]+|\S", text, re.ASCII)
        joint = " " if is_spaced else ""
        sizes = (least, most) if is_spaced else CHARACTERS
        lines = []
        while units:
            size = self.random.randint(*sizes)
            lines.append(joint.join(units[:size]))
            del units[:size]
        return lines

    def word(self) -> str:
        """Draw a word of the page, or an identifier."""
        if self.random.random() < 0.25:
            return self.identifier()
        return self.random.choice(self.page.words or ["page"])

    def identifier(self) -> str:
        """Draw a name as programs have them."""
        stems = ("read", "user", "http", "cache", "parse", "index", "config", "token", "log", "db")
        first, second = self.random.sample(stems, 2)
        forms = (
            f"{first}_{second}",
            f"{first}{second.title()}",
            f"--{first}-{second}",
            f"{first}()",
        )
        return self.random.choice(forms)

    def number(self) -> str:
        """Draw a number as tables have them."""
        form = self.random.choice(("{:d}", "{:,d}", "{:.1f}", "{:.2f}", "{:d}"))
        return form.format(
            self.random.randint(0, 10 ** self.random.randint(1, 6))
            if "d" in form
            else self.random.random() * 10 ** self.random.randint(0, 4)
        )

    def version(self) -> str:
        """Draw a version."""
        return ".".join(str(self.random.randint(0, 20)) for _ in range(self.random.randint(2, 3)))

    def date(self) -> str:
        """Draw a date."""
        year, month, day = (
            self.random.randint(1999, 2025),
            self.random.randint(1, 12),
            self.random.randint(1, 28),
        )
        form = self.random.choice(("{0}-{1:02}-{2:02}", "{2:02}.{1:02}.{0}", "{2}/{1}/{0}", "{0}"))
        return form.format(year, month, day)

    def of(self, words: dict[str, list[str]]) -> list[str]:
        """Return words of the language."""
        return words[self.lang]

    def change(self) -> str:
        """Draw what changed in a program."""
        text = self.random.choice(self.of(WORDS.changes))
        text = re.sub(r"\{w\}", lambda _: self.word(), text)
        return text.replace("{v}", self.version()).replace("{n}", str(self.random.randint(1, 9999)))

    def until_long(self, make: Callable[[], str], joint: str = "\n") -> str:
        """Make parts until the text is long enough."""
        parts: list[str] = []
        while not parts or sum(map(len, parts)) < self.length:
            parts.append(make())
        return joint.join(parts)


class Family(NamedTuple):
    """A way to make a good text of a kind."""

    kind: str
    make: Callable[[Draw], str]
    is_kept_aside: bool


FAMILIES: list[Family] = []


def family(kind: str, *, is_kept_aside: bool = False) -> Callable[..., Callable[[Draw], str]]:
    """Register a function as a family of a kind."""

    def register(make: Callable[[Draw], str]) -> Callable[[Draw], str]:
        FAMILIES.append(Family(kind, make, is_kept_aside))
        return make

    return register


def good_texts(
    documents: Sequence[tuple[str, str, str]], count: int, seed: int, *, is_tuning: bool
) -> Iterator[GoodText]:
    """Yield `count` texts of each kind and language, the families in turn.

    documents: text, language and source of each.
    """
    pages: dict[str, list[Page]] = {lang: [] for lang in WORDS.changes}
    code = []
    for text, lang, source in documents:
        page = Page(text, lang)
        if page.is_for_tuning == is_tuning and len(text) >= LEAST_PAGE:
            if source == "code":
                code.append(text)
            elif lang in pages:
                pages[lang].append(page)
    for lang, own in pages.items():
        if is_tuning and lang in WORDS.kept_aside:
            continue
        for kind in GOOD_KINDS:
            families = [
                each
                for each in FAMILIES
                if each.kind == kind and not (is_tuning and each.is_kept_aside)
            ]
            for number in range(count):
                chosen = families[number % len(families)]
                name = chosen.make.__name__
                key = f"{seed}/{lang}/{name}/{number}"
                draw = Draw(key, lang, own, code, is_tuning=is_tuning)
                yield GoodText(chosen.make(draw), kind, name, lang)


def notices(kind: str, lang: str, *, is_tuning: bool) -> list[str]:
    """Return the sentences of a half of the notices; all of a language that is never for tuning."""
    own = NOTICES[kind].get(lang, NOTICES[kind]["en"])
    half = 0 if lang in WORDS.kept_aside and lang in NOTICES[kind] else (len(own) + 1) // 2
    return own[:half] if is_tuning else own[half:]


# prose: about notices, since the rest of the corpora is prose


@family("prose")
def about_notices(draw: Draw) -> str:
    """Quote notices between sentences of a page."""
    own = WORDS.about if draw.is_tuning else WORDS.about_aside
    abouts = own.get(draw.lang, own["en"])
    is_whole = draw.random.random() < 0.7  # the others have lines of manuals and tables, too

    def part() -> str:
        if draw.random.random() < 0.4:
            kind = draw.random.choice([kind for kind in NOTICES if kind != "quoting"])
            quoted = draw.random.choice(notices(kind, draw.lang, is_tuning=draw.is_tuning))
            quoted = re.split(r"(?<=[.!?。])\s*", quoted)[0].rstrip(".")
            quoted = quoted.replace("{s}", "example.org").replace("{n}", "100")
            quoted = re.sub(r"\{w\}", lambda _: draw.word(), quoted)
            sentence = draw.random.choice(abouts).format(q=quoted)
            if sentence not in draw.used:
                draw.used.add(sentence)
                return sentence
        return draw.sentence(40, 300, is_whole=is_whole)

    draw.length = max(draw.length, LEAST_ABOUT)
    return draw.until_long(part, draw.random.choice((" ", "\n\n")))


# table


def rows_of(draw: Draw, columns: int) -> Callable[[], list[str]]:
    """Return what makes the rows of a table: words in the first column, few in the others."""
    kinds = [draw.random.random() for _ in range(columns)]

    def row() -> list[str]:
        cells = [draw.word() if draw.random.random() < 0.7 else f"{draw.word()} {draw.word()}"]
        for kind in kinds[1:]:
            cells.append(
                draw.number()
                if kind < 0.6
                else draw.date()
                if kind < 0.7
                else draw.sentence(10, 60)
                if kind < 0.8
                else draw.word()
            )
        return cells

    return row


@family("table")
def markdown_table(draw: Draw) -> str:
    """Make a table of Markdown, with and without a sentence before it."""
    columns = draw.random.randint(2, 7)
    row, heads = rows_of(draw, columns), draw.random.choices(draw.of(WORDS.columns), k=columns)
    head = f"| {' | '.join(heads)} |\n|{'|'.join(['---'] * columns)}|\n"
    before = draw.sentence() + "\n\n" if draw.random.random() < 0.4 else ""
    return before + head + draw.until_long(lambda: f"| {' | '.join(row())} |")


@family("table")
def plain_table(draw: Draw) -> str:
    """Make a table with tabs, spaces, commas or semicolons between its cells."""
    columns = draw.random.randint(2, 6)
    row, heads = rows_of(draw, columns), draw.random.choices(draw.of(WORDS.columns), k=columns)
    joint = draw.random.choice(("\t", "\t", "  ", ",", ";", " "))
    return joint.join(heads) + "\n" + draw.until_long(lambda: joint.join(row()))


@family("table")
def facts(draw: Draw) -> str:
    """Make a list of facts: a name, a colon, a value."""
    names = draw.of(WORDS.columns)

    def fact() -> str:
        value = draw.random.choice(
            (draw.number(), f"{draw.number()} {draw.random.choice(WORDS.units)}", draw.word(),
             draw.date(), f"{draw.word()} {draw.word()}", draw.sentence(10, 60))
        )  # fmt: skip
        return f"{draw.random.choice(names)}: {value}"

    return draw.until_long(fact)


@family("table")
def ruled_table(draw: Draw) -> str:
    """Make a table in columns of one width, with rules of `+` and `-` between its rows."""
    columns, width = draw.random.randint(2, 6), draw.random.randint(8, 18)
    row, heads = rows_of(draw, columns), draw.random.choices(draw.of(WORDS.columns), k=columns)
    edge, between = draw.random.choice((("+", "|"), ("+", "|"), (" ", " "), ("  ", "  ")))
    rule = edge + edge.join([draw.random.choice("-=") * (width + 2)] * columns) + edge
    is_open = edge != "+" or draw.random.random() < 0.5

    def line(cells: list[str]) -> str:
        made = between.join(f" {cell[:width]:<{width}} " for cell in cells)
        return f"{between}{made}{between}".rstrip()

    rows = draw.until_long(lambda: line(row()) + ("" if is_open else f"\n{rule}"))
    return f"{rule}\n{line(heads)}\n{rule}\n{rows}\n{rule}"


@family("table", is_kept_aside=True)
def aligned_table(draw: Draw) -> str:
    """Make a table in columns of one width, with a rule below its head."""
    columns = draw.random.randint(3, 6)
    row, heads = rows_of(draw, columns), draw.random.choices(draw.of(WORDS.columns), k=columns)
    head = "".join(f"{name[:14]:<16}" for name in heads)
    return f"{head}\n{'-' * len(head)}\n" + draw.until_long(
        lambda: "".join(f"{cell[:14]:<16}" for cell in row()).rstrip()
    )


# log of changes


@family("log")
def release_notes(draw: Draw) -> str:
    """Make a changelog with a heading for each version."""
    mark, head = (
        draw.random.choice("-*•+"),
        draw.random.choice(
            (
                "## [{v}] - {d}",
                "Version {v} ({d})",
                "{v} ({d})",
                "v{v}",
                "# {v}",
                "{v} / {d}\n==========",
            )
        ),
    )

    def version() -> str:
        changes = "\n".join(f"{mark} {draw.change()}" for _ in range(draw.random.randint(1, 6)))
        return f"{head.format(v=draw.version(), d=draw.date())}\n\n{changes}\n"

    return draw.until_long(version)


@family("log")
def dated_changes(draw: Draw) -> str:
    """Make a log with a date or commit before each change."""
    form = draw.random.choice(("{d}  {c}", "{d}: {c}", "{h} {c}", "* {h} {d} {c}"))
    return draw.until_long(
        lambda: form.format(d=draw.date(), c=draw.change(), h=f"{draw.random.getrandbits(28):07x}")
    )


@family("log", is_kept_aside=True)
def sections_of_changes(draw: Draw) -> str:
    """Make a changelog with sections in each version."""
    names = ("Added", "Changed", "Fixed", "Removed", "Security")

    def section() -> str:
        changes = "\n".join(f"  * {draw.change()}." for _ in range(draw.random.randint(1, 4)))
        return f"### {draw.random.choice(names)}\n{changes}\n"

    return f"{draw.version()}\n\n" + draw.until_long(section)


# formulas and chemistry


def term(draw: Draw, depth: int = 0) -> str:
    """Draw a term of LaTeX."""
    choose = draw.random.choice
    if depth > 2 or draw.random.random() < 0.35:
        return choose(
            (
                "x",
                "y",
                "n",
                "k",
                "a_n",
                "b_{ij}",
                "\\alpha",
                "\\lambda",
                "\\pi",
                "2",
                "1",
                "x^2",
                "e^{-x}",
                "f(x)",
                "\\mathbb{R}",
                "\\|v\\|",
            )
        )
    a, b = term(draw, depth + 1), term(draw, depth + 1)
    return choose((
        f"\\frac{{{a}}}{{{b}}}", f"\\sqrt{{{a}}}", f"{a} + {b}", f"{a} - {b}", f"{a}{b}",
        f"\\sum_{{k=1}}^{{n}} {a}", f"\\int_0^1 {a}\\,dx", f"\\left({a}\\right)^{{{b}}}",
        f"\\lim_{{n\\to\\infty}} {a}", f"\\binom{{{a}}}{{{b}}}", f"\\operatorname{{tr}}({a})",
        f"\\partial_x {a}",
    ))  # fmt: skip


def relation(draw: Draw) -> str:
    """Draw an equation or inequality of LaTeX."""
    sign = draw.random.choice(("=", "\\le", "\\ge", "<", "\\in", "\\to", "\\iff", "\\approx"))
    return f"{term(draw)} {sign} {term(draw)}"


@family("formulas")
def latex_proof(draw: Draw) -> str:
    """Make a proof of some words and many formulas."""
    links = draw.of(WORDS.links)

    def step() -> str:
        link = draw.random.choice(links).replace("{f}", f"${relation(draw)}$")
        way = draw.random.random()
        if way < 0.4:
            return f"{link}\n\n$${relation(draw)}, \\qquad {relation(draw)}$$\n"
        if way < 0.55:
            lines = " \\\\\n ".join(
                f"{term(draw)} &= {term(draw)}" for _ in range(draw.random.randint(2, 5))
            )
            return f"{link}\n\\begin{{align}}\n {lines}\n\\end{{align}}"
        if way < 0.8:
            return f"{link} ${relation(draw)}$ "
        return draw.sentence(20, 120)

    return draw.until_long(step)


@family("formulas")
def plain_formulas(draw: Draw) -> str:
    """Make formulas of Unicode and ASCII between sentences."""

    def step() -> str:
        a, b = draw.random.randint(1, 99), draw.random.randint(1, 99)
        formula = draw.random.choice((
            f"{a}x² + {b}x − {a + b} = 0", f"f(x) = {a}·sin({b}x)",
            f"v = s / t = {a} m / {b} s = {a / b:.2f} m/s",
            f"x = ({a} ± √{b}) / 2", "∑ k = n(n+1)/2", "E = m·c²", "∀x ∈ ℝ: x² ≥ 0",
            f"{a} * ({b} + 3) = {a * (b + 3)}",
            "P(A|B) = P(B|A) P(A) / P(B)", f"y' = {a}y, y(0) = {b}",
        ))  # fmt: skip
        return formula if draw.random.random() < 0.6 else draw.sentence(20, 120)

    return draw.until_long(step)


@family("formulas")
def chemistry(draw: Draw) -> str:
    """Make reactions and their masses between sentences."""
    parts = (
        "H2O",
        "NaCl",
        "CO2",
        "H2SO4",
        "CaCO3",
        "CH3COOH",
        "C6H12O6",
        "Fe2O3",
        "NH3",
        "O2",
        "HCl",
        "KMnO4",
        "2 NaOH",
        "3 Mg(OH)2",
        "CuSO4·5H2O",
        "Ca²⁺",
        "SO₄²⁻",
        "CH₃OH",
    )

    def step() -> str:
        if draw.random.random() < 0.4:
            return draw.sentence(20, 140)
        some = draw.random.sample(parts, 4)
        mass = f"  M = {draw.random.random() * 300:.2f} g/mol" if draw.random.random() < 0.3 else ""
        arrow = draw.random.choice(("→", "->", "⇌"))
        return f"{some[0]} + {some[1]} {arrow} {some[2]} + {some[3]}{mass}"

    return draw.until_long(step)


@family("formulas", is_kept_aside=True)
def worked_answers(draw: Draw) -> str:
    """Make numbered answers to exercises in LaTeX."""
    numbers = iter(range(1, 1000))
    return draw.until_long(
        lambda: (
            f"{next(numbers)}. {draw.sentence(10, 80)} \\({relation(draw)}\\)\n"
            f"\\[{term(draw)} = {term(draw)} = {draw.number()}.\\]"
        )
    )


# dialogue and subtitles


@family("dialogue")
def play(draw: Draw) -> str:
    """Make the lines of a play or an interview."""
    names = draw.random.sample(draw.of(WORDS.speakers), 2)
    form = draw.random.choice(
        (
            "{s}: {t}",
            "{s}. {t}",
            "**{s}:** {t}",
            "{s}\n{t}\n",
            "– {t}",
            "[12:{m:02}] <{s}> {t}",
            "{s} (10:{m:02}): {t}",
        )
    )
    return draw.until_long(
        lambda: form.format(
            s=draw.random.choice(names), t=draw.sentence(4, 90), m=draw.random.randint(0, 59)
        )
    )


@family("dialogue")
def subtitles(draw: Draw) -> str:
    """Make numbered subtitles with times."""
    numbers, comma = iter(range(1, 10_000)), draw.random.choice(",.")

    def cue() -> str:
        number = next(numbers)
        start = f"00:{number // 15:02}:{number * 4 % 60:02}{comma}{draw.random.randint(0, 999):03}"
        stop = (
            f"00:{number // 15:02}:{number * 4 % 60 + 2:02}{comma}{draw.random.randint(0, 999):03}"
        )
        return f"{number}\n{start} --> {stop}\n{draw.sentence(4, 70)}\n"

    return draw.until_long(cue)


@family("dialogue", is_kept_aside=True)
def transcript(draw: Draw) -> str:
    """Make the short lines of a transcript, without marks and with a time now and then."""

    def line() -> str:
        words = draw.sentence(20, 120).split()
        return " ".join(words[: draw.random.randint(3, 8)]).lower().strip(".,!?")

    return draw.until_long(
        lambda: f"{draw.random.randint(0, 59)}:{draw.random.randint(0, 59):02}\n{line()}\n{line()}"
    )


# code


@family("code")
def code_excerpt(draw: Draw) -> str:
    """Cut some lines out of a file of source code."""
    lines = draw.random.choice(draw.code).splitlines()
    start = draw.random.randrange(max(1, len(lines) - 10))
    rest = iter(lines[start:] or ["pass"])
    return draw.until_long(lambda: next(rest, "\n" * draw.length))


@family("code", is_kept_aside=True)
def answer_with_code(draw: Draw) -> str:
    """Put code between sentences, as in an answer of a forum."""

    def part() -> str:
        lines = draw.random.choice(draw.code).splitlines()
        start = draw.random.randrange(max(1, len(lines) - 8))
        return (
            draw.sentence()
            + "\n\n"
            + "\n".join(f"    {line}" for line in lines[start : start + 6])
            + "\n"
        )

    return draw.until_long(part)


# verse and lists


@family("verse")
def stanzas(draw: Draw) -> str:
    """Break sentences into lines of verse."""
    chorus = draw.random.random() < 0.3

    def stanza() -> str:
        text = " ".join(draw.sentence(30, 160, is_whole=True) for _ in range(2))
        lines = draw.lines(text, 6, 6)[:5]
        return "\n".join(line[:1].upper() + line[1:] for line in lines) + "\n"

    refrain = stanza()
    return draw.until_long(lambda: refrain if chorus and draw.random.random() < 0.25 else stanza())


@family("verse")
def free_verse(draw: Draw) -> str:
    """Break sentences into lines of any length, some of them indented, some without marks."""
    least, most = draw.random.choice(((1, 5), (2, 9), (4, 7), (7, 12)))
    indent, is_bare = draw.random.choice(("", "", "    ")), draw.random.random() < 0.3
    title = draw.sentence(5, 40).rstrip(".:") + "\n\n" if draw.random.random() < 0.4 else ""

    def stanza() -> str:
        count = draw.random.randint(1, 3)
        text = " ".join(draw.sentence(20, 120, is_whole=True) for _ in range(count))
        lines = draw.lines(text.lower() if is_bare else text, least, most)
        if is_bare:
            lines = [line.strip(".,;:!?。，") for line in lines]
        return "\n".join(indent * (i % 2) + line for i, line in enumerate(lines)) + "\n"

    return title + draw.until_long(stanza)


@family("verse", is_kept_aside=True)
def couplets(draw: Draw) -> str:
    """Write couplets, numbered or with a line that comes back."""
    numbers, way = iter(range(1, 1000)), draw.random.random()
    refrain = draw.sentence(20, 60, is_whole=True)

    def couplet() -> str:
        lines = draw.lines(draw.sentence(50, 140, is_whole=True), 5, 9)[:2]
        lines = [line[:1].upper() + line[1:].rstrip(".,;。，") + "," for line in lines]
        if way < 0.3:
            return f"{next(numbers)}\n" + "\n".join(lines) + "\n"
        if way < 0.5 and draw.random.random() < 0.3:
            return "\n".join([*lines, f"  {refrain}"]) + "\n"
        return "\n".join(lines) + "\n"

    return draw.until_long(couplet)


@family("list")
def recipe(draw: Draw) -> str:
    """Make the ingredients and steps of a recipe."""
    numbers = iter(range(1, 1000))
    things = "\n".join(
        f"{draw.random.randint(1, 500)} {draw.random.choice(WORDS.units[:5])} {draw.word()}"
        for _ in range(draw.random.randint(4, 10))
    )
    return f"{draw.word()}\n\n{things}\n\n" + draw.until_long(
        lambda: f"{next(numbers)}. {draw.sentence()}"
    )


@family("list")
def bibliography(draw: Draw) -> str:
    """Make the entries of a bibliography."""
    numbers, between = iter(range(1, 1000)), draw.random.randint

    def entry() -> str:
        pages = f"{between(1, 900)}–{between(901, 1200)} ({between(1950, 2025)})"
        title, journal = draw.sentence(15, 90).rstrip("."), draw.word().title()
        author = f"{draw.word().title()}, {draw.word()[:1].upper()}."
        return f"[{next(numbers)}] {author}: {title}. {journal} {between(1, 80)}, {pages}"

    return draw.until_long(entry)


@family("list", is_kept_aside=True)
def glossary(draw: Draw) -> str:
    """Make the entries of a glossary."""
    return draw.until_long(lambda: f"{draw.word()} – {draw.sentence(20, 120)}")


# notations: chess, music, molecules, Braille


@family("notation")
def chess_game(draw: Draw) -> str:
    """Make a game of chess in PGN, with and without its tags and remarks."""
    numbers = iter(range(1, 1000))
    names = [f'[{tag} "{draw.word()}"]' for tag in ("Event", "White", "Black", "Result")]

    def move() -> str:
        square = f"{draw.random.choice('abcdefgh')}{draw.random.randint(1, 8)}"
        moved = f"{draw.random.choice(('', '', 'N', 'B', 'R', 'Q', 'K', 'Nx', 'Bx'))}{square}"
        return draw.random.choice((moved, moved, moved, "O-O", f"{moved}+"))

    def both() -> str:
        remark = f" {{{draw.sentence(10, 60)}}}" if draw.random.random() < 0.05 else ""
        return f"{next(numbers)}. {move()} {move()}{remark}"

    head = "\n".join(names) + "\n\n" if draw.random.random() < 0.6 else ""
    return head + draw.until_long(both, " ") + draw.random.choice((" 1-0", " 0-1", " 1/2-1/2", ""))


@family("notation")
def molecules(draw: Draw) -> str:
    """Make lines of SMILES, with and without names."""
    parts = (
        "C",
        "CC",
        "C(=O)",
        "N",
        "O",
        "c1ccccc1",
        "C1CCCCC1",
        "(C)",
        "=C",
        "[C@H](O)",
        "Cl",
        "#N",
    )
    is_named = draw.random.random() < 0.5

    def molecule() -> str:
        made = "C" + "".join(draw.random.choices(parts, k=draw.random.randint(2, 10)))
        return f"{made} {draw.word()}" if is_named else made

    return draw.until_long(molecule)


@family("notation")
def tune(draw: Draw) -> str:
    """Make a tune in ABC notation."""
    head = f"X:{draw.random.randint(1, 99)}\nT:{draw.sentence(5, 30)}\nM:6/8\nL:1/8\nK:G\n"

    def bar() -> str:
        notes = draw.random.choices("ABCDEFGabcdefg", k=6)
        return "".join(note + draw.random.choice(("", "", "2", "3", "/2")) for note in notes)

    return head + draw.until_long(lambda: "|".join(bar() for _ in range(4)) + "|")


@family("notation")
def braille(draw: Draw) -> str:
    """Write sentences in Braille."""
    cells = dict(zip("abcdefghijklmnopqrstuvwxyz", "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵", strict=True))
    blank = draw.random.choice((" ", "⠀"))
    return draw.until_long(
        lambda: "".join(cells.get(letter, blank) for letter in draw.sentence().lower()) + "⠲"
    )
