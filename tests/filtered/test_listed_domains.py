"""Lists of domains and URLs: what a line means, and which lines are refused or named."""

from prelude import Any, Path, pytest

from assets.filtered.filter_files import FilterFileError, load_filter_data
from assets.filtered.opt_out import parse_entries
from resources.settings.filtering.filters import FilterConfig

UNDERSTOOD = {
    "EXAMPLE.com": "example.com",
    "example.com:8080": "example.com",
    "example.com # as of May": "example.com",
    "example.com\t# as of May": "example.com",
    "example.com.": "example.com",
    " https://www.example.com/ ": "example.com",
    "*.example.com": "example.com",
    ".example.com": "example.com",
    "münchen.de": "xn--mnchen-3ya.de",
    "xn--mnchen-3ya.de": "xn--mnchen-3ya.de",
    "https://example.com:443/a?utm_source=x#top": "example.com/a",
    "example.com:8080/a": "example.com:8080/a",
    "https://example.com/#/a": "example.com/#/a",
    "192.168.0.1": "192.168.0.1",
    "# example.com": None,
    "": None,
}
NOT = {
    "example.com example.org": "has a blank",
    "0.0.0.0 example.com": "has a blank",
    "example.com, example.org": "has a blank",
    "example.com,example.org": "is no domain",
    "||example.com^": "is no domain",
    "example..com": "is no domain",
    "https://": "is no domain",
    "example.com/*": "has a wildcard",
    "exa*mple.com": "has a wildcard",
}
MATCH_ALL = ("com", "*.CO.UK", "https://рф/", "intranet", "com:80")


def opt_out(folder: Path, *lines: str) -> Any:
    (folder / "list.txt").write_text("\n".join(lines))
    given = {"rules": {"opt_out": {"domains_file": "list.txt", "tracking_parameters": ["utm_*"]}}}
    return load_filter_data(FilterConfig.model_validate(given), folder).opt_out


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_a_line_means_a_domain_or_a_url(line: str) -> None:
    entries = parse_entries(["", line], ("utm_*",))
    meant = UNDERSTOOD[line]
    assert entries["address"].to_list() == ([] if meant is None else [meant])
    assert entries["fault"].null_count() == entries.height
    assert entries["line"].to_list() == [2] * entries.height


@pytest.mark.parametrize("line", [*NOT, *MATCH_ALL])
def test_an_opt_out_that_means_nothing_or_all_is_refused_with_its_line(
    line: str, tmp_path: Path
) -> None:
    message = rf"list\.txt: line 2: .*{NOT.get(line, 'would mean every site')}"
    with pytest.raises(FilterFileError, match=message):
        opt_out(tmp_path, "example.org", line)
    assert opt_out(tmp_path, "github.io", "a.co.uk").listed == {"github.io", "a.co.uk"}


def test_entries_of_other_lists_that_match_nothing_are_named(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("ru\n" + "\n".join(NOT))
    given = {"blocked_domains_file": "hosts.txt", "allowed_domains": ["a.org", "b org"]}
    config = FilterConfig.model_validate({"rules": {"metadata": given}})
    data = load_filter_data(config, tmp_path)
    assert (data.blocked_domains, data.allowed_domains) == ({"ru"}, {"a.org"})
    blocked, allowed = data.list_faults
    assert "hosts.txt: line 2: 'example.com example.org' has a blank" in blocked
    assert blocked.endswith("; and 6 more lines")
    assert allowed.startswith("filters.rules.metadata.allowed_domains: line 2: 'b org' has a blank")


def test_a_term_without_a_letter_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("good\n***\n")
    given = {"words": {"profanity_files": {"xx": "bad.txt"}}, "rules": {"profanity": {}}}
    with pytest.raises(FilterFileError, match=r"bad\.txt: line 2: '\*\*\*' has no letter"):
        load_filter_data(FilterConfig.model_validate(given), tmp_path)


@pytest.mark.parametrize("agent", ["", "GPT Bot", "GPTBot/1.1"])
def test_an_agent_is_a_product_token(agent: str) -> None:
    with pytest.raises(ValueError, match="should match pattern"):
        FilterConfig.model_validate({"rules": {"opt_out": {"agents": [agent]}}})
