"""History, diff, rollback, tags and clean-up of a corpus that was built on two nights."""

import shutil
import subprocess

import dagster as dg
import yaml
from builders import deduped, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Iterator, Path, os, pl, pytest, re, sys
from verbs import Cli

from corpus_loader import CorpusLoader, LoaderOptions
from pipeline_defs.commands.life.verify import find_faults
from pipeline_defs.commands.main import main
from pipeline_defs.commands.states.diff import (
    ABSENT,
    CHANGES,
    KEPT,
    show_documents,
)
from pipeline_defs.commands.states.tag import make_tag
from pipeline_defs.definitions import build_defs
from resources.store.named_states import read_rollback

ROOT = Path(__file__).resolve().parents[2]
STAGES = ["raw", "filtered", "signatures", "deduped", "tokenized", "bucketed", "sharded"]
OF_BOTH = sentence(700, 40)  # comes to both sources on the second night; the longer one stays
LONGER = f"{OF_BOTH} So it was."
HIDDEN = "\x1b[31m"  # what a document could do to a terminal
KILL = """
import os, sys
from resources.store import medium, store
left = int(sys.argv.pop(1))
def dying(function):
    def wrapper(*args, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return function(*args, **options)
    return wrapper
store.Partition.commit = dying(store.Partition.commit)
unlink = dying(lambda path: path.unlink(missing_ok=True))
medium.LocalDisk.remove_all = lambda _, paths: [unlink(path) for path in paths]
from pipeline_defs.commands.main import main
sys.exit(main(sys.argv[1:]))
"""


def build(corpus: Any, instance: dg.DagsterInstance, *jobs: str) -> dg.ExecuteInProcessResult:
    """Build and mix; return the result of the last job."""
    for job in jobs or ("build_corpus", "mix_corpus"):
        defs = build_defs(corpus).resolve_job_def(job)
        result = defs.execute_in_process(instance=instance)
    return result


def prepare_home(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two nights: the second has a file more in each source, and a stricter rule."""
    folder = tmp_path_factory.mktemp("built")
    config = write_corpus(folder)
    prepare_home(folder / "dagster_home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(folder / "dagster_home"))
        patch.setenv("TOKENMILL_CONFIG", str(config))
        with dg.DagsterInstance.get() as instance:
            build(open_corpus(config), instance)
            make_tag(open_corpus(config).store, "v1")
            second_night(config)
            build(open_corpus(config), instance)
    yield folder


def second_night(config: Path) -> None:
    folder = config.parent / "input"
    come = [{"text": sentence(500 + i, 30 + i)} for i in range(6)]
    other = {"text": sentence(990)}
    write_jsonl(folder / "prose/c.jsonl", [{"text": LONGER}, *come])
    write_jsonl(folder / "notes/m.jsonl", [{"text": OF_BOTH}, other])
    changed = yaml.safe_load(config.read_text())
    changed["filters"]["rules"]["length"]["min_chars"] = 150
    config.write_text(yaml.safe_dump(changed, sort_keys=False))


@pytest.fixture
def corpus(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the corpus, which the commands open."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    return open_corpus(tmp_path / "pipeline.yaml")


def killed(corpus: Any, after: int, *command: str) -> int:
    """Run a command that is killed when it has so many commits and removals behind it."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(corpus.config), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", KILL, str(after), *command]
    return subprocess.run(run, env=environment, cwd=ROOT, capture_output=True).returncode


def fingerprints(corpus: Any, source: str = "prose") -> list[str]:
    return [corpus.store.newest(stage, source).fingerprint for stage in STAGES]


def texts(corpus: Any, source: str) -> list[str]:
    """Texts that `deduped` keeps of a source."""
    return pl.concat(deduped(corpus, source, "text"))["text"].to_list()


def test_the_history_says_when_and_why_each_state_came(corpus: Any, cli: Cli) -> None:
    newest, first = cli.json("states", "history", "prose")["entries"]

    assert (newest["number"], first["number"], first["tags"]) == (2, 1, ["v1"])
    assert newest["inputs"] == {"added": ["input/prose/c.jsonl"], "removed": [], "changed": []}
    assert newest["config"] == {"filtered.rules.length.min_chars": [20, 150]}
    assert first["numbers"]["read"] == 40 and newest["numbers"]["read"] == 47
    assert first["when"] < newest["when"]
    assert first["run_id"] != newest["run_id"]
    assert first["parts_computed"] > 0 == first["parts_reused"]
    shown = cli.out("states", "history", "prose", "--stage", "raw")
    assert "added: input/prose/c.jsonl" in shown


def test_without_records_the_time_of_a_state_is_unknown(
    corpus: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepare_home(tmp_path / "empty")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "empty"))

    assert "when" not in cli.json("states", "history", "prose")["entries"][0]
    assert "unknown" in cli.out("states", "history", "prose")


