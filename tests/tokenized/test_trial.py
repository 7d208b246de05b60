"""A loaded tokenizer is tried before use: the same ids in every process, each of one entry."""

from collections.abc import Sequence

from prelude import Any, Path, json, pytest
from small_tokenizer import changed, sample_texts, trained
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from assets.tokenized.tokenizer import TokenizerError
from assets.tokenized.tokenizer_asset import load_tokenizer
from assets.tokenized.trial import encode_once, faults_of, shared_ids, without_dropout
from resources.settings.tokenizer import TokenizerConfig


def load(folder: Path, content: str) -> tuple[str, Any, list[str]]:
    (folder / "tokenizer.json").write_text(content)
    return load_tokenizer(folder / "tokenizer.json", TokenizerConfig(path="tokenizer.json"))


def with_dropout(share: float) -> str:
    return changed(model=json.loads(trained())["model"] | {"dropout": share})


def test_dropout_is_switched_off_and_named(tmp_path: Path) -> None:
    assert load(tmp_path, with_dropout(0.2)) == (*load(tmp_path, trained())[:2], ["dropout 0.2"])
    assert without_dropout(trained()) == (trained(), [])


def test_other_ids_in_a_second_process_are_a_fault() -> None:
    fault = next(faults_of(with_dropout(0.5), encode_once))
    assert "have other ids in a second process" in fault


def test_entries_that_share_an_id_are_named(tmp_path: Path) -> None:
    content = json.loads(trained())
    content["model"]["vocab"]["the"] = content["model"]["vocab"]["e"]
    with pytest.raises(TokenizerError, match=r"entries share an id: 'e' and 'the' \(\d+\)\. Num"):
        load(tmp_path, json.dumps(content))
    assert shared_ids(trained()) == []


def test_a_decoder_that_is_not_one_to_one_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="decoding is not one to one"):
        load(tmp_path, changed(decoder=None))


def metaspace(model: Any, trainer: Any, normalizer: Any = None) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(sample_texts()[:40], trainer)
    return tokenizer


def lossy_tokenizers() -> dict[str, str]:
    """Kinds in use that lose case, accents or blanks, which is no fault."""
    end = ["<unk>", "<|endoftext|>"]
    unigram = trainers.UnigramTrainer(vocab_size=800, special_tokens=end, unk_token="<unk>")
    words = trainers.WordPieceTrainer(vocab_size=800, special_tokens=["[UNK]", end[1]])
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer(lowercase=True)
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.train_from_iterator(sample_texts()[:40], words)
    nfkc = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(r"  ", " ")])
    return {
        "unigram": metaspace(models.Unigram(), unigram, nfkc).to_str(),
        "wordpiece": bert.to_str(),
    }


@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_kinds_in_use_pass(kind: str, tmp_path: Path) -> None:
    tokenizer_json = lossy_tokenizers()[kind]
    assert load(tmp_path, tokenizer_json)[2] == []


def test_the_second_process_gives_its_own_ids() -> None:
    def there(tokenizer_json: str, texts: Sequence[str]) -> list[list[int]]:
        return [ids[::-1] for ids in encode_once(tokenizer_json, texts)]

    assert list(faults_of(trained(), encode_once)) == []
    assert len(list(faults_of(trained(), there))) == 1
