"""Junk of six kinds, made with a seed from real pages: what filters should reject.

Every kind has families, each a way to make a document of that kind. A page belongs to the half for
tuning or to the half kept aside, by its hash. Junk for tuning is made from the first half by the
families for tuning, junk kept aside from the second half by all families: half of them, and some
languages of the phrases (junk_phrases.yaml), are new to whoever tuned.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

KINDS = (
    "boilerplate",
    "navigation",
    "keyword spam",
    "link lists",
    "machine noise",
    "truncated pages",
)
LEAST_PAGE = 600  # characters of a page that junk is made from
HEADING = re.compile(r"(?m)^[^\S\n]*([^\W_][^\n.!?;{}=<>|]{2,60})$")
UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0eff]")
TOPS = ("com", "org", "net", "de", "co.uk", "info", "io", "fr", "ru", "blogspot.com")


class Furniture(msgspec.Struct, frozen=True):
    """Phrases around the texts of web pages, in one language."""

    cookies: list[str]
    legal: list[str]
    newsletter: list[str]
    errors: list[str]
    login: list[str]
    social: list[str]
    links: list[str]  # as on buttons and in menus
    more: list[str]  # after a teaser

    def groups(self) -> list[list[str]]:
        """Return the phrases of every kind."""
        return list(msgspec.structs.astuple(self))


class Phrases(msgspec.Struct, frozen=True):
    """Content of junk_phrases.yaml."""

    kept_aside: list[str]  # languages
    legal_prose: list[str]
    terms_prose: list[str]
    purposes: list[str]
    names: list[str]
    places: list[str]
    products: list[str]
    services: list[str]
    offers: list[str]
    doorway: list[str]
    furniture: dict[str, Furniture]


PHRASES = msgspec.convert(
    yaml.safe_load(Path(__file__).with_name("junk_phrases.yaml").read_text()), Phrases
)


class Page:
    """A real page: its text, language, words and headings."""

    def __init__(self, text: str, lang: str) -> None:
        self.text = text
        self.lang = lang

    @property
    def is_for_tuning(self) -> bool:
        """Say in which half the page is, by the hash of its text."""
        return hashlib.md5(self.text.encode(errors="replace")).digest()[0] % 2 == 0

    @cached_property
    def words(self) -> list[str]:
        """Words of letters; where words are not spaced, runs of two to four characters."""
        head = self.text[:20_000]
        if len(UNSPACED.findall(head)) * 4 > len(head):
            return re.findall(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0eff]{2,4}", head)
        return re.findall(r"[^\W\d_][\w'-]+", head)

    @cached_property
    def headings(self) -> list[str]:
        """Short unfinished lines; runs of words where there are few."""
        found = [" ".join(line.split()) for line in HEADING.findall(self.text[:50_000])]
        if len(set(found)) < 8:
            found += [" ".join(self.words[i : i + 1 + i % 4]) for i in range(0, 120, 5)]
        return [
            line.strip("#*-= ") for line in dict.fromkeys(found) if len(line.strip("#*-= ")) > 2
        ]


class Maker:
    """Everything that a family draws from: a seeded generator, a page, and others of its half."""

    def __init__(self, key: str, pages: Sequence[Page], *, is_tuning: bool) -> None:
        self.random = random.Random(key)
        self.pages = pages
        self.page = self.random.choice(pages)
        allowed = [
            lang for lang in PHRASES.furniture if not (is_tuning and lang in PHRASES.kept_aside)
        ]
        lang = self.page.lang if self.random.random() < 0.5 else self.random.choice(allowed)
        self.furniture: Furniture = PHRASES.furniture[lang if lang in allowed else "en"]
        self.name = self.random.choice(PHRASES.names)
        self.site = f"{self.slug()}.{self.random.choice(TOPS)}"

    def other(self) -> Page:
        """Draw another page of the half."""
        return self.random.choice(self.pages)

    def between(self, least: int, most: int) -> int:
        """Draw a number, small ones more often: the logarithm is uniform."""
        return int(least * (most / least) ** self.random.random())

    def fill(self, phrase: str) -> str:
        """Fill the placeholders of a phrase."""
        return phrase.format(
            n=self.random.randint(1, 10 ** self.random.randint(1, 6)),
            year=self.random.randint(1998, 2025),
            name=self.name,
            place=self.random.choice(PHRASES.places),
            product=self.random.choice(PHRASES.products),
            service=self.random.choice(PHRASES.services),
        )

    def some(self, phrases: Sequence[str], least: int, most: int) -> list[str]:
        """Draw phrases, each at most once unless more are wanted than there are."""
        count = self.random.randint(least, most)
        drawn = self.random.sample(phrases, min(count, len(phrases)))
        return [self.fill(phrase) for phrase in drawn]

    def words(self, count: int) -> list[str]:
        """Draw words of the page, in no order."""
        return self.random.choices(self.page.words or ["page"], k=count)

    def titles(self, count: int) -> list[str]:
        """Draw headings of several pages, as a site's menus have them."""
        found = [*self.page.headings]
        while len(found) < count:
            found += self.other().headings or ["Page"]
        return self.random.sample(found, count)

    def slug(self) -> str:
        """Draw a name for a URL."""
        words = [word.lower() for word in self.words(self.random.randint(1, 3)) if word.isascii()]
        return "-".join(words) or f"page{self.random.randint(1, 9999)}"

    def url(self) -> str:
        """Draw a URL."""
        path = "/".join(self.slug() for _ in range(self.random.randint(0, 3)))
        end = self.random.choice(("", "", ".html", "/", f"?id={self.random.randint(1, 99999)}"))
        scheme = self.random.choice(("https://", "https://www.", "http://", "http://www."))
        return f"{scheme}{self.slug()}.{self.random.choice(TOPS)}/{path}{end}"

    def joined(self, lines: Sequence[str]) -> str:
        """Join lines as extractors do: each on a line, with blank lines, or some on one line."""
        way = self.random.random()
        if way < 0.5:
            return "\n".join(lines)
        if way < 0.75:
            return "\n\n".join(lines)
        ends = self.random.choices((" ", "\n", " | "), weights=(4, 2, 1), k=len(lines))
        return "".join(line + end for line, end in zip(lines, ends, strict=True)).rstrip(" |\n")