@pytest.mark.parametrize("states", [("1", "2"), ("v1", "newest")])
def test_a_diff_names_documents_that_came_and_went_with_the_reason(
    corpus: Any, cli: Cli, states: tuple[str, str]
) -> None:
    [found] = cli.json("states", "diff", *states, "--source", "notes")

    changes = found["documents"]["changes"]
    counts = {(each["before"], each["after"]): each["documents"] for each in changes}
    assert counts == {("kept", "rejected: length.too_short"): 28, ("not in the input", "kept"): 1}
    assert found["config"] == {"filtered.rules.length.min_chars": [20, 150]}
    numbers = {each["stage"]: each["numbers"] for each in found["stages"]}
    assert numbers["raw"]["rows_in"] == [41, 43]
    shown = cli.out("states", "diff", *states, "--source", "notes")
    assert "- 28 documents: kept -> rejected: length.too_short" in shown
    assert re.search(r"filtered\.rules\.length\.min_chars +20 +150", shown)


def test_a_diff_shows_no_control_characters_of_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [(ABSENT, KEPT, 1, [{"doc_id": "00", "text": f"{HIDDEN}[red]"}])]
    changes = pl.DataFrame(rows, CHANGES, orient="row")

    show_documents({"changes": changes, "parts_read": 1, "parts_alike": 0})

    shown = capsys.readouterr().out
    assert HIDDEN not in shown
    assert "00 ␛[31m[red]" in shown


def test_a_diff_does_not_read_parts_that_both_states_name(corpus: Any, cli: Cli) -> None:
    [every] = cli.json("states", "diff", "1", "--source", "prose")
    state = corpus.store.newest("deduped", "prose")
    before = corpus.store.partition("deduped", "prose").read_manifest(1)
    alike = {part.fingerprint for part in before.parts} & {p.fingerprint for p in state.parts}
    assert every["documents"]["parts_alike"] == len(alike)
    again = cli.json("states", "diff", "2", "--source", "prose")[0]["documents"]
    assert (again["changes"], again["parts_read"]) == ([], 0)


def test_a_rollback_is_told_and_held_until_it_is_released(corpus: Any, cli: Cli) -> None:
    before, first = fingerprints(corpus), state_1(corpus)
    assert LONGER in texts(corpus, "prose")
    assert OF_BOTH not in texts(corpus, "notes")

    back = ("states", "rollback", "prose", "--to", "1", "--reason", "bad file")
    told = cli.json(*back)
    assert (told["source"], told["state"], told["reason"]) == ("prose", "1", "bad file")
    assert {"stage": "raw", "manifest": 3, "says_what": 1} in told["stages"]
    assert fingerprints(corpus) == first
    newest = cli.json("states", "history", "prose")["entries"][0]
    assert (newest["number"], newest["same_as"], newest["run_id"]) == (3, 1, "")
    with dg.DagsterInstance.get() as instance:
        result = build(corpus, instance, "build_corpus")
        assert fingerprints(corpus) == first  # `deduped` too: no decision on them changed
        assert OF_BOTH in texts(corpus, "notes")  # the copy that was removed for the one gone
        held = metadata_of(result, "raw", "prose")["held"].value
        assert held == "'prose' is rolled back to state 1 (bad file)"
        assert "held" not in metadata_of(result, "raw", "notes")
        assert f"{held}: `corpus states rollback prose --release`" in cli.out("status")
        assert cli.json("status")["held"] == {"prose": held}

        build(corpus, instance, "mix_corpus")
        assert not find_faults(corpus.store).faults
        assert cli.json("states", "rollback", "prose", "--release")["state"] is None
        build(corpus, instance, "build_corpus")
        assert fingerprints(corpus)[:3] == before[:3]
        stays = [*texts(corpus, "prose"), *texts(corpus, "notes")]
        assert (LONGER in stays) + (OF_BOTH in stays) == 1
    assert "'prose' is not held" in cli.err(2, "states", "rollback", "prose", "--release")


def state_1(corpus: Any) -> list[str]:
    folders = [corpus.store.partition(stage, "prose") for stage in STAGES]
    return [folder.read_manifest(1).fingerprint for folder in folders]


def metadata_of(result: dg.ExecuteInProcessResult, stage: str, partition: str) -> Any:
    [event] = [
        event.materialization
        for event in result.get_asset_materialization_events()
        if event.asset_key == dg.AssetKey(stage) and event.partition == partition
    ]
    return event.metadata


