"""Tags and holds keep what they name; what nothing names goes, and nothing else."""

import tempfile
from contextlib import contextmanager

from builders import hashes
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from prelude import Any, Iterator, Path, pytest
from s3_server import s3_bucket

from pipeline_defs.commands.life.verify import find_faults
from pipeline_defs.commands.states.gc import collect
from pipeline_defs.commands.states.rollback import begin, go_back
from pipeline_defs.commands.states.state_chain import state_of
from pipeline_defs.commands.states.tag import delete_tag, make_tag
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.pipeline import load_settings
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import (
    NamedManifest,
    Rollback,
    Tag,
    create,
    delete,
    read_rollback,
    read_tags,
    rollback_path,
    tag_path,
)
from resources.store.records import Manifest, Stats, add_stats, fingerprint_of
from resources.store.scratch import open_scratch
from resources.store.store import PartWriter, Store, StoreError

CONFIG = Path(__file__).parents[1] / "small_corpus.yaml"
FLOW = ("raw", "filtered")


def corpus_in(root: Path) -> Corpus:
    """A corpus whose runs keep two states of each partition."""
    settings = load_settings(CONFIG).model_copy(update={"keep_manifests": 2})
    return Corpus(settings, CONFIG, Store(root))


def build(corpus: Corpus, source: str, files: dict[str, str]) -> None:
    """Commit every stage of a source, with a part per input file, as a run would."""
    made: dict[str, str] = {}
    for stage in FLOW:
        folder = corpus.store.partition(stage, source)
        about = dict(made) or {"num_files": len(files), "files": files}
        with folder.writing(corpus.settings.keep_manifests):
            parts = tuple(publish(folder, name, files[name]) for name in sorted(files))
            fingerprint = fingerprint_of([part.fingerprint for part in parts], {}, about)
            stats = add_stats(part.stats for part in parts)
            folder.commit(Manifest(stage, source, fingerprint, "1", {}, parts, stats, about))
        made = {stage: fingerprint}


def publish(folder: Any, name: str, content: str) -> Any:
    """Publish a part with one file."""
    fingerprint = fingerprint_of(folder.stage, name, content)
    if record := folder.find_part(name, fingerprint):
        return record
    writer = PartWriter(folder, name, fingerprint)
    writer.write_text("documents", "txt", f"{name} {content}")
    return writer.publish(Stats(1, 1))


def files_of(store: Store) -> set[str]:
    """Names of all files of a store, except locks."""
    return {name for name in hashes(store.root) if not name.endswith("lock")}


def needed_files(corpus: Corpus, keep: int) -> set[str]:
    """Names of the files that newest states, tags and holds need, found one by one."""
    root, needed = corpus.store.root, set()
    named = {
        (m.stage, m.partition, m.number) for t in read_tags(root).values() for m in t.manifests
    }
    for source in corpus.settings.source_names():
        if hold := read_rollback(root, source):
            named |= {(m.stage, m.partition, m.number) for m in hold.manifests}
            needed.add(f"_holds/{source}.json")
    for folder in corpus.store.partitions():
        newest = folder.manifest_numbers()[-keep:]
        named |= {(folder.stage, folder.name, number) for number in newest}
    for stage, name, number in named:
        folder = corpus.store.partition(stage, name)
        inside = folder.named_by([number]) | {f"_manifests/{number:08d}.json"}
        needed |= {f"{stage}/{name}/{path}" for path in inside}
    return needed | {f"_tags/{name}.json" for name in read_tags(root)}


