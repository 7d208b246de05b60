"""The tokenizer of a corpus: trained on a seeded sample, or loaded from a file."""

import subprocess

from prelude import Any, Path, ValidationError, hashlib, json, os, pl, pytest, sys
from small_tokenizer import sample_texts, trained, trained_with, with_entries, with_token
from tables import cases
from tokenizers import Tokenizer, models

from assets.tokenized.encoders import ReferenceEncoder
from assets.tokenized.kept_tokenizer import config_of
from assets.tokenized.tokenizer import (
    TokenizerError,
    canonical_json,
    read_tokenizer,
    token_dtype,
    token_facts,
    tokenizer_fingerprint,
    train_bpe,
    vocabulary_size,
)
from assets.tokenized.trial import ids_of
from resources.settings.tokenizer import END_OF_DOCUMENT, TokenizerConfig

# sha256 of the sample's tokenizer.json: it must outlive changes of the trainer.
TRAINED = "c0ee5b9b471ecab89bc0cb67bd45f90ad2cebab76aa8bd5a364d60a40c0c66e0"


def test_training_does_not_depend_on_batches_or_their_order() -> None:
    texts = sample_texts()[:60]
    batches = [[text] for text in reversed(texts)]
    assert train_bpe(batches, TokenizerConfig(vocab_size=1000)) == trained()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_training_gives_the_same_bytes_for_any_number_of_threads(threads: str) -> None:
    code = "import sys, small_tokenizer as small; sys.stdout.write(small.trained())"
    given = {"PYTHONPATH": os.pathsep.join(sys.path), "RAYON_NUM_THREADS": threads}
    command, env = [sys.executable, "-c", code], os.environ | given | {"PYTHONUTF8": "1"}
    folder = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=True)
    assert hashlib.sha256(done.stdout).hexdigest() == TRAINED


def test_trained_tokenizer_has_the_wanted_size_and_its_special_tokens_first() -> None:
    config = TokenizerConfig(vocab_size=300, special_tokens=("<pad>", END_OF_DOCUMENT))
    tokenizer, end_id = read_tokenizer(train_bpe([sample_texts()[:20]], config), END_OF_DOCUMENT)
    assert vocabulary_size(tokenizer) == 300
    assert (tokenizer.token_to_id("<pad>"), end_id) == (0, 1)


def test_the_begin_token_is_found_like_the_end_token() -> None:
    config = TokenizerConfig(
        vocab_size=300, special_tokens=(END_OF_DOCUMENT, "<s>"), begin_of_document="<s>"
    )
    tokenizer_json = train_bpe([["a text"]], config)

    facts = token_facts(tokenizer_json, config)

    assert (facts.begin_of_document, facts.begin_of_document_id) == ("<s>", 1)
    assert (facts.end_of_document, facts.end_of_document_id) == (END_OF_DOCUMENT, 0)
    with pytest.raises(TokenizerError, match=r"'<s>' for tokenizer.begin_of_document.*endoftext"):
        token_facts(trained(), config)


@pytest.mark.slow
def test_a_vocabulary_beyond_16_bits_is_said() -> None:
    large = with_entries({f"<{row}>": row for row in range(1000, 70_000)})
    facts = token_facts(large, TokenizerConfig())
    assert (facts.vocab_size, facts.token_dtype) == (70_000, "uint32")
    assert token_facts(trained(), TokenizerConfig()).token_dtype == "uint16"


@cases(
    """
    given_keys | fault
    {"special_tokens": ["<pad>"]} | is not among special_tokens
    {"special_tokens": ["<|endoftext|>", ""]} | must differ and not be empty
    {"special_tokens": ["<|endoftext|>"] * 2} | must differ and not be empty
    {"begin_of_document": "<s>"} | begin_of_document '<s>' is not among special_tokens
    {"vocab_size": 260, "special_tokens": ["<|endoftext|>", *"abcde"]} | has no room for 256
    {"vocab_size": 259}                | vocab_size
    {"min_frequency": 0}               | min_frequency
    {"sed": 1}                         | sed
    {"sample_bytes": 1 << 31}          | sample_bytes
    {"weights": {}}                    | weights
    {"weights": {"web": 0}}            | weights
    {"weights": {"web": inf}}          | weights
    {"trainer": "tokenizers"}          | trainer
    {"pattern": "gpt4"}                | 'gpt4' is no pattern .* the names are gpt2, llama3
    {"pattern": "("}                   | neither one of gpt2, .*: .*unmatched parenthesis
    {"pattern": ""}                    | pattern
    {"pattern": "a+", "digits": 3}     | write 3 digits into the regular expression of pattern
    {"digits": 2}                      | digits
    {"vocab_multiple": 0}              | vocab_multiple
    {"path": "a.json", "digits": 1}    | digits can be chosen for a trained tokenizer only.*'a.json'
    {"path": "a.json", "pattern": "gpt2"} | pattern can be chosen for a trained tokenizer only
""",
    inf=float("inf"),
)
def test_settings_that_cannot_be_trained_are_refused(
    given_keys: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValidationError, match=fault):
        TokenizerConfig.model_validate(given_keys)


