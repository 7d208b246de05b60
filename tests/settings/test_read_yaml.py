"""Hostile configs and files that a config names are refused, soon and with a sentence."""

from prelude import Path, os, pairwise, pytest, time

from resources.settings.named_files import NamedFileError, read_named_file
from resources.settings.pipeline import SettingsError, load_settings

LETTERS = "abcdefghi"


def chained(first: str, form: str) -> str:
    """Eight lines, each with nine aliases of the line before."""
    pairs = pairwise(LETTERS)
    lines = [form.format(name=b, aliases=", ".join([f"*{a}"] * 9)) for a, b in pairs]
    return "\n".join([first, *lines])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            chained("a: &a [x, x, x, x, x, x, x, x, x]", "{name}: &{name} [{aliases}]"),
            ":6: not valid YAML: over 200,000 values",
        ),
        (chained("a: &a {k: v}", "{name}: &{name} {{<<: [{aliases}]}}"), "over 200,000 values"),
        ("store: s\na: &a [*a]\n", ":2: not valid YAML: an alias inside of what it repeats"),
        ("a: &a {b: *a}\n", "an alias inside"),
        ("a: " + "[" * 100_000, "nested too deeply"),
        ("store: s\na: 1" + ":59" * 200_000, ":2: not valid YAML: a number of 600,001 characters"),
        ("a: " + "1" * 5000, "a number of 5,000 characters"),
        ("a: b\n" * 300_000, "1,500,000 bytes, and at most 1,048,576"),
        ("a: \0", "unacceptable character"),
        ("[" + "0, " * 200_001 + "]", "over 200,000 values"),
    ],
    ids=["lists", "merges", "loop", "map loop", "deep", "base 60", "int", "bytes", "nul", "values"],
)
def test_a_hostile_config_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(content)
    began = time.monotonic()
    with pytest.raises(SettingsError) as caught:
        load_settings(path)
    assert message in str(caught.value) and str(path) in str(caught.value)
    assert time.monotonic() - began < 60  # PyYAML reads 200 KB a second, a tenth of it under load


def test_a_shared_node_within_the_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        "store: s\nsources:\n- &a {name: a, where: a, filters: &f {presets: [c4]}}\n"
        "- {<<: *a, name: b, filters: *f}\nphases: [{name: p, weights: {a: 1}}]\n"
    )
    assert load_settings(path).source_names() == ["a", "b"]


def test_of_many_mistakes_a_hundred_are_shown_and_long_values_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    unknown = "".join(f"\nk{i}: 1" for i in range(500))
    path.write_text("store: s\npart_bytes: " + "x" * 5000 + unknown)
    with pytest.raises(SettingsError, match="and 403 more mistakes") as caught:
        load_settings(path)
    assert max(map(len, str(caught.value).splitlines())) < 1000


@pytest.mark.parametrize(
    ("kind", "message"),
    [("pipe", "a pipe"), ("zero", "a device"), ("folder", "a folder"), ("loop", "Too many levels")],
)
def test_what_is_no_regular_file_is_refused_and_does_not_hang(
    kind: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "zero" else path)
    with pytest.raises(SettingsError, match=message):
        load_settings(path)
    with pytest.raises(NamedFileError, match=message):
        read_named_file(path, 10)


def test_a_file_at_its_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert read_named_file(path, 10) == b"0123456789"
    with pytest.raises(NamedFileError, match="10 bytes, and at most 9 are read"):
        read_named_file(path, 9)
