"""A quality rule: documents with too many capital letters are rejected.

The same list could stand in a file named by `filters.custom`; a package shares it.
"""

import polars as pl

from tokenmill.plugins import CustomRule

CAPITALS = pl.col("text").str.count_matches(r"\p{Lu}") / pl.col("text").str.len_chars()
RULES = [
    CustomRule("shouting", CAPITALS, maximum=0.3, keeps=["Hello."], rejects=["BUY NOW"]),
]
