"""`spdx`: SPDX 3.0.1 with the Dataset profile: a package for the corpus, and for each source."""

from __future__ import annotations

from typing import Any

from pipeline_defs.commands.share.facts import Facts
from resources.errors import UsageError
from resources.store.records import to_json

CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"
NO_LICENSE = "https://spdx.org/rdf/3.0.1/terms/ExpandedLicensing/NoAssertionLicense"
PROFILES = ("core", "software", "dataset", "simpleLicensing")
DAY = len("2026-01-31")
SENSITIVE = {True: "yes", False: "no", None: "noAssertion"}
Element = dict[str, Any]


def render(facts: Facts) -> str:
    """Return the JSON-LD without what is unknown; UsageError without a date, which it must have."""
    updated = facts.known("disclosure.updated") or ""
    if len(updated) != DAY:
        raise UsageError("spdx must have a date. Set disclosure.updated to a day, as 2026-01-31")
    provider, at = iri(facts, "provider"), f"{updated}T00:00:00Z"
    corpus = {
        "name": facts.title,
        "dataset_datasetSize": facts.told("corpus.text_bytes"),
        "software_packageVersion": facts.known("disclosure.version"),
    }
    packages = [corpus, *(of_source(facts, source) for source in facts.sources)]
    ids = [iri(facts, name) for name in ("corpus", *facts.sources)]
    licenses = [facts.known("disclosure.license"), *(only(facts, s) for s in facts.sources)]
    graph: list[Element] = [
        {"@id": "_:made", "type": "CreationInfo", "specVersion": "3.0.1", "created": at}
        | {"createdBy": [provider]},
        {"type": "Organization", "spdxId": provider, "name": facts.known("disclosure.provider")},
        {"type": "SpdxDocument", "spdxId": iri(facts, "document"), "rootElement": ids[:1]}
        | {"profileConformance": PROFILES},
        related("contains", ids[0], ids[1:]),
    ]
    for package, spdx_id, name in zip(packages, ids, licenses, strict=True):
        dates = {"builtTime": at, "releaseTime": at, "originatedBy": [provider]}
        of_data = {"software_primaryPurpose": "data", "dataset_datasetType": ["text"]}
        kind = {"type": "dataset_DatasetPackage", "spdxId": spdx_id}
        graph.append(kind | dates | of_data | package)
        license_id = f"{spdx_id}:license" if name else NO_LICENSE
        if name:
            expression = {"simplelicensing_licenseExpression": name, "spdxId": license_id}
            graph.append({"type": "simplelicensing_LicenseExpression"} | expression)
        kinds = ("hasDeclaredLicense", "hasConcludedLicense")
        graph += (related(kind, spdx_id, [license_id]) for kind in kinds)
    known = ({k: v for k, v in each.items() if v is not None} for each in graph[1:])
    graph[1:] = [{"creationInfo": "_:made"} | element for element in known]
    return to_json({"@context": CONTEXT, "@graph": graph}).decode()


def iri(facts: Facts, name: str) -> str:
    """Return the id of an element."""
    return f"urn:tokenmill:{facts.state}:{name}"


def only(facts: Facts, source: str) -> str | None:
    """Return the licence of all documents of a source, None if there are several or none."""
    rows = facts.of(source, "licenses")
    return rows[0][0] if len(rows) == 1 else None


def related(kind: str, one: str, others: list[str]) -> Element:
    """Return a relationship of one element to others."""
    ends = {"from": one, "to": others, "relationshipType": kind}
    return {"type": "Relationship", "spdxId": f"{one}:{kind}"} | ends


def of_source(facts: Facts, source: str) -> Element:
    """Return what is told of a source."""
    keys = ("provenance", "owner", "collected", "crawler", "generator")
    link, purpose = (facts.known(f"sources.{source}.{key}") for key in ("link", "purpose"))
    collection = facts.stated(source, keys)
    is_personal = facts.known(f"sources.{source}.personal_data")
    removed = facts.of(source, "removed")
    return {
        "name": source,
        "software_downloadLocation": link,
        "dataset_datasetSize": facts.of(source, "text_bytes"),
        "dataset_dataCollectionProcess": "; ".join(f"{k}: {of}" for k, of in collection.items())
        or None,
        "dataset_intendedUse": purpose,
        "dataset_dataPreprocessing": [f"left out: {rule}, {n:,}" for rule, n in removed],
        "dataset_hasSensitivePersonalInformation": SENSITIVE[is_personal],
    }
