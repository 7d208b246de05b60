"""Errors of the loader for a corpus, a split or a state that is not right."""

import pickle
import subprocess
import threading
from contextlib import suppress

from loader_corpus import every_sample, numbered_rows, publish, two_sources, write_phase
from prelude import Any, Callable, Path, json, np, os, pytest, sys, time
from tables import cases

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.mixture import VERSION
from corpus_loader.places import local_files
from corpus_loader.places.files import Verify
from corpus_loader.places.local_files import Checks

SHARD = "sharded/web/megatron-0123abcd/shard-00001"
NO_MANIFEST = r"00000001\.json is not a manifest"
FILES = {suffix: {"bytes": 1, "sha256": "0" * 64} for suffix in ("bin", "idx", "spans")}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A corpus to break."""
    return two_sources(tmp_path)


def read_all(store: Path, options: LoaderOptions | None = None) -> None:
    """Read an epoch."""
    for _ in every_sample(store, options=options or LoaderOptions()):
        pass


def flip_bit(path: Path, position: int = 20, mask: int = 1) -> None:
    """Damage a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def change_mixture(store: Path, **changes: Any) -> None:
    """Publish a mixture with something else in it."""
    path = store / "mixed/general/mixture-1.json"
    publish(store, json.loads(path.read_text()) | changes, 2)


def only_shard(store: Path, **shard: Any) -> None:
    """Publish a mixture of one shard."""
    change_mixture(store, sources=[{"name": "web", "samples": 3, "shards": [{"rows": 3} | shard]}])


def write_manifest(store: Path, content: str, number: int = 1) -> None:
    (store / f"mixed/general/_manifests/{number:08d}.json").write_text(content)


def replace_in_mixture(store: Path, old: str, new: str) -> None:
    mixture = store / "mixed/general/mixture-1.json"
    mixture.write_text(mixture.read_text().replace(old, new))


def cut_newest_mixture(store: Path) -> None:
    change_mixture(store)
    path = store / "mixed/general/mixture-2.json"
    path.write_text(path.read_text()[:-20])


def lengthen_document(store: Path) -> None:
    spans = store / f"{SHARD}.spans"
    flip_bit(spans, spans.stat().st_size - 5 * (16 + 4) + 1)  # of the first length


OUTSIDE = r"\.bin' is no name inside a corpus"
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "deleted shard": (
        lambda store: (store / f"{SHARD}.bin").unlink(),
        rf"{SHARD}\.bin is missing.*corpus verify --repair",
    ),
    "other size": (
        lambda store: os.truncate(store / f"{SHARD}.bin", 79),
        rf"{SHARD}\.bin has 79 bytes, the mixture says 80",
    ),
    "documents longer than their row": (
        lengthen_document,
        rf"{SHARD}\.spans is damaged \(documents of 264 tokens",
    ),
    "outside": (
        lambda store: only_shard(store, path="../elsewhere/shard", files=FILES),
        rf"'\.\./elsewhere/shard{OUTSIDE}",
    ),
    "absolute": (
        lambda store: only_shard(store, path="/etc/shard", files=FILES),
        rf"'/etc/shard{OUTSIDE}",
    ),
    "mixture that its manifest does not know": (
        lambda store: replace_in_mixture(store, '"samples": 23', '"samples": 22'),
        "its sha256 is not the manifest's",
    ),
    "cut manifest": (lambda store: write_manifest(store, "{"), NO_MANIFEST),
    "empty manifest": (lambda store: write_manifest(store, "{}"), NO_MANIFEST),
    "wrong manifest": (lambda store: write_manifest(store, '{"parts": 3}'), NO_MANIFEST),
    "manifest of an older tokenmill": (
        lambda store: write_manifest(store, '{\n  "parts": []\n}\n', 2),
        r"names no mixture.*mix_corpus",
    ),
    "newer version": (
        lambda store: change_mixture(store, version=VERSION + 1),
        f"has version {VERSION + 1}, this corpus_loader reads up to {VERSION}",
    ),
    "cut mixture": (cut_newest_mixture, r"mixed/general/mixture-2\.json is not a mixture"),
    "no flat files": (
        lambda store: only_shard(store, path=SHARD, files={}),
        r"Add megatron to `shards\.formats`",
    ),
}


