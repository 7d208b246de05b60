"""Every record has one fate: with every feature, and in each mode, the fates add up."""

from unittest.mock import patch

import yaml
from builders import deduped, open_corpus, records, sentence, write_corpus, write_jsonl
from chat_corpus import TOKENS, write_chat_corpus
from every_stage import CONFIG, build, write_inputs
from prelude import Any, Counter, Iterator, Path, os, pl, pytest

from assets.deduped.document_files import read_kept_ids
from assets.mixed.phase_source_files import bucket_of
from assets.raw.asset import STAGE as RAW
from assets.sharded.shard_files import split_of
from assets.stages import used_stages
from assets.text.table_rows import count_bytes
from pipeline_defs.commands.look.find import document_fate
from pipeline_defs.commands.look.find_index import parts_of
from pipeline_defs.commands.main import main
from pipeline_defs.commands.share.gathered_facts import gather
from pipeline_defs.corpus_tables import newest_tables
from pipeline_defs.record_fates import Fate, fate_of

REFUSES = (
    "{% for m in messages %}{% if 'number 1' in m.content %}{{ raise_exception('no ones') }}"
    "{% endif %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% endfor %}"
)


def fates(corpus: Any) -> dict[str, Counter[Fate]]:
    """Return the documents of each fate by source, which add up to its records."""
    found: dict[str, Counter[Fate]] = {name: Counter() for name in corpus.settings.source_names()}
    for source, fate, _, _, documents, _ in newest_tables(corpus)["fates"].iter_rows():
        found[source][Fate(fate)] += documents
    for source, counts in found.items():
        assert counts.total() == corpus.store.newest("raw", source).stats.rows_in > 0
    return found


def found_fates(corpus: Any) -> Counter[tuple[str, Fate]]:
    """Return the documents of each source and fate, as `corpus find` tells them one by one."""
    found = Counter[tuple[str, Fate]]()
    for part in parts_of(corpus, "raw", []):
        for doc_id in read_kept_ids(part.documents):
            told = document_fate(corpus, part.source, part.record, doc_id)[0]
            found[part.source, next(fate for fate in Fate if told.startswith(fate))] += 1
    return found


def told_of_stages(corpus: Any) -> Counter[tuple[str, Fate]]:
    """Return the documents that `raw` keeps of each source and fate, as the table counts them."""
    found = Counter[tuple[str, Fate]]()
    for source, fate, stage, _, documents, _ in newest_tables(corpus)["fates"].iter_rows():
        found[source, Fate(fate)] += documents if stage != "raw" else 0
    return +found


def in_shards(corpus: Any, source: str, split: str = "") -> set[str]:
    """Return the ids of the documents with tokens in the newest shards of a split."""
    manifest = corpus.store.newest("sharded", source)
    parts = [part for part in manifest.parts if split_of(bucket_of(part) or "") == split]
    files = [f for part in parts for f in part.files if f.path.endswith(".parquet")]
    tables = [pl.read_parquet(corpus.store.path_of(manifest, file)) for file in files]
    return {each["doc_id"] for table in tables for row in table["spans"] for each in row}


def warc(kind: str, text: str) -> bytes:
    """A record of a WARC file."""
    page = f"<html><body><main><p>{text}</p></main></body></html>"
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}".encode()
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/{kind}\r\n"
    head += "Content-Type: application/http; msgtype=response\r\n"
    return f"{head}Content-Length: {len(http)}\r\n\r\n".encode() + http + b"\r\n\r\n"


