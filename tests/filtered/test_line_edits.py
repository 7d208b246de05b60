"""Lines go or stay as C4 and RefinedWeb define it, and every count equals a plain Python twin."""

from many_examples import many_examples
from prelude import ValidationError, given, pl, pytest, re, settings, st
from tables import cases

from assets.filtered.kernels.line_scan import LineCount, character_classes
from assets.filtered.line_edits import edit_lines
from resources.settings.filtering.filter_steps import C4Lines, LinesConfig, RefinedWebLines
from resources.settings.filtering.presets import expand_presets

PAPER = C4Lines()
DATATROVE = C4Lines(end_marks=(".", "?", "!", '"', "'"), min_words=3, count_citations=True)
LENIENT = C4Lines(
    end_marks=None, min_words=0, max_word_length=4, javascript=False, policy=False, citations=False
)
POLICIES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
SOFT_MARKS = ".?!…‼⁇⁈⁉‽․﹒．"
HARD_MARKS = "。！？｡؟۔।॥։።፧។"
CLOSERS = "\"')]}’”»›」』）«“"
SENTENCE_END = re.compile(
    rf"(?:[{SOFT_MARKS}]*[{HARD_MARKS}][{SOFT_MARKS}{HARD_MARKS}]*[{re.escape(CLOSERS)}]*)"
    rf"|(?:[{SOFT_MARKS}]+[{re.escape(CLOSERS)}]*(?=\s|$))"
)
COUNTER = re.compile(
    r"\W*\d[\d,.]*[kmb]?\s+(?:likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes"
    r"|downvotes|downloads|views|followers)\W*"
)
PIECES = [
    *" \t\n.?!…\"'[]{}()_,:;-#*",
    *"\n\n\u2028\u3000\xa0\x85\x1c\x00",
    *"aZ059é中あกक\u0301١²Ⅷ𝐀😀",
    *(SOFT_MARKS + HARD_MARKS + CLOSERS),
    *POLICIES,
    *("JavaScript", "Lorem Ipsum", "lorem", "USE COOKIES", "ſ", "K", "...", ". ", " w"),
    *(
        "[1]",
        "[23]",
        "[]",
        "[٣]",
        "[edit]",
        "[Edit]",
        "[citation needed]",
        "[[1]]",
        " one two three ",
    ),
    *(
        "12 likes",
        "3.4k Views",
        "1,2M",
        " followers",
        "Sign-in",
        "sign-in ",
        "Read more...",
        "read more…",
    ),
    *(
        "items in cart",
        " ITEMS IN CART",
        "© 2019 Acme",
        "Copyright (c) 2020",
        "All rights reserved.",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"])).map("".join)


def edit(text: str, **config: object) -> tuple[str, dict[str, int]]:
    texts, counts = edit_lines(pl.Series("text", [text]), LinesConfig.model_validate(config))
    return texts[0], counts.row(0, named=True)


def edited(text: str, **config: object) -> str:
    return edit(text, **config)[0]


def nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def counted(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in map(str.split, text.split(", "))}


def ascii_lower(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def slow_sentences(line: str) -> int:
    pieces, start = [], 0
    for match in SENTENCE_END.finditer(line):
        if any(c.isalnum() for c in line[start : match.end()]):
            pieces.append(line[start : match.end()])
            start = match.end()
    return len(pieces) + any(c.isalnum() for c in line[start:])


def slow_c4(text: str, rules: C4Lines | None) -> tuple[str, dict[str, int]]:
    counts = dict.fromkeys((count.name.lower() for count in LineCount), 0)
    counts["line_words"] = len(text.split())
    kept = []
    ends = "[\n\u2028\u2029]" if rules else "\n"  # the rules split as str.splitlines does
    for raw in re.split(ends, text):
        line, reason = slow_c4_line(raw.strip(), rules, counts)
        if reason:
            counts[reason] += bool(line.split())
        else:
            kept.append(line)
    return "\n".join(kept).strip() if rules else text, counts


def slow_c4_line(line: str, rules: C4Lines | None, counts: dict[str, int]) -> tuple[str, str]:
    limit = rules.max_word_length if rules else 0
    if limit and any(len(word) > limit for word in line.split()):
        return line, "long_word_lines"
    words = line.split()
    if rules and rules.citations:
        line, removed = CITATION.subn("", line)
        counts["citations"] += removed
        words = words if rules.count_citations else line.split()
    if rules and rules.end_marks is not None and not is_finished(line, rules.end_marks):
        return " ".join(words), "unfinished_lines"
    if rules and len(words) < rules.min_words:
        return " ".join(words), "few_word_lines"
    counts["lorem_ipsum_lines"] += "lorem ipsum" in ascii_lower(line)
    has_javascript = "javascript" in ascii_lower(line)
    if has_javascript and rules and rules.javascript:
        return line, "javascript_lines"
    counts["javascript_lines"] += has_javascript
    counts["curly_bracket_lines"] += "{" in line
    has_policy = any(phrase in ascii_lower(line) for phrase in POLICIES)
    if has_policy and rules and rules.policy:
        return line, "policy_lines"
    counts["policy_lines"] += has_policy
    counts["sentences"] += slow_sentences(line)
    return line, ""


def is_finished(line: str, end_marks: tuple[str, ...]) -> bool:
    return line.endswith(end_marks) and not line.endswith("...")


def slow_refinedweb(text: str, rules: RefinedWebLines) -> tuple[str, int, int]:
    kept: list[str] = []
    removed, words, is_after_blank = 0, 0, False
    for raw in text.split("\n"):
        if not raw.strip():
            is_after_blank = True
            continue
        line = slow_refinedweb_line(raw, rules)
        words += len(raw.split()) - len(line.split())
        removed += not line
        if line:
            kept += [""] if is_after_blank and kept else []
            kept.append(line)
            is_after_blank = False
    return "\n".join(kept), removed, words


def slow_refinedweb_line(raw: str, rules: RefinedWebLines) -> str:
    line = raw.strip()
    upper, digits = sum(map(str.isupper, raw)), sum(map(str.isdigit, raw))
    if upper / len(raw) > rules.max_uppercase or digits / len(raw) > rules.max_numeric:
        return ""
    if rules.counters and COUNTER.fullmatch(ascii_lower(line)):
        return ""
    if len(line.split()) < rules.min_words:
        return ""
    if len(line.split()) > rules.short_line_words:
        return raw
    short = re.sub(r"\s*(?<!\w)(?ai:items in cart)(?!\w)", "", line).strip()
    short = re.sub(r"(?<!\w)(?ai:read more(\.\.\.|…))\Z", "", short).strip()
    short = re.sub(r"\A(?ai:sign-in)(?!\w)", "", short).strip()
    return raw if short == line else short


def assert_equals_slow(texts: list[str], rules: C4Lines | None) -> None:
    fast, counts = edit_lines(pl.Series("text", texts, pl.String), LinesConfig(c4=rules))
    slow = [slow_c4(text, rules) for text in texts]
    assert fast.to_list() == [text for text, _ in slow]
    of_others = ("copyright_notices", "gutenberg_lines")
    assert counts.drop(of_others).to_dicts() == [count for _, count in slow]


@pytest.mark.slow
@pytest.mark.parametrize("rules", [None, PAPER, DATATROVE, LENIENT, C4Lines(end_marks=("。", "."))])
@given(texts=st.lists(TEXTS, max_size=4))
@many_examples(150)
def test_c4_equals_its_plain_twin(rules: C4Lines | None, texts: list[str]) -> None:
    assert_equals_slow(texts, rules)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules", [RefinedWebLines(), RefinedWebLines(min_words=0, max_uppercase=1, max_numeric=0.2)]
)
@given(text=TEXTS)
@many_examples(300)
def test_refinedweb_equals_its_plain_twin(rules: RefinedWebLines, text: str) -> None:
    result, counts = edit(text, refinedweb=rules)

    found = (result, counts["refinedweb_lines"], counts["refinedweb_words"])
    assert found == slow_refinedweb(text, rules)


@given(texts=st.lists(TEXTS, max_size=5), cut=st.integers(0, 5))
@settings(max_examples=50)
def test_a_text_does_not_depend_on_its_neighbours(texts: list[str], cut: int) -> None:
    config = LinesConfig(c4=DATATROVE, refinedweb=RefinedWebLines(), remove_copyright=True)
    column = pl.Series("text", texts, pl.String)
    whole, counts = edit_lines(column, config)
    parts = [edit_lines(part, config) for part in (column[:cut], column[cut:])]

    assert pl.concat([part for part, _ in parts]).equals(whole)
    assert pl.concat([count for _, count in parts]).equals(counts)


PAGE = """\
Home | About | Contact

The river rose in the night. [1]
The river rose[2] again in the night.
    He said "it will rise again."
It rose and rose and rose...
Too short here.
Please enable JavaScript to see this page.
We use cookies to make this page better.
A set { of braces } is here.
Lorem ipsum dolor sit amet here.
'Is it so? Yes, it is so.'"""


def test_c4_keeps_the_lines_that_the_paper_keeps() -> None:
    text, counts = edit(PAGE, c4=PAPER)

    assert text.split("\n") == [
        "The river rose again in the night.",
        'He said "it will rise again."',
        "A set { of braces } is here.",
        "Lorem ipsum dolor sit amet here.",
    ]
    assert nonzero(counts) == counted(
        "sentences 4, lorem_ipsum_lines 1, curly_bracket_lines 1, javascript_lines 1, "
        "policy_lines 1, unfinished_lines 4, few_word_lines 1, citations 2, line_words 70"
    )


def test_c4_as_datatrove_sets_it_keeps_shorter_lines_and_the_single_quote() -> None:
    text, counts = edit(PAGE, c4=DATATROVE)

    assert text.split("\n")[2:] == [
        "Too short here.",
        "A set { of braces } is here.",
        "Lorem ipsum dolor sit amet here.",
        "'Is it so? Yes, it is so.'",
    ]
    assert (counts["sentences"], counts["unfinished_lines"], counts["few_word_lines"]) == (7, 3, 0)


def test_without_rules_lines_are_counted_and_the_text_stays() -> None:
    text, counts = edit(PAGE)

    assert text == PAGE
    assert nonzero(counts) == counted(
        "sentences 13, lorem_ipsum_lines 1, curly_bracket_lines 1, javascript_lines 1, "
        "policy_lines 1, line_words 70"
    )


def test_refinedweb_drops_buttons_and_keeps_the_rest_as_it_is() -> None:
    page = (
        "BREAKING NEWS Today\n\n12345\n\n\n3.4k views\n- 1,204 Comments -\nShare\n"
        "Sign-in to comment\n  The river rose in the night.\n\n\n\nRead more...\n"
        "The river fell. Read more...\n0 items in cart\nItems in cart\n12 likes for the cat"
    )
    text, counts = edit(page, refinedweb=RefinedWebLines())

    assert text == (
        "to comment\n  The river rose in the night.\n\nThe river fell.\n0\n12 likes for the cat"
    )
    assert counts["refinedweb_lines"] == 7
    assert counts["refinedweb_words"] == 3 + 1 + 2 + 4 + 1 + 1 + 2 + 2 + 3 + 3


@cases(r"""
    line | sentences
    "" | 0
    One | 1
    One. | 1
    One. Two! Three? Four… five | 5
    One... two?! Three. | 3
    Pi is 3.14, see a.io/x?y=1, e.g.x. | 1
    He said "Go." She (too!) went. | 3
    Dr. Who came. | 2
    ... !!! ? | 0
    . . . One. | 1
    他说：“好。”然后走了。谁？ | 3
    クリック。して！ください | 3
    क्या है? यह है। वह है। | 3
    هل هذا؟نعم. | 2
    ３．１４ です。 | 1
    "One.\u00a0Two.\u3000Three." | 3
    _. , | 0
""")
def test_a_sentence_ends_at_its_mark(line: str, sentences: int) -> None:
    assert edit(line)[1]["sentences"] == sentences


@cases(r"""
    line                                             | kept
    It ends in one two...                            | ""
    It ends in one two…                              | ""
    It ends in one two..                             | It ends in one two..
    "\u3000It ends in one two.\xa0"                  | It ends in one two.
    [1] It ends in one two.                          | It ends in one two.
    It ends in [Edit] two.                           | It ends in [Edit] two.
    It ends [in] [edit] [citation needed] two three. | It ends [in]   two three.
    It [1] [2] [3] ends.                             | ""
    It ends in [[7]] two.                            | It ends in [] two.
    It ends in the jAVAsCRIPT two.                   | ""
    "It ends with a " + "w" * 1000 + " ."            | "It ends with a " + "w" * 1000 + " ."
    "It ends with a " + "é" * 1001 + " ."            | ""
""")
def test_c4_line(line: str, kept: str) -> None:
    assert edited(line, c4=PAPER) == kept


@cases("""
    line                           | kept
    BREAKING News                  | ""
    # indentation counts, as in DCLM
    "      BREAKING News"          | "      BREAKING News"
    BREAKINGnews here              | BREAKINGnews here
    123 456                        | 123 456
    "1234"                         | ""
    one                            | ""
    " two words "                  | " two words "
    3,400.5k views!                | ""
    - 12 shares                    | ""
    12shares of it                 | 12shares of it
    12 cats                        | 12 cats
    0 items in cart now            | 0 now
    Sign-in to read on             | to read on
    Sign-ins to read on            | Sign-ins to read on
    It fell. Read more…            | It fell.
    It fell. READ MORE...          | It fell.
    a b c d e f g h i read more... | a b c d e f g h i read more...
    a b c d e f g h read more...   | a b c d e f g h
""")
def test_refinedweb_line(line: str, kept: str) -> None:
    rules = RefinedWebLines(min_words=2, max_numeric=0.999)
    for text, rest in (
        (line, kept),
        (f"a b\n{line}\n\n \nc d", f"a b\n{kept}\n\nc d" if kept else "a b\n\nc d"),
    ):
        found, counts = edit(text, refinedweb=rules)
        assert found == rest
        assert counts["refinedweb_lines"] == (not kept)
        assert counts["refinedweb_words"] == len(line.split()) - len(kept.split())


@cases("""
    notice
    © 2019 Acme
    © Acme Inc.
    Copyright (c) 2020 X. All rights reserved.
    (c) 2001-2004 by A. Writer
    "# Copyright 2015 The Authors"
    COPYRIGHT © ACME
    All content copyright © 2008-2020 Acme.
    All rights reserved.
    Acme Inc. All Rights Reserved
""")
def test_a_notice_goes_and_its_document_stays(notice: str) -> None:
    text, counts = edit(f"One.\n\n{notice}\n\nTwo.\n\n{notice}", remove_copyright=True)

    assert text == "One.\n\n\nTwo."
    assert counts["copyright_notices"] == 2
    assert edit(notice)[1]["copyright_notices"] == 1
    assert edited(notice) == notice


@cases("""
    prose
    Copyright law protects authors.
    The copyright lasts until 2030, they say.
    (c) the third point of the list
    The sign © stands for copyright.
    They said that all rights reserved to the state are void.
    "Long prose. " * 20 + "© 2019 Acme"
""")
def test_prose_on_copyright_stays(prose: str) -> None:
    text, counts = edit(prose, remove_copyright=True)

    assert (text, counts["copyright_notices"]) == (prose, 0)


LICENCE = "START: FULL LICENSE\nThe Project Gutenberg License.\n"
BOOK = "I.\n\nBees fly.\n* * *\nThe end."
START, END = "*** START OF THE PROJECT GUTENBERG EBOOK", "*** END OF THE PROJECT GUTENBERG EBOOK"
OLD_END = "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*"
GUTENBERG_MARKS = [
    (f"{START} BEES ***", f"{END} BEES ***"),
    (f"{START} BEES ***\n\n\n", f"End of Project Gutenberg's Bees, by Ann\n\n{END} BEES ***"),
    (f"{START} BEES\nAND BIRDS ***", f"{END} BEES\nAND BIRDS ***"),
    (f"{START} 1984 ***  ", f"  {END} 1984 ***"),
    (f"{START.replace('*** ', '***')} BEES***", f"{END.replace('*** ', '***')} BEES***"),
    (f"{START.replace('THE', 'THIS')} BEES ***", f"{END.replace('THE', 'THIS')} BEES ***"),
    (f"{START.replace('EBOOK', 'ETEXT')} BEES ***", f"{END.replace('EBOOK', 'ETEXT')} BEES ***"),
    (f"{START} BEES ***", f"End of the Project Gutenberg EBook of Bees, by\nAnn\n\n{END} BEES ***"),
    (OLD_END, f"{END} BEES ***"),
    (f"   {OLD_END}\n\n\n", "End of Project Gutenberg Etext of Bees"),
    ("*END THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.10/04/01*END*", f"{END} BEES ***"),
    ("*END THE SMALL PRINT! FOR COPYRIGHT PROTECTED ETEXTS*END*", f"{END} BEES ***"),
    (OLD_END, "End of The Project Gutenberg Etext of Bees, by Ann"),
    (OLD_END, "End of this Project Gutenberg Etext of Bees"),
    (OLD_END, "End of the Project Gutenberg EBook of Bees\nby Ann Lee"),
    (OLD_END, "End of Project Gutenberg's Etext of Bees"),
]


@pytest.mark.parametrize(("header", "footer"), GUTENBERG_MARKS)
def test_the_header_and_licence_of_project_gutenberg_go(header: str, footer: str) -> None:
    licence = LICENCE if END[:11] in footer else ""
    head = f"The Project Gutenberg eBook of Bees\n\n**Small Print**\n{header}\n\n"
    text = f"{head}{BOOK}\n\n\n{footer}\n\n{licence}"

    left, counts = edit(text, remove_gutenberg=True)

    assert left == BOOK
    assert counts["gutenberg_lines"] == text.count("\n") - BOOK.count("\n")
    assert counts["line_words"] == len(BOOK.split())
    assert (edited(text), edit(text)[1]["gutenberg_lines"]) == (text, 0)


@pytest.mark.parametrize(
    "text",
    [
        f"A book of Project Gutenberg has the line {START} BEES ***\nand more.",
        f'# skip "{START}" and\n# "{END}"\nprint(1)\n',
        f"{START} BEES ***\n",
        "THE PROJECT GUTENBERG EBOOKS are read by many.\n\n*** END ***\n",
        "x\n" * 30_000 + f"{START} BEES ***\nand more.",
        f"Bees.\n{END} BEES ***\n" + "x\n" * 30_000,
        f"{BOOK}\n\nEnd of Project Gutenberg's Etext\nand on.\nAnd on. PROJECT GUTENBERG E",
    ],
)
def test_what_tells_of_gutenberg_stays(text: str) -> None:
    assert edit(text, remove_gutenberg=True) == edit(text)


def test_the_domain_books_removes_gutenberg_headers() -> None:
    for domain, removes in {"books": True, "general": None, "code": None}.items():
        lines = expand_presets({"presets": ["balanced"]}, domain).get("lines", {})
        assert lines.get("remove_gutenberg") == removes


def test_edits_come_in_order() -> None:
    text, counts = edit(
        "THE RIVER ROSE IN THE NIGHT.\nThe river rose in the night.\n"
        "(c) 2001 by the river press.\nHome",
        c4=PAPER,
        refinedweb=RefinedWebLines(),
        remove_copyright=True,
    )

    assert text == "The river rose in the night."
    assert nonzero(counts) == counted(
        "sentences 3, unfinished_lines 1, refinedweb_lines 1, refinedweb_words 6, line_words 19, "
        "copyright_notices 1"
    )


def test_an_empty_column_stays_empty() -> None:
    config = LinesConfig(c4=PAPER, refinedweb=RefinedWebLines(), remove_copyright=True)
    texts, counts = edit_lines(pl.Series("text", [], pl.String), config)

    assert texts.equals(pl.Series("text", [], pl.String), check_dtypes=True, check_names=True)
    names = [*(count.name.lower() for count in LineCount), "copyright_notices", "gutenberg_lines"]
    assert counts.schema == dict.fromkeys(names, pl.Int64)


def test_a_slice_is_read_from_its_own_rows() -> None:
    texts = pl.Series("text", ["x", "The river rose in the night.\nHome", "y"])[1:2]

    assert edit_lines(texts, LinesConfig(c4=PAPER))[0].to_list() == ["The river rose in the night."]


@pytest.mark.parametrize(
    "text", ["[" * 10**6, "." * 10**6, "use " * 10**5 + "cookies", "\n" * 10**6, "😀" * 10**5]
)
def test_a_long_line_is_read_in_linear_time(text: str) -> None:
    assert edit(text, c4=LENIENT)[1]["line_words"] == len(text.split())
    assert edited(text + "\n9 views", refinedweb=RefinedWebLines()) in {text, ""}


def test_end_marks_are_single_characters() -> None:
    with pytest.raises(ValidationError, match=r"wrong=\['\.\.'\]"):
        C4Lines(end_marks=(".", ".."))


def test_no_capital_or_digit_lies_beyond_the_table() -> None:
    beyond = map(chr, range(len(character_classes()) - 1, 0x110000))

    assert not any(c.isupper() or c.isalnum() or c.isspace() for c in beyond)
