"""The examples of docs/formats.md, run on shards of a corpus."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Any, Path, np, pytest, re

from resources.settings.shards import FORMAT_NAMES

TEXT = (Path(__file__).parents[2] / "docs/formats.md").read_text()
EXAMPLES = dict(re.findall(r"^## (\w+)\n\n```python\n(.*?)```", TEXT, re.M | re.S))
PACKAGES = {
    "megatron": "megatron.core",
    "webdataset": "webdataset",
    "litdata": "litdata",
    "datatrove": "datatrove",
    "arrow": "datasets",
}


def test_there_is_an_example_for_every_format() -> None:
    assert tuple(EXAMPLES) == FORMAT_NAMES


# Readers that leave their last file to the garbage collector, or give arrays that view a file.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_the_example_gives_the_first_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "mds":
        pytest.importorskip("streaming", exc_type=ImportError)
    elif name in PACKAGES:
        peer(PACKAGES[name])
    for variable, value in (("HF_HUB_OFFLINE", "1"), ("LITDATA_DISABLE_VERSION_CHECK", "1")):
        monkeypatch.setenv(variable, value)
    about = about_of("uint16", 2048)
    rows = seeded_rows(20, about)
    write_shards(tmp_path, name, [shard_of(rows)], about)

    names: dict[str, Any] = {"folder": str(tmp_path)}
    exec(EXAMPLES[name], names)

    assert np.asarray(names["batch"]).tolist() == rows[:8]