@pytest.fixture(scope="module")
def of_texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Build a corpus in which texts have every fate."""
    tmp_path = tmp_path_factory.mktemp("texts")
    rules = CONFIG["filters"]["rules"] | {"opt_out": {"domains_file": "listed.txt"}}
    corpus = write_inputs(tmp_path, filters={"rules": rules})
    (tmp_path / "listed.txt").write_text("listed.example\n")
    said = {"text": sentence(500), "url": "https://listed.example/a"}
    taken = {"text": sentence(501), "url": "https://taken.example/a"}
    skipped = {"text": sentence(502), "is_wanted": "no"}
    short = [{"text": sentence(510 + n, 20)} for n in range(40)]  # each is in one of the others
    long = [f"{each['text']} {sentence(600 + n, 40)}" for n, each in enumerate(short)]
    kept = [{"text": text, "is_wanted": "yes"} for text in long]
    more = {"prose": [said, taken], "more": [skipped, *kept], "notes": short}
    for name, lines in more.items():
        write_jsonl(tmp_path / f"input/{name}/z.jsonl", lines)
    (tmp_path / "input/notes/w.warc").write_bytes(warc("request", "no") + warc("response", "yes"))
    config = yaml.safe_load(corpus.config.read_text())
    chosen = {"field_filter": {"is_wanted": "yes"}, "max_documents": 39}
    config["sources"].append({"name": "more", "where": "input/more/*", **chosen})
    corpus.config.write_text(yaml.safe_dump(config))
    corpus = open_corpus(corpus.config)
    build(corpus, [RAW])
    with patch.dict(os.environ, {"TOKENMILL_CONFIG": str(corpus.config)}):
        assert main(["takedown", "--url", "https://taken.example/a", "--reason", "asked"]) == 0
        build(corpus, used_stages(corpus.settings).values())
        yield corpus


def test_texts_of_every_fate_add_up(of_texts: Any) -> None:
    found = fates(of_texts)
    for source, counts in found.items():
        assert counts[Fate.IN_SHARDS] == len(in_shards(of_texts, source))
        assert counts[Fate.HELD_OUT] == len(in_shards(of_texts, source, "validation"))
    every = sum(found.values(), Counter())
    assert {*Fate} - {*every} == {Fate.REFUSED, Fate.IN_NO_SHARD}
    assert (every[Fate.NOT_A_DOCUMENT], every[Fate.TAKEN_DOWN]) == (1, 1)


def test_every_document_is_told_the_fate_that_is_counted(of_texts: Any) -> None:
    assert found_fates(of_texts) == told_of_stages(of_texts)


def test_forms_tell_of_the_documents_in_training_shards(of_texts: Any) -> None:
    facts, every = gather(of_texts), sum(fates(of_texts).values(), Counter())
    sizes = Counter[str]()
    for source in facts.sources:
        kept = pl.concat(deduped(of_texts, source, "doc_id", "text"))
        trained = kept.filter(pl.col("doc_id").is_in(list(in_shards(of_texts, source))))
        sizes[source] = count_bytes(trained["text"])
        assert facts.known(f"sources.{source}.text_bytes") == sizes[source] > 0
        assert facts.known(f"sources.{source}.documents") == trained.height < kept.height
        removed = sum(n for _, n in facts.known(f"sources.{source}.removed"))
        assert facts.known(f"sources.{source}.records") - removed - trained.height in (0, 1)
    assert facts.known("corpus.documents") == every[Fate.IN_SHARDS]
    assert facts.known("corpus.text_bytes") == sizes.total()
    of_languages = facts.known("corpus.languages")
    assert facts.known("corpus.tokens") == sum(tokens for *_, tokens in of_languages)
    assert {fate: n for fate, n, _ in facts.known("corpus.fates")} == every
    assert {what for _, what, _ in facts.rows("cut")} >= {"characters by substrings"}


def test_conversations_that_are_refused_or_too_long_add_up(tmp_path: Path) -> None:
    tokenizer = {"vocab_size": 320, "special_tokens": TOKENS, "chat_template": REFUSES}
    buckets = {"mode": "pack", "sequence_length": 256, "long_conversations": "drop"}
    corpus = open_corpus(write_chat_corpus(tmp_path, tokenizer=tokenizer, buckets=buckets))
    config = yaml.safe_load(corpus.config.read_text())
    config["sources"][1]["max_bad_share"] = 0.5
    corpus.config.write_text(yaml.safe_dump(config))
    corpus = open_corpus(corpus.config)
    build(corpus, used_stages(corpus.settings).values())
    found = fates(corpus)
    assert all(
        counts[Fate.IN_SHARDS] == len(in_shards(corpus, name)) for name, counts in found.items()
    )
    rows = newest_tables(corpus)["fates"].filter(fate=Fate.REFUSED)
    assert {*rows["reason"]} == {"refused_by_template", "long_conversation"}
    assert found["asked"][Fate.UNREADABLE] > 0
    assert found_fates(corpus) == told_of_stages(corpus)


@pytest.mark.parametrize(
    "buckets",
    [
        {"mode": "pack", "sequence_length": 64, "long_documents": "truncate"},
        {"mode": "decompose", "sequence_length": 64, "min_length": 16},
    ],
)
def test_documents_that_sequences_cut_add_up(tmp_path: Path, buckets: dict[str, Any]) -> None:
    corpus = open_corpus(write_corpus(tmp_path, buckets=buckets, holdout={"share": 0.1}))
    build(corpus, used_stages(corpus.settings).values())
    for source, counts in fates(corpus).items():
        assert counts[Fate.IN_SHARDS] == len(in_shards(corpus, source))
        assert counts[Fate.HELD_OUT] == len(in_shards(corpus, source, "validation"))
    tables = newest_tables(corpus)
    assert {*tables["cuts"]["cut"]} == (
        {"tokens by sequences"} if "long_documents" in buckets else set()
    )
    assert all(tables["fates"].filter(fate=Fate.IN_SHARDS)["tokens"])


def test_what_the_next_stage_has_not_read_is_in_no_shard(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    assert newest_tables(corpus)["fates"].is_empty()
    build(corpus, used_stages(corpus.settings).values())
    assert not fates(corpus)["notes"][Fate.IN_NO_SHARD]
    write_jsonl(tmp_path / "input/notes/new.jsonl", records(sentence(700)))
    build(corpus, [RAW])
    assert fates(corpus)["notes"] == {Fate.IN_NO_SHARD: 42}
    assert fates(corpus)["prose"][Fate.IN_SHARDS] == len(in_shards(corpus, "prose"))


@pytest.mark.parametrize(
    ("stage", "reason", "fate"),
    [
        ("raw", "request_record", Fate.NOT_A_DOCUMENT),
        ("raw", "over_size_cap", Fate.LEFT_OUT),
        ("filtered", "opt_out.agents", Fate.LEFT_OUT),
        ("filtered", "taken_down", Fate.TAKEN_DOWN),
        ("filtered", "length.too_short", Fate.REJECTED),
        ("deduped", "contaminated", Fate.CONTAMINATED),
        ("deduped", "lines", Fate.REJECTED),
        ("tokenized", "no_tokens", Fate.REJECTED),
        ("tokenized", "refused_by_template", Fate.REFUSED),
        ("bucketed", "like_held_out", Fate.LIKE_HELD_OUT),
    ],
)
def test_a_reason_has_one_fate(stage: str, reason: str, fate: Fate) -> None:
    assert fate_of(stage, reason) is fate
