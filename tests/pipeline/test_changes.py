"""What changes is made again: a build after any change is as one from nothing."""

import random
from collections.abc import Sequence

from builders import open_corpus
from corpus_changes import CHANGES, CORPORA, Site
from fresh_build import Facts, build_all, differences, facts_of, shards_of, stale
from prelude import Path, pytest, settings
from verbs import Cli

from pipeline_defs.forecast.nothing_new import is_built

IS_SEARCH = settings.get_current_profile_name() == "search"
SEEDS = range(50 if IS_SEARCH else 4)
CHANGES_OF_A_SEED = 10


def built(site: Site) -> Facts:
    """Build the corpus as it is now; return all that it publishes."""
    build_all(corpus := open_corpus(site.config))
    assert is_built(corpus)
    return facts_of(corpus) | shards_of(corpus)


def check(site: Site, name: str, changes: Sequence[str]) -> None:
    """Change a corpus step by step, and compare each build with one from nothing."""
    before = built(site)
    for change in changes:
        site.step += 1
        CHANGES[name][change](site)
        assert not is_built(open_corpus(site.config)), f"{change!r} of {name!r}"

        after = built(site)

        assert differences(after, before), f"{change!r} changed nothing of {name!r}"
        assert stale(open_corpus(site.config), site.cli) == [], f"{change!r} of {name!r}"
        before = after


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_build_after_a_change_is_as_one_from_nothing(
    seed: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = list(CORPORA)[seed % len(CORPORA)]
    monkeypatch.syspath_prepend(str(tmp_path / "site"))  # of a corpus that uses plug-ins
    site = Site(CORPORA[name](tmp_path), cli, random.Random(seed))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(site.config))
    check(site, name, site.random.sample(sorted(CHANGES[name]), CHANGES_OF_A_SEED))


@pytest.mark.slow
def test_shards_obey_a_takedown_once(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger of another build says which takedowns it obeyed: rows may stay marked after."""
    site = Site(CORPORA["texts in buckets"](tmp_path), cli, random.Random(1))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(site.config))
    check(site, "texts in buckets", ["a takedown", "an evaluation item"])
