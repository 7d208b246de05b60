"""Make data/phone_plans.tsv: the national numbers of 58 countries, as regexes.

    make .venv/installed-bench && .venv/bin/python benchmarks/phone_plans.py

Source: Google's libphonenumber (Apache-2.0), by its port to Python: lines, mobile and free numbers.
"""

from __future__ import annotations

import importlib
from pathlib import Path

OUT = Path(__file__).parent.parent / "assets/filtered/data/phone_plans.tsv"
COUNTRIES = (  # the largest, then others whose numbers are often in texts
    "IN CN US ID PK NG BR BD RU ET MX JP EG PH CD VN IR TR DE TH GB TZ FR ZA IT KE MM CO KR UG ES "
    "NL BE CH AT PT PL CZ SE NO DK FI IE GR HU RO UA IL AR CL AU NZ TW HK SG MY AE SA"
)


def main() -> None:
    """Write a row for each country: code, trunk prefix, and the regex of a number without it."""
    metadata = importlib.import_module("phonenumbers").PhoneMetadata
    rows = ["country\ttrunk\tnumber"]
    for country in COUNTRIES.split():
        plan = metadata.metadata_for_region(country)
        kinds = (plan.fixed_line, plan.mobile, plan.toll_free, plan.shared_cost, plan.uan)
        patterns = (kind.national_number_pattern for kind in kinds if kind)
        numbers = dict.fromkeys(filter(None, patterns))
        rows.append(f"{country}\t{plan.national_prefix or ''}\t{'|'.join(numbers)}")
    OUT.write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
