"""Every mistake in pipeline.yaml is named with its line, key path, value and what is allowed."""

from prelude import Path, pytest
from tables import cases

from resources.settings.faults import inner_model
from resources.settings.filtering.presets import lay_over
from resources.settings.pipeline import (
    CONFIG_VARIABLE,
    STORE_VARIABLE,
    Settings,
    SettingsError,
    check_ledger,
    config_path,
    load_settings,
    store_root,
)

REPOSITORY = Path(__file__).parents[2]
DOMAINS = "'general', 'web', 'code', 'reference', 'science', 'books' or 'medical'"
BELOW = "greater than or equal to 0 (got -5) (in source 'web')"
GOOD = """\
store: out
sources:
  - name: web
    where: data/*.jsonl
  - name: books
    where: [a.txt, b.txt]
phases:
  - name: general
    weights: {web: 1, books: 2}
"""


def load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """The lines of the error, without the folder."""
    with pytest.raises(SettingsError) as error:
        load(tmp_path, text)
    return str(error.value).replace(f"{tmp_path}/", "").splitlines()


def with_source(option: str) -> str:
    """The good file with one more line for the first source: line 4."""
    return GOOD.replace("    where: data", f"    {option}\n    where: data")


def test_good_file_loads_with_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD)
    assert loaded.source_names() == ["web", "books"]
    assert loaded.phase_names() == ["general"]
    assert loaded.source("books").where == ("a.txt", "b.txt")
    assert loaded.phase("general").weights == {"web": 1, "books": 2}
    assert (loaded.keep_manifests, loaded.part_bytes, loaded.engine.kind) == (3, 64 << 20, "auto")


@cases("""
    buckets                                     | tokens
    "{}"                                        | 8 << 20
    {mode: buckets}                             | 8 << 20
    {sequence_length: 8192}                     | 8 << 20
    {sequence_length: 16384}                    | 16 << 20
    {sequence_length: 131072}                   | 32 << 20
    {sequence_length: 131072, window_tokens: 5} | 5
""")
def test_windows_have_a_thousand_sequences_within_limits(
    tmp_path: Path, buckets: str, tokens: int
) -> None:
    loaded = load(tmp_path, f"{GOOD}buckets: {buckets}\n").buckets

    assert loaded.window_tokens == tokens
    assert loaded.model_dump(mode="json")["window_tokens"] == tokens  # as fingerprints know it


def test_shipped_pipeline_loads_and_finds_its_files() -> None:
    loaded = load_settings(REPOSITORY / "pipeline.yaml")
    assert {"general", "anneal"} == set(loaded.phase_names())
    for source in loaded.sources:
        assert all(list(REPOSITORY.glob(pattern)) for pattern in source.where)
        assert loaded.filters_for(source.name)


