"""Sources of Common Crawl: a list of paths, below a folder or a web server."""

import gzip

from prelude import Path, pytest
from served import served_folder

from assets.raw.places.find_inputs import Inputs, find_inputs
from resources.errors import InputError
from resources.settings.sources import SourceConfig

CRAWL = "crawl-data/CC-MAIN-2024-10"


def mirror(root: Path, kind: str = "wet") -> list[str]:
    """Write a crawl of 4 segments of 3 files; the paths in their order, below its folder."""
    paths = [
        f"{CRAWL}/segments/170000000{segment}.1/{kind}/CC-{number:05d}.warc.{kind}.gz"
        for segment in (3, 1, 0, 2)
        for number in range(3)
    ]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(gzip.compress(path.encode()))
    (root / f"{CRAWL}/{kind}.paths.gz").write_bytes(gzip.compress("\n".join(paths).encode()))
    return paths


def found(folder: Path, query: str, base_url: str = "mirror") -> Inputs:
    where = f"cc://CC-MAIN-2024-10{query}"
    keys = {"name": "s", "where": where, "base_url": base_url}
    return find_inputs(SourceConfig.model_validate(keys), folder, folder / "store/_downloads")


def names(inputs: Inputs) -> list[str]:
    assert all((file.format, file.compression) == ("wet", "gz") for file in inputs.files)
    return [file.name.removeprefix("mirror/") for file in inputs.files]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?segments=0", [0, 1, 2]),
        ("?segments=1-2&kind=wet", [3, 4, 5, 6, 7, 8]),
        ("?files=2-3", [2, 3]),
        ("?segments=0-1&files=2-3", [2, 3]),
        ("?share=1", [*range(12)]),
        ("?files=0-99", [*range(12)]),
    ],
)
def test_a_query_selects_by_the_order_of_the_list(
    tmp_path: Path, query: str, numbers: list[int]
) -> None:
    paths = mirror(tmp_path / "mirror")
    assert names(found(tmp_path, query)) == sorted(paths[number] for number in numbers)


def test_a_larger_share_holds_the_files_of_a_smaller_one(tmp_path: Path) -> None:
    mirror(tmp_path / "mirror")
    shares = [{*names(found(tmp_path, f"?share={share}"))} for share in (0.2, 0.5, 0.8)]
    assert shares[0] < shares[1] < shares[2]
    assert [len(share) for share in shares] == [1, 5, 10]


def test_files_of_a_crawl_are_found_behind_a_web_server(tmp_path: Path) -> None:
    paths = mirror(tmp_path / "mirror")
    with served_folder(tmp_path / "mirror") as url:
        base = f"{url}/"
        inputs = found(tmp_path, "?segments=3", base)

    assert [file.name for file in inputs.files] == [base + path for path in sorted(paths[9:])]
    local = (tmp_path / "mirror" / paths[9]).read_bytes()
    assert inputs.files[0].bytes == len(local)


def test_a_listed_file_that_the_mirror_lacks_is_left_out_with_a_reason(tmp_path: Path) -> None:
    paths = mirror(tmp_path / "mirror")
    (tmp_path / "mirror" / paths[1]).unlink()

    inputs = found(tmp_path, "?segments=0")

    assert len(inputs.files) == 2
    assert [each.reason for each in inputs.left_out] == [
        "in the list of its crawl, and not in the folder `base_url`"
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "this names all of a crawl"),
        ("?kind=wet", "this names all of a crawl"),
        ("?kind=wat&files=0", "kind 'wat' is none of wet, warc"),
        ("?segment=0", "unknown key 'segment'"),
        ("?segments=4", "the crawl has 4 segments, from 0"),
        ("?files=5-2", "files '5-2' is no range"),
        ("?files=-1", "files '-1' is no range"),
        ("?share=nan", r"share 'nan' is not in \(0, 1\]"),
        ("?kind=warc&files=0", "warc.paths.gz"),
    ],
)
def test_a_wrong_query_says_what_is_wrong(tmp_path: Path, query: str, message: str) -> None:
    mirror(tmp_path / "mirror")
    with pytest.raises(InputError, match=message):
        found(tmp_path, query)


@pytest.mark.parametrize(
    "line", [b"../../etc/passwd", b"/etc/passwd", b"http://h/x", CRAWL.encode() + b"/../x/1.0/w/a"]
)
def test_a_list_that_leads_elsewhere_is_refused(tmp_path: Path, line: bytes) -> None:
    paths = mirror(tmp_path / "mirror")
    listed = gzip.compress(paths[0].encode() + b"\n" + line)
    (tmp_path / "mirror" / CRAWL / "wet.paths.gz").write_bytes(listed)

    with pytest.raises(InputError, match=r"is no list of paths: line 2 is"):
        found(tmp_path, "?share=1")


def test_a_list_that_is_cut_is_refused(tmp_path: Path) -> None:
    mirror(tmp_path / "mirror")
    path = tmp_path / "mirror" / CRAWL / "wet.paths.gz"
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(InputError, match="truncated"):
        found(tmp_path, "?share=1")
