"""robots.txt and ai.txt: what an agent may fetch, and whether a page may be used for training.

Groups are found by product token (RFC 9309, 2.2.1): whole, in any case, up to the first character
that no token has ("GPTBot/1.1"). The rules of all groups with an agent's token are one; only an
agent without a group has that of `*`. Paths are compared by Protego: the longest pattern counts.

Statements on training are rules of a group, too, on all paths or on those of a pattern:
`Content-Usage: train-ai=n` (draft-ietf-aipref-attach and -vocab), `Content-Signal: ai-train=no`
(contentsignals.org) and `DisallowAITraining: /` (draft-canel-robots-ai-control). Of each kind the
longest pattern counts; of equal ones, and of the kinds, the one that forbids. Statements before the
first group are those of all agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from protego import Protego

LINE = re.compile(
    r"\s*(user[ -]?agent|dis+al+ow|diasllow|disallaw|allow|content-usage|content-signal"
    r"|disallowaitraining|allowaitraining)"
    r"(?:\s*:\s*|\s+)([^#]*)",
    re.IGNORECASE,
)
LINE_ENDS = re.compile(r"\r\n?|\n")
TOKEN = re.compile(r"[A-Za-z0-9_-]+")
EVERY_AGENT, NO_AGENT, BEFORE_GROUPS = "*", "?", ""
# Of each kind of statement, what is about training, the more exact first.
ON_TRAINING = {
    "content-usage": ("train-genai", "genai", "train-ai", "ai", "tdm", "bots", "all"),
    "content-signal": ("ai-train",),
}
FORBIDS = ("n", "no", "?0")
AS_FETCHING = {"disallowaitraining": "Disallow", "allowaitraining": "Allow"}


class Rule(NamedTuple):
    """A rule of a group: its field in lower case, and its value."""

    field: str
    value: str


@lru_cache(maxsize=4096)
def forbidding_rules(text: str, agents: Sequence[str]) -> tuple[Protego, ...]:
    """Return rules of a robots.txt, of which each may forbid a path to one of the agents.

    They are asked for the agent "*".
    """
    groups = groups_of(text)
    everywhere = [rule for rule in groups[BEFORE_GROUPS] if is_on_training(rule)]
    tokens = dict.fromkeys(token_of(agent) for agent in agents)
    of_agents = (groups.get(token, groups.get(EVERY_AGENT, [])) for token in tokens)
    different = dict.fromkeys((*rules, *everywhere) for rules in of_agents)
    return tuple(chain.from_iterable(map(parsed, different)))


def parsed(rules: Sequence[Rule]) -> Iterator[Protego]:
    """Yield the rules on fetching, and those of each kind of statement on training, if any."""
    from protego import Protego

    fetching = [f"{rule.field}: {rule.value}" for rule in rules if not is_on_training(rule)]
    disallowed = [f"{AS_FETCHING[f]}: {value}" for f, value in rules if f in AS_FETCHING]
    stated = (training_lines(rules, kind) for kind in ON_TRAINING)
    for lines in (fetching, disallowed, *stated):
        if lines:
            yield Protego.parse("\n".join(["User-agent: *", *lines]))


def is_on_training(rule: Rule) -> bool:
    """Check that a rule is a statement on training, and not on fetching."""
    return rule.field in ON_TRAINING or rule.field in AS_FETCHING


def training_lines(rules: Sequence[Rule], kind: str) -> list[str]:
    """Return the statements of a kind as rules on fetching, one for each pattern of paths."""
    forbidden: dict[str, bool] = {}
    for value in (rule.value for rule in rules if rule.field == kind):
        path, _, statement = value.partition(" ") if value.startswith("/") else ("/", "", value)
        forbidden[path] = forbidden.get(path, False) or forbids_training(kind, statement)
    return [f"{'Disallow' if is_no else 'Allow'}: {path}" for path, is_no in forbidden.items()]


def forbids_training(kind: str, statement: str) -> bool:
    """Check that a statement, as "search=y, train-ai=n", forbids training."""
    members = (member.partition(";")[0].partition("=") for member in statement.lower().split(","))
    values = {name.strip(): value.strip(' \t"') for name, _, value in members}
    stated = [values[name] for name in ON_TRAINING[kind] if name in values]
    return bool(stated) and stated[0] in FORBIDS


def token_of(agent: str) -> str:
    """Return the product token of an agent in lower case; "*" for all agents."""
    name = agent.strip()
    if name.split()[:1] == [EVERY_AGENT]:
        return EVERY_AGENT
    found = TOKEN.match(name)
    return found[0].lower() if found else NO_AGENT


def groups_of(text: str) -> dict[str, list[Rule]]:
    """Return the rules of each token; those before the first group are under BEFORE_GROUPS."""
    groups: dict[str, list[Rule]] = {BEFORE_GROUPS: []}
    tokens, has_rules = [BEFORE_GROUPS], True
    for line in LINE_ENDS.split(text.removeprefix("\ufeff")):
        if not (found := LINE.match(line)):
            continue
        field, value = found[1].lower(), found[2].replace("\t", " ").strip()
        if field.startswith("user"):
            tokens, has_rules = [] if has_rules else tokens, False
            tokens.append(token_of(value))
            groups.setdefault(tokens[-1], [])
        else:
            has_rules = True
            for token in dict.fromkeys(tokens):
                groups[token].append(Rule(field, value))
    return groups
