"""URLs against lists, licences, and fields that must be there."""

from prelude import Any, ValidationError, pl, pytest
from tables import cases

from assets.filtered.metadata import count_metadata
from resources.settings.filtering.rules import MetadataRules

BLANK = {"text": "t", "url": None, "license": None, "lang": None, "id": None, "meta": None}


def counted(
    rules: dict[str, Any], *rows: dict[str, Any], blocked: str = "", allowed: str = ""
) -> pl.DataFrame:
    documents = pl.DataFrame([BLANK | row for row in rows], schema=dict.fromkeys(BLANK, pl.String))
    lists = frozenset(blocked.split()), frozenset(allowed.split())
    return count_metadata(documents, MetadataRules.model_validate(rules), *lists)


@cases("""
    url                                | is_blocked
    http://bad.com/page                | 1
    https://www.bad.com                | 1
    HTTPS://Sub.Bad.COM:8080/x?y#z     | 1
    http://user:secret@bad.com/        | 1
    //bad.com/x                        | 1
    http://notbad.com/                 | 0
    http://bad.com.example.org/        | 0
    http://good.com/?u=http://bad.com/ | 0
    http://ok.org/one/page/            | 1
    http://ok.org/one/page/two         | 0
    bad.com                            | 1
    bad.com/page                       | 1
    http://bad.com./                   | 1
    http://a.b.c.d.e.f.g.h.i.bad.com/  | 1
    http://MÜNCHEN.de/x                | 1
    not a url                          | 0
    None                               | 0
""")
def test_a_listed_domain_stands_for_its_subdomains_and_a_listed_url_for_itself(
    url: str | None, is_blocked: int
) -> None:
    counts = counted({}, {"url": url}, blocked="bad.com ok.org/one/page xn--mnchen-3ya.de")
    assert counts["blocked_domain"].to_list() == [is_blocked]


@pytest.mark.parametrize("blocked", ["b.c.d.e.f.g.h.org", "h.org", "org"])
def test_eight_levels_of_a_host_name_are_looked_up(blocked: str) -> None:
    deep = {"url": "http://a.b.c.d.e.f.g.h.org/"}

    assert counted({}, deep, blocked=blocked)["blocked_domain"].to_list() == [1]


def test_an_allow_list_judges_only_documents_with_a_url() -> None:
    rows = [{"url": u} for u in ("http://a.ok.org/", "http://other.org/", "no host", None)]

    assert counted({}, *rows, allowed="ok.org")["foreign_domain"].to_list() == [0, 1, 1, None]
    assert counted({}, *rows)["foreign_domain"].to_list() == [None] * 4


def test_words_of_a_url_are_hard_soft_or_strict() -> None:
    rules = {"url_substrings": ["Poker"], "url_words": ["casino"], "url_soft_words": ["win", "sex"]}
    urls = ["http://a.com/onlinepoker", "http://casino.com", "http://casinos.com/win-essex"]
    urls += ["http://x.com/win/SEX", "http://plain.org/"]

    counts = counted(rules, *({"url": url} for url in urls))

    assert counts["url_hits"].to_list() == [1, 1, 0, 0, 0]
    assert counts["url_soft_hits"].to_list() == [0, 0, 1, 2, 0]


def test_required_fields_are_columns_and_paths_of_meta() -> None:
    rules = {"required": ["url", "author", "meta.site.name", "text"]}
    full = {"url": "u", "meta": '{"author": "A", "meta": {"site": {"name": "S"}}}'}
    rows = [full, full | {"url": " "}, {"url": "u", "meta": '{"author": null, "site": {}}'}, {}]

    assert counted(rules, *rows)["missing_fields"].to_list() == [0, 1, 2, 3]


def test_no_rows_give_no_rows() -> None:
    counts = counted({"required": ["url"], "url_words": ["a"]}, blocked="a.b")
    assert counts.height == 0
    assert set(counts.dtypes) == {pl.Int64}


def test_a_million_domains_are_looked_up_by_hash() -> None:
    listed = frozenset(f"host{i}.example" for i in range(300_000))
    documents = pl.DataFrame(
        [BLANK | {"url": f"http://www.host{i}.example/{i}"} for i in range(299_990, 300_010)],
        schema=dict.fromkeys(BLANK, pl.String),
    )
    counts = count_metadata(documents, MetadataRules(), listed, frozenset())
    assert counts["blocked_domain"].to_list() == [1] * 10 + [0] * 10


@pytest.mark.parametrize(
    "rules",
    [{"required": ["x["]}, {"required": ["a.."]}, {"url_substrings": [""]}, {"url_words": ["a-b"]}],
)
def test_what_could_never_match_or_breaks_inside_is_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MetadataRules.model_validate(rules)
