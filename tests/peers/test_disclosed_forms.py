"""Forms of `corpus disclose` in the formats of others, held to their validators."""

import msgspec
import yaml
from builders import Build, open_corpus, write_corpus
from format_folders import peer
from prelude import Any, Path, json, pytest

from pipeline_defs.commands.share.disclose import render
from pipeline_defs.commands.share.facts import Facts, PushedFile
from pipeline_defs.commands.share.gathered_facts import gather

FACTS = {"provenance": "crawl", "crawler": "Bot/1", "collected": ["2024-01", "2024-06-30"]}
YOU = {"title": "Sample", "updated": "2026-01-31", "version": "1.0", "link": "https://a.example/"}


def facts_of(folder: Path, build: Build, **disclosure: Any) -> Facts:
    """Facts about a small corpus: of one source all is told, of the other nothing."""
    config = yaml.safe_load(write_corpus(folder).read_text()) | {"disclosure": disclosure}
    config["sources"][0] |= FACTS | {"link": "https://a.example/prose", "license": "MIT"}
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    corpus = open_corpus(path)
    build(corpus)
    return gather(corpus)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of rdflib, in mlcroissant
def test_croissant_is_valid(tmp_path: Path, build: Build) -> None:
    croissant = peer("mlcroissant")
    file = PushedFile("data/prose/0.parquet", 12, "0" * 64)
    for you in (YOU, {}):
        facts = msgspec.structs.replace(facts_of(tmp_path, build, **you), files=(file,))
        metadata = croissant.Dataset(jsonld=json.loads(render("croissant", facts))).metadata
        assert not metadata.ctx.issues.errors
        assert [each.id for each in metadata.distribution] == [file.path]
        assert metadata.data_collection_type == ["Web Scraping"]
        assert metadata.ctx.conforms_to.value == "http://mlcommons.org/croissant/1.1"


def test_spdx_is_valid(tmp_path: Path, build: Build) -> None:
    spdx = peer("spdx_python_model").v3_0_1
    form = tmp_path / "spdx.json"
    form.write_text(render("spdx", facts_of(tmp_path, build, **YOU)))
    elements = spdx.SHACLObjectSet()
    with form.open("rb") as file:
        spdx.JSONLDDeserializer().read(file, elements)
    assert not elements.missing_ids
    names = {each.name for each in elements.foreach_type(spdx.dataset_DatasetPackage)}
    assert names == {"Sample", "prose", "notes"}
