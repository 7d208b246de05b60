"""A mistake in config or input ends a dry run with code 2 and one sentence; a build fails on it.

`fails_at` is the stage at which a build fails; at `config` it is refused.
"""

import io

import dagster as dg
import yaml
from builders import Build, open_corpus, write_corpus
from prelude import Any, Path, json, os, pl, pytest, time
from range_site import range_site
from served import Answering, served
from tables import cases
from verbs import Cli

from assets.filtered.language.detect_language import FAMILIES, LANGUAGES
from pipeline_defs.commands.build import first_look
from resources.settings.filtering.language_rules import codes_by_spelling

CHAT_TOKENS = "{special_tokens: [<|endoftext|>, <|im_start|>, <|im_end|>]}"
TURNS = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "A river."}]
LFS_POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"


def table(write: str) -> bytes:
    """A table of two columns as a file."""
    written = io.BytesIO()
    getattr(pl.DataFrame({"n": [1, 2], "body": ["one", "two"]}), write)(written)
    return written.getvalue()


FILES: dict[str, bytes] = {  # contents by name
    "csv": table("write_csv"),
    "parquet": table("write_parquet"),
    "cut parquet": table("write_parquet")[:-9],
    "numbers": b'{"text": 5}\n' * 9,
    "no text": b'{"id": 1, "text": null}\n' * 9,
    "chats": json.dumps({"messages": TURNS}).encode() + b"\n",
    "asked": b'{"messages": [{"role": "user", "content": "Why?"}]}\n' * 9,
    "plain": b"no gzip\n",
    "lfs": LFS_POINTER.encode(),
    "utf-16": '{"text": "a"}\n'.encode("utf-16"),
    "latin-1": '{"text": "café"}\n'.encode("latin-1"),
    "array": b'[{"text": "a"}]\n',
    "syntax": b"def (",
    "brace": b"{}",
}