class Family(NamedTuple):
    """A way to make junk of a kind; `is_kept_aside`: never for tuning."""

    kind: str
    name: str
    make: Callable[[Maker], str]
    is_kept_aside: bool


class Junk(NamedTuple):
    """A planted document and its family."""

    text: str
    family: Family


FAMILIES: list[Family] = []


def family(kind: str, *, is_kept_aside: bool = False) -> Callable[..., Callable[[Maker], str]]:
    """Register a function as a family of a kind."""

    def register(make: Callable[[Maker], str]) -> Callable[[Maker], str]:
        FAMILIES.append(Family(kind, make.__name__, make, is_kept_aside))
        return make

    return register


def plant(
    kind: str, pages: Sequence[Page], count: int, seed: int, *, is_tuning: bool
) -> Iterator[Junk]:
    """Yield `count` documents of one kind, the families in turn."""
    half = [
        page for page in pages if len(page.text) >= LEAST_PAGE and page.is_for_tuning == is_tuning
    ]
    families = [
        each for each in FAMILIES if each.kind == kind and not (is_tuning and each.is_kept_aside)
    ]
    for number in range(count):
        chosen = families[number % len(families)]
        key = f"{seed}/{kind}/{chosen.name}/{number}/{is_tuning}"
        yield Junk(chosen.make(Maker(key, half, is_tuning=is_tuning)), chosen)


# boilerplate


@family("boilerplate")
def cookie_banner(maker: Maker) -> str:
    """Make a cookie banner with its buttons."""
    furniture = maker.furniture
    return maker.joined([*maker.some(furniture.cookies, 2, 6), *maker.some(furniture.links, 1, 4)])


@family("boilerplate")
def legal_footer(maker: Maker) -> str:
    """Make the footer of a site."""
    furniture = maker.furniture
    lines = [*maker.some(furniture.links, 3, 10), *maker.some(furniture.legal, 1, 5)]
    return maker.joined(lines)


@family("boilerplate")
def newsletter_form(maker: Maker) -> str:
    """Make a newsletter form."""
    furniture = maker.furniture
    lines = [*maker.some(furniture.newsletter, 2, 5), *maker.some(furniture.links, 0, 3)]
    return maker.joined([*lines, *maker.some(furniture.legal, 0, 1)])


@family("boilerplate")
def error_page(maker: Maker) -> str:
    """Make an error page, with and without the site's menu."""
    furniture = maker.furniture
    return maker.joined([*maker.some(furniture.errors, 1, 3), *maker.some(furniture.links, 0, 8)])


