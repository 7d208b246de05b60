"""A store is a folder or a URL without secrets; behind a URL its root is a scratch."""

from prelude import Path, pytest
from tables import cases

from resources.settings.pipeline import SettingsError, load_settings, store_root
from resources.store.scratch import place_of

TEXT = """
store: {store}
sources: [{{name: web, where: a.txt}}]
phases: [{{name: general, tokens: 1000, weights: {{web: 1}}}}]
"""


def write(folder: Path, store: str, more: str = "") -> Path:
    path = folder / "pipeline.yaml"
    path.write_text(TEXT.format(store=store) + more)
    return path


def test_the_root_of_a_url_is_its_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "s3://corpora/all web/", "scratch: {folder: copies, bytes: 5000000}")
    root = store_root(load_settings(path), path)
    assert root == tmp_path / "copies" / "s3-corpora-all-web"
    assert place_of(root) == "s3://corpora/all web"

    monkeypatch.setenv("TOKENMILL_STORE", "gs://other")
    root = store_root(load_settings(path), path)
    assert root == tmp_path / "copies" / "gs-other"
    assert place_of(root) == "gs://other"


def test_the_scratch_of_a_url_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "s3://corpora")
    monkeypatch.setenv("TOKENMILL_SCRATCH", str(tmp_path / "ssd"))
    assert store_root(load_settings(path), path) == tmp_path / "ssd" / "s3-corpora"


@cases("""
    store                       | fault
    s3://key:secret@corpora/web | has no user and no query: credentials come from
    s3://corpora/web?sig=secret | has no user and no query
    ftp://corpora/web           | is no store. Give a folder, or s3://bucket/prefix
    s3:///web                   | is no store
    s3://corpora/../web         | is no store
""")
def test_a_wrong_url_is_refused_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, fault: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(write(tmp_path, f'"{store}"'))
    monkeypatch.setenv("TOKENMILL_STORE", store)
    path = write(tmp_path, "out")
    with pytest.raises(SettingsError) as of_variable:
        store_root(load_settings(path), path)
    for error in (refused, of_variable):
        assert fault in str(error.value)
        assert "secret" not in str(error.value)