MISTAKES = cases(
    """
    mistake | change
    | fails_at | words
    misspelt key | {dedpu: {}}
    | config | dedpu: unknown key (did you mean 'dedup'?)
    misspelt source key | {source: {textfield: body}}
    | config | unknown key (did you mean 'text_field'?)
    YAML that is cut | {text: "store: ["}
    | config | not valid YAML
    key given twice | {text: "store: other"}
    | config | key 'store' given twice
    unknown preset | {filters: {presets: [balancd]}}
    | config | did you mean 'balanced'?
    unknown group | {filters: {rules: {gopher_qualty: {}}}}
    | config | did you mean 'gopher_quality'?
    unknown rule | {filters: {rules: {length: {min_char: 3}}}}
    | config | did you mean 'min_chars'?
    word for a number | {tokenizer: {vocab_size: many}}
    | config | vocab_size: Input should be a valid integer
    value out of range | {part_bytes: 5}
    | config | part_bytes: Input should be greater
    unknown source | {phases: [{name: m, weights: {prose: 1, nots: 1}}]}
    | config | weights.nots: unknown source (did you mean 'notes'?)
    name used twice | {source: {name: prose}}
    | config | 'prose' is used before; rename one
    no phase | {phases: []}
    | config | phases: Tuple should have at least 1 item
    unknown bucket | {phases: [{name: m, weighting: natural, buckets: [x]}]}
    | config | unknown bucket; the buckets are
    unknown format | {shards: {formats: [megatorn]}}
    | config | 'megatorn' is not one of the formats
    missing tokenizer | {tokenizer: {path: none.json}}
    | config | tokenizer.path: no file 'none.json'
    missing ledger | {dedup: {ledger: none.json}}
    | config | dedup.ledger: no file 'none.json'
    missing custom rules | {source: {filters: {custom: none.py}}}
    | config | none.py
    name of a language | {source: {language: english}}
    | config | 'english' is no code of a language (did you mean 'en'?)
    misspelt language | {source: {language: "en,germann"}}
    | config | did you mean 'de'?
    code of a country | {source: {language: jp}}
    | config | did you mean 'ja'?
    code with 3 letters | {source: {language: eng_Latn}}
    | config | did you mean 'en'?
    unknown language | {source: {language: xx}}
    | config | 'xx' is no language that the detector knows (af als am
    required of nothing | {source: {require_language: true}}
    | config | require_language: true, but `language` is None
    rule without model | {source: {filters: {rules: {quality: {min_score: 1}}}}}
    | config | needs a classifier
    rule on no language | {source: {domain: code, filters: {rules: {language: {min_score: 1}}}}}
    | config | language detection is off here
    unknown good source | {classifier: {good: [prose], bad: [nots]}}
    | config | classifier.bad[0]: unknown source (did you mean 'notes'?)
    chats in Markdown | {source: {kind: chat, format: md}}
    | config | which md has not
    chats without tokens | {source: {kind: chat}}
    | config | needs <|im_start|>, <|im_end|>
    key of the hub | {source: {split: train}}
    | config | split: `where` names no dataset of the hub
    key of streams | {source: {stream_field: json, max_entries: 9}}
    | config | stream_field, max_entries: `where` names no stream
    long separator | {source: {separator: ";;"}}
    | config | is not one ASCII character
    columns without text | {source: {columns: [id]}}
    | config | columns: 'text' of text_field is missing
    broken filter | {source: {field_filter: "n > 3"}}
    | config | is not of the form
    unknown scheme | {source: {where: "ftp://host/x.jsonl"}}
    | raw | ftp:// is not supported
    missing file | {source: {where: none.jsonl}}
    | raw | no input file matches 'none.jsonl'
    glob of nothing | {source: {where: "input/notes/*.csv"}}
    | raw | no input file matches 'input/notes/*.csv'
    unread format | {source: {where: pdf}, files: {pdf/a.pdf: plain}}
    | raw | no reader for its format
    unknown ending | {source: {where: a.odd}, files: {a.odd: plain}}
    | raw | the format of 'a.odd' cannot be told from its name
    host without name | {source: {where: "http://nowhere.invalid/x.jsonl"}}
    | raw | source 'notes', http://nowhere.invalid
    hub without network | {source: {where: "hf://nobody/nothing"}}
    | raw | source 'notes', hf://nobody/nothing
    bucket without keys | {source: {where: "s3://nothing/x.jsonl"}}
    | raw | source 'notes', s3://nothing
    wrong text field | {source: {text_field: body}}
    | raw | none of 41 records looked at is a document: input/notes/n.jsonl, byte 0: text
    wrong nested field | {source: {text_field: text.body}}
    | raw | text field `text.body` is missing (fields: text)
    no column of a table | {source: {where: a.parquet}, files: {a.parquet: parquet}}
    | raw | no column `text`; columns: n, body
    no column of CSV | {source: {where: a.csv}, files: {a.csv: csv}}
    | raw | no column `text`; columns: n, body
    text is a number | {source: {where: a.jsonl}, files: {a.jsonl: numbers}}
    | raw | text field `text` is int, expected a string
    text is null | {source: {where: a.jsonl}, files: {a.jsonl: no text}}
    | raw | text field `text` is null, expected a string
    chats as text | {source: {where: a.jsonl, text_field: messages}, files: {a.jsonl: chats}}
    | raw | Set `kind: chat` for lists of messages
    texts as chats | {source: {kind: chat}, tokenizer: CHAT_TOKENS}
    | raw | text field `messages` is missing (fields: text)
    chats of one side
    | {source: {where: a.jsonl, kind: chat}, files: {a.jsonl: asked}, tokenizer: CHAT_TOKENS}
    | raw | chat has no assistant's message
    wrong id field | {source: {id_field: uid}}
    | raw | none of 41 records looked at has an id in `id_field: uid` (fields: text)
    filter of no field | {source: {field_filter: "meta.lang = en"}}
    | raw | none of 41 records looked at has 'meta.lang' of `field_filter` (fields: text)
    wrong format | {source: {where: a.jsonl, format: parquet}, files: {a.jsonl: numbers}}
    | raw | Parquet file cannot be opened
    table that is cut | {source: {where: a.parquet}, files: {a.parquet: cut parquet}}
    | raw | Parquet file cannot be opened
    Git LFS pointer | {source: {where: a.parquet}, files: {a.parquet: lfs}}
    | raw | this is a Git LFS pointer: run `git lfs pull`
    no gzip | {source: {where: a.jsonl.gz}, files: {a.jsonl.gz: plain}}
    | raw | this is plain text: remove .gz from the file's name
    UTF-16 | {source: {where: a.jsonl}, files: {a.jsonl: utf-16}}
    | raw | this is UTF-16: convert it
    Latin-1 | {source: {where: a.jsonl}, files: {a.jsonl: latin-1}}
    | raw | not valid UTF-8
    array for lines | {source: {where: a.jsonl}, files: {a.jsonl: array}}
    | raw | Expected `object`, got `array`
    broken custom rules | {source: {filters: {custom: r.py}}, files: {r.py: syntax}}
    | config | r.py
    unknown custom rule | {source: {filters: {rules: {custom: {min_x: 3}}}}}
    | config | min_x
    no tokenizer.json | {tokenizer: {path: t.json}, files: {t.json: brace}}
    | config | not a tokenizer.json that `tokenizers` can read
    missing test set
    | {dedup: {decontamination: {sets: [{name: e, where: none.jsonl, fields: [q]}]}}}
    | evaluation | evaluation set 'e': no input file matches 'none.jsonl'
    """
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up on requests at once."""
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "0")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small corpus, whose config the environment names."""
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    return tmp_path


def make(folder: Path, change: Any) -> Path:
    """Change the config, its source `notes`, and files; return the config's path."""
    changes = yaml.safe_load(change.replace("CHAT_TOKENS", CHAT_TOKENS))
    config = folder / "pipeline.yaml"
    content = yaml.safe_load(config.read_text())
    source, files, text = (changes.pop(key, {}) for key in ("source", "files", "text"))
    content["sources"][1] |= source
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        content[key] = content[key] | value if both else value
    for name, kind in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(FILES[kind])
    config.write_text(yaml.safe_dump(content, sort_keys=False) + (text or ""))
    return config


@MISTAKES
def test_a_mistake_is_one_sentence_of_a_dry_run_and_fails_a_build(
    folder: Path, cli: Cli, build: Build, mistake: str, change: str, fails_at: str, words: str
) -> None:
    config = make(folder, change)

    began = time.monotonic()
    (told,) = cli.err(2, "build", "--dry-run").splitlines()

    assert words in told and time.monotonic() - began < 30
    assert not (folder / "store").exists()
    if fails_at == "config":
        assert told.endswith(cli.err(2, "build").rstrip())  # and nothing was compiled
        return
    with pytest.raises(dg.Failure):
        build(open_corpus(config), "raw", fails_at)


def test_a_mix_that_asks_for_more_than_there_will_be_is_not_yet_known(
    folder: Path, cli: Cli
) -> None:
    make(folder, "{phases: [{name: m, weights: {prose: 1, notes: 1}, tokens: 100000000}]}")
    told = cli.out("build", "--dry-run")
    assert "mixed[m]: not yet known: whether its sources will have the tokens that it" in told


def test_a_filter_that_first_records_do_not_pass_is_not_yet_known(folder: Path, cli: Cli) -> None:
    make(folder, "{source: {field_filter: 'text = none'}}")
    told = cli.out("build", "--dry-run")
    assert "raw[notes]: not yet known: none of 41 records looked at passes `field_filter`" in told


def test_records_may_all_be_bad_where_the_source_says_so(folder: Path, cli: Cli) -> None:
    make(folder, "{source: {text_field: body, max_bad_share: 1}}")
    cli.out("build", "--dry-run")


def test_files_that_are_published_are_not_looked_at(
    folder: Path, cli: Cli, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(open_corpus(folder / "pipeline.yaml"), "raw")
    monkeypatch.setattr(first_look, "read_records", None)
    cli.out("build", "--dry-run")


def test_records_behind_a_url_are_looked_at_by_ranges_and_nothing_is_kept(
    folder: Path, cli: Cli
) -> None:
    with range_site() as site:
        site.files["a.jsonl"] = b'{"text": "one"}\n' * 9
        make(folder, f"{{source: {{where: '{site.url('a.jsonl')}'}}}}")
        told = cli.out("build", "--dry-run")
        assert "raw[notes]: not yet known: what is behind its URLs" in told
        make(folder, "{source: {text_field: body}}")
        (told,) = cli.err(2, "build", "--dry-run").splitlines()
    assert "none of 9 records looked at is a document" in told
    assert not (folder / "store").exists()


def test_doctor_looks_at_first_records_too(folder: Path, cli: Cli) -> None:
    make(folder, "{source: {text_field: body}}")
    told = cli.out("doctor", "--port", "0", code=1).splitlines()
    assert "ok       source prose: 2 files, the first records are documents" in told
    (fault,) = (line for line in told if line.startswith("fault"))
    assert fault.startswith("fault    source notes: none of 41 records looked at is a document")


@pytest.mark.parametrize("verb", [("build", "--dry-run"), ("doctor",), ("try", "hf://no/one")])
def test_looks_give_up_soon_without_a_network(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.delenv("TOKENMILL_RETRY_SECONDS")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    make(folder, "{source: {where: 'hf://no/one'}}")
    began = time.monotonic()
    told = cli.printed(verb, code=1 if verb == ("doctor",) else 2)
    assert "hf://no/one" in told.out + told.err and time.monotonic() - began < 30
    assert "TOKENMILL_RETRY_SECONDS" not in os.environ


@pytest.mark.slow
@cases("""
change
{source: {text_field: body}}
{source: {id_field: uid}}
{source: {where: none.jsonl}}
{source: {where: a.parquet}, files: {a.parquet: lfs}}
""")
def test_the_command_fails_where_its_dry_run_does(folder: Path, cli: Cli, change: str) -> None:
    make(folder, change)
    cli.err(2, "build", "--dry-run")
    cli.err(1, "build")


def test_the_codes_of_languages_are_those_of_the_detectors() -> None:
    detected = {code for codes in LANGUAGES.values() for code in codes.split()}
    detected |= {code for family in FAMILIES for code in family.split()}
    assert {*codes_by_spelling().values()} == detected
    assert all(codes_by_spelling()[code] == code for code in detected)


@pytest.mark.parametrize("status", [403, 503])
def test_a_look_at_a_store_that_refuses_ends_in_its_sentence(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    class Refusing(Answering):
        def do_GET(self) -> None:
            self.answer(status, {"Content-Length": "0"}, b"")

    make(folder, "{store: s3://corpora/web}")
    monkeypatch.delenv("TOKENMILL_RETRY_SECONDS")
    names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION")
    for name, value in {**dict.fromkeys(names, "any"), "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with served(Refusing) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        for verb in ("summary", "status"):
            begun = time.monotonic()
            (told,) = (line for line in cli.err(1, verb).splitlines() if "again" not in line)

            assert "could not be listed: " in told and "Check the" in told
            assert f"HTTP {status}" in told or status == 503  # a busy machine may lose the last try
            assert time.monotonic() - begun < 30