@family("boilerplate")
def login_wall(maker: Maker) -> str:
    """Make a login form."""
    furniture = maker.furniture
    return maker.joined([*maker.some(furniture.login, 2, 6), *maker.some(furniture.links, 0, 5)])


@family("boilerplate")
def furniture_mix(maker: Maker) -> str:
    """Make a page of everything around a text, without the text."""
    furniture = maker.furniture
    lines = [line for group in furniture.groups() for line in maker.some(group, 0, len(group))]
    lines += maker.titles(maker.random.randint(0, 8))
    maker.random.shuffle(lines)
    return maker.joined(lines or [maker.fill(furniture.legal[0])])


@family("boilerplate")
def legal_prose(maker: Maker) -> str:
    """Make a privacy policy in whole sentences."""
    return (
        " ".join(maker.some(PHRASES.legal_prose, 4, 10))
        + "\n"
        + maker.fill(maker.furniture.legal[0])
    )


@family("boilerplate", is_kept_aside=True)
def consent_dialog(maker: Maker) -> str:
    """Make a consent dialog with purposes and vendors."""
    lines = maker.some(maker.furniture.cookies, 1, 3)
    for _ in range(maker.between(3, 40)):
        lines += [maker.random.choice(PHRASES.names), *maker.some(PHRASES.purposes, 1, 5)]
    return maker.joined(lines)


@family("boilerplate", is_kept_aside=True)
def social_bar(maker: Maker) -> str:
    """Make share buttons, counters and teasers of comments."""
    furniture = maker.furniture
    lines = []
    for title in maker.titles(maker.random.randint(1, 6)):
        lines += [title, *maker.some(furniture.social, 2, 6)]
    return maker.joined([*lines, *maker.some(furniture.newsletter, 0, 2)])


@family("boilerplate", is_kept_aside=True)
def parked_domain(maker: Maker) -> str:
    """Make the page of a domain for sale."""
    lines = [
        f"{maker.site} is for sale!",
        f"The domain {maker.site} may be for sale by its owner.",
        "Related searches:",
        *maker.titles(maker.random.randint(3, 12)),
        "This page was generated by the domain owner using parking services.",
        maker.fill("Copyright {year} {name}. All rights reserved."),
    ]
    return maker.joined(lines)


@family("boilerplate", is_kept_aside=True)
def terms_of_use(maker: Maker) -> str:
    """Make terms of use in whole sentences."""
    parts = maker.some(PHRASES.terms_prose, 5, 10)
    return "\n\n".join(f"{number}. {part}" for number, part in enumerate(parts, 1))


# navigation


@family("navigation")
def menu(maker: Maker) -> str:
    """Make a menu: one heading a line, some with bullets or indentation."""
    bullet = maker.random.choice(("", "", "- ", "* ", "• ", "> "))
    lines = maker.titles(maker.between(6, 150))
    links = maker.some(maker.furniture.links, 2, 8)
    indents = maker.random.choices(("", "  ", "    "), k=len(lines))
    return "\n".join(
        [*links, *(f"{indent}{bullet}{line}" for indent, line in zip(indents, lines, strict=True))]
    )


@family("navigation")
def breadcrumbs(maker: Maker) -> str:
    """Make trails of headings."""
    sign = maker.random.choice((" > ", " » ", " / ", " › ", " :: "))
    home = maker.furniture.links[0]
    return "\n".join(
        sign.join([home, *maker.titles(maker.random.randint(2, 5))])
        for _ in range(maker.between(1, 30))
    )


@family("navigation")
def tag_cloud(maker: Maker) -> str:
    """Make a cloud of words, some with counts."""
    words = dict.fromkeys(maker.words(maker.between(20, 400)))
    has_counts = maker.random.random() < 0.5
    sign = maker.random.choice((" ", "\n", ", "))
    return sign.join(
        f"{word} ({maker.random.randint(1, 300)})" if has_counts else word for word in words
    )


@family("navigation")
def categories(maker: Maker) -> str:
    """Make a list of categories with the number of their pages."""
    lines = [
        f"{title} ({maker.random.randint(1, 999)})" for title in maker.titles(maker.between(5, 120))
    ]
    return maker.joined(lines)


