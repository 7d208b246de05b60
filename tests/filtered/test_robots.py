"""Groups of a robots.txt by product token, and statements on training in it."""

import pytest
from tables import cases

from assets.filtered.opt_out import forbidding_rules, forbids_training

NO_FETCH = "Disallow: /"


def forbidden(text: str, *agents: str, path: str = "/a") -> bool:
    rules = forbidding_rules(text, agents or ("GPTBot",))
    return any(not each.can_fetch(path, "*") for each in rules)


@cases("""
    line                                             | is_own
    User-agent: gptbot                               | True
    User-agent: GPTBot/1.1                           | True
    user-agent : GPTBot # ours                       | True
    Useragent GPTBot                                 | True
    User-agent: GPT                                  | False
    User-agent: GPT*                                 | False
    User-agent: GPTBot-News                          | False
    User-agent: Mozilla/5.0 (compatible; GPTBot/1.1) | False
""")
def test_a_group_is_that_of_a_whole_product_token(line: str, is_own: bool) -> None:
    assert forbidden(f"{line}\n{NO_FETCH}\n\nUser-agent: *\nAllow: /\n") == is_own
    assert forbidden(f"{line}\nAllow: /\n\nUser-agent: *\n{NO_FETCH}\n") != is_own


def test_rules_of_all_groups_of_an_agent_are_one_and_other_lines_end_none() -> None:
    text = "User-agent: GPTBot\nCrawl-delay: 1\n\nSitemap: https://a.org/s\nUser-agent: CCBot\n"
    assert forbidden(f"{text}{NO_FETCH}")
    two = "User-agent: GPTBot\nAllow: /b\nUser-agent: *\n\nUser-agent: GPTBot\n"
    assert forbidden(f"{two}{NO_FETCH}")
    assert not forbidden(f"{NO_FETCH}\nUser-agent: CCBot\n{NO_FETCH}")
    assert not forbidden(f"User-agent: *\n{NO_FETCH}\nUser-agent: GPTBot\nDisallow:\n")


STATEMENTS = [
    ("Content-Usage: train-ai=n", "/a", True),
    ("content-usage : train-ai=n;x=1, search=y # no", "/a", True),
    ("Content-Usage: search=y, train-ai=y", "/a", False),
    ("Content-Usage: search=n", "/a", False),
    ("Content-Usage: bots=n, train-ai=y", "/a", False),
    ("Content-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y", "/ok/a", False),
    ("Content-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y", "/a", True),
    ("Content-Usage: /no/*.html\ttrain-ai=n", "/no/x/a.html", True),
    ("Content-Usage: /no/*.html train-ai=n", "/no/a.txt", False),
    ("Content-Usage: / train-ai=y\nContent-Usage: train-ai=n", "/a", True),
    ("Content-Usage: ai=n", "/a", True),
    ("DisallowAITraining: /no", "/no/a", True),
    ("DisallowAITraining: /\nAllowAITraining: /ok", "/ok/a", False),
    ("Content-Signal: search=yes, ai-train=no", "/a", True),
    ("Content-Signal: search=no, ai-train=yes, ai-input=no", "/a", False),
    ("Content-Signal: ai-train=no\nContent-Usage: /ok/ train-ai=y", "/ok/a", True),
]


@pytest.mark.parametrize(("lines", "path", "is_no"), STATEMENTS)
def test_statements_on_training_count_on_the_paths_that_they_name(
    lines: str, path: str, is_no: bool
) -> None:
    assert forbidden(f"User-agent: *\nAllow: /\n{lines}", path=path) == is_no
    assert forbidden(f"{lines}\n\nUser-agent: *\nAllow: /", path=path) == is_no, "of all agents"


def test_statements_are_those_of_a_group_and_may_say_nothing() -> None:
    text = "User-agent: GPTBot\nAllow: /\n\nUser-agent: *\nContent-Signal: ai-train=no\n"
    assert not forbidden(text, "GPTBot")
    assert forbidden(text, "GPTBot", "CCBot")
    assert not any(forbids_training("content-usage", text) for text in ("", ",=,", "n", "train-ai"))
