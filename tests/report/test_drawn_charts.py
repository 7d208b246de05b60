"""Charts: drawn once, of the same bytes, with texts that are only text."""

from base64 import b64decode
from xml.etree import ElementTree

from prelude import Path, pytest, re

import resources.drawn_charts as drawn_charts
from resources.charts import Areas, Bars, Chart, Panel, Panels, as_markdown, histogram, share_bars
from resources.drawn_charts import draw, with_pictures

EVIL = "<script>&$x$\x00\u202e日本"
LIMITED = Panel(EVIL, (1.0, 0.0), ((0.5, EVIL),), ((1.0, EVIL),), "drift")
CHARTS = [
    Bars(EVIL, ((EVIL, 1.0, EVIL),)),
    Panels(EVIL, (LIMITED, LIMITED, LIMITED, LIMITED)),
    Areas(EVIL, (EVIL,), ((1.0,), (1.0,))),
    Bars("nothing", ()),
    Panels("nothing", (Panel("", (), ()),)),
    Panels("no panels", ()),
    Areas("nothing", (), ()),
    share_bars("shares", {str(n): n for n in range(20)}),
]


def texts(svg: str) -> list[str]:
    found = (each.text or "" for each in ElementTree.fromstring(svg).iter())
    return [text for text in found if text.strip()]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_the_same_picture_each_time(chart: Chart) -> None:
    svg = draw(chart)

    assert svg == draw(chart)
    assert "<script" not in svg and "\x00" not in svg and "\u202e" not in svg
    assert len(svg) < 40_000
    ElementTree.fromstring(svg)


def test_one_column_has_one_label() -> None:
    svg = draw(histogram("documents", [("0", 3)], "axis"))

    assert texts(svg)[1:].count("0") == 1


def test_a_picture_is_drawn_once_in_a_home(
    monkeypatch: pytest.MonkeyPatch, dagster_home: Path
) -> None:
    markdown = f"a {as_markdown(Bars('t', ()), 'name')} b"
    first = with_pictures(markdown)
    monkeypatch.setattr(drawn_charts, "draw", lambda chart: pytest.fail("drawn again"))

    assert with_pictures(markdown) == first
    found = re.fullmatch(r"a !\[name\]\(data:image/svg\+xml;base64,([\w+/=]+)\) b", first)
    assert found and b64decode(found[1]).startswith(b"<svg")
