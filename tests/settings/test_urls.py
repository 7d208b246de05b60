"""URLs in pipeline.yaml: those that only a secret tells apart are refused."""

import yaml
from prelude import Any, Path, pytest

from resources.settings.decontamination import DecontaminationConfig
from resources.settings.pipeline import Settings, SettingsError, load_settings
from resources.settings.sources import SourceConfig


def load(folder: Path, *sources: dict[str, Any], **more: Any) -> Settings:
    named = [{"name": f"s{n}", **source} for n, source in enumerate(sources)]
    config = {
        "store": "s",
        "sources": named,
        "phases": [{"name": "p", "weighting": "natural"}],
        **more,
    }
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    return load_settings(path)


def faults(folder: Path, *sources: dict[str, Any], **more: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, *sources, **more)
    return str(caught.value)


PAGES = ["https://h/a?page=1&sig=s3cret", "https://h/a?page=2&sig=s3cret"]


def test_urls_of_one_source_that_differ_in_their_query_are_refused(tmp_path: Path) -> None:
    message = faults(tmp_path, {"where": PAGES})

    assert "sources[0].where[1]: https://h/a is the same file as sources[0].where[0]" in message
    assert "only in its query (page)" in message and "`identity_query`" in message
    assert "s3cret" not in message and "page=" not in message
    load(tmp_path, {"where": PAGES, "identity_query": "page"})


def test_urls_of_the_whole_corpus_are_compared(tmp_path: Path) -> None:
    evaluation = {"decontamination": {"sets": [{"name": "e", "where": "https://u:p@h/a?sig=x"}]}}

    message = faults(
        tmp_path, {"where": "https://h/a?sig=x"}, {"where": "https://h/a?sig=y"}, dedup=evaluation
    )

    assert "sources[1].where[0]: https://h/a is the same file as sources[0].where[0]" in message
    assert "dedup.decontamination.sets[0].where[0]: https://h/a is the same" in message
    assert "differs only in what is not recorded" in message


def test_equal_urls_and_paths_are_no_fault(tmp_path: Path) -> None:
    load(tmp_path, {"where": ["https://h/a?sig=x", "https://h/a?sig=x", "a?.jsonl", "a*.jsonl"]})


def test_a_key_that_no_url_has_is_named(tmp_path: Path) -> None:
    message = faults(tmp_path, {"where": PAGES, "identity_query": ["page", "pge"]})
    assert "sources[0].identity_query[1]: no URL of `where` has the key 'pge'" in message
    assert "they have: page, sig" in message


def test_a_fault_of_pipeline_yaml_shows_no_secret(tmp_path: Path) -> None:
    message = faults(tmp_path, {"where": "a", "domain": "https://me:s3cret@h/a?sig=s3cret"})
    assert "https://h/a?sig=***" in message and "s3cret" not in message


def test_a_renewed_signature_changes_no_fingerprint() -> None:
    def indexing(where: str, **more: Any) -> Any:
        sets = [{"name": "e", "where": where, **more}]
        return DecontaminationConfig.model_validate({"sets": sets}).indexing()

    assert indexing("https://u:p@h/a?sig=x", follow_links=True) == indexing("https://h/a")
    assert indexing("a.jsonl")["sets"] == [
        {"name": "e", "where": ["a.jsonl"], "format": "auto", "fields": ["text"], "id_field": None}
    ]
    source = SourceConfig(name="s", where=("https://u:p@h/a?sig=x", "data/*"))
    assert source.model_dump(mode="json")["where"] == ["https://h/a", "data/*"]


@pytest.mark.parametrize("where", ["s3://me:s3cret@bucket/a.jsonl", "s3://bucket/a?key=s3cret"])
def test_a_url_of_an_object_store_has_no_secret(tmp_path: Path, where: str) -> None:
    message = faults(tmp_path, {"where": where})
    assert "Credentials come from the environment" in message
    assert "s3cret" not in message
