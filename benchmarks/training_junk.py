"""More families of junk, from which the models of pages are trained and never measured.

They widen what planted_junk.py has for tuning, with other templates than those kept aside, though
of the same six kinds.
"""

from __future__ import annotations

import random
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator, Sequence

from good_kinds import NOTICES, WORDS, notices
from planted_junk import LEAST_PAGE, PHRASES, Family, Junk, Maker, Page, body_of, cut

MORE_FAMILIES: list[Family] = []
SHELLS = (
    "Loading",
    "Loading, please wait...",
    "Please wait while the page loads.",
    "This app needs JavaScript.",
    "Your browser does not support JavaScript.",
    "JavaScript must be enabled in order to view this page.",
    "Verifying you are human. This may take a few seconds.",
    "Redirecting...",
)
REVIEWS = (
    "great product",
    "very good service",
    "i like it",
    "best price",
    "five stars",
    "recommend to all",
    "fast delivery",
)
TOWN_OFFERS = (
    "The best {k} in {p}. ",
    "{k} {p} | ",
    "We offer {k} to customers in {p} and around {p}. ",
    "{p} {k}\n",
    "Need {k}? Visit {p} for {k} today!\n",
)
MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "Mai", "Juin", "Luglio"),
    *("August", "September", "October", "Nov", "Dez"),
)


def more(kind: str) -> Callable[[Callable[[Maker], str]], Callable[[Maker], str]]:
    """Register a function as a family of a kind."""

    def register(make: Callable[[Maker], str]) -> Callable[[Maker], str]:
        MORE_FAMILIES.append(Family(kind, make.__name__, make, is_kept_aside=False))
        return make

    return register


def plant_more(kind: str, pages: Sequence[Page], count: int, seed: int) -> Iterator[Junk]:
    """Yield `count` documents of one kind, the families in turn, from the half for tuning."""
    half = [page for page in pages if len(page.text) >= LEAST_PAGE and page.is_for_tuning]
    families = [family for family in MORE_FAMILIES if family.kind == kind]
    for number in range(count):
        chosen = families[number % len(families)]
        maker = Maker(f"{seed}/more/{chosen.name}/{number}", half, is_tuning=True)
        yield Junk(chosen.make(maker), chosen)


@more("boilerplate")
def policy_list(maker: Maker) -> str:
    """Mix phrases on law, cookies, logins and errors."""
    furniture = maker.furniture
    groups = (furniture.legal, furniture.cookies, furniture.login, furniture.errors)
    lines = [phrase for group in groups for phrase in maker.some(group, 1, 4)]
    maker.random.shuffle(lines)
    return maker.random.choice((" ", "\n", "\n\n")).join(lines)


@more("boilerplate")
def notice(maker: Maker) -> str:
    """Make a page that only says why there is no page."""
    kind = maker.random.choice(sorted(NOTICES))
    langs = [lang for lang in sorted(NOTICES[kind]) if lang not in WORDS.kept_aside]
    return notice_of(maker.random, kind, maker.random.choice(langs), is_tuning=True)


def notice_of(drawn: random.Random, kind: str, lang: str, *, is_tuning: bool) -> str:
    """Join one to four sentences of a kind of notice."""
    own = notices(kind, lang, is_tuning=is_tuning)
    some = drawn.sample(own, min(len(own), drawn.choice((1, 1, 2, 2, 3, 4))))
    words = PHRASES.products + PHRASES.services + PHRASES.places
    site = f"{drawn.choice(PHRASES.names).lower().replace(' ', '-')}.example"
    text = drawn.choice((" ", "\n", "\n\n")).join(some).replace("{s}", site)
    text = re.sub(r"\{w\}", lambda _: drawn.choice(words), text)
    text = text.replace("{n}", str(drawn.randint(20, 5000)))
    return f"{site}\n{text}" if drawn.random() < 0.2 else text


