"""Verdicts of the recipes on the sample's documents, next to datatrove's own filters."""

from format_folders import peer
from prelude import Path, pytest, sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import datatrove_agreement as agreement  # noqa: E402

DOCUMENTS = 120
MOST_OF_A_RULE = 3  # it cuts words with spaCy, we by a plain rule
MOST_OF_ALL_RULES = 1


@pytest.mark.parametrize("recipe", ["fineweb", "c4", "fineweb2:fr"])
def test_every_rule_rejects_what_datatrove_rejects(recipe: str) -> None:
    peer("datatrove.pipeline.filters")
    documents = agreement.choose(ROOT / "sample_data", DOCUMENTS, normalized=True)

    kept, decisions = agreement.our_decisions(documents, recipe)
    theirs = agreement.their_verdicts(documents["text"], agreement.rival(recipe))
    ours = agreement.our_verdicts(decisions, theirs)

    for rule in ours.columns:
        assert ours[rule].ne_missing(theirs[rule]).sum() <= MOST_OF_A_RULE, rule
    left = dict(kept.select("doc_id", "text").iter_rows())
    right = {str(row): text for row, text in enumerate(theirs["text"]) if text is not None}
    assert len(left.keys() ^ right.keys()) <= MOST_OF_ALL_RULES
    assert all(text == right.get(row, text) for row, text in left.items())