@family("navigation")
def pagination(maker: Maker) -> str:
    """Make page numbers with titles around them."""
    last = maker.random.randint(5, 60)
    numbers = " ".join(str(number) for number in range(1, min(last, 25)))
    lines = [f"Page 1 of {last}", "Previous", numbers, "Next", f"Showing 1-10 of {last * 10}"]
    return "\n".join([*maker.titles(maker.random.randint(3, 15)), *lines])


@family("navigation", is_kept_aside=True)
def inline_bar(maker: Maker) -> str:
    """Make bars of links on one line each."""
    sign = maker.random.choice((" | ", " · ", " • ", "   ", " - ", "|"))
    return "\n".join(
        sign.join(maker.titles(maker.random.randint(5, 20))) for _ in range(maker.between(1, 20))
    )


@family("navigation", is_kept_aside=True)
def site_map(maker: Maker) -> str:
    """Make a numbered tree of headings."""
    lines: list[str] = []
    chapter = 0
    for title in maker.titles(maker.between(10, 200)):
        if not lines or maker.random.random() < 0.2:
            chapter += 1
            lines.append(f"{chapter}. {title}")
        else:
            lines.append(f"  {chapter}.{len(lines)} {title}")
    return "\n".join(lines)


@family("navigation", is_kept_aside=True)
def archive(maker: Maker) -> str:
    """Make a blog's archive by month, with its widgets."""
    months = "January February March April May June July August September October November December"
    lines = [
        f"{month} {year} ({maker.random.randint(1, 40)})"
        for year in range(2023, 2023 - maker.random.randint(1, 10), -1)
        for month in reversed(months.split())
    ]
    heads = ["Archives", "Recent posts", *maker.titles(5), "Categories", *maker.titles(6)]
    return "\n".join([*heads, *lines])


@family("navigation", is_kept_aside=True)
def contents(maker: Maker) -> str:
    """Make a table of contents with leaders and page numbers."""
    dots = maker.random.choice((" ..... ", " . . . . . . ", "\t", "……"))
    page, lines = 1, []
    for title in maker.titles(maker.between(8, 100)):
        page += maker.random.randint(0, 9)
        lines.append(f"{title}{dots}{page}")
    return "\n".join(lines)


@family("navigation", is_kept_aside=True)
def letter_index(maker: Maker) -> str:
    """Make an index from A to Z."""
    letters = list(string.ascii_uppercase)
    words = sorted(dict.fromkeys(maker.words(maker.between(40, 400))), key=str.lower)
    return " | ".join(letters) + "\n" + "\n".join(words)


# keyword spam


@family("keyword spam")
def stuffing(maker: Maker) -> str:
    """Repeat a phrase of the page between other words of it."""
    phrase = " ".join(maker.words(maker.random.randint(1, 3)))
    parts = []
    for _ in range(maker.between(10, 200)):
        parts += [phrase, *maker.words(maker.random.randint(0, 5))]
    return " ".join(parts) + maker.random.choice(("", "."))


@family("keyword spam")
def comma_list(maker: Maker) -> str:
    """List keywords between commas."""
    keys = [
        " ".join(maker.words(maker.random.randint(1, 3))) for _ in range(maker.between(15, 300))
    ]
    return maker.random.choice((", ", ",", "; ")).join(keys)


@family("keyword spam")
def cheap_offers(maker: Maker) -> str:
    """Fill templates of offers for one product or several."""
    product = maker.random.choice(PHRASES.products)
    is_one = maker.random.random() < 0.6
    phrases = maker.random.choices(PHRASES.offers, k=maker.between(4, 80))
    filled = [maker.fill(p.replace("{product}", product) if is_one else p) for p in phrases]
    return maker.random.choice((" ", "\n")).join(filled)


@family("keyword spam")
def variants(maker: Maker) -> str:
    """List variants of one search phrase."""
    head = " ".join(maker.words(2)).lower()
    extra = ("best", "cheap", "free", "online", "download", "review", "price", "2023", "near me")
    tails = [*extra, *(word.lower() for word in maker.words(maker.between(5, 100)))]
    sign = maker.random.choice(("\n", ", ", " "))
    return sign.join(
        f"{head} {tail}" if maker.random.random() < 0.7 else f"{tail} {head}" for tail in tails
    )


