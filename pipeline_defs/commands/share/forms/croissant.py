"""`croissant`: Croissant 1.1, as JSON-LD, with provenance by PROV-O and the vocabulary of RAI."""

from __future__ import annotations

from typing import Any

from pipeline_defs.commands.share.facts import Facts, PushedFile
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
    """Return the JSON-LD; what is not told is left out, and named in rai:dataLimitations."""
    sizes = [facts.told(f"corpus.{name}") for name in ("documents", "text_bytes", "tokens")]
    untold = [f"not stated: {fact.name}" for fact in facts.facts if fact.value is None]
    removed = (f"{source}: {rule}, {n:,} documents" for source, rule, n in facts.rows("removed"))
    of_each = {name: about(facts, name) for name in ("purpose", "personal_data", "provenance")}
    kinds = {kind for s in facts.sources if (kind := facts.known(f"sources.{s}.provenance"))}
    periods = [facts.known(f"sources.{source}.collected") or () for source in facts.sources]
    you = {key: facts.known(f"disclosure.{key}") for key in ("license", "link", "version", "bias")}
    provider, updated = facts.known("disclosure.provider"), facts.known("disclosure.updated")
    found = {
        "@context": PREFIXES,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": facts.title,
        "description": "{:,} documents, {:,} bytes of text, {:,} tokens.".format(*sizes),
        "license": you["license"],
        "url": you["link"],
        "creator": provider and {"@type": "sc:Organization", "name": provider},
        "datePublished": updated,
        "version": you["version"],
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
        "rai:dataBiases": you["bias"],
        "rai:dataLimitations": untold,
    }
    return to_json({key: value for key, value in found.items() if value is not None}).decode()


def about(facts: Facts, key: str) -> list[str]:
    """Return what is told of each source."""
    told = ((source, facts.stated(source, [key])) for source in facts.sources)
    return [f"{source}: {of[key]}" for source, of in told if of]


def entity(facts: Facts, source: str) -> dict[str, Any]:
    """Return a source as an entity of PROV-O."""
    crawlers = facts.known(f"sources.{source}.crawler") or ()
    models = facts.known(f"sources.{source}.generator") or ()
    owner = facts.known(f"sources.{source}.owner")
    agents = [*([owner] if owner else []), *crawlers, *models]
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
