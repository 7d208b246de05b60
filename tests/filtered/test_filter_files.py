"""Files that a filter config names: read, digested, and refused with their name."""

from prelude import Any, Path, os, pytest

from assets.filtered import filter_files
from assets.filtered.filter_files import (
    MOST_BYTES,
    FilterFileError,
    digests_of,
    load_custom_rules,
    load_filter_data,
)
from resources.settings.filtering.filters import FilterConfig

RULES_FILE = """
import polars as pl
from assets.filtered.rules import CustomRule
RULES = [CustomRule("long", pl.col("text").str.len_chars(), maximum=3, keeps=["a"])]
"""


def config(**given: Any) -> FilterConfig:
    return FilterConfig.model_validate(given)


def test_lists_are_read_only_for_rules_in_force(tmp_path: Path) -> None:
    assert load_filter_data(config(), tmp_path).profanity == {}
    assert "en" in load_filter_data(config(rules={"profanity": {}}), tmp_path).profanity
    assert load_filter_data(config(rules={"medical": {}}), tmp_path).vocabulary


def test_files_add_to_the_lists(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("# mine\nflibbert\n\n two words \n", encoding="utf-8-sig")
    (tmp_path / "hosts.txt").write_text(
        "https://www.Bad.com/\n*.evil.org\nok.net/page/\nweb.archive.org/2020/http://b.org\n"
    )
    (tmp_path / "terms.json").write_text('{"categories": {"law": ["tort"]}}')
    words = {"profanity_files": {"xx": "bad.txt"}, "builtin_profanity": False}
    metadata = {"blocked_domains_file": "hosts.txt"}
    given = config(
        words=words | {"vocabulary_file": "terms.json"},
        rules={"profanity": {}, "medical": {}, "metadata": metadata},
    )

    data = load_filter_data(given, tmp_path)

    assert data.profanity == {"xx": ("flibbert", "two words")}
    assert data.vocabulary == {"law": ("tort",)}
    archived = "web.archive.org/2020/http://b.org"
    assert data.blocked_domains == {"bad.com", "evil.org", "ok.net/page", archived}


def test_a_changed_file_changes_digest_and_data_but_not_between_plan_and_work(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rules.py"
    path.write_text(RULES_FILE)
    given = config(custom="rules.py")
    planned = digests_of(given, tmp_path)
    [rule] = load_filter_data(given, tmp_path, planned).custom
    assert rule.name == "long"

    path.write_text(RULES_FILE.replace('"long"', '"longer"'))

    assert digests_of(given, tmp_path) != planned
    assert [rule.name for rule in load_filter_data(given, tmp_path).custom] == ["longer"]
    with pytest.raises(FilterFileError, match=r"filters\.custom: changed while the run"):
        load_filter_data(given, tmp_path, planned)


def test_a_large_file_of_equal_size_and_time_has_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_files, "LARGE_FILE_BYTES", 1)
    path = tmp_path / "bad.txt"
    given = config(words={"profanity_files": {"xx": "bad.txt"}}, rules={"profanity": {}})
    path.write_text("one")
    before, status = digests_of(given, tmp_path), path.stat()

    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert digests_of(given, tmp_path) != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("RULES = 1", "RULES must be a list"),
        ("1 / 0", "ZeroDivisionError"),
        ("import", "SyntaxError"),
        (RULES_FILE.replace('keeps=["a"]', 'keeps=["aaaa"]'), "does not keep its example"),
        ("import assets.other", "ModuleNotFoundError: No module named 'assets.other'"),
        ("from assets.transforms.custom import CustomRule", "from tokenmill.plugins import"),
    ],
)
def test_a_wrong_rules_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "rules.py").write_text(content)
    with pytest.raises(FilterFileError, match=f"rules.py.*{message}"):
        load_filter_data(config(custom="rules.py"), tmp_path)


MEDICAL = {"words": {"vocabulary_file": "file"}, "rules": {"medical": {}}}


@pytest.mark.parametrize(
    ("given", "content", "message"),
    [
        ({"rules": {"metadata": {"allowed_domains_file": "none.txt"}}}, "", "s_file: no file 'no"),
        (MEDICAL, '{"categories": ["a"]}', "file"),
        (MEDICAL, '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "file: maximum recursion"),
    ],
    ids=["missing", "another form", "nested"],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, given: dict[str, Any], content: str, message: str
) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(FilterFileError, match=message):
        load_filter_data(config(**given), tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "zero"])
def test_what_is_no_regular_file_is_named_with_its_key(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "domains.txt"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    given = config(rules={"metadata": {"blocked_domains_file": "domains.txt"}})
    with pytest.raises(FilterFileError, match=r"blocked_domains_file: .*domains\.txt: a \w+; name"):
        load_filter_data(given, tmp_path)


def test_a_list_beyond_the_bound_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "domains.txt").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    given = config(rules={"metadata": {"blocked_domains_file": "domains.txt"}})
    with pytest.raises(FilterFileError, match="67,108,865 bytes, and at most 67,108,864"):
        load_filter_data(given, tmp_path)


@pytest.mark.parametrize("fault", ["MemoryError", "OSError(24, 'Too many open files')"])
def test_a_lack_of_the_machine_is_no_fault_of_a_custom_rule(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "rules.py"
    path.write_text(f"raise {fault}\n")
    with pytest.raises((MemoryError, OSError)):
        load_custom_rules(path)
