"""Licences under which changed copies of a text may be passed on, by SPDX id or common spelling.

Ids are those of the SPDX License List 3.27. A licence with conditions (attribution, the same
licence, no commercial use) is one of them; one without derivatives is not, since texts are changed.
Whatever is not in the table is unknown.
"""

from __future__ import annotations

import re

CREATIVE_COMMONS = re.compile(
    r"(?:https?://)?(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/?(.*)"
)
PORTS = {"zero": "cc0", "mark": "public-domain"}  # of addresses of Creative Commons
SPELLINGS = {  # in this order
    r"lesser general public": "lgpl",
    r"affero general public": "agpl",
    r"general public": "gpl",
    r"free documentation": "gfdl",
    r"mozilla public": "mpl",
    r"eclipse public": "epl",
    r"open government": "ogl",
    r"open database": "odbl",
    r"open data commons attribution": "odc-by",
    r"creative commons zero": "cc0",
    r"creative commons": "cc",
    r"attribution": "by",
    r"non-?\s?commercial": "nc",
    r"share-?\s?alike": "sa",
    r"\b(?:the|gnu|licen[cs]e|version|international|unported|generic)\b": " ",
}
WITH = re.compile(r"\s+with\s+[a-z0-9.-]+")  # an exception permits more
VERSION = r"(?:-?v?\d+(?:\.\d+)*)"
REDISTRIBUTABLE = re.compile(
    rf"cc-by(?:-nc)?(?:-sa)?(?:{VERSION}(?:-igo|-(?!nd)[a-z]{{2}})?)?"  # of a country: -de
    r"|(?:cc0|cc-pddc|cc-pdm|public-domain|publicdomain|pd|pddl|unlicense|0bsd|wtfpl"
    r"|mit(?:-0|-modern-variant)?|x11|isc|zlib|ncsa|bsl-1\.0|boost|curl|hpnd|icu|postgresql|python"
    r"|psf|php|ruby|vim|w3c|unicode(?:-dfs|-tou)?|bsd(?:-[1-4]-clause)?(?:-clear|-patent)?|apache"
    r"|artistic|afl|upl|ms-[pr]l|mulanpsl|blueoak|openssl|zpl|ftl|ijg|naist|ntp|lppl|ofl"
    r"|a?gpl|lgpl|gfdl|mpl|epl|eupl|cpl|cddl|cecill(?:-[bc])?|osl|sleepycat|odbl|odc-by"
    r"|cdla-(?:permissive|sharing)|[co]-uda|ogl(?:-uk|-canada)?|etalab|licence-ouverte|nlod"
    rf"|dl-de-(?:by|zero)|liliq-[pr]){VERSION}?(?:-(?:only|or-later|or-newer)|\+)?"
)


def may_be_passed_on(licence: str) -> bool:
    """Return whether a licence, or an expression of several, is known to allow it.

    Of licences joined by AND all must, of those joined by OR one. In parentheses all must.
    """
    expression = licence.strip().lower()
    if "(" in expression:
        expression = re.sub(r"[()]", " ", expression).replace(" or ", " and ")
    return any(
        all(is_known(each) for each in re.split(r"\s+and\s+", option))
        for option in re.split(r"\s+or\s+(?!later|newer)", expression)
    )


def is_known(name: str) -> bool:
    """Return whether one licence, in lower case, is in the table."""
    if address := CREATIVE_COMMONS.fullmatch(name.strip()):
        kind, version = address[1], address[2].strip("/").split("/")[0]
        name = PORTS.get(kind) or f"cc-{kind}-{version}"
    name = WITH.sub("", name)
    for spelling, short in SPELLINGS.items():
        name = re.sub(spelling, short, name)
    return REDISTRIBUTABLE.fullmatch(re.sub(r"[\s,_/-]+", "-", name).strip("-")) is not None