@more("boilerplate")
def comment_widget(maker: Maker) -> str:
    """Make the frame of comments without the comments."""
    draw = maker.random.randint
    names = ["anna", "Tom B.", "guest", f"user{draw(1, 999)}", "Maria", "admin"]
    lines = [
        f"{maker.random.choice(names)}\n{draw(1, 23)} hours ago\n{draw(0, 90)} likes\nReply\nReport"
        for _ in range(maker.between(2, 20))
    ]
    return "\n".join([*lines, *maker.some(maker.furniture.social, 1, 4)])


@more("navigation")
def sorted_names(maker: Maker) -> str:
    """Sort words of a page."""
    words = sorted(set(maker.words(maker.between(30, 300))))
    return maker.random.choice(("\n", "\n\n", ", ", " · ")).join(words)


@more("navigation")
def numbered_sections(maker: Maker) -> str:
    """Number headings, each in a way of its own."""
    draw = maker.random.choice
    return "\n".join(
        f"{draw(('', 'Chapter ', '§ '))}{number}{draw(('.', ')', ''))} {title}"
        for number, title in enumerate(maker.titles(maker.between(8, 120)), 1)
    )


@more("navigation")
def page_list(maker: Maker) -> str:
    """List headings with their pages."""
    page, lines = 1, []
    for title in maker.titles(maker.between(8, 80)):
        page += maker.random.randint(0, 7)
        lines.append(f"{title} {page}")
    return "\n".join(lines)


@more("navigation")
def product_grid(maker: Maker) -> str:
    """List products with prices and buttons."""
    draw = maker.random
    return "\n".join(
        f"{title}\n{draw.choice('$€£')}{draw.randint(1, 500)}.{draw.randint(0, 99):02d}\n"
        f"{draw.choice(maker.furniture.links)}"
        for title in maker.titles(maker.between(5, 60))
    )


@more("navigation")
def one_line_menu(maker: Maker) -> str:
    """Write headings on one line."""
    sign = maker.random.choice((" ", " / ", " » ", "  ", " | "))
    return sign.join(maker.titles(maker.between(8, 100)))


@more("navigation")
def alphabet(maker: Maker) -> str:
    """Sort words of a page, some with a capital, some below the alphabet."""
    draw = maker.random
    words = {
        word.capitalize() if draw.random() < 0.5 else word
        for word in maker.words(maker.between(30, 400))
    }
    letters = " ".join(chr(65 + i) for i in range(26)) if draw.random() < 0.6 else ""
    return letters + "\n" + draw.choice(("\n", "\n", "\n- ")).join(sorted(words))


@more("navigation")
def calendar(maker: Maker) -> str:
    """List months with and without counts, between headings."""
    draw, pick = maker.random.randint, maker.random.choice
    lines = [
        f"{pick(MONTHS)}{pick((' ', '. ', ' 20', '-'))}{draw(10, 24)}"
        f"{pick((f' ({draw(1, 40)})', '', f' [{draw(1, 9)}]'))}"
        for _ in range(maker.between(10, 90))
    ]
    return "\n".join([*maker.titles(draw(0, 9)), *lines, *maker.titles(draw(0, 5))])


@more("keyword spam")
def shuffled(maker: Maker) -> str:
    """Shuffle the words of a page into sentences."""
    words = maker.words(maker.between(60, 900))
    size = maker.random.choice((6, 12, 25))
    return ". ".join(" ".join(words[i : i + size]) for i in range(0, len(words), size))


@more("keyword spam")
def towns(maker: Maker) -> str:
    """Fill an offer with one name after another."""
    places = [word.capitalize() for word in maker.words(maker.between(5, 60))]
    keyword = " ".join(maker.words(2)).lower()
    offer = maker.random.choice(TOWN_OFFERS)
    return "".join(offer.format(k=keyword, p=place) for place in places)


@more("keyword spam")
def reviews(maker: Maker) -> str:
    """Repeat the phrases of bought reviews."""
    phrases = maker.random.choices(REVIEWS, k=maker.between(10, 150))
    return maker.random.choice((" ", "\n", ". ")).join(phrases)