@family("keyword spam")
def markov_chain(maker: Maker) -> str:
    """Walk over the page's pairs of words: fluent for three words, nonsense for a sentence."""
    words = maker.page.words or ["page", "text"]
    after: dict[str, list[str]] = {}
    for first, second in pairwise(words):
        after.setdefault(first, []).append(second)
    text = [maker.random.choice(words)]
    for _ in range(maker.between(60, 1200)):
        text.append(maker.random.choice(after.get(text[-1]) or words))
        if maker.random.random() < 0.06:
            text[-1] += "."
            text.append(maker.random.choice(words).capitalize())
    return " ".join(text) + "."


@family("keyword spam", is_kept_aside=True)
def word_salad(maker: Maker) -> str:
    """Shuffle the words of a page into lines of some length."""
    words = maker.words(maker.between(60, 1500))
    length = maker.random.choice((8, 15, 40, 10_000))
    return "\n".join(" ".join(words[i : i + length]) for i in range(0, len(words), length))


@family("keyword spam", is_kept_aside=True)
def doorway(maker: Maker) -> str:
    """Fill templates of a service in many towns."""
    service = maker.random.choice(PHRASES.services)
    phrases = maker.random.choices(PHRASES.doorway, k=maker.between(5, 80))
    return maker.random.choice((" ", "\n", "\n\n")).join(
        maker.fill(phrase.replace("{service}", service)) for phrase in phrases
    )


@family("keyword spam", is_kept_aside=True)
def hashtags(maker: Maker) -> str:
    """Write hashtags after a few words."""
    tags = ["#" + word.lower() for word in maker.words(maker.between(15, 200))]
    return " ".join([*maker.words(maker.random.randint(0, 12)), *tags])


@family("keyword spam", is_kept_aside=True)
def title_bars(maker: Maker) -> str:
    """Repeat keywords in one title after another, between bars."""
    keys = [" ".join(maker.words(maker.random.randint(1, 2))) for _ in range(6)]
    return "\n".join(
        " | ".join(maker.random.choices(keys, k=maker.random.randint(3, 6)))
        for _ in range(maker.between(4, 60))
    )


# link lists


@family("link lists")
def bare_urls(maker: Maker) -> str:
    """List URLs."""
    return maker.random.choice(("\n", "\n\n", " ")).join(
        maker.url() for _ in range(maker.between(5, 150))
    )


@family("link lists")
def titled_urls(maker: Maker) -> str:
    """List headings with URLs beside or below them."""
    sign = maker.random.choice((" ", "\n", " - ", ": "))
    titles = maker.titles(maker.between(4, 100))
    return "\n".join(f"{title}{sign}{maker.url()}" for title in titles)


@family("link lists")
def markdown_links(maker: Maker) -> str:
    """List links in Markdown."""
    bullet = maker.random.choice(("- ", "* ", "", "1. "))
    return "\n".join(
        f"{bullet}[{title}]({maker.url()})" for title in maker.titles(maker.between(4, 100))
    )


@family("link lists")
def blogroll(maker: Maker) -> str:
    """List sites with short remarks."""
    lines = []
    for _ in range(maker.between(5, 80)):
        remark = " ".join(maker.words(maker.random.randint(0, 6)))
        lines.append(f"{maker.slug()}.{maker.random.choice(TOPS)} {remark}".strip())
    return "\n".join(["Links", "Blogroll", *lines])


@family("link lists", is_kept_aside=True)
def html_links(maker: Maker) -> str:
    """List links in HTML."""
    titles = maker.titles(maker.between(4, 80))
    return "\n".join(f'<li><a href="{maker.url()}">{title}</a></li>' for title in titles)


@family("link lists", is_kept_aside=True)
def footnotes(maker: Maker) -> str:
    """List numbered references that are URLs only."""
    return "\n".join(f"[{n}] {maker.url()}" for n in range(1, maker.between(5, 120)))


@family("link lists", is_kept_aside=True)
def search_results(maker: Maker) -> str:
    """List results of a search: title, URL, a snippet that breaks off."""
    lines = []
    for title in maker.titles(maker.between(3, 30)):
        snippet = " ".join(maker.other().words[:14])
        lines += [title, maker.url(), f"{snippet} ...", ""]
    return "\n".join(lines)


@family("link lists", is_kept_aside=True)
def site_map_xml(maker: Maker) -> str:
    """Write a sitemap in XML."""
    urls = [f"<url><loc>{maker.url()}</loc></url>" for _ in range(maker.between(5, 100))]
    return '<?xml version="1.0"?>\n<urlset>\n' + "\n".join(urls) + "\n</urlset>"


