"""`corpus verify` names faulty files, and rebuilds exactly those that can be rebuilt."""

import shutil

import dagster as dg
import yaml
from builders import hashes, open_corpus, sentence, write_corpus, write_jsonl
from command_line import start, until
from prelude import Any, Iterator, Path, hashlib, json, os, pytest
from verbs import Cli

from assets.raw.places.patch_files import add_patches
from assets.raw.readers.input_record import Patch
from assets.stages import STAGES
from corpus_loader.seal import sealed, unsealed
from pipeline_defs.commands.life.faults import READERS
from pipeline_defs.commands.life.repair import repair
from pipeline_defs.commands.life.verify import find_faults
from pipeline_defs.commands.main import main
from pipeline_defs.commands.share.iceberg_folders import TableDigests
from pipeline_defs.definitions import build_defs
from resources.runs.run_notes import read_notes
from resources.store.disk import hash_file
from resources.store.inventory import INVENTORY
from resources.store.records import FileRecord, to_line
from resources.takedowns import Takedown, add_takedown

LATE = {"name": "late", "budgets": {"prose": 500}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build and mix the small corpus; tests take copies."""
    folder = tmp_path_factory.mktemp("built")
    corpus = open_corpus(write_corpus(folder))
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        (folder / "home").mkdir()
        patch.setenv("DAGSTER_HOME", str(folder / "home"))
        for job in ("build_corpus", "mix_corpus"):
            build_defs(corpus).resolve_job_def(job).execute_in_process(instance=instance)
    yield folder


@pytest.fixture
def corpus(built: Path, tmp_path: Path) -> Any:
    """Copy the built corpus."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return open_corpus(tmp_path / "pipeline.yaml")


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flip_sha256(path: Path) -> None:
    """Flip a sha256 in a manifest, which is still JSON with correct sums."""
    content = json.loads(path.read_bytes())
    sha256 = content["parts"][0]["files"][0]["sha256"]
    path.write_bytes(path.read_bytes().replace(sha256.encode(), sha256[::-1].encode()))


def one(corpus: Any, pattern: str) -> Path:
    found: list[Path] = sorted(corpus.store.root.glob(pattern))
    return found[0]


def repaired(corpus: Any) -> list[str]:
    """Repair faulty parts; return a line per partition."""
    with dg.DagsterInstance.ephemeral() as instance:
        return list(repair(corpus, find_faults(corpus.store).faults, instance))


def computed(home: Path) -> dict[str, int]:
    """Count the parts computed per stage and partition, by the runs since DAGSTER_HOME was made."""
    return {
        f"{report.parent.name}/{report.stem}": count
        for report in sorted(home.glob("tokenmill_runs/*/*/*.json"))
        if (count := json.loads(report.read_bytes()).get("parts_computed"))
    }


@pytest.mark.parametrize(
    ("pattern", "damage", "parts"),
    [
        ("sharded/prose/megatron-*/shard-00001.bin", flip_bit, {"sharded/prose": 1}),
        ("sharded/notes/megatron-*/manifest.json", flip_bit, {"sharded/notes": 1}),
        ("tokenized/notes/*.tokens.arrow", Path.unlink, {}),  # bucketed has its content
        ("filtered/prose/_parts/*.json", cut_end, {"filtered/prose": 1}),
        ("duplicates/all/*.clusters.*", flip_bit, {"duplicates/all": 1}),
        ("band_index/all/*.entries.bin", flip_bit, {"band_index/all": 1}),
        ("mixed/main/*.json", Path.unlink, {"mixed/main": 1}),
        ("bucketed/prose/_manifests/*.json", cut_end, {}),
        ("sharded/prose/_manifests/*.json", flip_sha256, {}),
    ],
)
def test_what_differs_is_named_and_made_again(
    corpus: Any, dagster_home: Path, pattern: str, damage: Any, parts: dict[str, int]
) -> None:
    before = hashes(corpus.store.root)
    victim = one(corpus, pattern)
    damage(victim)

    faults = find_faults(corpus.store).faults
    lines = repaired(corpus)

    if damage is not flip_sha256:  # there the file is what the manifest accuses
        assert victim in [fault.path for fault in faults]
    how = "rebuilt" if parts or "_manifests" in pattern else "restored"
    assert [line.split()[0] for line in lines] == [how]
    assert find_faults(corpus.store).faults == []
    assert computed(dagster_home) == parts
    assert hashes(corpus.store.root) == before


def test_faults_say_how_a_file_differs(corpus: Any) -> None:
    cut, flipped = (one(corpus, f"sharded/prose/megatron-*/shard-0000{n}.bin") for n in (0, 1))
    size = cut.stat().st_size
    cut_end(cut)
    flip_bit(flipped)
    gone = one(corpus, "tokenized/notes/*.tokens.arrow")
    gone.unlink()

    found = {fault.path: fault.what for fault in find_faults(corpus.store).faults}

    assert found.keys() == {cut, flipped, gone}
    assert found[gone] == "missing"
    assert found[cut] == f"{size - 20} bytes, the manifest says {size}"
    assert found[flipped].startswith("sha256 ")
    assert len(find_faults(corpus.store, is_fast=True).faults) == 3


def test_several_stages_are_made_again_in_their_order(corpus: Any, dagster_home: Path) -> None:
    before = hashes(corpus.store.root)
    for pattern in ("raw/prose/*.parquet", "deduped/prose/*.kept.*", "sharded/prose/*/*.idx"):
        one(corpus, pattern).unlink()
    cut_end(one(corpus, "tokenized/prose/_manifests/*.json"))

    lines = repaired(corpus)

    stages = ["raw", "deduped", "tokenized", "sharded"]
    assert [line.split()[1] for line in lines] == [f"{stage}[prose]:" for stage in stages]
    assert hashes(corpus.store.root) == before
    assert sum(computed(dagster_home).values()) == 3


def test_the_command_repairs_and_its_runs_are_in_dagsters_records(
    corpus: Any,
    dagster_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home / "not_made_yet"))
    flip_bit(victim := one(corpus, "sharded/prose/parquet-*/shard-00000.parquet"))

    found = cli.out("verify", code=1)
    assert f"{victim}: sha256 " in found and "1 differ" in found and "MB/s" in found
    told = json.loads(cli.out("verify", "--json", code=1))
    [differing] = told["differing"]
    assert differing["file"] == str(victim) and f": {differing['what']}\n" in found
    assert (differing["stage"], differing["partition"]) == ("sharded", "prose")
    assert f"{told['files']:,} files, " in found and told["repaired"] == []
    said = cli.out("verify", "--repair")
    assert "rebuilt sharded[prose]: g0001-shard-00000 (1 computed, 5 as they were)" in said
    assert said.endswith("all as published\n")
    assert main(["verify", "--fast"]) == 0
    with dg.DagsterInstance.get() as instance:
        [run] = instance.get_runs()
    assert run.tags["dagster/partition"] == "prose" and run.tags["tokenmill/repair"] == "true"
    assert (dagster_home / "not_made_yet/dagster.yaml").is_file()
    ends = [(note.run_id, note.state, note.steps) for note in read_notes(corpus.store.root)]
    assert ends == [(run.run_id, "success", ("sharded",))]


