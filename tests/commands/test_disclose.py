"""`corpus disclose`: forms about the training content, each number with its query."""

import yaml
from builders import Build, deduped, open_corpus, sentence, write_corpus, write_jsonl
from huggingface_hub import DatasetCard
from prelude import Any, Path, json, pl, pytest, re
from verbs import Cli

from assets.mixed.mixture_files import read_mixture
from assets.text.table_rows import count_bytes
from pipeline_defs.commands.share.disclose import Form, render
from pipeline_defs.commands.share.gathered_facts import gather, most_named

pytestmark = pytest.mark.slow

HOSTILE = "Acme | <script>*x*\u202e\n# [y](http://z)"
DOMAINS = 30
SECRET = "the river of that town"  # every text has it


def text_of(number: int) -> str:
    """A text that is longer for lower numbers."""
    return " ".join(sentence(1000 + 100 * number + i, 40) for i in range(1 + (DOMAINS - number)))


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Three sources, of which `web` is a crawl of 30 domains, the larger first."""
    config = yaml.safe_load(write_corpus(tmp_path).read_text())
    pages = [
        {"text": text_of(n), "url": f"https://sub{n % 3}.site{n:02}.co.uk/page", "license": "MIT"}
        for n in range(DOMAINS)
    ]
    write_jsonl(tmp_path / "input/web/w.jsonl", [*pages, {"text": text_of(DOMAINS)}])
    config["sources"][0] |= {"owner": HOSTILE, "collected": ["2024-01", "2024-06"]}
    config["sources"].append({"name": "web", "where": "input/web/*", "provenance": "crawl"})
    config["phases"][0]["weights"]["web"] = 1
    config["disclosure"] = {"provider": HOSTILE, "updated": "2026-01-31"}
    path = tmp_path / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    monkeypatch.setenv("TOKENMILL_STORE", str(tmp_path / "store"))
    return open_corpus(path)


def test_totals_are_those_of_the_files_to_the_token_and_the_byte(corpus: Any, build: Build) -> None:
    build(corpus)
    build(corpus, "mixed")
    facts = gather(corpus)
    for source in ("prose", "notes", "web"):
        encoded = corpus.store.newest("tokenized", source)
        files = [corpus.store.part_file(encoded, part, "tokens") for part in encoded.parts]
        counted = sum(pl.read_ipc(file.checked())["tokens"].list.len().sum() for file in files)
        assert facts.known(f"sources.{source}.tokens") == counted > 0
        kept = pl.concat(deduped(corpus, source, "text", "license"))
        assert facts.known(f"sources.{source}.documents") == kept.height
        assert facts.known(f"sources.{source}.text_bytes") == count_bytes(kept["text"])
        assert sum(n for _, n in facts.known(f"sources.{source}.licenses")) == kept.height
        sizes = [row[1] for row in facts.known(f"sources.{source}.languages")]
        assert sum(sizes) == count_bytes(kept["text"])
    for name in ("documents", "text_bytes", "tokens"):
        of_each = [facts.known(f"sources.{source}.{name}") for source in facts.sources]
        assert facts.known(f"corpus.{name}") == sum(of_each)
    for phase in ("main", "late"):
        mixture = read_mixture(corpus.store, corpus.store.newest("mixed", phase))
        for each in mixture.sources:
            drawn = dict((row[0], row[1:]) for row in facts.known(f"sources.{each.name}.drawn"))
            assert drawn[phase] == [each.realised_tokens, each.epochs]
        assert [phase, mixture.tokens] in facts.known("corpus.drawn")


def test_every_fact_names_its_manifests_and_its_query(
    corpus: Any, build: Build, cli: Cli, tmp_path: Path
) -> None:
    build(corpus)
    out = tmp_path / "facts.json"
    explained = cli.out("disclose", "--form", "json", "--explain", "--out", str(out))
    for fact in json.loads(out.read_text())["facts"]:
        if fact["name"] == "corpus.takedowns":
            continue
        of_file = fact["manifests"] == ["pipeline.yaml"]
        assert of_file or "SELECT " in fact["query"], fact
        assert f"{fact['name']}: " in explained and fact["query"] in explained
        for path in fact["manifests"]:
            assert (tmp_path / ("" if of_file else "store") / path).is_file()
            assert path in explained


FORMS: tuple[Form, ...] = ("eu", "gpai", "ab2013", "hf", "croissant", "spdx", "json")


def test_a_form_has_no_text_no_markup_of_values_and_the_same_bytes(
    corpus: Any, build: Build, cli: Cli
) -> None:
    build(corpus)
    facts = gather(corpus)
    for form in FORMS:
        filled = render(form, facts)
        assert filled == cli.out("disclose", "--form", form) == render(form, gather(corpus))
        assert SECRET not in filled and "\u202e" not in filled
        assert "site29" not in filled  # the smallest domain
        head = filled[: filled.index("\n---\n")] if form == "hf" else filled
        is_for_people = form in ("eu", "gpai", "ab2013")
        assert ("UNKNOWN (set sources.web.owner)" in head) == is_for_people
        if form not in ("croissant", "spdx", "json"):
            assert "<script" not in filled and "[y](" not in filled and "\\*x\\*" in filled
            assert "01/2024 to 06/2024" in filled


def test_the_summary_has_the_sections_of_the_template(corpus: Any, build: Build) -> None:
    build(corpus)
    filled = render("eu", gather(corpus))
    sections = re.findall(r"^#+ ([123][.\d]*) ", filled, re.M)
    assert sections == [
        *("1.", "1.1.", "1.2.", "1.3.", "2.", "2.1.", "2.2.", "2.2.1.", "2.2.2."),
        *("2.3.", "2.4.", "2.5.", "2.6.", "3.", "3.1.", "3.2.", "3.3."),
    ]
    assert "crawlers used by the provider or on behalf of?** Yes" in filled
    assert "- **Training data size:** Less than 1 billion tokens: " in filled
    assert "the 3 largest of 30 by the size of the content (1 documents have none)" in filled
    assert "| site02.co.uk | 1 | " in filled and "site03" not in filled
    assert "(set sources.prose.provenance, sources.notes.provenance)" in filled


def test_the_card_is_one_of_the_hub(corpus: Any, build: Build) -> None:
    build(corpus)
    header = DatasetCard(render("hf", gather(corpus))).data.to_dict()
    assert header["license"] == "unknown" and header["language"] == ["en"]
    assert header["size_categories"] == ["n<1K"]


def test_what_is_unknown_is_left_out_of_forms_for_programs(corpus: Any, build: Build) -> None:
    build(corpus)
    facts = gather(corpus)
    name = f"tokenmill-{facts.state}"
    found = json.loads(render("croissant", facts))
    assert found["name"] == name and not found.keys() & {"license", "url", "version"}
    assert [each["prov:wasAttributedTo"] for each in found["prov:wasDerivedFrom"]][1:] == [[], []]
    assert "not stated: disclosure.title" in found["rai:dataLimitations"]
    packages = json.loads(render("spdx", facts))["@graph"]
    assert [each["name"] for each in packages if "dataset_datasetSize" in each] == [
        *(name, "prose", "notes", "web")
    ]
    assert not [each for each in packages if None in each.values() or "UNKNOWN" in str(each)]
    assert render("hf", facts).count(f"\n# {name}\n") == 1


def test_a_public_data_set_is_large_by_the_rule_that_the_summary_prints(
    corpus: Any, build: Build
) -> None:
    config = yaml.safe_load(corpus.config.read_text())
    for place in (0, 1):
        config["sources"][place]["provenance"] = "public"
    config["sources"][1]["where"] = "input/tiny/*"
    write_jsonl(corpus.config.parent / "input/tiny/t.jsonl", [{"text": sentence(5000)}])
    corpus.config.write_text(yaml.safe_dump(config))
    corpus = open_corpus(corpus.config)
    build(corpus)
    sizes = [gather(corpus).known(f"sources.{name}.text_bytes") for name in ("prose", "notes")]
    assert 0 < sizes[1] < 0.03 * sum(sizes)
    filled = render("eu", gather(corpus))
    assert "over 3% of the text of all publicly available datasets together:** prose\n" in filled


@pytest.mark.parametrize(
    ("domains", "sme", "named"),
    [
        (0, False, 0),
        (1, False, 1),
        (30, False, 3),
        (31, False, 4),
        (100, True, 5),
        (99999, True, 1000),
    ],
)
def test_the_largest_tenth_is_named_and_of_small_enterprises_less(
    domains: int, sme: bool, named: int
) -> None:
    assert most_named(domains, sme=sme) == named


def test_a_domain_is_named_at_the_cut_and_a_takedown_changes_the_next_form(
    corpus: Any, build: Build, cli: Cli, tmp_path: Path
) -> None:
    build(corpus)
    facts = gather(corpus)
    assert [row[0] for row in facts.known("crawled.domains")] == [
        "site00.co.uk",
        "site01.co.uk",
        "site02.co.uk",
    ]
    assert facts.known("crawled.num_domains") == 30
    assert facts.known("crawled.without_domain") == 1
    assert [row[0] for row in gather(corpus, sme=True).known("crawled.domains")] == [
        "site00.co.uk",
        "site01.co.uk",
    ]
    before = tmp_path / "before.json"
    cli.out("disclose", "--form", "json", "--out", str(before))

    cli.out("takedown", "--domain", "site01.co.uk", "--reason", "asked")
    assert "Run: corpus build" in cli.err(1, "disclose", "--form", "hf")
    build(corpus)
    assert [row[0] for row in gather(corpus).known("crawled.domains")] == [
        "site00.co.uk",
        "site02.co.uk",
        "site03.co.uk",
    ]
    filled = cli.out("disclose", "--form", "hf", "--since", str(before))
    changed = filled[filled.index("## Changes") :]
    assert "| crawled.domains | site01.co.uk 1" in changed and "site03.co.uk 1" in changed
    assert "| crawled.num_domains | 30 | 29 |" in changed
    assert "| sources.web.documents | 31 | 30 |" in changed and "prose.documents" not in changed


def test_what_is_no_disclosure_and_an_empty_store_are_told(
    corpus: Any, cli: Cli, build: Build, tmp_path: Path
) -> None:
    assert "No complete state of prose, notes, web" in cli.err(1, "disclose", "--form", "hf")
    build(corpus)
    wrong = str(tmp_path / "pipeline.yaml")
    assert "no facts of an earlier" in cli.err(2, "disclose", "--form", "hf", "--since", wrong)


def test_a_run_writes_the_summary_and_a_takedown_removes_it(
    corpus: Any, dagster_build: Build, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(corpus)
    found = dagster_build(corpus, "mixed").asset_materializations_for_node("disclosure")
    summary = corpus.store.root / "_previews/report/disclosure.md"
    assert found[0].metadata["path"].value == str(summary)
    told = json.loads(cli.out("disclose", "--form", "json"))["facts"]
    unknown = sum(fact["value"] is None for fact in told)
    assert found[0].metadata["unknown_facts"].value == unknown > 0
    assert summary.read_text("utf-8") == cli.out("disclose", "--form", "eu")
    cli.out("states", "gc", "--delete")
    assert summary.exists()

    cli.out("takedown", "--domain", "site01.co.uk", "--reason", "asked")
    assert not summary.exists()
    build(corpus)
    assert dagster_build(corpus, "mixed").success
    assert "site01" not in summary.read_text("utf-8") and "site03" in summary.read_text("utf-8")


def test_a_summary_that_fails_fails_no_run(
    corpus: Any, dagster_build: Build, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(corpus)
    monkeypatch.setattr("pipeline_defs.commands.share.disclose.gather", lambda _: 1 / 0)
    assert dagster_build(corpus, "mixed").success
