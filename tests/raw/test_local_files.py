"""Paths, folders and globs: links that leave a folder, loops of links, and special files."""

import glob
import random
import socket

from prelude import Path, os, pytest

from assets.raw.places.find_inputs import Inputs, find_inputs
from assets.raw.places.local_files import LEAVES, search
from resources.errors import InputError
from resources.settings.sources import SourceConfig


def find(base: Path, *where: str, **options: object) -> Inputs:
    source = SourceConfig.model_validate(
        {"name": "s", "where": where, "allow_no_files": True, **options}
    )
    return find_inputs(source, base, base / "store/_downloads")


def names(inputs: Inputs) -> list[str]:
    return [file.name for file in inputs.files]


def reasons(inputs: Inputs) -> dict[str, str]:
    return {each.name: each.reason for each in inputs.left_out}


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    return path


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder `in` with links inside of it and out of it."""
    write(tmp_path / "in/a.jsonl"), write(tmp_path / "in/d/b.jsonl")
    secret = write(tmp_path / "out/secret.jsonl")
    (tmp_path / "in/inside.jsonl").symlink_to("d/b.jsonl")
    (tmp_path / "in/outside.jsonl").symlink_to(secret)
    (tmp_path / "in/folder").symlink_to(tmp_path / "out")
    (tmp_path / "in/chain.jsonl").symlink_to("outside.jsonl")
    (tmp_path / "in/broken.jsonl").symlink_to("nothing.jsonl")
    return tmp_path


def test_links_that_leave_a_folder_are_named_and_not_read(linked: Path) -> None:
    found = find(linked, "in")

    assert names(found) == ["in/a.jsonl", "in/d/b.jsonl", "in/inside.jsonl"]
    assert reasons(found) == {
        "in/broken.jsonl": "a broken link",
        "in/chain.jsonl": LEAVES,
        "in/folder": LEAVES,
        "in/outside.jsonl": LEAVES,
    }


@pytest.mark.parametrize("pattern", ["in/*", "in/**", "in/**/*.jsonl", "i*/*"])
def test_links_are_not_followed_out_of_the_folder_of_a_glob(linked: Path, pattern: str) -> None:
    found = find(linked, pattern)

    is_inside = pattern.startswith("in")  # else the pattern starts in the parent of `out`
    assert ("in/outside.jsonl" in names(found)) is not is_inside
    assert ("in/outside.jsonl" in reasons(found)) is is_inside
    assert "in/inside.jsonl" in names(found)


@pytest.mark.parametrize("pattern", ["in", "in/**", "in/**/*.jsonl", "in/*"])
def test_links_are_followed_if_asked_for(linked: Path, pattern: str) -> None:
    found = find(linked, pattern, follow_links=True)

    assert {"in/outside.jsonl", "in/chain.jsonl", "in/folder/secret.jsonl"} <= set(names(found))
    assert reasons(found).keys() == {"in/broken.jsonl"}


def test_a_link_that_is_named_is_followed(linked: Path) -> None:
    for pattern in ("in/outside.jsonl", "in/folder", "in/folder/*.jsonl"):
        assert next(f.path.name for f in find(linked, pattern).files) in (
            "outside.jsonl",
            "secret.jsonl",
        )


def test_a_literal_part_after_a_glob_is_no_way_out(linked: Path) -> None:
    (linked / "in/d/current").symlink_to(linked / "out")

    found = find(linked, "in/*/current/*.jsonl")

    assert names(found) == [] and reasons(found)["in/d/current"] == LEAVES


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("pattern", ["in", "in/**", "in/**/*.jsonl", "in/*/*/*/*.jsonl"])
def test_loops_of_links_end(tmp_path: Path, pattern: str, follow: bool) -> None:
    write(tmp_path / "in/d/a.jsonl")
    for number in range(6):
        (tmp_path / f"in/d/up{number}").symlink_to("..")
        (tmp_path / f"in/self{number}").symlink_to(".")
    (tmp_path / "in/x").symlink_to("y")
    (tmp_path / "in/y").symlink_to("x")

    found = find(tmp_path, pattern, follow_links=follow)

    assert {file.path.resolve() for file in found.files} == {tmp_path / "in/d/a.jsonl"}
    assert len(found.files) == 1 or pattern == "in/*/*/*/*.jsonl"


def test_a_tree_of_links_does_not_grow_exponentially(tmp_path: Path) -> None:
    for depth in range(40):
        (tmp_path / f"in/d{depth}").mkdir(parents=True)
        for side in "ab":
            (tmp_path / f"in/d{depth}/{side}").symlink_to(f"../d{depth + 1}")
    write(tmp_path / "in/d40/x.jsonl")

    assert names(find(tmp_path, "in/**/*.jsonl")) == ["in/d40/x.jsonl"]
    assert names(find(tmp_path, "in/d0", follow_links=True)) == ["in/d0/" + "a/" * 40 + "x.jsonl"]


def make_special(folder: Path) -> None:
    """A FIFO, a socket and a link to a device."""
    os.mkfifo(folder / "fifo.jsonl")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket.jsonl"))
    (folder / "zero.jsonl").symlink_to("/dev/zero")


@pytest.mark.parametrize("pattern", [".", "*", "**/*.jsonl"])
def test_special_files_are_named_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl")
    make_special(Path())

    found = find(tmp_path, pattern, follow_links=True)

    assert names(found) == ["a.jsonl"]
    assert {name: reason for name, reason in reasons(found).items() if "jsonl" in name} == {
        "fifo.jsonl": "a FIFO, not a regular file",
        "socket.jsonl": "a socket, not a regular file",
        "zero.jsonl": "a character device, not a regular file",
    }


@pytest.mark.parametrize("prefix", ["", "file://{}/"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fifo.jsonl", "a FIFO"),
        ("socket.jsonl", "a socket"),
        ("zero.jsonl", "a character device"),
    ],
)
def test_a_special_file_that_is_named_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, name: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_special(Path())

    with pytest.raises(InputError, match=rf"{name} is {kind}\. Name a regular file"):
        find(tmp_path, prefix.format(tmp_path) + name)


def test_an_error_names_what_was_left_out(tmp_path: Path) -> None:
    write(tmp_path / "out/x.jsonl")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x.jsonl").symlink_to(tmp_path / "out/x.jsonl")

    with pytest.raises(InputError, match=r"Left out: 1 \('in/x\.jsonl': a link that leaves"):
        find(tmp_path, "in", allow_no_files=False)


PATTERNS = [
    *("*", "**", "*/*", "**/*", "*/**", "**/a", "a/*", "a*/?", "[ab]/*", "**/[!a]*", ".*", "a/.*"),
    *("**/.b", "*/", "**/", "a/**/", "**/a/**", "**/../*", "*/../b/*", "b/./**/*", "none/*"),
]


@pytest.mark.parametrize("seed", range(8))
def test_globs_without_links_find_what_the_standard_library_finds(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    base = tmp_path / "b[1]"
    for _ in range(25):
        words = [chance.choice(["a", "b", ".b", "ab"]) for _ in range(chance.randint(1, 4))]
        path = base.joinpath(*words)
        if not path.exists() and all(not parent.is_file() for parent in path.parents):
            write(path)
    for pattern in PATTERNS:
        matched = glob.glob(f"{glob.escape(str(base))}/{pattern}", recursive=True)
        expected: set[str] = set()
        for name in matched:
            below = (
                [name]
                if os.path.isfile(name)
                else glob.glob(f"{glob.escape(name)}/**", recursive=True)
            )
            expected |= {os.path.abspath(path) for path in below if os.path.isfile(path)}
        found = search(pattern, base, follow_links=False)
        assert {os.path.abspath(path) for path in found.files} == expected, pattern
        assert not found.left_out
