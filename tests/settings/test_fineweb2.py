"""The published thresholds, as published."""

from prelude import hashlib, pytest

from resources.settings.filtering.fineweb2 import FINEWEB2, FineWeb2Language

DIGEST = "cbd98b510c868fb0169a9c33bc0c30f209705053ed789d82a6e93ac387227e85"


def test_the_table_is_the_one_that_was_compared_with_the_published_files() -> None:
    """Whoever changes a limit compares it with its source, then gives the new digest."""
    assert hashlib.sha256(repr(sorted(FINEWEB2.items())).encode()).hexdigest() == DIGEST


def test_golden_french_and_chinese() -> None:
    french, chinese = FINEWEB2["fr"], FINEWEB2["zh"]
    assert sorted(FINEWEB2) == ["de", "en", "es", "fr", "ja", "ru", "zh"]
    assert french[:3] == (0.824, 0.264, (0.161, 0.149, 0.134))
    assert french[3:8] == ((0.15, 0.141, 0.131, 0.121, 0.111, 0.1), (2, 11), 0.812, 0.10, 0.185)
    assert french.stop_words[4:8] == ("à", "en", "l'", "des")
    assert chinese[:3] == (0.692, 0.287, (0.256, 0.201, 0.171))
    ngrams = (0.198, 0.182, 0.167, 0.154, 0.14, 0.127)
    assert chinese[3:8] == (ngrams, (1, 5), 0.735, 0.106, 0.178)


@pytest.mark.parametrize("language", sorted(FINEWEB2))
def test_limits_are_shares_and_fall_with_the_length_of_the_ngram(language: str) -> None:
    limits: FineWeb2Language = FINEWEB2[language]
    ngrams = (*limits.top_ngrams, *limits.duplicate_ngrams)

    assert all(0 < share < 1 for share in (*ngrams, limits.duplicate_lines, limits.language_score))
    assert list(limits.top_ngrams) == sorted(limits.top_ngrams, reverse=True)
    assert list(limits.duplicate_ngrams) == sorted(limits.duplicate_ngrams, reverse=True)
    assert limits.mean_word_length[0] < limits.mean_word_length[1]
    assert len(set(limits.stop_words)) == len(limits.stop_words)
    if language != "en":  # FineWeb2 switches the same rules off in every language
        assert limits.duplicate_line_characters == 0.1
        assert limits[10:14] == (None, None, None, None)
