"""Rules: named expressions over scores. Files of custom rules import `CustomRule` from here."""

from assets.filtered.rules.custom import CustomRule

__all__ = ["CustomRule"]
