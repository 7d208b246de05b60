"""Hostile files of tokenizer.path are refused with their name, in bounded memory."""

from prelude import Path, json, os, pytest
from small_tokenizer import trained

from assets.tokenized.tokenizer import MOST_FILE_BYTES, TokenizerError
from assets.tokenized.tokenizer_asset import load_tokenizer
from resources.settings.named_files import NamedFileError
from resources.settings.tokenizer import TokenizerConfig


def with_id(number: int) -> str:
    """A tokenizer.json with one more entry, of that id."""
    content = json.loads(trained())
    content["model"]["vocab"]["zzz"] = number
    return json.dumps(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is no JSON .maximum recursion"),
        ("", "it is no JSON"),
        ("\0" * 100, "it is no JSON"),
        ('{"version": NaN}', "cannot|can read"),
        (with_id(2**32 - 1), "its largest id is 4,294,967,295"),
        (with_id(1 << 24), "ids up to 16,777,215 are read"),
        (with_id(-1), "can read"),
    ],
    ids=["deep", "empty", "nul", "nan", "largest id", "large id", "negative id"],
)
def test_a_hostile_tokenizer_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(path, TokenizerConfig(path="tokenizer.json"))
    assert str(path) in str(caught.value)


def test_a_pipe_and_a_file_beyond_the_bound_are_refused(tmp_path: Path) -> None:
    config = TokenizerConfig(path="tokenizer.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(NamedFileError, match=r"pipe\.json: a pipe"):
        load_tokenizer(tmp_path / "pipe.json", config)
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(MOST_FILE_BYTES + 1)
    with pytest.raises(NamedFileError, match=r"big\.json: 67,108,865 bytes, and at most"):
        load_tokenizer(tmp_path / "big.json", config)