@family("link lists", is_kept_aside=True)
def dated_links(maker: Maker) -> str:
    """List links with dates and hosts, as bookmarks are kept."""
    draw = maker.random.randint
    return "\n".join(
        f"{draw(2001, 2024)}-{draw(1, 12):02d}-{draw(1, 28):02d}\t{maker.url()}\t{title}"
        for title in maker.titles(maker.between(5, 80))
    )


# machine noise


@family("machine noise")
def base64_block(maker: Maker) -> str:
    """Encode random bytes in base64, in lines or in one."""
    data = base64.b64encode(maker.random.randbytes(maker.between(100, 6000))).decode()
    width = maker.random.choice((64, 76, 100_000))
    return "\n".join(data[i : i + width] for i in range(0, len(data), width))


@family("machine noise")
def hex_dump(maker: Maker) -> str:
    """Dump random bytes in hex."""
    lines = []
    for number in range(maker.between(6, 200)):
        block = maker.random.randbytes(16)
        shown = "".join(chr(byte) if 32 < byte < 127 else "." for byte in block)
        lines.append(f"{number * 16:08x}  {block.hex(' ')}  |{shown}|")
    return "\n".join(lines)


@family("machine noise")
def random_characters(maker: Maker) -> str:
    """Draw characters."""
    letters = maker.random.choice(
        (
            string.ascii_letters,
            string.printable[:95],
            string.ascii_lowercase + "     ",
            "01",
            "█▓▒░ ",
        )
    )
    return "".join(maker.random.choices(letters, k=maker.between(100, 5000)))


@family("machine noise")
def bad_scan(maker: Maker) -> str:
    """Damage a page as a bad scan does: letters into signs, words cut and glued."""
    rate = maker.random.uniform(0.12, 0.4)
    text = maker.page.text[: maker.between(300, 5000)]
    swap = "|!1lI;:.,~^'`*_-\\/()[]{}<>°¬«»0O8B5S"
    damaged = []
    for character in text:
        draw = maker.random.random()
        damaged.append(
            maker.random.choice(swap) if draw < rate else
            character + " " if draw < 1.5 * rate else
            "" if draw < 1.7 * rate else character
        )  # fmt: skip
    return "".join(damaged)


@family("machine noise")
def wrong_charset(maker: Maker) -> str:
    """Decode a page of a language with marks in a wrong charset, up to three times."""
    foreign = [page for page in maker.random.choices(maker.pages, k=40) if not page.text.isascii()]
    dense = max(foreign or [maker.page], key=lambda page: sum(c > "\x7f" for c in page.text[:2000]))
    text = dense.text[: maker.between(300, 3000)]
    for _ in range(maker.random.randint(1, 3)):
        text = text.encode(errors="replace").decode(
            maker.random.choice(("cp1252", "latin-1")), "replace"
        )
    return text


@family("machine noise")
def log_lines(maker: Maker) -> str:
    """Write lines of a log."""
    draw = maker.random.randint
    lines = []
    for _ in range(maker.between(5, 150)):
        day, time = (
            f"2023-{draw(1, 12):02d}-{draw(1, 28):02d}",
            f"{draw(0, 23):02d}:{draw(0, 59):02d}",
        )
        stamp = f"{day} {time}:{draw(0, 59):02d},{draw(0, 999):03d}"
        level = maker.random.choice(("INFO", "DEBUG", "WARN", "ERROR"))
        what = maker.random.choice(("GET", "connection from", "worker", "cache miss", "retry"))
        lines.append(
            f"{stamp} {level} [{maker.slug()}] {what} /{maker.slug()}/{draw(1, 9999)} "
            f"{draw(100, 599)} {draw(1, 9999)}ms"
        )
    return "\n".join(lines)


@family("machine noise")
def number_table(maker: Maker) -> str:
    """Write a table of numbers."""
    sign = maker.random.choice((",", ";", "\t", " "))
    columns = maker.random.randint(3, 12)
    head = sign.join(maker.words(columns))
    scale, digits = 10 ** maker.random.randint(0, 5), maker.random.randint(0, 4)
    rows = [
        sign.join(f"{maker.random.gauss(0, scale):.{digits}f}" for _ in range(columns))
        for _ in range(maker.between(8, 200))
    ]
    return "\n".join([head, *rows])


