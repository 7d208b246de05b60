"""`hf`: a dataset card of the Hugging Face hub: a header in YAML, and sections in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from pipeline_defs.commands.share.facts import Facts
from pipeline_defs.commands.share.forms import markdown
from pipeline_defs.commands.share.forms.markdown import period, plain, table

CODE = re.compile(r"[a-z]{2,3}")  # of a language, as the hub takes it
HUB = "https://huggingface.co/datasets/"
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
LARGE = ((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"))
LARGER = ((10**11, "10B<n<100B"), (10**12, "100B<n<1T"))


def render(facts: Facts, **header: Any) -> str:
    """Return the card; `header` are more keys of its YAML, as `configs`."""
    known = yaml.safe_dump(header_of(facts) | header, sort_keys=False, allow_unicode=True)
    return "\n".join(["---", known + "---", "", *body_of(facts)]).rstrip() + "\n"


def header_of(facts: Facts) -> dict[str, Any]:
    """Return the keys of the header that facts give."""
    documents = facts.known("corpus.documents")
    sizes = (name for limit, name in (*SIZES, *LARGE, *LARGER) if documents < limit)
    codes = [row[0] for row in facts.known("corpus.languages") if CODE.fullmatch(row[0])]
    links = [str(facts.of(source, "link")) for source in facts.sources]
    hub = [link.removeprefix(HUB) for link in links if link.startswith(HUB)]
    license_id = facts.known("disclosure.license")
    found: Mapping[str, Any] = {
        "pretty_name": facts.known("disclosure.title"),
        "license": license_id.lower() if license_id else "unknown",
        "language": codes,
        "size_categories": [next(sizes, "n>1T")],
        "task_categories": ["text-generation"],
        "source_datasets": hub,
        "tags": ["tokenmill"],
    }
    return {key: value for key, value in found.items() if value}


def body_of(facts: Facts) -> list[str]:
    """Return the sections of the card."""
    told = {key: plain(facts.told(f"disclosure.{key}")) for key in TOLD}
    sizes = (f"{facts.known(f'corpus.{name}'):,}" for name in ("documents", "text_bytes", "tokens"))
    return [
        f"# {told['title']}",
        "",
        "{} documents, {} bytes of text, {} tokens.".format(*sizes) + f" State {facts.state}.",
        "",
        *(f"- **{key.capitalize()}:** {told[key]}" for key in TOLD if key != "title"),
        "",
        "## Sources",
        "",
        *table(("source", *SOURCE_KEYS), (source_row(facts, source) for source in facts.sources)),
        *table(
            ("source", "records read", "documents", "bytes of text", "tokens"),
            ([source, *numbers_of(facts, source)] for source in facts.sources),
        ),
        "## Languages",
        "",
        *markdown.languages(facts.known("corpus.languages")),
        *markdown.languages(facts.known("corpus.code_languages"), "language of code"),
        "## Licences of documents",
        "",
        *table(("source", "licence", "documents"), of_sources(facts, "licenses")),
        "## Curation",
        "",
        *table(("source", "removed for", "documents"), of_sources(facts, "removed")),
        "## Drawn for training",
        "",
        *markdown.drawn(facts),
        "## Personal and sensitive information",
        "",
        "Addresses, keys and other personal data are replaced in: "
        f"{plain(facts.known('corpus.redacted'))}.",
        "",
        *markdown.changed(facts),
    ]


def of_sources(facts: Facts, name: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table of each source, behind its name."""
    for source in facts.sources:
        for value, *numbers in facts.known(f"sources.{source}.{name}"):
            yield source, "not stated" if value is None else value, *numbers


TOLD = ("title", "provider", "contact", "version", "updated", "license", "link")
SOURCE_KEYS = ("provenance", "owner", "link", "collected", "purpose", "licence", "personal data")


def source_row(facts: Facts, source: str) -> Sequence[Any]:
    """Return what is told of a source."""
    keys = ("provenance", "owner", "link", "purpose", "license", "personal_data")
    told = {key: facts.of(source, key) for key in keys}
    dates = period(facts.of(source, "collected"))
    return (
        *(source, told["provenance"], told["owner"], told["link"], dates),
        *(told["purpose"], told["license"], told["personal_data"]),
    )


def numbers_of(facts: Facts, source: str) -> list[int]:
    """Return the sizes of a source."""
    names = ("records", "documents", "text_bytes", "tokens")
    return [facts.known(f"sources.{source}.{name}") for name in names]