@cases(
    r"""
    at | text | expected
    file | tokeniser: {} | 10: tokeniser: unknown key (did you mean 'tokenizer'?); allowed here: a
    file | xyz: 1 | 10: xyz: unknown key; allowed here: annotations, buckets, classifier, compr
    file | "dedup:\n  bnads: 3" | 11: dedup.bnads: unknown key (did you mean 'bands'?); allowed here
    file | tokenizer: {vocab_size: 3} | 10: tokenizer.vocab_size: Input should be greater than or
    file | keep_manifests: many | "10: keep_manifests: Input should be a valid integer, unable to "
    file | engine: {kind: dask}
    | 10: engine.kind: Input should be 'auto', 'in_process', 'processes' or 'ray'
    file | "buckets:\n  edges: [4, 2]" | 11: buckets.edges: must be finite and ascending, got [4, 2]
    file | shards: {formats: [csv]}
    | "10: shards.formats[0]: 'csv' is not one of the formats here: parquet, megatron, "
    file | filters: {rules: {lenght: {}}} | 10: filters.rules.lenght: unknown key (did you mean 'le
    file | filters: {presets: [gopher-qualty]}
    | 10: filters: unknown preset 'gopher-qualty' (did you mean 'gopher-quality'?)
    file | "dedup:\n  priority:\n  - books\n  - wbe"
    | 13: dedup.priority[1]: unknown source (did you mean 'web'?); the sources are web, bo
    file | "dedup:\n  verify: none\n  threshold: 0.9"
    | 10: dedup: threshold 0.9 does nothing without verify: set
    file | "dedup:\n  rehydration: fineweb2"
    | 11: dedup.rehydration: unknown key: it was removed, since nothing read its column
    file | dedup: {fields: [lang]} | 10: dedup.fields[0]: String should match pattern '^(url|id
    file | "filters:\n  words: {obfuscation: false}"
    | 11: filters.words.obfuscation: unknown key: it was removed, since disguised words (sh
    file | "tokenizer:\n  trainer: auto"
    | 11: tokenizer.trainer: unknown key: it was removed, since `tokenizers` trains every
    file | quality: {good: [web], bad: [books]}
    | 10: quality: unknown key: it was renamed; write `classifier` instead
    file | filters: {quality: {}}
    | 10: filters.quality: unknown key; allowed here: custom, custom_files, fast
    file | classifier: {good: [web], bad: [books, wbe]}
    | 10: classifier.bad[1]: unknown source (did you mean 'web'?); the sources are web, bo
    file | tokenizer: {weights: {wbe: 1}}
    | 10: tokenizer.weights.wbe: unknown source (did you mean 'web'?); the sources are web
    file | part_bytes: 1 | 10: part_bytes: Input should be greater than or equal to 1024 (got 1)
    file | filters: null | 10: filters: Input should be a valid dictionary or instance of Filter
    source | langauge: en | 4: sources[0].langauge: unknown key (did you mean 'language'?)
    source | language: no | 4: sources[0].language: Input should be a valid string (got False)
    source | domain: poems
    | "4: sources[0].domain: Input should be " + DOMAINS
    source | filters: {rules: {quality: {}}}
    | 4: sources[0].filters.rules.quality.min_score: needs a classifier: set `classif
    source | filters: {rules: {quality: {min_score: null, min_fasttext_score: 0.1}}}
    | 4: sources[0].filters.rules.quality.min_fasttext_score: needs `filters.fasttext`
    source | filters: {words: {obfuscation: true}}
    | 4: sources[0].filters.words.obfuscation: unknown key: it was removed, since disguised
    source | filters: {quality: {}} | 4: sources[0].filters.quality: unknown key; allowed here: cus
    source | filters: {ruls: {}} | 4: sources[0].filters.ruls: unknown key (did you mean 'rules'?)
    source | filters: {rules: {length: {min_chars: -5}}}
    | "4: sources[0].filters.rules.length.min_chars: Input should be " + BELOW
    phase | weights: {web: 1, bocks: 2} | 9: phases[0].weights.bocks: unknown source (did you mean '
    phase | budgets: {poems: 2} | 9: phases[0].budgets.poems: unknown source; the sources are web, b
    phase | weights: {web: -1} | 8: phases[0]: weight of 'web' is -1.0; it must be 0 or more
    phase | weights: {web: .nan} | 8: phases[0]: weight of 'web' is nan; it must be 0 or more
    phase | weights: {web: 0} | 8: phases[0]: the weights sum to 0; give at least one source a pos
    phase | seed: 1 | 8: phases[0]: give either `weights`, `weighting` or `budgets`
    phase | "weighting: natural\n    sources: [web, bocks]"
    | 10: phases[0].sources[1]: unknown source (did you mean '
    phase | "weighting: natural\n    one_epoch_of: poems"
    | 10: phases[0].one_epoch_of: unknown source; the sources are web, books
    phase | "weights: {web: 1}\n    epochs: {bocks: 2}"
    | 10: phases[0].epochs.bocks: unknown source (did you mean 'books'?)
    phase | "weights: {web: 1}\n    epochs: {books: 2}"
    | 10: phases[0].epochs.books: no source of this phase: its cap would do nothing
    phase | "weights: {web: 1}\n    buckets: ['2048', '2049']"
    | 10: phases[0].buckets[1]: unknown bucket (did you mean '2048'?); the buckets are 2048
    phase | weights: {web: much} | 9: phases[0].weights.web: Input should be a valid number, unable
""",
    DOMAINS=DOMAINS,
    BELOW=BELOW,
)
def test_bad_value_is_named_with_its_place(
    tmp_path: Path, at: str, text: str, expected: str
) -> None:
    phase = GOOD.replace("weights: {web: 1, books: 2}", text)
    changed = {"file": GOOD + text, "source": with_source(text), "phase": phase}[at]

    [mistake] = mistakes(tmp_path, changed)

    assert mistake.startswith(f"pipeline.yaml:{expected}")