@family("machine noise")
def stack_trace(maker: Maker) -> str:
    """Write stack traces."""
    draw = maker.random.randint
    lines = []
    for _ in range(maker.random.randint(1, 4)):
        name = "".join(word.capitalize() for word in maker.slug().split("-"))
        lines.append(
            f'Exception in thread "main" java.lang.{name}Exception: {" ".join(maker.words(4))}'
        )
        lines += [
            f"\tat com.{maker.slug().replace('-', '.')}.{name}.run({name}.java:{draw(1, 900)})"
            for _ in range(draw(6, 40))
        ]
    return "\n".join(lines)


@family("machine noise")
def minified_bundle(maker: Maker) -> str:
    """Write minified JavaScript."""
    draw = maker.random.choice
    parts = []
    for _ in range(maker.between(20, 400)):
        a, b, c = (draw(string.ascii_letters) for _ in range(3))
        parts.append(draw((
            f"function {a}({b},{c}){{return {b}.{maker.slug().replace('-', '')}({c})}}",
            f"var {a}={b}||{{}},{c}={a}.length>>>0;", f"!function({a}){{{b}[{c}]=void 0}}(this);",
            f"if({a}!=={b}&&null=={c})throw new Error(\"{maker.slug()}\");",
            f"e.exports=n({maker.random.randint(1, 999)}),",
        )))  # fmt: skip
    return "".join(parts)


@family("machine noise")
def binary_file(maker: Maker) -> str:
    """Decode random bytes as text."""
    data = maker.random.randbytes(maker.between(200, 4000))
    head = maker.random.choice((b"%PDF-1.4\n", b"\x89PNG\r\n", b"PK\x03\x04", b"GIF89a", b""))
    return (head + data).decode(maker.random.choice(("latin-1", "utf-8", "cp437")), "replace")


@family("machine noise", is_kept_aside=True)
def identifiers(maker: Maker) -> str:
    """List UUIDs or digests."""
    lengths = maker.random.choice(((4, 2, 2, 2, 6), (16,), (20,), (32,)))
    return "\n".join(
        "-".join(maker.random.randbytes(length).hex() for length in lengths)
        for _ in range(maker.between(5, 150))
    )


@family("machine noise", is_kept_aside=True)
def telemetry(maker: Maker) -> str:
    """Write JSON records of measurements."""
    keys = [maker.slug().replace("-", "_") for _ in range(5)]
    rows = [
        json.dumps(
            {"ts": maker.random.randint(1_500_000_000, 1_700_000_000)}
            | {key: round(maker.random.random(), 5) for key in keys}
        )
        for _ in range(maker.between(4, 100))
    ]
    return "\n".join(rows)


@family("machine noise", is_kept_aside=True)
def percent_encoded(maker: Maker) -> str:
    """Write a page percent-encoded."""
    text = maker.page.text[: maker.between(60, 1200)].encode(errors="replace")
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else f"%{b:02X}" for b in text)


@family("machine noise", is_kept_aside=True)
def sql_inserts(maker: Maker) -> str:
    """Write rows of a database dump."""
    draw = maker.random.randint
    table = maker.slug().replace("-", "_")
    return "\n".join(
        f"INSERT INTO `{table}` VALUES ({n},'{maker.slug()}',{draw(0, 99999)},NULL,"
        f"'{draw(0, 2**60):x}',{maker.random.random():.6f});"
        for n in range(1, maker.between(5, 120))
    )


@family("machine noise", is_kept_aside=True)
def lost_characters(maker: Maker) -> str:
    """Lose letters of a page to question marks or replacement characters."""
    sign = maker.random.choice(("?", "\ufffd", "□", "_"))
    rate = maker.random.uniform(0.15, 0.6)
    text = maker.page.text[: maker.between(300, 4000)]
    return "".join(sign if c.isalpha() and maker.random.random() < rate else c for c in text)


@family("machine noise", is_kept_aside=True)
def spaced_letters(maker: Maker) -> str:
    """Put a blank between all letters of a page."""
    return " ".join(maker.page.text[: maker.between(200, 2500)].replace("\n", " "))


@family("machine noise", is_kept_aside=True)
def object_code(maker: Maker) -> str:
    """Write a listing of machine code."""
    verbs = ["mov", "add", "jmp", "lea", "push", "call", "xor"]
    registers = ["rax", "rbx", "rsp", "edi"]
    lines = []
    for number in range(maker.between(10, 200)):
        code = maker.random.randbytes(4).hex(" ")
        verb, register = maker.random.choice(verbs), maker.random.choice(registers)
        offset = maker.random.randint(1, 4096)
        lines.append(f"  {0x400000 + 4 * number:x}:\t{code}\t{verb} %{register},0x{offset:x}(%rip)")
    return "\n".join(lines)


