"""The config of deduplication refuses what has no effect; a dumped one is read back."""

from prelude import Any, ValidationError, pytest
from tables import cases

from resources.settings.dedup import DedupConfig


@cases(r"""
    wrong | told
    {"preset": "datatrove", "threshold": 0.8}
    | threshold 0.8 does nothing without verify: set verify, or remove
    {"threshold": 0.9, "verify": "none"} | threshold 0.9 does nothing without verify
    {"preset": "datatrove", "threshold": 0.9} | threshold 0.9 does nothing without verify
    {"preset": "verified", "verify": "none", "threshold": 0.9}
    | threshold 0.9 does nothing without verify
    {"bands": 0} | bands
    {"rows": 65} | rows
    {"ngram": 0} | ngram
    {"seed": -1} | seed
    {"shingle": "letters"} | shingle
    {"fields": ["lang"]} | r"fields\.0"
    {"fields": ["source"]} | r"fields\.0"
    {"fields": ["license"]} | r"fields\.0"
    {"fields": ["url", "meta."]} | r"fields\.1"
    {"fields": ["url", "url"]} | r"each once, got \['url', 'url'\]"
    {"within": ["id"]} | r"within\.0"
    {"within": ["url"]} | r"within\.0"
    {"within": ["lang", "lang"]} | each once
    {"keep": ["quality"]} | needs quality_field
    {"keep": ["newest"]} | need date_field
    {"keep": ["longest", "longest"]} | each once
""")
def test_what_can_have_no_effect_or_sense_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        DedupConfig.model_validate(wrong)


@pytest.mark.parametrize("mode", ["python", "json"])
@cases("""
    given
    {}
    {"preset": "datatrove"}
    {"preset": "verified"}
    {"preset": "verified", "verify": "none"}
    {"preset": "high-recall", "threshold": 0.9}
    {"verify": "exact", "threshold": 0.9}
    {"fields": ["url", "id", "meta.a.b"], "within": ["source", "lang", "license", "meta.a"]}
""")
def test_a_dumped_config_is_read_back_as_it_was(given: dict[str, Any], mode: str) -> None:
    config = DedupConfig.model_validate(given)

    assert DedupConfig.model_validate(config.model_dump(mode=mode)) == config


def test_by_default_removed_documents_are_verified_and_by_preset_datatrove_not() -> None:
    config = DedupConfig()
    assert (config.bands, config.rows) == (14, 8)
    assert (config.verify, config.threshold, config.clusters) == ("exact", 0.8, "star")
    assert DedupConfig.model_validate({"threshold": 0.9}).verify == "exact"
    config = DedupConfig.model_validate({"preset": "datatrove"})
    assert (config.ngram, config.bands, config.rows) == (5, 14, 8)
    assert (config.verify, config.clusters) == ("none", "components")
    assert config.keep == ("priority", "ingested", "longest")
    for preset in (None, "datatrove", "verified"):  # signatures do not depend on it
        signing = DedupConfig.model_validate({"preset": preset}).signing()
        assert signing == DedupConfig().signing()
