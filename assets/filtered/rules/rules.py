"""Rules of a config: one score, one threshold and one fault each.

Rules come in groups (`rule_groups`), one per paper or purpose; scores are defined in `scores`.
Scores are stored with the decision, so that other thresholds can be replayed without the text.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import polars as pl

from assets.filtered.rules.custom import CustomRule
from resources.settings.faults import nearest
from resources.settings.filtering.filter_steps import MAX_VALUES
from resources.settings.filtering.rules import RuleGroup, RulesConfig
from resources.settings.limits import EVERY_LANGUAGE, LimitByLanguage

Threshold = float | tuple[str, ...] | LimitByLanguage
LANGUAGE = "lang"  # score by which a threshold with a limit per language is chosen
Direction = Literal["below", "above", "outside", "inside"]
PREFIXES: Mapping[str, Direction] = {"min_": "below", "allowed": "outside", "blocked_": "inside"}


@dataclass(frozen=True)
class Rule:
    """A comparison of one score with a threshold; the name is the group's and the fault's.

    `field` is the threshold's key in its group. A document at the threshold is kept, unless the
    rule is inclusive.
    """

    name: str
    score: str
    threshold: Threshold = dataclasses.field(hash=False)  # of limits by language, a dict
    direction: Direction
    field: str = ""
    is_inclusive: bool = False

    @property
    def group(self) -> str:
        """Name of the rule's group."""
        return self.name.split(".")[0]

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores that the rule looks at: the limited one, and the language."""
        return (self.score, LANGUAGE) if isinstance(self.threshold, Mapping) else (self.score,)

    @property
    def limit(self) -> pl.Expr:
        """Float64 expression of the limit of each document; null: none, or a list of names."""
        if isinstance(self.threshold, tuple):
            return pl.lit(None, pl.Float64)
        if not isinstance(self.threshold, Mapping):
            return pl.lit(self.threshold, pl.Float64)
        limits = dict(self.threshold)
        default = limits.pop(EVERY_LANGUAGE, None)
        return pl.col(LANGUAGE).replace_strict(
            list(limits), list(limits.values()), default=default, return_dtype=pl.Float64
        )

    @property
    def broken(self) -> pl.Expr:
        """Boolean expression, true where the rule is broken; a null breaks only an allow list.

        It is named as the rule.
        """
        return _broken(self)


# A text with more is not searched to its end, so its unmasked rest must not be kept.
TOO_MANY_VALUES = Rule("pii.too_many_values", "pii_total", MAX_VALUES, "above")


@lru_cache(maxsize=1024)  # made once a worker: the expressions of 33 rules take 0.8 ms
def _broken(rule: Rule) -> pl.Expr:
    score, limit = pl.col(rule.score), rule.limit
    if isinstance(rule.threshold, tuple):
        is_listed = score.is_in(list(rule.threshold)).fill_null(False)
        return (is_listed if rule.direction == "inside" else ~is_listed).alias(rule.name)
    beyond = score < limit if rule.direction == "below" else score > limit
    if rule.is_inclusive:
        beyond |= score == limit
    return beyond.fill_null(False).alias(rule.name)


def rules_for(
    config: RulesConfig, custom: Sequence[CustomRule] = (), *, pii: bool = False
) -> list[Rule]:
    """Return the rules in force, in the order of groups and fields; custom rules follow.

    pii: personal data is searched for, to which belongs, last, a rule that no setting changes.
    """
    groups = [(name, group) for name, group in config if isinstance(group, RuleGroup)]
    rules = [
        _to_rule(name, group, field)
        for name, group in groups
        for field in type(group).model_fields
        if is_rule(group, field) and not _is_off(getattr(group, field))
    ]
    rules += [rule for own in custom for rule in _custom_rules(own, config.custom)]
    return [*rules, TOO_MANY_VALUES] if pii else rules


def unknown_custom_rules(config: RulesConfig, custom: Sequence[CustomRule]) -> list[str]:
    """Describe each threshold of the config whose custom rule is not there."""
    names = [rule.name for rule in custom]
    return [
        f"rules.custom.{name}: no such rule in filters.custom or filters.plug_ins"
        f"{nearest(name, names)}; there is {', '.join(names) or 'none'}"
        for name in config.custom
        if name not in names
    ]


def is_rule(group: RuleGroup, field: str) -> bool:
    """Check that a field of a group is a threshold, not a setting of its score."""
    return type(group).model_fields[field].json_schema_extra is not None


def _is_off(threshold: Any) -> bool:
    return threshold is None or threshold is False  # 0 is a threshold, though equal to False


def _to_rule(group_name: str, group: RuleGroup, field: str) -> Rule:
    names: Any = type(group).model_fields[field].json_schema_extra
    threshold = getattr(group, field)
    direction: Direction = "above"
    for prefix, meaning in PREFIXES.items():
        if field.startswith(prefix):
            direction = meaning
    if threshold is True:
        threshold = 0
    name = f"{group_name}.{names['fault']}"
    return Rule(name, names["score"], threshold, direction, field, group.inclusive)


def _custom_rules(custom: CustomRule, thresholds: Mapping[str, float | None]) -> list[Rule]:
    """Return a user's rule with its own threshold, or the one of the config (null: no rule)."""
    threshold = thresholds.get(custom.name, custom.threshold)
    if threshold is None:
        return []
    return [Rule(f"custom.{custom.name}", custom.column, threshold, custom.direction, custom.name)]
