"""Every file of a store is declared: what is written by a build, and by every verb that writes."""

import ast
from importlib.util import find_spec

import dagster as dg
from answering_site import answering_site
from builders import published, records, sentence, write_jsonl
from every_stage import write_inputs
from prelude import Any, Path, json, pytest, re
from verbs import Cli

from assets.sharded.formats import FORMATS
from pipeline_defs.definitions import build_defs
from resources.dagster_home import records_folder
from resources.store.inventory import INVENTORY, StoredFile, declared_as, stored_files

PEERS = set() if find_spec("pyiceberg") else {"tables", "digests"}
NOT_HERE = {  # on object stores, after kills, where a build fails
    *("answers", "copies", "mark of a scratch", "temporaries", "errors"),
    *PEERS,
}
ROOT = Path(__file__).resolve().parents[2]
URL = "https://a.example/1"


def found_in(corpus: Any) -> list[StoredFile]:
    root = corpus.store.root
    return [*stored_files(root, records_folder(root), with_stages=True)]


def build(corpus: Any) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        for job in ("build_corpus", "mix_corpus"):
            build_defs(corpus).resolve_job_def(job).execute_in_process(instance=instance)


def use_verbs(cli: Cli, corpus: Any) -> None:
    """Give every verb that writes to the store, those that push elsewhere left out."""
    cli.out("report")
    cli.out("find", "--build-index")
    cli.out("states", "tag", "v1")
    for source in ("far", "notes"):
        cli.out("states", "rollback", source, "--to", "v1")
    [bad] = published(corpus, kind="quarantine").rows(named=True)
    patch = {"file": bad["file"], "position": bad["position"], "record": {"text": sentence(99)}}
    file = write_jsonl(corpus.config.with_name("patches.jsonl"), [patch])
    cli.out("quarantine", "replay", "prose", "--patched", str(file))
    if not PEERS:
        cli.out("push", "iceberg")
        cli.out("push", "iceberg", "--what", "documents")
    cli.out("takedown", "--url", URL, "--reason", "asked")
    cli.out("states", "rollback", "notes", "--release")


def test_what_a_build_and_the_verbs_write_is_declared_once(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "".join(json.dumps(each) + "\n" for each in records(*map(sentence, range(900, 909))))
    with answering_site(monkeypatch) as site:
        names = ("prose", "notes")
        sources = [{"name": name, "where": f"input/{name}/*"} for name in names]
        sources.append({"name": "far", "where": f"http://{site.place}/far.jsonl"})
        corpus = write_inputs(
            tmp_path,
            sources=sources,
            keep_downloads=True,
            shards={"target_bytes": 4096, "formats": [*FORMATS]},
            disclosure={"provider": "Acme"},
        )
        write_jsonl(tmp_path / "input/notes/y.jsonl", [{"text": sentence(77, 60), "url": URL}])
        monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
        site.answers = [(200, body.encode(), {})] * 9
        build(corpus)
    before = found_in(corpus)
    use_verbs(cli, corpus)
    found = {each.name: each for each in (*before, *found_in(corpus))}
    declared = {name: [*declared_as(name, each.path)] for name, each in found.items()}
    assert {name: of for name, of in declared.items() if len(of) != 1} == {}
    kinds = {of[0].declared.name for of in declared.values() if of[0].declared}
    assert kinds | NOT_HERE == {each.name for each in INVENTORY}


def folder_names(path: Path) -> set[str]:
    """Return the names that begin with "_" of what is joined to a path, by a name or as text."""
    tree = ast.parse(path.read_text())
    names: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.Assign):
            targets, values = ([*ast.walk(side)] for side in (each.targets[0], each.value))
            ids = [one.id for one in targets if isinstance(one, ast.Name)]
            texts = [str(one.value) for one in values if isinstance(one, ast.Constant)]
            names |= dict(zip(ids, texts, strict=False))
    joined = (n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div))
    right = [each.right for each in joined]
    found = {names.get(each.id, "") for each in right if isinstance(each, ast.Name)}
    found |= {str(each.value) for each in right if isinstance(each, ast.Constant)}
    return {each for each in found if re.fullmatch("_[a-z]+", each)}


def test_no_module_has_a_folder_in_the_store_that_is_not_declared() -> None:
    tops = ("assets", "pipeline_defs", "resources", "corpus_loader")
    paths = [path for top in tops for path in (ROOT / top).rglob("*.py")]
    named = set().union(*map(folder_names, paths))
    declared = {name for each in INVENTORY for name in re.findall(r"\b_[a-z]+(?=/)", each.pattern)}
    assert {"_holds", "_previews", "_manifests"} <= named <= declared