@pytest.mark.parametrize("name", ["../web", "a/b", ".hidden", '""', '"a\\n"', "a b", "x" * 129])
@pytest.mark.parametrize("place", ["web", "general"])
def test_names_must_be_plain(tmp_path: Path, place: str, name: str) -> None:
    found = mistakes(tmp_path, GOOD.replace(f"name: {place}", f"name: {name}"))
    line = "3: sources[0]" if place == "web" else "8: phases[0]"
    assert found[0].startswith(f"pipeline.yaml:{line}.name: ")
    assert "[A-Za-z0-9]" in found[0]


def test_name_used_twice(tmp_path: Path) -> None:
    found = mistakes(tmp_path, GOOD.replace("name: books", "name: web"))
    assert found == ["pipeline.yaml:5: sources[1].name: 'web' is used before; rename one"]


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    text = with_source("filters: {rules: {length: {min_chars: x}, c5: 1}}")
    found = mistakes(tmp_path, text.replace("books: 2", "bocks: 2"))
    places = [mistake.split(": ")[1] for mistake in found]
    assert places == [
        "phases[0].weights.bocks",
        "sources[0].filters.rules.length.min_chars",
        "sources[0].filters.rules.c5",
    ]


def test_missing_keys_are_named(tmp_path: Path) -> None:
    text = GOOD.replace("store: out\n", "").replace("    where: data/*.jsonl\n", "")
    assert mistakes(tmp_path, text) == [
        "pipeline.yaml:1: store: missing: add it",
        "pipeline.yaml:2: sources[0].where: missing: add it",
    ]


def test_no_sources_and_no_phases_are_refused(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "store: out\nsources: []\nphases: []\n")
    assert [mistake.split(":")[1] for mistake in found] == ["2", "3"]
    assert all("at least 1 item" in mistake for mistake in found)


@cases(r"""
    added                                        | expected
    "a: [1,\n"                                   | 11: not valid YAML: expected the node content
    "\tb: 1\n"                                   | "10: not valid YAML: found character '\\t'"
    "store: other\n"                             | 10: not valid YAML: key 'store' given twice
    "dedup: {near: true, near: false}\n"         | 10: not valid YAML: key 'near' given twice
    "? [a, b]\n: 1\n"                            | "10: not valid YAML: key "
    "seed: !!python/object/apply:os.getcwd []\n" | 10: not valid YAML: could not determine a
    "seed: !!python/name:os.system\n"            | 10: not valid YAML: could not determine a constr
    "seed: 2024-13-01\n"                         | " not valid YAML: month must be in 1..12"
    "seed: &again [*again]\n"                    | 10: not valid YAML: an alias inside of what it
""")
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, added: str, expected: str) -> None:
    assert mistakes(tmp_path, GOOD + added)[0].startswith(f"pipeline.yaml:{expected}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "text"])
def test_file_without_a_mapping_says_what_is_expected(tmp_path: Path, text: str) -> None:
    [mistake] = mistakes(tmp_path, text)
    assert mistake == "pipeline.yaml: expected a mapping with `store`, `sources` and `phases`."


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD + "dedup: {ledger: old/ledger.json}\n")
    config = tmp_path / "pipeline.yaml"

    with pytest.raises(SettingsError, match=r"dedup\.ledger: no file 'old/ledger\.json' \(looked"):
        check_ledger(loaded, config)
    (tmp_path / "old").mkdir()
    (tmp_path / "old/ledger.json").touch()
    check_ledger(loaded, config)
    check_ledger(load(tmp_path, GOOD), config)


def test_unreadable_file_says_how_to_name_another(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"none.yaml: cannot be read.*{CONFIG_VARIABLE}"):
        load_settings(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"store: \xe9\n")
    with pytest.raises(SettingsError, match=r"latin\.yaml: cannot be read.*utf-8"):
        load_settings(tmp_path / "latin.yaml")