@pytest.mark.parametrize(("fault", "message"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_with_a_corpus_is_named(
    store: Path, fault: Callable[[Path], Any], message: str
) -> None:
    fault(store)

    with pytest.raises(CorpusError, match=message):
        read_all(store, LoaderOptions(with_documents="spans" in message, verify=False))


@pytest.mark.parametrize("verify", ["background", "first"])
@pytest.mark.parametrize("suffix", ["bin", "spans"])
def test_a_flipped_bit_is_found_before_the_epoch_ends(
    store: Path, suffix: str, verify: Verify
) -> None:
    flip_bit(store / f"{SHARD}.{suffix}", -1)

    with pytest.raises(CorpusError, match=rf"{SHARD}\.{suffix} changed.*sha256 is"):
        read_all(store, LoaderOptions(with_documents=True, verify=verify))


def test_with_first_nothing_of_a_damaged_file_is_given(store: Path) -> None:
    flip_bit(store / f"{SHARD}.bin")
    loader = every_sample(store, batch_size=37, options=LoaderOptions(verify="first"))

    with pytest.raises(CorpusError, match="sha256 is"):
        next(iter(loader))


def test_in_the_background_a_file_is_read_while_it_is_hashed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_bit(store / f"{SHARD}.bin")
    may_hash, check = threading.Event(), local_files.check_sha256
    monkeypatch.setattr(local_files, "check_sha256", lambda *of: may_hash.wait() and check(*of))
    loader = every_sample(store, batch_size=20)
    batches = loader.batches()

    assert len(next(batches).tokens) == 20  # and not one of the files is hashed
    may_hash.set()
    with pytest.raises(CorpusError, match="sha256 is"):
        list(batches)
    with pytest.raises(CorpusError, match="sha256 is"):
        loader.samples([0])


@pytest.mark.parametrize("verify", ["background", "first"])
def test_a_file_is_hashed_once_until_it_is_another(
    store: Path, monkeypatch: pytest.MonkeyPatch, verify: Verify
) -> None:
    hashed, check = [], local_files.check_sha256
    monkeypatch.setattr(
        local_files, "check_sha256", lambda path, *rest: (hashed.append(path), check(path, *rest))
    )
    loader = every_sample(store, options=LoaderOptions(verify=verify))
    loader.reader.shards.max_open = 1
    list(loader), list(loader)
    list(pickle.loads(pickle.dumps(loader)))
    assert sorted(hashed) == sorted(store.rglob("*.bin"))

    bin_file = store / f"{SHARD}.bin"
    bin_file.with_suffix(".new").write_bytes(bytes(80))
    bin_file.with_suffix(".new").rename(bin_file)
    with pytest.raises(CorpusError, match="sha256 is"):
        list(loader)


@pytest.mark.parametrize("length", [8, None])
@pytest.mark.parametrize("suffix", ["idx", "spans"])
def test_whatever_bit_is_flipped_unseen_the_loader_survives(
    tmp_path: Path, suffix: str, length: int | None
) -> None:
    rows = [[[1, 2, 3], [4, 5]], [[6] * 8]]
    path = write_phase(tmp_path, {"web": [rows]}, sequence_length=length)
    damaged = path / f"sharded/web/megatron-0123abcd/shard-00000.{suffix}"
    content = damaged.read_bytes()

    for position in range(len(content)):
        for mask in (1, 128):
            flip_bit(damaged, position, mask)
            with suppress(CorpusError):
                read_all(path, LoaderOptions(with_documents=True, verify=False))
            damaged.write_bytes(content)


def test_an_index_that_points_outside_names_the_file(tmp_path: Path) -> None:
    write_phase(tmp_path, {"web": [numbered_rows(1, 2)]}, sequence_length=None)
    flip_bit(tmp_path / "sharded/web/megatron-0123abcd/shard-00000.idx", 34 + 2 * 4 + 8 + 1)

    message = r"shard-00000\.idx is damaged: row 1 has 8 tokens at 136"
    with pytest.raises(CorpusError, match=message):
        read_all(tmp_path, LoaderOptions(verify=False))


def test_a_file_that_nobody_needs_is_not_looked_at_and_verification_can_be_off(
    store: Path,
) -> None:
    flip_bit(store / f"{SHARD}.spans")
    (store / f"{SHARD}.idx").unlink()
    read_all(store)

    flip_bit(store / f"{SHARD}.bin")
    read_all(store, LoaderOptions(verify=False))


def test_a_shard_that_is_cut_while_in_use_is_named_and_does_not_kill(store: Path) -> None:
    loader = every_sample(store, batch_size=37)
    list(loader)
    os.truncate(store / f"{SHARD}.bin", 0)

    with pytest.raises(CorpusError, match=rf"{SHARD}\.bin has 0 bytes.*changed while in use"):
        list(loader)


@pytest.mark.parametrize("keeps_time", [False, True])
@pytest.mark.parametrize("verify", ["background", "first"])
def test_a_bit_that_is_flipped_while_the_shard_is_open_is_found(
    store: Path, verify: Verify, keeps_time: bool
) -> None:
    loader = every_sample(store, batch_size=37, options=LoaderOptions(verify=verify))
    list(loader)
    status = (store / f"{SHARD}.bin").stat()
    flip_bit(store / f"{SHARD}.bin")
    if keeps_time:
        os.utime(store / f"{SHARD}.bin", ns=(status.st_atime_ns, status.st_mtime_ns))

    with pytest.raises(CorpusError, match="sha256 is"):
        list(loader)


@pytest.mark.parametrize("epoch", [-1, 10**18])
def test_an_epoch_beyond_counting_is_refused(store: Path, epoch: int) -> None:
    with pytest.raises(CorpusError, match=f"epoch is {epoch}"):
        every_sample(store).set_epoch(epoch)


def test_a_shard_that_is_deleted_while_open_is_still_read(store: Path) -> None:
    loader = every_sample(store)
    list(loader)
    (store / f"{SHARD}.bin").unlink()

    assert sum(len(batch.tokens) for batch in loader) == 37


@pytest.mark.parametrize(
    ("suffix", "message"),
    [("idx", "is not the index of 2 rows of uint16"), ("spans", "is not the documents of 2 rows")],
)
def test_a_file_of_other_rows_is_refused(tmp_path: Path, suffix: str, message: str) -> None:
    write_phase(tmp_path, {"web": [numbered_rows(1, 2)]}, sequence_length=None)
    flip_bit(tmp_path / f"sharded/web/megatron-0123abcd/shard-00000.{suffix}", 3)

    with pytest.raises(CorpusError, match=message):
        read_all(tmp_path, LoaderOptions(with_documents=True, verify=False))


def test_what_is_not_built_yet_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"mixed\[general\] is not materialized.*mix_corpus"):
        every_sample(tmp_path)
    with pytest.raises(CorpusError, match=r"no folder '.*nowhere'"):
        every_sample(tmp_path / "nowhere")


@cases(r"""
    option           | message
    {"dtype": "int8"} | dtype is 'int8'; it must be one of
    {"verify": "always"} | verify is 'always'; it must be one of
    {"skip": 3}      | skip is 3; it takes ranges
    {"skip": None}   | skip is None; it takes ranges
    {"skip": [(1,)]} | r"skip has \(1,\); it takes ranges"
    {"data": 3}      | data is 3; it must be a tag or a fingerprint
""")
def test_an_option_of_another_type_or_value_is_refused(option: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        LoaderOptions(**option)


def test_arguments_of_another_type_are_refused(store: Path) -> None:
    loader = every_sample(store)
    with pytest.raises(CorpusError, match="data is b'v1'; it must be a tag or a fingerprint"):
        CorpusLoader(store, data=b"v1")  # type: ignore[arg-type]
    for epoch in ("1", None, 1.5):
        with pytest.raises(CorpusError, match=r"epoch is .*; it must be a whole number"):
            loader.set_epoch(epoch)  # type: ignore[arg-type]
    wrong: list[Any] = [["a"], [-1], None, [10**30], [1.5], [True], [[1], [1, 2]], [1 << 62]]
    for positions in wrong:
        with pytest.raises(CorpusError, match=r"positions are .*; they must be whole numbers"):
            loader.samples(positions)
    assert len(loader.samples([]).tokens) == 0
    nested, flat = loader.samples([[3, 1], [0, 3]]), loader.samples([3, 1, 0, 3])
    assert nested.tokens.tolist() == flat.tokens.tolist()


@cases("""
    split                        | message
    {"batch_size": 0}            | batch_size is 0
    {"world_size": 0}            | world_size 0
    {"rank": 2, "world_size": 2} | rank is 2 of world_size 2; it must be 0 to 1
    {"rank": -1}                 | rank is -1
    {"phase": "final"}           | no phase 'final' here; there are: general
    {"world_size": 38}           | the phase has 37 samples; 38 ranks need 38
""")
def test_a_split_that_cannot_be_is_refused(
    store: Path, split: dict[str, Any], message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        every_sample(store, **split)


def test_drop_last_needs_a_whole_step(store: Path) -> None:
    with pytest.raises(CorpusError, match="1 ranks with batches of 38 and drop_last need 38"):
        CorpusLoader(store, batch_size=38, options=LoaderOptions(drop_last=True))


def test_the_state_of_another_corpus_is_refused_with_both_fingerprints(store: Path) -> None:
    state = every_sample(store).state_dict()
    change_mixture(store, fingerprint="f" * 32)

    with pytest.raises(CorpusError, match=rf"{state['data']}, this one has {'f' * 32}.*data="):
        every_sample(store).load_state_dict(state)


def test_an_older_mixture_is_read_by_its_fingerprint(store: Path) -> None:
    state = every_sample(store).state_at(12)
    change_mixture(store, fingerprint="f" * 32, seed=1)
    older = every_sample(store, options=LoaderOptions(data=state["data"]))
    older.load_state_dict(state)

    assert (older.seed, older.cursor) == (0, 12)
    known = rf"fingerprint 0+; there are.*: {'f' * 32}, {state['data']}"
    with pytest.raises(CorpusError, match=known):
        every_sample(store, options=LoaderOptions(data="0" * 32))


def test_a_cursor_may_be_a_number_of_numpy(store: Path) -> None:
    loader = every_sample(store)
    loader.load_state_dict(loader.state_at(np.int64(8)))  # type: ignore[arg-type]

    assert json.loads(json.dumps(loader.state_dict()))["cursor"] == 8


@cases(r"""
    change           | message
    {"seed": 3}      | the state is of another order
    {"version": 9}   | not a state of this loader
    {"cursor": -1}   | cursor is -1
    {"cursor": True} | cursor is True
    {"cursor": 8.0}  | r"cursor is 8\.0"
    {"extra": 1}     | not a state of this loader
""")
def test_a_state_that_does_not_fit_is_refused(
    store: Path, change: dict[str, Any], message: str
) -> None:
    loader = every_sample(store)

    with pytest.raises(CorpusError, match=message):
        loader.load_state_dict(loader.state_dict() | change)


def test_reading_leaves_nothing_behind(store: Path) -> None:
    change_mixture(store, seed=5)
    before = sorted(store.rglob("*"))

    assert every_sample(store).seed == 5  # of the newest mixture
    read_all(store, LoaderOptions(with_documents=True))

    assert sorted(store.rglob("*")) == before


def fail(message: str) -> None:
    """A check that finds something."""
    raise RuntimeError(message)


def test_every_check_is_run_once_and_no_thread_stays() -> None:
    checks, done = Checks(), []
    for number in range(50):
        checks.add(number, lambda number=number: done.append(number))  # type: ignore[misc]

    checks.finish()

    assert sorted(done) == list(range(50))
    assert not checks.open
    assert not any(thread.is_alive() for thread in checks.threads)


def test_finish_waits_for_what_is_running() -> None:
    checks, begun = Checks(), threading.Event()
    checks.add(0, lambda: begun.set() or time.sleep(0.05) or fail("late"))  # type: ignore[func-returns-value]
    begun.wait()

    with pytest.raises(RuntimeError, match="late"):
        checks.finish()


def test_what_a_check_found_is_raised_from_then_on() -> None:
    checks = Checks()
    checks.look()
    checks.add("a", lambda: fail("damaged"))

    for again in (checks.finish, checks.look, checks.finish):
        with pytest.raises(RuntimeError, match="damaged"):
            again()


def test_a_process_that_was_forked_off_does_what_its_parent_has_not_done() -> None:
    checks, gate, parent = Checks(), threading.Event(), os.getpid()
    for number in range(4):  # two are running in the parent, two are waiting
        checks.add(number, lambda: gate.wait() if os.getpid() == parent else fail("mine"))

    child = os.fork()
    if not child:
        with suppress(RuntimeError):
            checks.finish()
        os._exit(len(checks.faults) * 10 + len(checks.open))
    gate.set()
    checks.finish()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40


def test_nobody_waits_for_a_check_at_exit() -> None:
    code = "import time; from corpus_loader.places.local_files import Checks; "
    command = [sys.executable, "-c", f"{code}Checks().add(0, lambda: time.sleep(60))"]

    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=20)
