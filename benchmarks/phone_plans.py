"""Make data/phone_plans.tsv: the national numbers of the 32 largest countries, as regexes.

    make .venv/installed-bench && .venv/bin/python benchmarks/phone_plans.py

Source: Google's libphonenumber (Apache-2.0), by its port to Python: lines and mobile numbers.
"""

from __future__ import annotations

import importlib
from pathlib import Path

OUT = Path(__file__).parent.parent / "assets/filtered/data/phone_plans.tsv"
COUNTRIES = (
    "IN CN US ID PK NG BR BD RU ET MX JP EG PH CD VN IR TR DE TH GB TZ FR ZA IT KE MM CO KR UG ES"
)


def main() -> None:
    """Write a row for each country: code, trunk prefix, and the regex of a number without it."""
    metadata = importlib.import_module("phonenumbers").PhoneMetadata
    rows = ["country\ttrunk\tnumber"]
    for country in COUNTRIES.split():
        plan = metadata.metadata_for_region(country)
        kinds = (plan.fixed_line, plan.mobile)
        numbers = dict.fromkeys(kind.national_number_pattern for kind in kinds)
        rows.append(f"{country}\t{plan.national_prefix or ''}\t{'|'.join(numbers)}")
    OUT.write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
