"""A loader opens the mixture of a tag: a small file of the store, on a disk or behind a URL."""

from loader_corpus import publish, write_phase
from prelude import Any, Path, json, pytest

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.places.errors import CorpusError
from corpus_loader.seal import sealed

SHARDS = {"web": [[[[1, 2, 3]], [[4, 5]]] * 4]}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Mixtures 1 and 40, with other seeds, and the tag v1 of the first."""
    folder = write_phase(tmp_path / "store", SHARDS, seed=0)
    mixture = json.loads((folder / "mixed/general/mixture-1.json").read_text())
    publish(folder, mixture | {"seed": 1, "fingerprint": "1" * 32}, 40)
    write_tag(folder, "v1", {"mixed": 1})
    return folder


def write_tag(store: Path, name: str, numbers: dict[str, int]) -> None:
    (store / "_tags").mkdir(exist_ok=True)
    manifests = [
        {"stage": stage, "partition": "general", "number": number, "fingerprint": "f"}
        for stage, number in numbers.items()
    ]
    content = json.dumps({"name": name, "manifests": manifests}).encode()
    (store / f"_tags/{name}.json").write_bytes(sealed(content + b"\n"))


def seed(store: Path | str, data: str | None, **options: Any) -> int:
    return CorpusLoader(store, data=data, options=LoaderOptions(**options)).mixture.seed


def test_a_tag_names_a_mixture_on_a_disk_and_behind_a_url(store: Path, tmp_path: Path) -> None:
    assert seed(store, None) == 1
    assert seed(store, "v1") == 0
    assert CorpusLoader(store, options=LoaderOptions(data="v1")).mixture.seed == 0
    assert seed(store.as_uri(), "v1", cache=tmp_path / "cache") == 0


def test_a_state_finds_its_mixture_where_only_a_tag_keeps_it(store: Path) -> None:
    state = CorpusLoader(store, data="v1").state_dict()

    assert seed(store, state["data"]) == 0  # manifests 2 to 39 are gone


@pytest.mark.parametrize("data", ["v2", "../v1", "_tags/v1", "/etc/passwd", "v1.json", ""])
def test_an_unknown_tag_is_refused_with_those_there_are(store: Path, data: str) -> None:
    if not data:
        assert seed(store, data) == 1
        return
    with pytest.raises(CorpusError, match=r"neither a tag nor the fingerprint.*Tags are: v1\."):
        seed(store, data)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"manifests": [{}]}', b'{"a":1,"sha256":"0"}\n'])
def test_a_damaged_tag_is_refused(store: Path, content: bytes) -> None:
    (store / "_tags/v1.json").write_bytes(content)

    with pytest.raises(CorpusError, match=r"_tags/v1\.json is not a tag"):
        seed(store, "v1")


def test_a_tag_from_before_a_phase_was_mixed_has_none(store: Path) -> None:
    write_tag(store, "early", {"sharded": 1})
    write_tag(store, "lost", {"mixed": 7})

    with pytest.raises(CorpusError, match="the tag 'early' has no mixture of phase 'general'"):
        seed(store, "early")
    with pytest.raises(CorpusError, match=r"mixed\[general\] has no manifest 7, which the tag"):
        seed(store, "lost")
