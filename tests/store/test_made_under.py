"""A manifest of another config, code version or input is refused, and the message names the way."""

from types import SimpleNamespace

from prelude import Any, pytest

from resources.made_under import check_made_under, is_made_by
from resources.store.records import Manifest, Stats
from resources.store.store import StoreError


def manifest(stage: str = "signatures", partition: str = "web") -> Manifest[Any, Any]:
    return Manifest(stage, partition, "fingerprint", "2", {"rows": 8}, (), Stats(), {})


def message_of(made: Manifest[Any, Any], **today: Any) -> str:
    with pytest.raises(StoreError) as error:
        check_made_under(made, **today)
    return str(error.value)


def test_the_same_config_and_inputs_pass() -> None:
    check_made_under(manifest())
    check_made_under(manifest(), config={"rows": 8}, inputs={"documents than ...": ("a", "a")})


def test_another_config_is_refused() -> None:
    assert message_of(manifest(), config={"rows": 4}, section="dedup") == (
        "signatures[web] were made under another `dedup` config than pipeline.yaml's. "
        "Materialize `signatures` for 'web' first."
    )
    assert message_of(manifest("evaluation", "all"), config={}) == (
        "evaluation[all] was made under another config than pipeline.yaml's. "
        "Materialize `evaluation` first."
    )


def test_other_inputs_are_refused() -> None:
    inputs = {"documents than the newest filtered[web]": ("a", "b"), "pages than others": (1, 1)}
    again = ("signatures", "band_index", "duplicates")

    assert message_of(manifest(), inputs=inputs, again=again) == (
        "signatures[web] are of other documents than the newest filtered[web]. "
        "Materialize `signatures` for 'web', then `band_index` and `duplicates`, first."
    )


def test_both_faults_are_named_at_once() -> None:
    inputs = {"signatures than the newest ones": (["a"], ["b"])}
    again = ("signatures", "band_index")

    assert message_of(manifest("band_index", "all"), config={}, inputs=inputs, again=again) == (
        "band_index[all] was made under another config than pipeline.yaml's and is of other "
        "signatures than the newest ones. Materialize `signatures` and `band_index` first."
    )


@pytest.mark.parametrize(
    ("version", "rows", "expected"), [("2", 8, True), ("1", 8, False), ("2", 4, False)]
)
def test_code_and_config_tell_whether_a_stage_would_do_the_same(
    version: str, rows: int, expected: bool
) -> None:
    stage = SimpleNamespace(name="signatures", code_version=version)

    assert is_made_by(manifest(), stage, {"rows": rows}) is expected