def test_filters_of_a_source_are_merged_key_by_key(tmp_path: Path) -> None:
    general = "filters: {rules: {length: {min_chars: 7, max_chars: 99}, c4: {}, fineweb: {}}}\n"
    text = with_source("filters: {rules: {length: {min_chars: 3}, c4: null, code: {}}}") + general

    rules = load(tmp_path, text).filters_for("web").rules
    others = load(tmp_path, text).filters_for("books").rules

    assert rules.length is not None and others.length is not None
    assert (rules.length.min_chars, rules.length.max_chars) == (3, 99)
    assert (rules.c4, rules.code is None, rules.fineweb) == (None, False, others.fineweb)
    assert (others.length.min_chars, others.c4 is None, others.code) == (7, False, None)


def test_merge_replaces_all_but_mappings() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": None}
    override = {"a": {"y": 3}, "b": [4], "c": {"z": 5}, "d": 6}
    merged = {"a": {"x": 1, "y": 3}, "b": [4], "c": {"z": 5}, "d": 6}
    assert lay_over(base, override) == merged
    assert base["b"] == [1, 2]


def test_presets_of_a_source_replace_those_of_the_file_and_keys_lie_over_both(
    tmp_path: Path,
) -> None:
    general = "filters: {presets: [gopher-quality], rules: {length: {min_chars: 7}}}\n"
    text = with_source("filters: {presets: [fineweb], rules: {length: {max_chars: 99}}}") + general

    web = load(tmp_path, text).filters_for("web").rules
    books = load(tmp_path, text).filters_for("books").rules

    assert (web.gopher_quality, web.fineweb is None, web.c4) == (None, False, None)
    assert web.length is not None
    assert (web.length.min_chars, web.length.max_chars) == (7, 99)
    assert (books.gopher_quality is None, books.fineweb) == (False, None)


def test_a_domain_lies_under_what_the_user_writes(tmp_path: Path) -> None:
    code = load(tmp_path, with_source("domain: code")).filters_for("web")
    both = with_source("domain: code\n    filters: {normalize: {nfc: true}}")
    asked = load(tmp_path, both).filters_for("web")

    assert (code.language.backend, code.normalize.nfc) == ("none", False)
    assert (asked.language.backend, asked.normalize.nfc) == ("none", True)


def test_yaml_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = with_source("<<: &shared {language: en}").replace("[a.txt, b.txt]", "a\n    <<: *shared")
    loaded = load(tmp_path, text)
    assert [source.language for source in loaded.sources] == ["en", "en"]


def test_config_is_in_the_current_folder_unless_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    assert config_path() == tmp_path / "pipeline.yaml"
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    assert config_path() == tmp_path / "pipeline.yaml"
    monkeypatch.setenv(CONFIG_VARIABLE, "mine.yaml")
    assert config_path() == tmp_path / "mine.yaml"


def test_store_is_relative_to_the_config_unless_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(tmp_path, GOOD)
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    assert store_root(loaded, tmp_path / "pipeline.yaml") == tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STORE_VARIABLE, "elsewhere")
    assert store_root(loaded, tmp_path / "far" / "pipeline.yaml") == tmp_path / "elsewhere"


@pytest.mark.parametrize("annotation", [Settings, Settings | None, tuple[Settings, ...]])
def test_inner_model_is_found(annotation: object) -> None:
    assert inner_model(annotation) is Settings
    assert inner_model(int | None) is None


def test_settings_and_their_stages_are_frozen_and_closed() -> None:
    fields = Settings.model_fields.values()
    models = [model for field in fields if (model := inner_model(field.annotation))]
    assert len(models) == 16
    for config in [Settings.model_config, *(model.model_config for model in models)]:
        assert (config["frozen"], config["extra"]) == (True, "forbid")


def test_a_copy_with_other_sources_looks_up_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, GOOD)
    _, books = settings.sources
    assert settings.source("web") == settings.sources[0]

    other = books.model_copy(update={"kind": "chat"})
    copied = settings.model_copy(update={"sources": (other,)})

    assert copied.source("books").kind == "chat" and copied.is_chat("books")
    assert not copied.is_chat("web") and not settings.is_chat("books")