class LifeOfACorpus(RuleBasedStateMachine):
    """Builds, tags, rollbacks and clean-ups in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.corpus = corpus_in(Path(self.folder.name) / "store")
        self.store = self.corpus.store
        self.tags: dict[str, dict[tuple[str, str], str]] = {}  # fingerprints by name and partition
        self.holds: dict[str, list[str]] = {}  # fingerprints by source, in the order of the flow

    def teardown(self) -> None:
        self.folder.cleanup()

    def state(self, source: str) -> list[str]:
        return [self.store.newest(stage, source).fingerprint for stage in FLOW]

    @rule(
        source=strategies.sampled_from(["prose", "notes"]),
        files=strategies.dictionaries(
            strategies.sampled_from("abc"), strategies.sampled_from("12"), min_size=1
        ),
    )
    def build(self, source: str, files: dict[str, str]) -> None:
        if source not in self.holds:
            build(self.corpus, source, files)

    @precondition(lambda self: list(self.store.partitions()))
    @rule(name=strategies.sampled_from(["v1", "v2"]))
    def tag(self, name: str) -> None:
        newest = {(p.stage, p.name): p.newest_manifest() for p in self.store.partitions()}
        now = {place: manifest.fingerprint for place, manifest in newest.items() if manifest}
        try:
            make_tag(self.store, name)
            self.tags.setdefault(name, now)
        except UsageError:
            assert name in self.tags

    @precondition(lambda self: self.tags)
    @rule(data=strategies.data())
    def untag(self, data: Any) -> None:
        name = data.draw(strategies.sampled_from(sorted(self.tags)))
        delete_tag(self.store, name)
        del self.tags[name]

    @rule(source=strategies.sampled_from(["prose", "notes"]), data=strategies.data())
    def roll_back(self, source: str, data: Any) -> None:
        numbers = self.store.partition("filtered", source).manifest_numbers()
        if source in self.holds or not numbers:
            return
        to = str(data.draw(strategies.sampled_from(numbers)))
        state = state_of(KeptManifests(self.store, source), to)
        if state.missing:
            with pytest.raises(StoreError, match="no longer whole"):
                begin(self.store, source, to, "")
            return
        go_back(self.corpus, begin(self.store, source, to, ""))
        self.holds[source] = [state.manifests[stage][1].fingerprint for stage in FLOW]
        assert self.state(source) == self.holds[source]

    @precondition(lambda self: self.holds)
    @rule(data=strategies.data())
    def release(self, data: Any) -> None:
        source = data.draw(strategies.sampled_from(sorted(self.holds)))
        assert delete(rollback_path(self.store.root, source))
        del self.holds[source]

    @rule(keep=strategies.sampled_from([1, 2, 3]))
    def collect_garbage(self, keep: int) -> None:
        before = files_of(self.store)
        needed = needed_files(self.corpus, keep)
        listed = {f"{g.stage}/{g.partition}/{f}" for g in self.sweep(keep, True) for f in g.files}
        assert files_of(self.store) == before
        self.sweep(keep, False)
        assert files_of(self.store) == needed
        assert listed == before - needed
        assert not self.sweep(keep, True)

    def sweep(self, keep: int, is_dry: bool) -> list[Any]:
        return list(collect(self.store, keep, {}, is_dry=is_dry))

    @invariant()
    def nothing_that_is_named_is_lost(self) -> None:
        assert not find_faults(self.store).faults
        assert set(read_tags(self.store.root)) == set(self.tags)
        for name, fingerprints in self.tags.items():
            for each in read_tags(self.store.root)[name].manifests:
                folder = self.store.partition(each.stage, each.partition)
                found = folder.read_manifest(each.number).fingerprint
                assert found == fingerprints[each.stage, each.partition]
        for source, fingerprints_of_flow in self.holds.items():
            assert self.state(source) == fingerprints_of_flow


LifeOfACorpus.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
TestTheLifeOfACorpus = LifeOfACorpus.TestCase


@contextmanager
def on_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Corpus]:
    """A corpus on an object store."""
    with s3_bucket(monkeypatch):
        root = open_scratch("s3://corpora/life", tmp_path / "scratch", 1 << 30)
        yield corpus_in(root)


def test_on_an_object_store_a_tag_keeps_its_state_and_the_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_s3(tmp_path, monkeypatch) as corpus:
        store = corpus.store
        build(corpus, "prose", {"a": "1"})
        make_tag(store, "v1")
        for content in "234":
            build(corpus, "prose", {"a": content})
        raw = store.partition("raw", "prose")
        assert raw.manifest_numbers() == [1, 3, 4]

        listed = [each for each in collect(store, 1, {}, is_dry=True) if each.stage == "raw"]
        assert (listed[0].manifests, len(listed[0].files)) == (1, 3)  # manifest, record, file
        assert listed[0].bytes > 0
        assert raw.manifest_numbers() == [1, 3, 4]
        with raw.writing(2):
            busy = [each.stage for each in collect(store, 1, {}, is_dry=False) if each.is_busy]
        assert busy == ["filtered", "raw"]  # one lease is for all that a run writes
        assert list(collect(store, 1, {}, is_dry=False))
        assert raw.manifest_numbers() == [1, 4]
        assert not find_faults(store).faults

        go_back(corpus, begin(store, "prose", "v1", "bad"))
        assert raw.manifest_numbers() == [1, 4, 5]
        assert raw.read_manifest(5) == raw.read_manifest(1)
        delete_tag(store, "v1")
        list(collect(store, 1, {}, is_dry=False))
        assert raw.manifest_numbers() == [1, 5]  # the hold names it
        assert delete(rollback_path(store.root, "prose"))
        list(collect(store, 1, {}, is_dry=False))
        assert raw.manifest_numbers() == [5]
        assert not find_faults(store).faults


def test_of_two_tags_of_a_name_the_first_wins(tmp_path: Path) -> None:
    path = tag_path(tmp_path, "v1")
    first, second = (Tag("v1", (NamedManifest("raw", "a", n, "f"),)) for n in (1, 2))

    assert create(path, first)
    assert not create(path, second)
    assert create(path, first)  # an attempt whose answer was lost
    assert read_tags(tmp_path) == {"v1": first}


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "3", "-v", ".v", "0" * 32, "a" * 65, "é"]
)
def test_a_tag_has_a_plain_name(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)

    with pytest.raises(UsageError, match="no name of a tag"):
        make_tag(store, name)
    with pytest.raises(UsageError, match="no name of a tag"):
        delete_tag(store, name)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"name":"v1","manifests":[],"sha256":"00"}\n'])
def test_while_a_tag_is_damaged_nothing_is_removed(tmp_path: Path, content: bytes) -> None:
    corpus = corpus_in(tmp_path / "store")
    build(corpus, "prose", {"a": "1"})
    path = tag_path(corpus.store.root, "v1")
    path.parent.mkdir()
    path.write_bytes(content)
    before = hashes(corpus.store.root)

    with pytest.raises(StoreError, match=r"v1\.json is damaged.*nothing was removed"):
        list(collect(corpus.store, 1, {}, is_dry=False))
    assert hashes(corpus.store.root) == before


def test_a_tag_that_a_clean_up_overtook_is_not_made(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path / "store")
    build(corpus, "prose", {"a": "1"})
    folder = corpus.store.partition("filtered", "prose")
    first_look = type(folder).read_manifest

    def look_and_remove(self: Any, number: int, stage: Any = None) -> Any:
        manifest = first_look(self, number, stage)
        if self.stage == "filtered":  # another machine commits and sweeps in between
            self.manifest_path(number).rename(self.manifest_path(number + 1))
        return manifest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(folder), "read_manifest", look_and_remove)
        with pytest.raises(StoreError, match=r"filtered\[prose\] manifest 1 was removed"):
            make_tag(corpus.store, "v1")
    assert read_tags(corpus.store.root) == {}


def test_a_second_rollback_waits_for_the_release_of_the_first(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path / "store")
    for content in "12":
        build(corpus, "prose", {"a": content})

    first = begin(corpus.store, "prose", "1", "bad")
    assert begin(corpus.store, "prose", "1", "another reason") == first
    assert isinstance(first, Rollback)
    with pytest.raises(UsageError, match=r"'prose' is rolled back to state 1 \(bad\).*--release"):
        begin(corpus.store, "prose", "2", "")


def test_a_state_with_a_lost_file_is_refused_before_anything_changes(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path / "store")
    for content in "12":
        build(corpus, "prose", {"a": content})
    manifest = corpus.store.partition("filtered", "prose").read_manifest(1)
    corpus.store.path_of(manifest, manifest.parts[0].files[0]).unlink()
    before = hashes(corpus.store.root)

    with pytest.raises(StoreError, match=r"is missing, or has not the size.*Nothing was changed"):
        begin(corpus.store, "prose", "1", "")
    assert hashes(corpus.store.root) == before
