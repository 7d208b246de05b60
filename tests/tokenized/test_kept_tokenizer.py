"""A trained tokenizer stays: what is a change of its config, what the refusal says."""

from builders import open_corpus, sentence, write_corpus
from many_examples import many_examples
from prelude import Any, Path, given, pl, pytest, st
from tables import cases

from assets.tokenized.kept_tokenizer import Encoded, config_of, refusal, training_changes
from assets.tokenized.tokenizer_asset import make_tokenizer, plan_tokenizer
from resources.materialize.materialization import manifest_of
from resources.settings.tokenizer import TokenizerConfig
from resources.stage import Stage
from resources.store.records import Manifest, Stats, fingerprint_of
from resources.store.store import PartWriter
from resources.tasks import GLOBAL, Outcome

SOURCES = ("prose", "notes")


def changes(then: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What training_changes says of two configs, of a corpus with the two sources."""
    before, after = (config_of(TokenizerConfig.model_validate(keys)) for keys in (then, now))
    return training_changes(before, after, SOURCES)


@cases("""
    then | now | expected
    {} | {"retrain": "always"} | {}
    {} | {"special_tokens": ["<|endoftext|>"]} | {}
    {} | {"vocab_size": 310, "seed": 1} | {"vocab_size": (32_000, 310), "seed": (0, 1)}
    {} | {"weights": {"prose": 1}} | {"weights": (None, {"prose": 1.0})}
    {"weights": {"prose": 1}} | {"weights": {"prose": 1.0}} | {}
    {"weights": {"prose": 1, "gone": 3}} | {"weights": {"prose": 1}} | {}
    {"weights": {"prose": 1}} | {"weights": {"prose": 1, "notes": 1}}
    | {"weights": ({"prose": 1.0}, {"prose": 1.0, "notes": 1.0})}
    {} | {"pattern": "gpt2", "vocab_multiple": 64} | {}
    {} | {"pattern": "qwen"} | {"pattern": ("gpt2", "qwen")}
    {"pattern": "qwen", "digits": 3} | {} | {"pattern": ("qwen", "gpt2"), "digits": (3, None)}
    {"path": "a.json", "vocab_size": 400} | {} | {"path": ("a.json", None)}
""")
def test_only_keys_that_train_another_tokenizer_are_changes(
    then: dict[str, Any], now: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changes(then, now) == expected


def test_marks_around_documents_and_keys_of_later_versions_are_no_change_of_it() -> None:
    special = {"special_tokens": ["<|endoftext|>", "<s>"]}
    marked = special | {"begin_of_document": "<s>", "end_of_document": "<s>"}
    assert changes(special, marked) == {}
    now = config_of(TokenizerConfig())
    assert training_changes({"path": None, "vocab_size": 32_000}, now, SOURCES) == {}


def test_the_refusal_gives_the_largest_sources_and_both_ways_out() -> None:
    encoded = [Encoded(f"s{number}", number, number * 10**6, number * 1000) for number in range(7)]

    shown = refusal({"vocab_size": (300, 310)}, encoded, ())

    assert "changes vocab_size from 300 to 310" in shown
    assert "7 sources, 21 documents, 21,000 tokens, 21.0 MB of text: s6 (6 documents" in shown
    assert "s2 (2 documents, 2,000 tokens, 2.0 MB of text), 2 more." in shown
    assert shown.endswith(
        "Set vocab_size back to keep it, or run `corpus tokenizer retrain` to train the next one."
    )
    assert "No source is encoded yet." in refusal({"seed": (0, 1)}, [], ())


Contents = dict[str, list[int]]  # the documents of a source, each a part of its own
NUMBERS = st.lists(st.integers(0, 9), unique=True)
SOURCE_STATES = st.fixed_dictionaries(dict.fromkeys(SOURCES, NUMBERS))


def publish_deduped(corpus: Any, contents: Contents) -> None:
    """Publish parts of `deduped`, one for each number."""
    for source, numbers in contents.items():
        folder = corpus.store.partition("deduped", source)
        parts = []
        for number in numbers:
            text = sentence(number, 40)
            doc_id = fingerprint_of(source, number)
            writer = PartWriter(folder, f"p{number}", doc_id)
            documents = pl.DataFrame({"doc_id": [doc_id], "text": [text], "lang": ["en"]})
            writer.write_parquet("documents", documents)
            parts.append(writer.publish(Stats(1, 1, bytes=len(text), text_bytes=len(text))))
        fingerprint = fingerprint_of([part.fingerprint for part in parts])
        size = sum(part.stats.bytes for part in parts)
        about = {"filtered": ""}
        stats = Stats(len(parts), len(parts), bytes=size)
        folder.commit(Manifest("deduped", source, fingerprint, "2", {}, tuple(parts), stats, about))


def publish_tokenizer(corpus: Any, stage: Stage[Any, Any]) -> Manifest:
    """Plan the tokenizer, make what is not published, and commit."""
    plan = plan_tokenizer(corpus, GLOBAL)
    (task,) = plan.tasks
    records = task.published() or make_tokenizer(task)
    manifest = manifest_of(stage, GLOBAL, plan, [Outcome(task, records, (), False)])
    committed: Manifest = corpus.store.partition("tokenizer", GLOBAL).commit(manifest)
    return committed


@pytest.mark.slow
@many_examples(20)
@given(st.lists(SOURCE_STATES, min_size=1, max_size=5))
def test_no_sequence_of_added_and_removed_documents_changes_it(
    tmp_path_factory: pytest.TempPathFactory, states: list[Contents]
) -> None:
    from assets.tokenized.tokenizer_asset import STAGE as TOKENIZER

    folder: Path = tmp_path_factory.mktemp("corpus")
    corpus = open_corpus(write_corpus(folder))
    publish_deduped(corpus, {"prose": [0, 1, 2], "notes": [3]})
    first = publish_tokenizer(corpus, TOKENIZER)

    for state in states:
        publish_deduped(corpus, state)
        assert publish_tokenizer(corpus, TOKENIZER) == first
    assert corpus.store.partition("tokenizer", GLOBAL).manifest_numbers() == [1]
