"""Paths, folders, globs and URLs -> input files."""

import gzip

import xxhash
from answering_site import Site, answering_site
from prelude import Iterator, Path, os, pytest

from assets.raw.places import downloads
from assets.raw.places import find_inputs as find_inputs_module
from assets.raw.places.find_inputs import LeftOut, find_inputs
from assets.raw.readers.formats import tell_format
from assets.raw.readers.input_file import InputFile
from resources.errors import InputError
from resources.settings.sources import SourceConfig


def find(base: Path, *where: str, **options: object) -> list[InputFile]:
    source = SourceConfig.model_validate({"name": "s", "where": where, **options})
    return find_inputs(source, base, base / "store/_downloads").files


def write(path: Path, data: bytes = b"{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_folder_means_every_known_file_below_sorted_by_name(tmp_path: Path) -> None:
    for name in ("d/b.jsonl", "d/a/z.csv.gz", "d/README.md", "d/.hidden/x.jsonl", "e.jsonl"):
        write(tmp_path / name)

    found = find(tmp_path, "d")

    assert [(f.name, f.format, f.compression) for f in found] == [
        ("d/a/z.csv.gz", "csv", "gz"),
        ("d/b.jsonl", "jsonl", None),
    ]


def test_files_without_a_reader_are_named_with_the_reason(tmp_path: Path) -> None:
    for name in ("d/a.jsonl", "d/b.pdf", "d/c.docx.gz", "d/no_suffix", "d/.hidden"):
        write(tmp_path / name)

    left_out = left_out_of(tmp_path, "d", "d/*")

    assert [each.name for each in left_out] == ["d/b.pdf", "d/c.docx.gz", "d/no_suffix"]
    assert {each.reason for each in left_out} == {"no reader for its format"}
    assert [each.reason for each in left_out_of(tmp_path, "d", format="jsonl")] == [
        "its name is not of the format jsonl"
    ] * 3
    assert left_out_of(tmp_path, "d/*", format="jsonl") == []


def left_out_of(base: Path, *where: str, **options: object) -> list[LeftOut]:
    source = SourceConfig.model_validate({"name": "s", "where": where, **options})
    return find_inputs(source, base, base / "store/_downloads").left_out


def test_file_met_twice_is_listed_once(tmp_path: Path) -> None:
    write(tmp_path / "d/a.jsonl")

    assert [f.name for f in find(tmp_path, "d", "d/*.jsonl", "**/*", "./d/../d/a.jsonl")] == [
        "d/a.jsonl"
    ]


def test_size_and_digest_are_those_of_the_bytes(tmp_path: Path) -> None:
    data = b"x" * 9_000_000
    write(tmp_path / "a.txt", data)

    found = find(tmp_path, "a.txt")[0]

    assert (found.bytes, found.digest) == (len(data), xxhash.xxh3_128_hexdigest(data))


def test_name_is_relative_below_the_base_and_absolute_elsewhere(tmp_path: Path) -> None:
    inside, outside = write(tmp_path / "base/a.txt"), write(tmp_path / "b.txt")

    names = [f.name for f in find(tmp_path / "base", str(inside), "../b.txt")]

    assert names == [outside.as_posix(), "a.txt"]


def test_name_with_glob_characters_is_taken_literally(tmp_path: Path) -> None:
    write(tmp_path / "a[1].txt")

    assert [f.name for f in find(tmp_path, "a[1].txt")] == ["a[1].txt"]


def test_declared_format_holds_for_globs_and_named_files(tmp_path: Path) -> None:
    write(tmp_path / "a.log.gz"), write(tmp_path / "b.data")

    found = find(tmp_path, "*.log.gz", "b.data", format="jsonl")

    assert [(f.format, f.compression) for f in found] == [("jsonl", "gz"), ("jsonl", None)]


def test_unknown_extension_is_an_error_only_for_a_named_file(tmp_path: Path) -> None:
    write(tmp_path / "a.dat"), write(tmp_path / "b.txt")

    assert [f.name for f in find(tmp_path, "*")] == ["b.txt"]
    with pytest.raises(InputError, match=r"source 's': the format of 'a\.dat'.*Set `format`"):
        find(tmp_path, "a.dat")


@pytest.mark.parametrize("pattern", ["missing.jsonl", "*.jsonl", "empty", "file:///no/such.jsonl"])
def test_nothing_found_names_source_pattern_and_folder(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(InputError) as caught:
        find(tmp_path, pattern)

    for part in ("'s'", repr(pattern), str(tmp_path), "allow_no_files"):
        assert part in str(caught.value)
    assert find(tmp_path, pattern, allow_no_files=True) == []


@pytest.mark.parametrize("pattern", [".", "**/*.parquet", "store"])
def test_store_is_no_input_unless_a_file_is_named(tmp_path: Path, pattern: str) -> None:
    output = write(tmp_path / "store/raw/s/documents.parquet")

    assert find(tmp_path, pattern, allow_no_files=True) == []
    assert [f.path for f in find(tmp_path, "store/raw/s/documents.parquet")] == [output]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (
            "webdav://a.b/a.jsonl",
            "webdav:// is not supported. Use s3://, gs://, az://, hdfs://, cc://, http://, https://",
        ),
        ("ftp://a.b/c.jsonl", "ftp:// is not supported"),
        ("http://[::1/a.jsonl", "Invalid IPv6 URL"),
        ("http://a..b/ä.jsonl", "a..b"),
        ("http://a b/x.jsonl", "a b"),
        ("http:///x.jsonl", "no host"),
        ("http://a.b:port/x.jsonl", "Port could not be cast"),
        ("x" * 300, "File name too long"),
    ],
)
def test_pattern_that_cannot_be_read_is_an_input_error(
    tmp_path: Path, pattern: str, reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        find(tmp_path, pattern)

    for part in ("source 's'", repr(pattern), reason):
        assert part in str(caught.value)


def test_a_file_name_that_is_not_utf8_is_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path / "in" / os.fsdecode(b"a\xff.jsonl"))
    with pytest.raises(InputError, match=r"no input file .*udcff.jsonl': its name is not UTF-8"):
        find(tmp_path, "in")

    write(tmp_path / "in/b\nc.jsonl")
    source = SourceConfig.model_validate({"name": "s", "where": "in"})
    found = find_inputs(source, tmp_path, tmp_path / "store/_downloads")

    assert [file.name for file in found.files] == ["in/b\nc.jsonl"]
    assert [(each.name, each.reason) for each in found.left_out] == [
        ("in/a\\udcff.jsonl", "its name is not UTF-8: rename the file")
    ]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://a.b/x%20y?q=1&r=%C3%A4", "http://a.b/x%20y?q=1&r=%C3%A4"),
        ("http://a.b/x y/ä.txt?q=日#part", "http://a.b/x%20y/%C3%A4.txt?q=%E6%97%A5"),
        ("https://me@bücher.de:8/x", "https://me@xn--bcher-kva.de:8/x"),
    ],
)
def test_url_is_percent_encoded_once(url: str, sent: str) -> None:
    assert downloads.ascii_url(url) == sent


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.jsonl", ("jsonl", None)),
        ("a.NDJSON.ZST", ("jsonl", "zst")),
        ("a.jsonl.zstd", ("jsonl", "zst")),
        ("a.tgz", ("tar", "gz")),
        ("a.b.parquet", ("parquet", None)),
        ("https://h/p/a%2Ewarc.gz?x=.csv#y", ("warc", "gz")),
        ("a.gz", (None, "gz")),
        (".jsonl", (None, None)),
    ],
)
def test_format_is_told_from_the_name(name: str, told: tuple[str | None, str | None]) -> None:
    assert tell_format(name) == told


