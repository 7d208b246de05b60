"""Datasets of the Hugging Face hub: what a URL matches, and errors that name what there is."""

from hub_server import Hub, hub_server
from prelude import Any, Iterator, Path, pytest

from assets.raw.places import hub_files
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.open_input import open_input
from resources.errors import InputError
from resources.settings.full_source import Source

TOKEN = "hf_" + "secret" * 5


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories."""
    with hub_server(monkeypatch) as found:
        yield found


def source(**options: Any) -> Source:
    return Source.model_validate({"name": "web", "where": "hf://acme/web", **options})


def found(folder: Path, **options: Any) -> list[str]:
    files = find_inputs(source(**options), folder, folder / "store/_downloads").files
    return [file.name.removeprefix("hf://acme/web/") for file in files]


def with_configs(configs: str) -> bytes:
    return f"---\nlicense: mit\nconfigs:\n{configs}\nsize: 1\n---\n# A dataset\n".encode()


TEXT = b"a text\n"
CONFIGS = """\
- config_name: en
  default: true
  data_files:
  - split: train
    path: en/part-*
  - split: test
    path: [en/held/**, more.txt]
- config_name: de
  data_files: de/*.txt
- config_name: folder
  data_dir: fr"""
NAMED = {
    path: TEXT
    for path in (
        *("en/part-0.txt", "en/part-1.txt", "en/held/a/b.txt", "more.txt", "de/x.txt"),
        *("fr/train.txt", "fr/dev.txt"),
    )
}


@pytest.mark.parametrize(
    ("config", "split", "paths"),
    [
        (None, None, ["en/part-0.txt", "en/part-1.txt"]),
        ("en", "test", ["en/held/a/b.txt", "more.txt"]),
        ("de", "train", ["de/x.txt"]),
        ("folder", None, ["fr/train.txt"]),
        ("folder", "validation", ["fr/dev.txt"]),
    ],
)
def test_configurations_of_the_readme_choose_files(
    hub: Hub, tmp_path: Path, config: str | None, split: str | None, paths: list[str]
) -> None:
    hub.add("acme/web", {**NAMED, "README.md": with_configs(CONFIGS)})
    assert found(tmp_path, config=config, split=split) == paths


CONVENTIONS: list[tuple[list[str], str | None, list[str]]] = [
    (["data/train-00000-of-00002.txt", "data/train-00001-of-00002.txt", "x.txt"], None, [0, 1]),
    (["data/train-00000-of-00001.txt", "data/held.out-00000-of-00001.txt"], "held.out", [1]),
    (["train/a.txt", "test/train.txt"], None, [0]),
    (["my_valid_1/a.txt", "train/a.txt"], "validation", [0]),
    (["train.txt", "dev-2.txt", "evaluation.txt"], "test", [2]),
    (["a.txt", "deep/training.txt"], None, [1]),
    (["constraint.txt", "b.txt", ".hidden.txt", "__x__/c.txt", "config.json"], None, [0, 1]),
]


@pytest.mark.parametrize(("files", "split", "chosen"), CONVENTIONS)
def test_names_choose_files_without_configurations(
    hub: Hub, tmp_path: Path, files: list[str], split: str | None, chosen: list[int]
) -> None:
    hub.add("acme/web", {**dict.fromkeys(files, TEXT), "README.md": b"# no metadata"})
    assert found(tmp_path, split=split) == sorted(files[index] for index in chosen)


@pytest.mark.parametrize(("files", "split", "chosen"), CONVENTIONS)
def test_conventions_are_those_of_the_datasets_library(
    tmp_path: Path, files: list[str], split: str | None, chosen: list[int]
) -> None:
    """Ask the library that defines the conventions for what this project expects of them."""
    data_files = pytest.importorskip("datasets.data_files")
    folder = tmp_path / "repository"
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(TEXT)
    patterns = data_files.get_data_patterns(str(folder))[split or "train"]
    resolved = data_files.DataFilesList.from_patterns(patterns, base_path=str(folder))
    names = sorted(str(Path(each).relative_to(folder)) for each in resolved)
    assert names == sorted(files[index] for index in chosen)


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ("hf://acme/web/en", ["en/held/a/b.txt", "en/part-0.txt", "en/part-1.txt"]),
        ("hf://acme/web/en/part-[1]*", ["en/part-1.txt"]),
        ("hf://datasets/acme/web/**/*.txt", sorted(NAMED)),
        ("hf://acme/web/more.txt", ["more.txt"]),
    ],
)
def test_a_path_in_a_repository_matches_as_on_a_disk(
    hub: Hub, tmp_path: Path, where: str, paths: list[str]
) -> None:
    hub.add("acme/web", NAMED)
    assert found(tmp_path, where=where) == paths


