"""hdfs:// sources: the error without a client, and the reading of any file system of pyarrow."""

from builders import sentence, write_corpus
from input_files import texts
from prelude import Path, json, pytest
from pyarrow import fs

from assets.raw.places import hadoop_files
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.input_file import ChangedFileError, InputFile
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_chunks import plan_slices, read_chunks
from corpus_loader.places import transports
from corpus_loader.places.errors import CorpusError
from resources.errors import InputError
from resources.settings.pipeline import SettingsError, load_settings
from resources.settings.sources import SourceConfig

TEXTS = [sentence(number) for number in range(60)]
BODY = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in TEXTS)


def source(where: str) -> SourceConfig:
    return SourceConfig.model_validate({"name": "s", "where": where})


def find(base: Path, where: str) -> list[InputFile]:
    return find_inputs(source(where), base, base / "store/_downloads").files


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the file system of hdfs://namenode."""
    folder = tmp_path / "cluster"
    for name in ("web/a.jsonl", "web/deep/b.jsonl", "web/.hidden/c.jsonl", "web/notes.md5"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(BODY)
    system = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    monkeypatch.setattr(hadoop_files, "hadoop_at", lambda _: system)
    return folder


def test_a_missing_client_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(InputError) as raised:
        find(tmp_path, "hdfs://namenode:8020/web/*.jsonl")
    message = str(raised.value)
    assert message.startswith("source 's': hdfs://namenode:8020 cannot be reached (")
    for name in ("JAVA_HOME", "libhdfs.so", "CLASSPATH", "copy the files"):
        assert name in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("hdfs://namenode/web", ["web/a.jsonl", "web/deep/b.jsonl"]),
        ("hdfs://namenode/web/*.jsonl", ["web/a.jsonl"]),
        ("hdfs://namenode/web/a.jsonl", ["web/a.jsonl"]),
        ("hdfs://namenode/web/**/b.*", ["web/deep/b.jsonl"]),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_urls_match_as_paths_do(tmp_path: Path, where: str, names: list[str]) -> None:
    assert [file.name for file in find(tmp_path, where)] == [f"hdfs://namenode/{n}" for n in names]


@pytest.mark.usefixtures("cluster")
def test_slices_of_a_file_hold_its_documents(tmp_path: Path) -> None:
    [file] = find(tmp_path, "hdfs://namenode/web/a.jsonl")
    slices = plan_slices(file, 4096)
    assert len(slices) > 3
    found = [c for each in slices for c in read_chunks(file, each, source("x"), 4096)]
    assert [text for chunk in found for text in texts(chunk)] == TEXTS


def test_a_file_that_changes_or_goes_is_named(tmp_path: Path, cluster: Path) -> None:
    [file] = find(tmp_path, "hdfs://namenode/web/a.jsonl")
    (cluster / "web/a.jsonl").write_bytes(BODY * 2)
    with pytest.raises(ChangedFileError, match=f"{len(BODY):,} bytes then, {2 * len(BODY):,} byt"):
        open_input(file).read()
    (cluster / "web/a.jsonl").unlink()
    with pytest.raises(ChangedFileError, match="was removed"):
        open_input(file).read()


def test_a_file_system_that_fails_is_asked_again(
    tmp_path: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0.01")
    [file] = find(tmp_path, "hdfs://namenode/web/a.jsonl")
    (cluster / "web/a.jsonl").unlink()
    (cluster / "web/a.jsonl").mkdir()
    with pytest.raises(CorpusError, match=r"a\.jsonl could not be read: .* attempts in 0\.01 s"):
        open_input(file).read()


def test_a_user_in_a_url_is_refused(tmp_path: Path) -> None:
    sources = [{"name": "prose", "where": "hdfs://me:hunter2@namenode/web"}]
    config = write_corpus(tmp_path, sources=sources, phases=[])
    with pytest.raises(SettingsError, match="has no user and no query") as error:
        load_settings(config)
    assert "hunter2" not in str(error.value)