@more("link lists")
def results(maker: Maker) -> str:
    """List results of a search, each with the start of a page."""
    draw, lines = maker.random, []
    for title in maker.titles(maker.between(3, 30)):
        words = maker.other().words[5 : 5 + draw.randint(8, 25)]
        place = maker.url() if draw.random() < 0.6 else f"{maker.site} › {maker.slug()}"
        lines += [title, place, " ".join(words) + draw.choice((" ...", " …", ""))]
        lines.append(draw.choice(("", "Cached", "Similar pages")))
    return "\n".join(lines)


@more("link lists")
def bookmarks(maker: Maker) -> str:
    """List headings with URLs and dates, in two orders."""
    draw, lines = maker.random.randint, []
    for title in maker.titles(maker.between(5, 60)):
        day, month, year = draw(1, 28), draw(1, 12), draw(2000, 2024)
        is_first = maker.random.random() < 0.5
        lines.append(
            f"{title}\t{maker.url()}\t{day}/{month}/{year}" if is_first
            else f"{day}.{month}.{year} {title} <{maker.url()}>"
        )  # fmt: skip
    return "\n".join(lines)


@more("link lists")
def anchors(maker: Maker) -> str:
    """Write links in HTML."""
    links = [
        f'<a href="{maker.url()}" {maker.random.choice(("", "class=nav", "target=_blank"))}>'
        f"{title}</a>"
        for title in maker.titles(maker.between(5, 60))
    ]
    return maker.random.choice(("", " ", "\n")).join(links)


@more("machine noise")
def assembly(maker: Maker) -> str:
    """Write lines of an assembler's listing."""
    draw, pick = maker.random.randint, maker.random.choice
    return "\n".join(
        f"{pick(('', f'L{draw(1, 99)}: '))}{draw(4096, 65535):04x} "
        f"{maker.random.randbytes(draw(1, 6)).hex(' ')} "
        f"{pick(('ldr', 'str', 'bl', 'movl', 'cmp', 'jne', 'nop', 'xorps'))} "
        f"{pick(('r1', 'eax', 'x0', '%rsi'))}, {pick(('#', '0x', '$'))}{draw(0, 9999):x}"
        for _ in range(maker.between(10, 150))
    )


@more("machine noise")
def dump_with_places(maker: Maker) -> str:
    """Dump bytes in groups, with their places, and with their letters or without."""
    draw, width = maker.random.randint, maker.random.choice((1, 2, 4))
    prefix, has_letters = maker.random.choice(("", "", "0x")), maker.random.random() < 0.6
    lines = []
    for row in range(maker.between(3, 60)):
        data = maker.random.randbytes(16)
        if maker.random.random() < 0.4:
            data = data[: draw(0, 15)].ljust(16, b"\0")
        groups = " ".join(prefix + data[i : i + width].hex() for i in range(0, 16, width))
        letters = "".join(chr(byte) if 32 < byte < 127 else "." for byte in data)
        lines.append(f"{row * 16:08x}: {groups}" + f"  {letters}" * has_letters)
    return "\n".join(lines)


@more("machine noise")
def codes(maker: Maker) -> str:
    """Write keys, hashes and parts of encoded data, some to a line."""
    signs = maker.random.choice(
        (
            "ABCDEFGHJKLMNPQRSTUVWXYZ23456789",
            "0123456789abcdef",
            string.ascii_letters + "0123456789+/",
        )
    )
    length, a_line = maker.random.randint(6, 40), maker.random.randint(1, 8)
    tokens = ["".join(maker.random.choices(signs, k=length)) for _ in range(maker.between(8, 200))]
    return "\n".join(" ".join(tokens[i : i + a_line]) for i in range(0, len(tokens), a_line))


@more("machine noise")
def records(maker: Maker) -> str:
    """Write records of names and values in one of several notations."""
    draw, pick = maker.random.randint, maker.random.choice
    keys = [maker.slug().replace("-", "_") for _ in range(draw(3, 9))]
    form = pick(("{}='{}'", '"{}": {}', "<{0}>{1}</{0}>", "{}={}"))
    return "\n".join(
        pick((", ", " ", ";", "\t")).join(form.format(key, value_of(maker)) for key in keys)
        for _ in range(maker.between(4, 90))
    )