def test_file_url_is_read_in_place(tmp_path: Path) -> None:
    path = write(tmp_path / "a b.jsonl")

    found = find(tmp_path, path.as_uri())[0]

    assert (found.path, found.name) == (path, path.as_uri())


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with answering_site(monkeypatch) as state:
        yield state


def url_of(site: Site) -> str:
    return f"http://{site.place}/../a.jsonl.gz"


def test_url_is_downloaded_under_a_hashed_name(site: Site, tmp_path: Path) -> None:
    body = gzip.compress(b"{}")
    site.answers = [(200, body, {"Content-Disposition": 'attachment; filename="/etc/x"'})]

    found = find(tmp_path, url_of(site))[0]

    assert (found.name, found.format, found.compression) == (url_of(site), "jsonl", "gz")
    assert found.path.parent == tmp_path / "store/_downloads"
    assert found.path.read_bytes() == body
    assert sorted(p.suffix for p in found.path.parent.iterdir()) == ["", ".json"]


def test_damaged_copy_is_fetched_again(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, b"one", {"ETag": '"v1"'}), (200, b"one", {"ETag": '"v1"'})]
    find(tmp_path, url_of(site))[0].path.write_bytes(b"on")

    assert find(tmp_path, url_of(site))[0].path.read_bytes() == b"one"
    assert "If-None-Match" not in site.asked[1]


def test_url_with_blanks_and_other_scripts_is_fetched(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, b"{}", {})]
    url = url_of(site).replace("../a", "ein Wörterbuch")

    assert [f.name for f in find(tmp_path, url)] == [url]


def test_a_readme_is_read_where_a_glob_names_it(tmp_path: Path) -> None:
    base = tmp_path / "docs"
    base.mkdir()
    for name in ("README.md", "a.md"):
        (base / name).write_text("# Hi\n")

    folder, glob = (
        find_inputs(SourceConfig(name="s", where=(where,)), base, tmp_path / "s/d")
        for where in (".", "*.md")
    )

    assert [file.name for file in folder.files] == ["a.md"]
    assert [each.reason for each in folder.left_out] == [
        "about its folder: name it, or a glob for it, in `where` to read it"
    ]
    assert [file.name for file in glob.files] == ["README.md", "a.md"]


def test_a_pattern_that_matches_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_inputs_module, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    assert len(find(tmp_path, "[0-2].txt")) == 3
    with pytest.raises(InputError, match=r"source 's'.*'\*\.txt' matches over 3 files, more than"):
        find(tmp_path, "*.txt")
