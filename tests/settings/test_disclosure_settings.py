"""Facts about sources are checked, and are in no fingerprint."""

import yaml
from builders import Build, hashes, open_corpus, write_corpus
from prelude import Any, Path, ValidationError, pytest
from tables import cases

from resources.settings.full_source import Source

FACTS: dict[str, Any] = {
    "provenance": "crawl",
    "owner": "Acme",
    "link": "https://acme.example/data",
    "collected": [2024, "2024-06"],
    "crawler": "AcmeBot/1.0",
    "generator": ["model-1"],
    "purpose": "training",
    "personal_data": True,
}


@cases(r"""
    wrong | told
    {"collected": ["2024-13", "2025"]} | '2024-13' is no date. Write 2024, 2024-05 or
    {"collected": ["2025", "2024-05"]} | r"2024-05 is before 2025. Write \[from, to\]"
    {"crawler": "Bot", "provenance": "user"} | the provenance is user, and only a crawl has
    {"link": "www.acme.example"} | is no link. Write a URL with http://
    {"provenance": "web"} | "'public', 'licensed', 'third_party', 'crawl', 'user'"
""")
def test_a_wrong_fact_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Source(name="web", where="a.txt", **wrong)


def test_another_fact_computes_nothing_again(tmp_path: Path, build: Build) -> None:
    config = write_corpus(tmp_path)
    build(open_corpus(config))
    before = hashes(tmp_path / "store")

    changed = yaml.safe_load(config.read_text()) | {"disclosure": {"provider": "Acme"}}
    changed["sources"][0] |= FACTS
    config.write_text(yaml.safe_dump(changed))
    corpus = open_corpus(config)
    assert corpus.settings.source("prose").collected == ("2024", "2024-06")
    build(corpus)
    assert hashes(tmp_path / "store") == before
