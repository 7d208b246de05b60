"""`croissant`: Croissant 1.1, as JSON-LD, with provenance by PROV-O and the vocabulary of RAI."""

from __future__ import annotations

from typing import Any

from pipeline_defs.commands.share.facts import Facts, PushedFile, as_text
from resources.store.records import to_json

PREFIXES = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "conformsTo": "dct:conformsTo",
}
CONFORMS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
COLLECTION = {"crawl": "Web Scraping", "user": "User-generated content data"}


def render(facts: Facts) -> str:
    """Return the JSON-LD; what is not told is named in rai:dataLimitations."""
    sizes = [facts.told(f"corpus.{name}") for name in ("documents", "text_bytes", "tokens")]
    untold = [f"UNKNOWN (set {fact.name})" for fact in facts.facts if fact.value is None]
    removed = (f"{source}: {rule}, {n:,} documents" for source, rule, n in facts.rows("removed"))
    of_each = {name: about(facts, name) for name in ("purpose", "personal_data", "provenance")}
    kinds = {facts.of(source, "provenance") for source in facts.sources}
    periods = [facts.known(f"sources.{source}.collected") or () for source in facts.sources]
    updated = facts.known("disclosure.updated")
    found = {
        "@context": PREFIXES,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": facts.you("title"),
        "description": "{:,} documents, {:,} bytes of text, {:,} tokens.".format(*sizes),
        "license": facts.you("license"),
        "url": facts.you("link"),
        "creator": {"@type": "sc:Organization", "name": facts.you("provider")},
        **({"datePublished": updated} if updated else {}),
        "version": facts.you("version"),
        "inLanguage": [row[0] for row in facts.told("corpus.languages")],
        "distribution": [*map(distributed, facts.files)],
        "prov:wasDerivedFrom": [entity(facts, source) for source in facts.sources],
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": f"tokenmill, state {facts.state}",
        },
        "rai:dataCollection": "; ".join(of_each["provenance"]),
        "rai:dataCollectionType": sorted({COLLECTION.get(kind, "Others") for kind in kinds}),
        "rai:dataCollectionTimeframe": sorted({date for dates in periods for date in dates}),
        "rai:dataPreprocessingProtocol": [*removed],
        "rai:personalSensitiveInformation": of_each["personal_data"],
        "rai:dataUseCases": of_each["purpose"],
        "rai:dataBiases": facts.you("bias"),
        "rai:dataLimitations": untold,
    }
    return to_json(found).decode()


def about(facts: Facts, key: str) -> list[str]:
    """Return what is told of each source."""
    return [f"{source}: {as_text(facts.of(source, key))}" for source in facts.sources]


def entity(facts: Facts, source: str) -> dict[str, Any]:
    """Return a source as an entity of PROV-O."""
    crawlers = facts.known(f"sources.{source}.crawler") or ()
    models = facts.known(f"sources.{source}.generator") or ()
    agents = [facts.of(source, "owner"), *crawlers, *models]
    return {
        "@id": facts.known(f"sources.{source}.link") or f"urn:tokenmill:{facts.state}:{source}",
        "@type": "prov:Entity",
        "prov:label": source,
        "prov:wasAttributedTo": [{"@type": "prov:Agent", "prov:label": name} for name in agents],
    }


def distributed(file: PushedFile) -> dict[str, str]:
    """Return a file that is published beside the form."""
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "sha256": file.sha256,
        "encodingFormat": "application/vnd.apache.parquet",
    }