def test_a_listing_of_many_pages_is_whole(hub: Hub, tmp_path: Path) -> None:
    paths = [f"part-{number:02}.txt" for number in range(23)]
    hub.add("acme/web", dict.fromkeys(paths, TEXT))
    hub.page_files = 5
    assert found(tmp_path) == paths


def test_a_listing_without_end_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("acme/web", {f"deep/{number}.txt": TEXT for number in range(9)})
    monkeypatch.setattr(hub_files, "MOST_FILES", 5)
    hub.page_files = 3
    with pytest.raises(InputError, match=r"over 5 files\. Name a folder"):
        found(tmp_path)
    assert len(hub.requests) == 3, "the commit and two pages"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": "nl"}, r"no 'nl'; its configurations: de, en, folder"),
        ({"split": "dev"}, r"configuration 'en' has no split 'dev'; its splits: test, train"),
        ({"revision": "v9"}, r"no revision 'v9'. It has branches: main; tags: v1"),
        ({"where": "hf://acme/none"}, r"no access to the dataset 'acme/none' \(HTTP 401"),
        ({"where": "hf://acme"}, r"Write hf://owner/name"),
        ({"where": "hf://acme/web@v1"}, r"goes into `revision`"),
        ({"where": "hf://acme/web/../x"}, r"Write hf://owner/name"),
        ({"where": "hf://acme/web/en", "split": "test"}, r"split cannot choose them"),
        ({"where": "hf://acme/web/nothing/*"}, r"no input file matches"),
    ],
)
def test_an_error_names_what_there_is(
    hub: Hub, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    sha = hub.add("acme/web", {**NAMED, "README.md": with_configs(CONFIGS)})
    hub.repositories["acme/web"].tags["v1"] = sha
    with pytest.raises(InputError, match=message):
        found(tmp_path, **options)


@pytest.mark.parametrize(
    "configs", ["- config_name: [a", "- data_files: 3", "- config_name: a\n  data_files: s3://x/y"]
)
def test_a_broken_readme_is_an_error(hub: Hub, tmp_path: Path, configs: str) -> None:
    hub.add("acme/web", {"a.txt": TEXT, "README.md": with_configs(configs)})
    with pytest.raises(InputError, match=r"acme/web at commit .*`where`"):
        found(tmp_path)


def test_a_private_repository_needs_the_token(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("acme/web", {"a.parquet": TEXT}, token=TOKEN)
    with pytest.raises(InputError, match=r"without a token\): set HF_TOKEN"):
        found(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(InputError, match=r"no dataset 'acme/web'"):
        found(tmp_path)
    monkeypatch.delenv("HF_TOKEN")
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("HF_TOKEN_PATH", str(path))
    [file] = find_inputs(source(), tmp_path, tmp_path / "d").files
    with open_input(file) as stream:
        assert stream.read() == TEXT
    sent = {each.token for each in hub.requests if each.host == "other"}
    assert sent == {""}, "the token is for the hub alone"


def test_a_token_that_no_header_can_hold_is_not_shown(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", f"{TOKEN}\nx")
    with pytest.raises(InputError, match="HF_TOKEN holds no token") as error:
        found(tmp_path)
    assert TOKEN not in str(error.value)


def test_files_with_a_reader_of_ours_are_read_alone(hub: Hub, tmp_path: Path) -> None:
    hub.add("acme/web", {"a.fa": TEXT, "b.fb2": TEXT, "c.jsonl": TEXT})
    assert found(tmp_path) == ["c.jsonl"]


def test_a_dataset_in_formats_without_a_reader_says_what_to_do(hub: Hub, tmp_path: Path) -> None:
    files = [
        "data/a.pdf",
        "data/b.PDF",
        "c.vortex",
        "d.lance",
        "clip.wav",
        "web.py",
        "e.pdf.gz",
        "f.h5.gz",
        "g.fa",
        "LICENSE",
    ]
    hub.add("acme/web", {**dict.fromkeys(files, TEXT), "README.md": b"# A dataset"})
    with pytest.raises(InputError) as caught:
        found(tmp_path)
    message = str(caught.value)
    assert message.startswith("source 'web': hf://acme/web has no file in a format that is read")
    assert ".pdf (2)" in message and "no ending (1)" in message
    assert all(f"{ending} (1)" in message for ending in (".lance", ".py", ".pdf.gz", ".h5.gz"))
    assert "Read are jsonl, " in message and " parquet, " in message
    assert ".fa (1)" in message, "the package `datasets` no longer reads for us"
    exported = "load_dataset('acme/web', split='train').to_parquet('train.parquet')"
    assert exported in message