# The words of each published pattern, as `tiktoken` and `transformers` split them.
@cases(r"""
    pattern  | digits | words
    "gpt2"   | None | ["We", "'", "LL", " GoHome", " in", " 12345", "!", "\n", "\n", "़", "\n"]
    "gpt2"   | 1    | ["We", "'", "LL", " GoHome", " in", " ", *"12345!\n\n़\n"]
    "llama3" | None | ["We", "'LL", " GoHome", " in", " ", "123", "45", "!\n\n", "़\n"]
    "llama3" | 1    | ["We", "'LL", " GoHome", " in", " ", *"12345", "!\n\n", "़\n"]
    "qwen"   | None | ["We", "'LL", " GoHome", " in", " ", *"12345", "!\n\n", "़\n"]
    "qwen"   | 3    | ["We", "'LL", " GoHome", " in", " ", "123", "45", "!\n\n", "़\n"]
    "gpt4o"  | None | ["We'LL", " Go", "Home", " in", " ", "123", "45", "!\n\n", "़", "\n"]
    "[a-z]+" | None | ["W", "e", "'LL G", "o", "H", "ome", " ", "in", " 12345!\n\n़\n"]
""")
def test_words_are_those_of_the_pattern(pattern: str, digits: int | None, words: list[str]) -> None:
    tokenizer = Tokenizer.from_str(trained_with(pattern=pattern, digits=digits))
    found = tokenizer.pre_tokenizer.pre_tokenize_str("".join(words))
    assert [tokenizer.decoder.decode([word]) for word, _ in found] == words


def test_the_pattern_of_gpt2_trains_what_was_trained_without_the_key() -> None:
    assert trained_with(pattern="gpt2") == trained()
    assert config_of(TokenizerConfig(pattern="gpt2", vocab_multiple=8)) == config_of(
        TokenizerConfig()
    )


@pytest.mark.parametrize(
    ("size", "dtype"), [(1, pl.UInt16), (65_536, pl.UInt16), (65_537, pl.UInt32)]
)
def test_ids_take_two_bytes_while_they_fit(size: int, dtype: type[pl.DataType]) -> None:
    assert token_dtype(size) == dtype


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"model": 1}'])
def test_broken_file_says_what_to_check(broken: str) -> None:
    with pytest.raises(TokenizerError, match=r"not a tokenizer.json.*Check tokenizer.path"):
        read_tokenizer(canonical_json(broken), END_OF_DOCUMENT)


@pytest.mark.parametrize("end", ["</s>", "a", "<plain>"])
def test_end_token_must_be_a_special_token(end: str) -> None:
    with pytest.raises(TokenizerError, match=rf"no special token '{end}'.*\['<\|endoftext\|>'\]"):
        read_tokenizer(with_token("<plain>", special=False), end)


def test_fingerprint_ignores_layout_and_sees_content() -> None:
    pretty = json.dumps(dict(reversed(json.loads(trained()).items())), indent=2)
    assert tokenizer_fingerprint(pretty) == tokenizer_fingerprint(trained())
    assert tokenizer_fingerprint(with_entries({"zz": 5000})) != tokenizer_fingerprint(trained())
    assert canonical_json(canonical_json(pretty)) == trained()


def test_text_that_spells_an_entry_of_a_unigram_gets_other_ids() -> None:
    facts = token_facts(unigram(), TokenizerConfig(path="it", end_of_document="</s>"))
    assert (facts.end_of_document_id, facts.vocab_size) == (1, 5)
    encoder = ReferenceEncoder(unigram())
    assert ids_of(encoder, ["ab", "a</s>b", "</s>"]) == [[2, 3], [2, 0, 3], [0]]
    assert encoder.decode([[2, 1, 3]]) == ["a </s> b"]


def test_the_unknown_token_may_come_out_unless_it_ends_documents() -> None:
    content = json.loads(unigram())
    content["added_tokens"][1]["special"] = False
    with pytest.raises(TokenizerError, match=r"special tokens \['<unk>'\] is given their ids"):
        token_facts(json.dumps(content), TokenizerConfig(path="it", end_of_document="<unk>"))


def unigram() -> str:
    """A tokenizer.json whose model's own vocabulary has the special tokens."""
    entries = [("<unk>", 0.0), ("</s>", 0.0), ("a", -1.0), ("b", -1.0), (" ", -1.0)]
    tokenizer = Tokenizer(models.Unigram(entries, 0))
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    return str(tokenizer.to_str())


def with_ignored_merges(end_id: int, *, is_entry: bool) -> str:
    """The trained tokenizer.json, told to take what lies between blanks whole if it is an entry."""
    content = json.loads(trained())
    vocab = {t: i - 1 for t, i in content["model"]["vocab"].items() if t != END_OF_DOCUMENT}
    content["model"] |= {"ignore_merges": True, "vocab": vocab}
    content["model"]["vocab"] |= {END_OF_DOCUMENT: end_id} if is_entry else {}
    content["added_tokens"][0]["id"] = end_id
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False}
    return json.dumps(content | {"pre_tokenizer": split})


def test_text_that_a_bpe_takes_whole_gets_no_special_token() -> None:
    for is_entry in (True, False):
        content = with_ignored_merges(999, is_entry=is_entry)
        assert token_facts(content, TokenizerConfig()).end_of_document_id == 999
        ids = ids_of(ReferenceEncoder(content), ["a <|endoftext|> b", "<|endoftext|>"])
        assert all(given and 999 not in given for given in ids)


def test_an_end_token_with_the_id_of_an_entry_is_refused() -> None:
    content = json.loads(trained())
    del content["model"]["vocab"][END_OF_DOCUMENT]
    with pytest.raises(TokenizerError, match=r"ids that model.vocab gives to other entries"):
        token_facts(json.dumps(content), TokenizerConfig())


def test_training_without_text_gives_the_bytes() -> None:
    tokenizer, end_id = read_tokenizer(train_bpe([], TokenizerConfig()), END_OF_DOCUMENT)
    assert (vocabulary_size(tokenizer), end_id) == (257, 0)