def value_of(maker: Maker) -> str:
    """Draw a value of a record."""
    draw: random.Random = maker.random
    values = (str(draw.randint(0, 99999)), f"{draw.random():.5f}", draw.randbytes(4).hex())
    return draw.choice((*values, maker.slug(), "null", "true"))


@more("machine noise")
def dump_rows(maker: Maker) -> str:
    """Write statements of a database dump."""
    draw, pick = maker.random.randint, maker.random.choice
    verb = pick(("INSERT INTO", "REPLACE INTO", "UPDATE", "COPY"))
    table = maker.slug().replace("-", "_")
    return "\n".join(
        f"{verb} {table} ({row},{draw(0, 9999)},'{maker.slug()}',"
        f"'{maker.random.randbytes(draw(2, 12)).hex()}',{pick(('NULL', '0', '1', 'NOW()'))},"
        f"{maker.random.random():.4f});"
        for row in range(maker.between(4, 90))
    )


@more("machine noise")
def holes(maker: Maker) -> str:
    """Replace some characters of a page with one sign."""
    text = maker.page.text[: maker.between(300, 4000)]
    sign, rate = maker.random.choice("?*#\ufffd_-~"), maker.random.uniform(0.12, 0.7)
    return "".join(sign if not c.isspace() and maker.random.random() < rate else c for c in text)


@more("machine noise")
def escapes(maker: Maker) -> str:
    """Write all characters of a page as escapes."""
    text, way = maker.page.text[: maker.between(60, 1500)], maker.random.random()
    if way < 0.4:
        return "".join(f"&#{ord(c)};" for c in text)
    if way < 0.7:
        return "".join(f"\\x{ord(c):02x}" for c in text)
    return urllib.parse.quote(text, safe="", errors="replace")


@more("machine noise")
def mixed_letters(maker: Maker) -> str:
    """Shuffle every six characters of a page."""
    letters = list(maker.page.text[: maker.between(300, 3000)])
    for start in range(0, len(letters) - 6, 6):
        block = letters[start : start + 6]
        maker.random.shuffle(block)
        letters[start : start + 6] = block
    return "".join(letters)


@more("machine noise")
def wide(maker: Maker) -> str:
    """Put blanks between all characters of a page."""
    return maker.random.choice((" ", "  ")).join(maker.page.text[: maker.between(150, 2000)])


@more("truncated pages")
def teasers(maker: Maker) -> str:
    """List starts of several pages with links to the rest."""
    draw, parts = maker.random, []
    for _ in range(draw.randint(2, 10)):
        page = maker.other()
        text = page.text[: draw.randint(60, 220)].replace("\n", " ")
        head = draw.choice(page.headings or ["News"])
        end = draw.choice(("...", "…", " [...]", "")) + draw.choice("\n ")
        parts.append(f"{head}\n{text}{end}{draw.choice(maker.furniture.more)}")
    return "\n\n".join(parts)


@more("truncated pages")
def walls(maker: Maker) -> str:
    """Cut a page at a login or an offer of a newsletter."""
    text = cut(body_of(maker), maker.random.randint(100, 500)).rsplit(None, 1)[0]
    furniture = maker.furniture
    phrases = (
        furniture.login if maker.random.random() < 0.5 else [*furniture.newsletter, *furniture.more]
    )
    end = maker.random.choice(("...", "…", ""))
    return f"{text}{end}\n\n" + "\n".join(maker.some(phrases, 1, 3))


@more("truncated pages")
def plain_cut(maker: Maker) -> str:
    """Cut a page inside a word or after it."""
    text = cut(body_of(maker), maker.random.randint(40, 450))
    return text.rsplit(None, 1)[0].rstrip(".!?:;,") if maker.random.random() < 0.7 else text


@more("truncated pages")
def app_shell(maker: Maker) -> str:
    """Keep the titles of a page that a script fills."""
    return "\n".join([*maker.titles(maker.random.randint(0, 2)), *maker.some(SHELLS, 1, 2)])
