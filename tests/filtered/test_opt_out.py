"""Opt-outs by lists, robots.txt and ai.txt: whom they mean, and which parts a change concerns."""

from builders import open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build
from prelude import Any, Path, hashlib, json, pl, pytest
from tables import cases

from assets.filtered.asset import STAGE as FILTERED
from assets.filtered.asset import describe_filtered
from assets.filtered.filter_files import FilterFileError, load_filter_data
from assets.filtered.opt_out import (
    NO_DOMAIN,
    OptOut,
    count_by_domain,
    find_opted_out,
    registrable_domains,
)
from assets.filtered.score_counts import FilterData, provide
from assets.raw.asset import STAGE as RAW
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import AI_AGENTS
from resources.stage import Table
from resources.store.store import typed

NO_BOTS = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\nUser-agent: *\nDisallow: /own\n"
ALL_MAY = "User-agent: *\nAllow: /\n"


def opted_out(urls: list[str | None], **given: Any) -> list[int | None]:
    """Return the verdicts on URLs."""
    return find_opted_out(pl.Series(urls, dtype=pl.String), OptOut(**given)).to_list()


def snapshot(url: str, text: str, date: str = "2026-01-01") -> dict[str, str]:
    """Return a line of a file of snapshots."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"url": url, "date": date, "sha256": digest, "text": text}


def loaded(folder: Path, **rules: Any) -> OptOut:
    config = FilterConfig.model_validate({"rules": {"opt_out": rules}})
    return load_filter_data(config, folder).opt_out


def test_a_listed_domain_means_its_subdomains_and_a_listed_url_itself_alone() -> None:
    urls = ["https://a.org/x", "http://www.b.a.org", "https://aa.org/", "https://c.net/1/", None]
    listed = frozenset({"a.org", "c.net/1"})
    assert opted_out([*urls, "https://c.net/2"], listed=listed) == [1, 1, 0, 1, None, 0]


def test_an_agent_has_its_own_group_or_that_of_all() -> None:
    files = {"a.org": (NO_BOTS,)}
    urls: list[str | None] = ["https://a.org/", "https://a.org/own/1", "https://b.org/own/1"]
    assert opted_out(urls, files=files, agents=("GPTBot",)) == [1, 1, 0]
    assert opted_out(urls, files=files, agents=("Other",)) == [0, 1, 0]
    assert opted_out(urls, files=files, agents=AI_AGENTS) == [1, 1, 0]


def test_the_newest_snapshot_of_each_file_counts(tmp_path: Path) -> None:
    robots, ai = "https://a.org/robots.txt", "https://a.org/ai.txt"
    newer = snapshot(robots, ALL_MAY, "2026-03-01")
    write_jsonl(tmp_path / "taken/1.jsonl", [newer, snapshot(robots, NO_BOTS)])
    assert loaded(tmp_path, snapshots="taken").files == {"a.org": (ALL_MAY,)}
    write_jsonl(tmp_path / "taken/2.jsonl", [snapshot(ai, NO_BOTS, "2020-01-01")])
    assert loaded(tmp_path, snapshots="taken").files == {"a.org": (NO_BOTS, ALL_MAY)}
    assert loaded(tmp_path, snapshots="taken/1.jsonl").files == {"a.org": (ALL_MAY,)}


@cases("""
    changes                       | message
    {"sha256": "0" * 64}          | the snapshot is not as it was taken
    {"url": "https://a.org/page"} | no URL of a robots.txt or an ai.txt
    {"date": "yesterday"}         | date
""")
def test_a_wrong_snapshot_is_named(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    lines = [snapshot("https://b.org/ai.txt", ALL_MAY)]
    lines += [snapshot("https://a.org/robots.txt", ALL_MAY) | changes]
    write_jsonl(tmp_path / "s.jsonl", lines)
    with pytest.raises(FilterFileError, match=rf"s\.jsonl: line 2: .*{message}"):
        loaded(tmp_path, snapshots="s.jsonl")


def test_documents_are_counted_by_registrable_domain() -> None:
    urls = ["https://a.b.co.uk/1", "http://b.co.uk/2", "https://me.github.io/", "http://co.uk/"]
    counted = count_by_domain(pl.Series(urls))
    assert counted.rows() == [("b.co.uk", 2), (NO_DOMAIN, 1), ("me.github.io", 1)]


@pytest.mark.parametrize(
    "host", ["10.4.7.9", "7.9", "127.0x1", "0x7f.1", "[2001:db8::1]", "[::ffff:1.2.3.4]"]
)
def test_an_address_of_numbers_is_no_domain(host: str) -> None:
    named = registrable_domains(pl.Series([host, "4chan.org", "web.7.de"]))
    assert named.to_list() == [NO_DOMAIN, "4chan.org", "7.de"]


def computed(corpus: Any) -> dict[str, str]:
    manifest = corpus.store.newest("filtered", "prose")
    return {part.name: part.fingerprint for part in manifest.parts}


def under(folder: Path, listed: str | None) -> Any:
    """Filter two files of two sites under a list of domains; None: without the rule."""
    rules: dict[str, Any] = {"length": {"min_chars": 5}}
    if listed is not None:
        (folder / "listed.txt").write_text(listed)
        rules["opt_out"] = {"domains_file": "listed.txt"}
    corpus = open_corpus(write_corpus(folder, filters={"rules": rules}, part_bytes=2048))
    for name in ("one", "two"):
        lines = [{"url": f"https://www.{name}.org/{n}", "text": sentence(n, 80)} for n in range(5)]
        write_jsonl(folder / f"input/prose/{name}.jsonl", lines)
    build(corpus, [RAW, FILTERED])
    return corpus


def test_a_change_of_the_list_filters_the_parts_that_it_concerns_and_can_be_taken_back(
    tmp_path: Path,
) -> None:
    nobody = computed(under(tmp_path, "other.org\n"))
    corpus = under(tmp_path, "one.org\nother.org\n")
    manifest = corpus.store.newest("filtered", "prose")
    assert manifest.stats.rejected == {"opt_out.opted_out": 5}
    changed = {name for name, each in computed(corpus).items() if nobody[name] != each}
    assert 0 < len(changed) < len(nobody)
    described = describe_filtered(corpus, typed(manifest, FILTERED))["opted_out_by_domain"]
    assert isinstance(described, Table)
    assert described.rows == [("one.org", 5)]
    assert computed(under(tmp_path, "another.org\n")) == nobody


def test_configs_without_opt_outs_keep_their_fingerprints(tmp_path: Path) -> None:
    corpus = under(tmp_path, None)
    manifest = corpus.store.newest("filtered", "prose")
    assert "opt_out" not in json.dumps(manifest.config)
    assert manifest.parts[0].file("opted_out") is None


@cases("""
    record                                                            | is_out
    {"content_usage": "search=y, train-ai=n"}                         | 1
    {"content_signal": "ai-train=no"}                                 | 1
    {"content_usage": "train-ai=y", "content_signal": "ai-train=yes"} | 0
    {"other": "content_usage train-ai=n"}                             | 0
""")
def test_headers_that_raw_keeps_count(record: dict[str, str], is_out: int) -> None:
    meta = json.dumps(record)
    frame = pl.DataFrame(
        {"url": ["https://a.org/", None, None], "meta": [meta, None, meta]},
        schema_overrides={"meta": pl.String},
    )
    found = provide(frame, {"opted_out"}, FilterConfig(), FilterData())
    assert found["opted_out"].to_list() == [is_out, None, is_out or None]
