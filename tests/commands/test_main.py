"""`corpus` itself: help, version, hints, completion and exit codes."""

import subprocess
from importlib.metadata import version

from cyclopts import App
from prelude import Iterator, Path, pytest, re, sys
from verbs import Cli

from pipeline_defs.commands.main import MOVED, VERBS, WITHDRAWN, Noun, app, without_config

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/commands.md"
ALL_VERBS = sorted(verb for verbs in VERBS.values() for verb in verbs)
NOUNS = {name: verb for of in VERBS.values() for name, verb in of.items() if isinstance(verb, Noun)}
NESTED_VERBS = [(noun, verb) for noun, verbs in NOUNS.items() for verb in verbs.verbs]

WITHOUT_JSON = {  # verbs that act, or whose output is a file or a line for another program
    "completion": "a script for the shell",
    "disclose": "`--form json` is one of its forms",
    "duplicates ledger": "always JSON",
    "init": "writes a project",
    "push": "sends files",
    "quarantine replay": "runs a stage",
    "rules renew": "runs a stage",
    "shards ledger": "writes files",
    "shards path": "a path for a shell variable",
    "slurm": "a script for sbatch",
    "takedown export": "writes a file",
    "takedown withdraw": "records a request",
    "tokenizer path": "a path for a shell variable",
    "tokenizer retrain": "runs a stage",
    "ui": "serves pages",
}


def verbs_of(parent: App, *words: str) -> Iterator[tuple[str, App]]:
    """Yield every verb, and those of nouns and of verbs, by their words."""
    for name in parent:
        if not name.startswith("-"):
            verb, path = parent[name], (*words, name)
            if verb.default_command is not None:
                yield " ".join(path), verb
            yield from verbs_of(verb, *path)


def test_every_verb_that_shows_something_prints_json() -> None:
    every = dict(verbs_of(app))
    names = {
        path: {name for option in verb.assemble_argument_collection() for name in option.names}
        for path, verb in every.items()
    }
    assert {*ALL_VERBS} - {*NOUNS} <= names.keys() and "takedown prove" in names
    assert {path for path, of_verb in names.items() if "--json" not in of_verb} == {*WITHOUT_JSON}


def test_help_lists_every_verb_by_group(cli: Cli) -> None:
    shown = cli.out("--help")
    assert [group.capitalize() in shown for group in VERBS] == [True] * len(VERBS)
    assert all(f"│ {verb} " in shown for verb in ALL_VERBS)


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_every_verb_has_help(cli: Cli, verb: str) -> None:
    assert f"Usage: corpus {verb}" in cli.out(verb, "--help")


@pytest.mark.parametrize(("outer", "verb"), NESTED_VERBS)
def test_every_verb_of_a_verb_has_help(cli: Cli, outer: str, verb: str) -> None:
    assert f"Usage: corpus {outer} {verb}" in cli.out(outer, verb, "--help")


@pytest.mark.parametrize("verb", [verb for verb, _ in verbs_of(app)])
def test_every_verb_takes_another_config(cli: Cli, verb: str) -> None:
    shown = f"Usage: corpus {verb}"
    assert shown in cli.out(*verb.split(), "--config", "a/pipeline.yaml", "--help")
    assert shown in cli.out("--config=a/pipeline.yaml", *verb.split(), "--help")


@pytest.mark.parametrize("line", ["--config {} plan", "plan --config {}", "plan --config={}"])
def test_the_config_that_is_named_is_read(cli: Cli, tmp_path: Path, line: str) -> None:
    missing = tmp_path / "other.yaml"
    assert str(missing) in cli.err(2, *line.format(missing).split())


def test_a_config_without_a_path_and_one_after_the_options(cli: Cli) -> None:
    assert "--config needs the path" in cli.err(2, "plan", "--config")
    assert without_config(["find", "--", "--config", "x"]) == ["find", "--", "--config", "x"]


@pytest.mark.parametrize("old", MOVED)
def test_a_verb_as_it_was_works_and_tells_its_new_form(cli: Cli, old: str) -> None:
    new = " ".join(MOVED[old])
    printed = cli.printed((old, "--help"), 0)
    assert printed.out.startswith(f"Usage: corpus {new}")
    assert printed.err.startswith(f"`corpus {old}` is now: corpus {new}")


@pytest.mark.parametrize("verb", WITHDRAWN)
def test_a_withdrawn_verb_names_the_way_without_it(cli: Cli, verb: str) -> None:
    said = cli.err(2, *verb.split(), "--json")
    assert said.startswith(f"`corpus {verb}` is withdrawn: ")


def test_the_page_of_commands_has_every_verb() -> None:
    rows = re.findall(r"^\|[^|]*\| `corpus ([a-z]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(verb for verb, _ in rows) == ALL_VERBS
    for noun, verb in NESTED_VERBS:
        assert f"`{verb}`" in dict(rows)[noun]


def test_the_version_is_the_package_s(cli: Cli) -> None:
    assert cli.out("--version") == f"{version('tokenmill')}\n"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["sumary"], 'Did you mean "summary"?'),
        (["duplicates", "shw"], 'Did you mean "show"?'),
        (["plan", "--phas", "general"], "Did you mean --phase?"),
        (["shards", "path"], "give either --source or --phase; given: neither"),
        (["rules", "whatif", "--all", "--source", "web"], "given: --source, --all"),
        (["rules", "sample", "--rule", "length.too_short"], "--source"),
    ],
)
def test_wrong_usage_gives_code_2_and_a_hint(cli: Cli, arguments: list[str], hint: str) -> None:
    assert hint in cli.err(2, *arguments)


@pytest.mark.parametrize("arguments", [[], ["duplicates"]])
def test_without_a_verb_the_verbs_are_shown(cli: Cli, arguments: list[str]) -> None:
    assert "Usage: corpus" in cli.out(*arguments, code=2)


@pytest.mark.parametrize(
    ("shell", "line"),
    [("bash", "complete -F"), ("zsh", "#compdef corpus"), ("fish", "complete -c corpus")],
)
def test_completion_scripts_know_the_verbs(cli: Cli, shell: str, line: str) -> None:
    script = cli.out("completion", shell)
    assert line in script
    assert all(verb in script for verb in ALL_VERBS) and "near-threshold" in script


@pytest.mark.parametrize("word", ["--help", "sumary", "xyz"])
def test_help_and_a_misspelt_verb_import_nothing_of_the_verbs(word: str) -> None:
    code = (
        f"import sys; from pipeline_defs.commands.main import main; main([{word!r}]); "
        "sys.exit(len({'polars', 'dagster', 'numba', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
