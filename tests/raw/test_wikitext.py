"""Wikitext: its text, what is left out and counted, and pages that are hostile."""

from prelude import given, pytest, settings, st
from tables import cases

from assets.raw.readers.page_child import wikitext_text
from assets.raw.readers.wikitext import plain_wikitext

NAMES = (frozenset({"file", "image", "datei"}), frozenset({"category", "kategorie"}))
FIRST = """\
{{Short description|Clade of insects}}
{{Infobox biota
| name = Bee
| image = [[File:Apis.jpg|250px]]
}}
'''Bees''' ({{IPA|en|biː}}; {{lang-la|apis}}) are [[insect|winged insects]]{{Citation needed}} \
closely related to [[wasp]]s.<ref name="a">{{cite book|title=Bees}}</ref><ref name="a" />

== Evolution ==
[[File:Melittosphex.jpg|thumb|left|A [[fossil]] bee]]
The ''ancestors'' of bees were wasps.<!-- which? -->

* [[Colletidae]], the plasterer bees
** Halictidae
# first

{| class="wikitable"
! Genus !! Species
|-
| ''Apis'' || 8
|}

=== See also ===
{{div col}}
* [https://example.org The site]
{{div col end}}

== References ==
{{reflist}}
<references />

[[Category:Bees]]
[[de:Bienen]]
"""
FIRST_TEXT = """\
Bees are winged insects closely related to wasps.

Evolution
The ancestors of bees were wasps.

• Colletidae, the plasterer bees
• Halictidae
• first

See also
• The site

References"""
LOST = {"files": 1, "references": 3, "tables": 1, "templates": 8}


def test_a_page_is_its_prose_headings_and_lists() -> None:
    assert plain_wikitext(FIRST, *NAMES) == (FIRST_TEXT, LOST)


@cases("""
wikitext                                         | expected                | lost
Plain.                                           | Plain.                  | {}
''i'' '''b''' '''''both'''''                     | i b both                | {}
[[Bee]]s and [[Wasp|wasps]]                      | Bees and wasps          | {}
[[Bee (insect)|Bee]]                             | Bee                     | {}
[[:Category:Bees|bees]] [[:Datei:A.jpg]]         | bees Datei:A.jpg        | {}
a [[Category:Bees]][[Kategorie:X|y]]             | a                       | {}
a [[Datei:A.jpg|mini|Ein [[Bild]]]]b             | a b                     | {'files': 1}
[[Bild:A.jpg|thumb|left|Alt]]b                   | b                       | {'files': 1}
[[de:Biene]][[zh-min-nan:Phang]]a                | a                       | {}
[[de:Biene|Biene]] [[wikt:bee]]                  | Biene wikt:bee          | {}
[http://a.example x] [http://b.example]          | x                       | {}
http://a.example/b                               | http://a.example/b      | {}
a{{b|c={{d}}}}e                                  | ae                      | {'templates': 1}
a ({{IPA|x}}) b                                  | a b                     | {'templates': 1}
a ({{IPA|x}}, {{lang|y}}; ) b                    | a b                     | {'templates': 2}
a （{{lang|ja|x}}）b                              | ab                      | {'templates': 1}
f() and (b {{c}})                                | f() and (b )            | {'templates': 1}
{{{1|x}}}a                                       | a                       | {'templates': 1}
a<ref>b</ref><ref name=x/>                       | a                       | {'references': 2}
a<br/>b<hr>c                                     | 'a\\nb\\nc'               | {}
x<sup>2</sup> H<sub>2</sub>O                     | x2 H2O                  | {}
<math>\\frac{a}{b} < ''c''</math>                 | "\\\\frac{a}{b} < ''c''"  | {}
<code>a[[b]]</code> <nowiki>[[c]]</nowiki>       | ab [[c]]                | {}
<gallery>A.jpg</gallery>a                        | a                       | {'files': 1}
<timeline>x</timeline>a                          | a                       | {'drawings': 1}
<table><tr><td>b</td></tr></table>a              | a                       | {'tables': 1}
&amp; &nbsp;&#8211; &bogus;                      | '& \\xa0– &bogus;'       | {}
__NOTOC__a __KEIN_INHALTSVERZEICHNIS__ __x__     | a  __x__                | {}
<!-- a -->b                                      | b                       | {}
a {{b                                            | a {{b                   | {}
'==A==\\nb'                                       | 'A\\nb'                  | {}
'*a\\n**b\\n:c\\n;d'                                | '• a\\n• b\\nc\\nd'       | {}
東京（{{読み|x}}）は                              | 東京は                  | {'templates': 1}
<includeonly>x</includeonly><div>a</div>         | a                       | {}
""")
def test_what_stays_and_what_is_counted(wikitext: str, expected: str, lost: dict[str, int]) -> None:
    assert plain_wikitext(wikitext, *NAMES) == (expected, lost)


HOSTILE = {
    "open": "{{" * 20_000,
    "links": "[[a|" * 20_000,  # takes minutes
    "tags": "<b>" * 2_000,
    "quotes": "'''''a" * 20_000,
    "nested": "{{a|" * 5_000 + "}}" * 5_000,
    "tables": "{|\n" * 2_000,
    "brackets": "(" * 100_000 + " " * 100_000,
    "headings": "=" * 50_000 + "a",
    "comments": "<!--" * 2_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_is_read_or_named_and_harms_no_other(name: str) -> None:
    try:
        text, _ = wikitext_text(HOSTILE[name], ("file", "category"))
        assert isinstance(text, str)
    except ValueError as error:
        assert "page" in str(error)
    assert wikitext_text("a ''page''{{b}}", ("file", "category")) == ("a page", {"templates": 1})


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [
                "[[",
                "]]",
                "{{",
                "}}",
                "|",
                "<ref>",
                "</ref>",
                "''",
                "a",
                "\n",
                "{|",
                "|}",
                "=",
                "*",
                "<",
                "(",
                ")",
                "&lt;",
                "File:",
            ]
        )
    )
)
def test_any_marks_give_a_text_without_what_stands_for_losses(marks: list[str]) -> None:
    text, lost = plain_wikitext("".join(marks), *NAMES)
    assert "\0" not in text
    assert all(number > 0 for number in lost.values())