# truncated pages


def body_of(maker: Maker) -> str:
    """Return the text of a page from its first line of prose, or from its start."""
    lines = maker.page.text.split("\n")
    starts = [n for n, line in enumerate(lines[:40]) if len(line) > 80]
    start = starts[0] if starts and maker.random.random() < 0.6 else 0
    text = "\n".join(lines[start:])
    return text if len(text) >= LEAST_PAGE else maker.page.text


def cut(text: str, length: int) -> str:
    """Cut a text inside a word near a length."""
    for end in range(length, length + 40):
        if text[end - 1 : end + 1].isalpha():
            return text[:end]
    return text[:length]


@family("truncated pages")
def read_more(maker: Maker) -> str:
    """Cut a page after a teaser, with a link to the rest."""
    teaser = cut(body_of(maker), maker.random.randint(50, 400))
    if maker.random.random() < 0.7:
        teaser = teaser.rsplit(None, 1)[0]
    dots = maker.random.choice(("", "...", "…", " […]", " [...]"))
    end = maker.random.choice((" ", "\n", "\n\n")) + maker.random.choice(maker.furniture.more)
    return teaser + dots + end + maker.random.choice(("", " »", " →", ""))


@family("truncated pages")
def dots_at_end(maker: Maker) -> str:
    """Cut a page and end it with dots."""
    teaser = cut(body_of(maker), maker.random.randint(50, 400))
    return teaser.rsplit(None, 1)[0] + maker.random.choice(("...", "…", " ...", " […]", " [...]"))


@family("truncated pages")
def inside_a_word(maker: Maker) -> str:
    """Cut a page inside a word."""
    return cut(body_of(maker), maker.random.randint(50, 400))


@family("truncated pages")
def script_needed(maker: Maker) -> str:
    """Keep the title of a page that needs JavaScript."""
    lines = (
        "Please enable JavaScript to view this page.",
        "You need to enable JavaScript to run this app.",
        "JavaScript is disabled in your browser. Please enable it to continue.",
        "Loading...",
        "This website requires JavaScript and cookies to function properly.",
        "Checking your browser before accessing {name}. DDoS protection. Ray ID: {n}",
    )
    return "\n".join([*maker.titles(maker.random.randint(0, 2)), *maker.some(lines, 1, 2)])


@family("truncated pages", is_kept_aside=True)
def paywall(maker: Maker) -> str:
    """Cut a page at a paywall."""
    teaser = cut(body_of(maker), maker.random.randint(100, 500)).rsplit(None, 1)[0]
    wall = (
        "Subscribe to continue reading.",
        "This article is for subscribers only. Already a subscriber? Log in.",
        "You have reached your limit of free articles.",
        "To read the full article, start your free trial today.",
        "Want to read more? Register for free.",
    )
    return (
        teaser + maker.random.choice(("...", "…", "")) + "\n\n" + "\n".join(maker.some(wall, 1, 2))
    )


@family("truncated pages", is_kept_aside=True)
def counted_rest(maker: Maker) -> str:
    """Cut a page with the number of characters that are left, as news feeds do."""
    teaser = cut(body_of(maker), maker.random.randint(150, 260))
    return f"{teaser}… [+{maker.random.randint(200, 9000)} chars]"


@family("truncated pages", is_kept_aside=True)
def teaser_list(maker: Maker) -> str:
    """List the teasers of several pages, each with a link to the rest."""
    link = maker.random.choice(maker.furniture.more)
    parts = []
    for _ in range(maker.random.randint(2, 12)):
        page = maker.other()
        title = maker.random.choice(page.headings or ["News"])
        teaser = page.text[: maker.random.randint(60, 200)].replace("\n", " ").rsplit(None, 1)[0]
        parts.append(f"{title}\n{teaser}...\n{link}")
    return "\n\n".join(parts)


@family("truncated pages", is_kept_aside=True)
def after_a_word(maker: Maker) -> str:
    """Cut a page between two words of a sentence, without any sign."""
    text = cut(body_of(maker), maker.random.randint(50, 400))
    return text.rsplit(None, 1)[0].rstrip(".!?:;,")