def test_a_killed_repair_is_marked_by_the_next_command(
    corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    for victim in corpus.store.root.glob("sharded/*/parquet-*/shard-00000.parquet"):
        flip_bit(victim)

    repairing = start(corpus.config, "pipeline_defs.commands.main", "verify", "--repair")
    with dg.DagsterInstance.get() as instance:
        begun = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
        [run] = until(lambda: instance.get_runs(begun), repairing)
        repairing.kill()
        repairing.wait()
        assert main(["status"]) == 0
        [lost] = instance.get_runs(dg.RunsFilter(run_ids=[run.run_id]))
    assert lost.status is dg.DagsterRunStatus.FAILURE
    newest = read_notes(corpus.store.root)[0]
    assert (newest.run_id, newest.state) == (run.run_id, "lost")


def test_the_notes_of_many_repairs_keep_no_file_open(corpus: Any) -> None:
    before = len(os.listdir("/proc/self/fd"))
    flip_bit(one(corpus, "sharded/prose/parquet-*/shard-00000.parquet"))
    repaired(corpus)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_copied_folder_is_compared_with_its_own_manifest(
    corpus: Any, tmp_path: Path, cli: Cli
) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree(one(corpus, "sharded/prose/megatron-*"), copied)
    assert main(["verify", "--folder", str(copied)]) == 0
    flip_bit(copied / "shard-00000.spans")
    (copied / "shard-00001.bin").unlink()

    said = cli.out("verify", "--folder", str(copied), code=1)
    assert "shard-00000.spans: sha256 " in said and "shard-00001.bin: missing" in said
    told = json.loads(cli.out("verify", "--folder", str(copied), "--json", code=1))
    assert {Path(each["file"]).name: each["what"] for each in told["differing"]}[
        "shard-00001.bin"
    ] == "missing"
    assert main(["verify", "--folder", str(tmp_path)]) == 2


def test_shards_that_only_the_newest_mixture_names_must_be_there(corpus: Any, build: Any) -> None:
    content = yaml.safe_load(corpus.config.read_text())
    content |= {"shards": content["shards"] | {"seed": 9}, "keep_manifests": 1}
    corpus.config.write_text(yaml.safe_dump(content))
    drawn = one(corpus, "sharded/prose/megatron-*/shard-00000.bin")
    build(changed := open_corpus(corpus.config), "sharded")
    drawn.parent.mkdir(exist_ok=True)
    for path in drawn.parent.glob("shard-00000.*"):
        path.unlink()

    findings = find_faults(changed.store)

    assert drawn in {fault.path for fault in findings.faults}
    assert {fault.partition.stage for fault in findings.faults} == {"mixed"}
    assert all("run the job mix_corpus" in str(fault) for fault in findings.faults)
    assert len(find_faults(changed.store, is_fast=True).faults) == len(findings.faults)
    assert all("run the job mix_corpus" in line for line in repaired(changed))


def test_a_file_too_many_beside_the_shards_is_named(corpus: Any, cli: Cli) -> None:
    folder = one(corpus, "sharded/prose/megatron-*")
    (folder / "shard-00077.bin").write_bytes(b"stray")
    (folder / "cache").mkdir()  # of a trainer
    (folder / "cache/index.npy").write_bytes(b"")

    [fault] = find_faults(corpus.store).faults

    assert fault.path.name == "shard-00077.bin"
    assert str(fault).endswith("shard-00077.bin: not in the manifest: remove it")
    assert refused(corpus) == "not rebuilt sharded[prose]: shard-00077.bin: remove it"
    said = cli.out("verify", "--folder", str(folder), code=1)
    assert "shard-00077.bin: not in the manifest: remove it" in said


def test_what_can_be_made_again_is_where_a_stray_file_lies_beside_it(corpus: Any) -> None:
    folder = one(corpus, "sharded/prose/megatron-*")
    (folder / "shard-00077.bin").write_bytes(b"stray")
    flip_bit(folder / "shard-00000.bin")

    assert repaired(corpus)[0].startswith("rebuilt sharded[prose]: g0001-shard-00000")
    assert "shard-00000.bin" not in {fault.path.name for fault in find_faults(corpus.store).faults}


def test_damaged_patches_takedowns_tags_and_holds_are_named(
    corpus: Any, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    root = corpus.store.root
    add_patches(corpus, "prose", [Patch("input/prose/a.jsonl", 7, "", '{"text":"one"}')])
    for number in range(3):
        add_takedown(root, Takedown("url", f"ticket {number}", addresses=(f"{number:064}",)))
    assert main(["states", "tag", "v1"]) == main(["verify", "--fast"]) == 0
    (root / "_holds").mkdir()
    shutil.copy(root / "_tags/v1.json", root / "_holds/prose.json")
    flip_bit(root / "_patches/prose/00000001.json")
    (root / "_takedowns/00000002.json").unlink()
    cut_end(root / "_takedowns/00000003.json")
    cut_end(root / "_tags/v1.json")

    said = cli.out("verify", "--fast", "--repair", code=1)
    assert "_patches/prose/00000001.json: no file of patches: " in said
    assert "_takedowns/00000002.json: not a takedown: " in said
    assert "_takedowns/00000003.json: not a takedown: " in said
    assert "_tags/v1.json is damaged" in said
    assert "_holds/prose.json is damaged" in said
    assert said.endswith(": 5 differ\n")


def test_damaged_indexes_and_tables_are_named(
    corpus: Any, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    cli.out("find", "--build-index")
    folder = corpus.store.root / "iceberg-deduped_copy/prose"
    for name in ("a", "b"):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / f"data/{name}.parquet").write_bytes(b"rows")
    assert "digests.json: no digests of the table's files" in cli.out("verify", code=1)
    digests = hash_file(folder / "data/a.parquet")
    files = [FileRecord("", f"data/{name}.parquet", 0, 4, *digests) for name in ("a", "b")]
    (folder / "digests.json").write_bytes(sealed(to_line(TableDigests((*files,)))))
    cli.out("verify")
    flip_bit(folder / "data/a.parquet")
    (folder / "data/b.parquet").unlink()
    index = one(corpus, "raw/prose/*.find-1.bin")
    flip_bit(index)

    said = cli.out("verify", code=1)

    assert f"{folder}/data/a.parquet: sha256 " in said
    assert f"{folder}/data/b.parquet: missing" in said
    assert f"{index} is damaged: page " in said
    flip_bit(index)
    cut_end(index)
    assert f"{index} is damaged" in cli.out("verify", code=1)


def test_every_file_that_has_a_reader_is_read() -> None:
    assert {each.name for each in INVENTORY if each.check == "reader"} == READERS.keys()


def test_a_damaged_manifest_is_said_to_be_written_again(corpus: Any) -> None:
    cut_end(one(corpus, "sharded/prose/_manifests/*.json"))

    [fault] = find_faults(corpus.store).faults

    assert fault.what.startswith("not a manifest (")
    assert fault.what.endswith("--repair` writes it again, from its parts' records")
    assert repaired(corpus)[0].startswith("rebuilt sharded[prose]: manifest 1")


def refused(corpus: Any) -> str:
    """Repair, which must fail and change nothing; return the reason."""
    before = hashes(corpus.store.root)
    lines = repaired(corpus)
    assert hashes(corpus.store.root) == before
    assert len(lines) == 1 and lines[0].startswith("not rebuilt")
    return lines[0]


@pytest.mark.parametrize(
    ("changes", "pattern", "reason"),
    [
        (
            {"shards": {"seed": 9}},
            "sharded/prose/*/*.bin",
            "its config changed since (seed, target",
        ),
        ({"shards": {"seed": 9}}, "sharded/prose/_manifests/*", "would have to be computed"),
        ({"part_bytes": 4096}, "raw/prose/*.parquet", "the inputs of raw[prose] part"),
        ({"phases": [LATE]}, "mixed/main/*.json", "pipeline.yaml has no 'main' any more"),
    ],
)
def test_what_would_become_something_else_is_left(
    corpus: Any, changes: dict[str, Any], pattern: str, reason: str
) -> None:
    (cut_end if "_manifests" in pattern else flip_bit)(one(corpus, pattern))
    content = yaml.safe_load(corpus.config.read_text()) | changes
    corpus.config.write_text(yaml.safe_dump(content))

    assert reason in refused(open_corpus(corpus.config))


def test_an_index_that_earlier_runs_began_is_built_again_without_what_is_damaged(
    corpus: Any, build: Any
) -> None:
    write_jsonl(corpus.config.parent / "input/prose/c.jsonl", [{"text": sentence(900)}])
    stages = ("raw", "classifier", "filtered", "evaluation", "signatures", "band_index")
    build(corpus, *stages)
    first = one(corpus, "band_index/all/00000000-*.entries.bin")
    flip_bit(first)

    reason = refused(corpus)

    assert "what it is made of changed since (ledger, next_id" in reason
    assert reason.endswith("Remove what is damaged and build again.")
    first.unlink()
    build(corpus, *stages)
    newest = corpus.store.partition("band_index", "all").manifest_numbers()[-1]
    assert newest not in {fault.manifest for fault in find_faults(corpus.store).faults}
    assert len(corpus.store.newest("band_index", "all").provenance["ledger"]) == 4


def test_what_was_made_of_a_file_that_is_gone_is_left(corpus: Any) -> None:
    one(corpus, "raw/notes/*.parquet").unlink()
    (corpus.config.parent / "input/notes/n.jsonl").unlink()

    assert "no input file matches 'input/notes/*'" in refused(corpus)


def test_what_only_an_older_manifest_names_is_left(corpus: Any, build: Any) -> None:
    content = yaml.safe_load(corpus.config.read_text()) | {"shards": {"seed": 9}}
    corpus.config.write_text(yaml.safe_dump(content))
    old = one(corpus, "sharded/prose/megatron-*/shard-00000.bin")
    build(changed := open_corpus(corpus.config), "sharded")
    assert find_faults(changed.store).faults == []
    flip_bit(old)

    assert "only manifest 1 names shard-00000.bin" in refused(changed)


def test_second_names_of_a_damaged_file_are_mended_in_states_that_are_not_made_again(
    corpus: Any,
) -> None:
    content = yaml.safe_load(corpus.config.read_text())
    content["dedup"] = {**content.get("dedup", {}), "lines": {"min_count": 99}}
    corpus.config.write_text(yaml.safe_dump(content))
    first = one(corpus, "filtered/prose/*.documents.parquet")
    sha256 = hashlib.sha256(first.read_bytes()).hexdigest()
    [second] = [f for f in corpus.store.root.glob("deduped/prose/*") if is_equal(f, first)]
    second.unlink()
    os.link(first, second)
    flip_bit(first)

    lines = repaired(open_corpus(corpus.config))

    assert [line.split(":")[0] for line in lines[:1]] == ["rebuilt filtered[prose]"]
    assert any(line.startswith("restored deduped[prose] part") for line in lines)
    assert find_faults(corpus.store).faults == []
    assert {hashlib.sha256(f.read_bytes()).hexdigest() for f in (first, second)} == {sha256}
    assert first.samefile(second)


def is_equal(path: Path, other: Path) -> bool:
    return path.is_file() and path.read_bytes() == other.read_bytes()


def test_a_record_that_two_manifests_name_is_made_again(corpus: Any, build: Any) -> None:
    write_jsonl(corpus.config.parent / "input/prose/c.jsonl", [{"text": sentence(900)}])
    build(corpus, "raw")
    cut_end(one(corpus, "raw/prose/_parts/*.json"))

    assert [line.split()[0] for line in repaired(corpus)] == ["rebuilt"]


def test_a_folder_of_a_stage_that_the_config_does_not_use_is_named(
    tmp_path: Path, build: Any
) -> None:
    classifier = {"good": ["prose"], "bad": ["notes"]}
    build(open_corpus(write_corpus(tmp_path, classifier=classifier)), "raw", "classifier")
    corpus = open_corpus(write_corpus(tmp_path))
    before = hashes(corpus.store.root / "classifier")
    build(corpus)
    assert hashes(corpus.store.root / "classifier") == before  # a build leaves it alone

    flip_bit(one(corpus, "classifier/all/*.model.parquet"))

    assert "pipeline.yaml does not use the stage" in refused(corpus)


def test_a_folder_of_a_stage_that_is_gone_is_named(corpus: Any, build: Any) -> None:
    build(corpus, "raw")
    corpus.store.root.joinpath("raw").rename(corpus.store.root / "quality")
    for path in corpus.store.root.glob("quality/*/_manifests/*.json"):
        path.write_bytes(sealed(unsealed(path.read_bytes()).replace(b'"raw"', b'"quality"', 1)))
    flip_bit(one(corpus, "quality/prose/*.documents.parquet"))

    assert "this version has no stage 'quality'" in refused(corpus)


def test_every_stage_comes_after_what_it_is_made_of() -> None:
    for number, stage in enumerate(STAGES):
        assert {*stage.after} <= {earlier.name for earlier in STAGES[:number]}, stage.name