def test_a_build_from_nothing_with_the_ledger_equals_a_build_after_a_rollback(
    corpus: Any, cli: Cli, tmp_path: Path
) -> None:
    main(["states", "rollback", "prose", "--to", "1"])
    with dg.DagsterInstance.ephemeral() as instance:
        build(corpus, instance, "build_corpus")
    ledger = cli.out("duplicates", "ledger")

    other = tmp_path / "other"
    shutil.copytree(tmp_path / "input", other / "input")
    (other / "input/prose/c.jsonl").unlink()
    (other / "ledger.json").write_text(ledger)
    config = yaml.safe_load(corpus.config.read_text())
    rules = config["filters"]["rules"]
    config["dedup"] = {"ledger": "ledger.json"}
    # The rules of its state are still those of the rolled-back source.
    loose = {**rules, "length": {"min_chars": 20}}
    config["sources"][0]["filters"] = {"rules": loose}
    (other / "pipeline.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    fresh = open_corpus(other / "pipeline.yaml")
    with dg.DagsterInstance.ephemeral() as instance:
        build(fresh, instance, "build_corpus")

    for source in ("prose", "notes"):
        assert content_of(fresh, source) == content_of(corpus, source)


def content_of(corpus: Any, source: str) -> list[str]:
    manifest = corpus.store.newest("deduped", source)
    return [file.sha256 for part in manifest.parts for file in part.files]


def test_a_killed_rollback_is_finished_by_the_same_command(corpus: Any) -> None:
    first, commits = state_1(corpus), 4

    assert killed(corpus, commits, "rollback", "prose", "--to", "1") == -9
    assert read_rollback(corpus.store.root, "prose") is not None
    assert fingerprints(corpus)[:commits] == first[:commits]
    assert fingerprints(corpus)[commits:] != first[commits:]
    assert not find_faults(corpus.store).faults
    assert main(["states", "gc", "--keep", "1", "--delete"]) == 0
    assert main(["states", "rollback", "prose", "--to", "1"]) == 0
    assert fingerprints(corpus) == first
    assert not find_faults(corpus.store).faults


def test_a_run_after_a_killed_rollback_brings_the_documents_to_the_held_state(corpus: Any) -> None:
    first = state_1(corpus)

    assert killed(corpus, 1, "rollback", "prose", "--to", "1") == -9
    with dg.DagsterInstance.ephemeral() as instance:
        build(corpus, instance, "build_corpus")
    assert fingerprints(corpus)[:4] == first[:4]
    assert sorted(texts(corpus, "prose")) == sorted(set(texts(corpus, "prose")))
    assert not find_faults(corpus.store).faults


def test_a_killed_clean_up_is_finished_by_the_same_command(corpus: Any, cli: Cli) -> None:
    main(["states", "tag", "v1", "--delete"])
    before = hashes(corpus.store.root)

    assert killed(corpus, 9, "gc", "--keep", "1", "--delete") == -9
    left = hashes(corpus.store.root).keys() - {".run.lock"}
    assert left < before.keys()
    assert len(left) == len(before) - 9
    assert main(["states", "gc", "--keep", "1", "--delete"]) == 0
    assert cli.json("states", "gc", "--keep", "1")["partitions"] == []
    assert all(len(each.manifest_numbers()) == 1 for each in corpus.store.partitions())
    assert not find_faults(corpus.store).faults


def test_a_loader_opens_the_mixture_of_a_tag(corpus: Any, cli: Cli) -> None:
    store = corpus.store.root
    newest = CorpusLoader(store, phase="main")
    tagged = CorpusLoader(store, phase="main", data="v1")
    assert tagged.mixture.fingerprint != newest.mixture.fingerprint
    rows = [batch.tokens.tolist() for batch in tagged]

    main(["states", "gc", "--keep", "1", "--delete"])

    again = CorpusLoader(store, phase="main", options=LoaderOptions(data="v1"))
    assert [batch.tokens.tolist() for batch in again] == rows
    by_state = LoaderOptions(data=tagged.state_dict()["data"])
    assert CorpusLoader(store, phase="main", options=by_state).mixture == again.mixture
    assert cli.json("states", "tag", "--list") == [
        {"name": "v1", "partitions": 19, "phases": ["late", "main"]}
    ]
    assert "names another state already" in cli.err(2, "states", "tag", "v1")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rollback prose --to 9", "no state '9'; kept are the manifests 2, 1; tags are: v1"),
        ("rollback prose", "Give either --to"),
        ("rollback nothing --to 1", "no source 'nothing'; it has: prose, notes"),
        ("diff 1", "Without --source both states are tags; there are: v1"),
        ("tag ../v1", "no name of a tag"),
    ],
)
def test_wrong_states_are_named_with_those_that_there_are(
    corpus: Any, cli: Cli, command: str, message: str
) -> None:
    assert message in cli.err(2, "states", *command.split())
