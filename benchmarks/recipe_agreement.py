"""Rule by rule: do our recipes give the verdicts of the programs that they are named after?

    python benchmarks/recipe_agreement.py dolma --python PYTHON [folder of corpora]
    python benchmarks/recipe_agreement.py dclm --python PYTHON --checkout DCLM [folder of corpora]
    python benchmarks/recipe_agreement.py starcoder --python PYTHON --checkout BIGCODE [folder]

PYTHON is an interpreter with the program's packages: see reference_verdicts.py, which it runs on
the texts as Tokenmill normalises them. Rules on languages, URLs, models and copies in other
documents are left out on both sides. --verdicts keeps what the program says in a file, and reads it
if it is there. --show RULE prints documents on which the two differ (`verdict`: in the whole).
Prints a Markdown table: documents that both, only we, only the program reject, and the share of
equal verdicts; of the documents that both keep, how many have the same text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import polars as pl  # noqa: E402
from datatrove_agreement import choose, excerpt  # noqa: E402

SHOWN = 12  # documents of --show
OFF = {"language": None, "quality": None, "metadata": None}


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", choices=("dolma", "dclm", "refinedweb", "starcoder"))
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--python", required=True, help="interpreter of the program")
    parser.add_argument("--checkout", type=Path, help="of github.com/mlfoundations/dclm")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--verdicts", type=Path, help="file of the program's verdicts")
    parser.add_argument("--show", action="append", default=[], metavar="RULE")
    options = parser.parse_args()
    documents = choose_for(options)
    theirs = their_verdicts(documents, options)
    documents = documents.head(theirs.height)
    ours = our_verdicts(documents, options.recipe)
    rules = {rule for reasons in (*ours["reasons"], *theirs["reasons"]) for rule in reasons}
    print(f"{documents.height} documents\n")
    print(f"| rule | both reject | only we | only {options.recipe} | equal |")
    print("|---|---:|---:|---:|---:|")
    for rule in [*sorted(rules), "verdict"]:
        print_rule(rule, documents, (ours, theirs), is_shown=rule in options.show)
    print_texts(ours, theirs)


def choose_for(options: argparse.Namespace) -> pl.DataFrame:
    """Documents in an order by hash; for StarCoder those of the source `code`."""
    if options.recipe != "starcoder":
        return choose(options.folder, options.documents, normalized=True)
    documents = choose(options.folder, 1_000_000, normalized=True).filter(
        pl.col("source") == "code"
    )
    return documents.head(options.documents)


def our_verdicts(documents: pl.DataFrame, recipe: str) -> pl.DataFrame:
    """reasons (List(String)) and text (null unless kept) under the preset."""
    from assets.filtered.filter_documents import filter_documents
    from resources.settings.filtering.filters import FilterConfig

    given = {"presets": [recipe], "language": {"backend": "none"}, "rules": OFF}
    kept, decisions = filter_documents(documents, FilterConfig.model_validate(given))
    texts = kept.select("doc_id", left="text")
    joined = decisions.select("doc_id", "reasons").join(
        texts, on="doc_id", how="left", maintain_order="left"
    )
    return joined.select("reasons", text="left")


def their_verdicts(documents: pl.DataFrame, options: argparse.Namespace) -> pl.DataFrame:
    """The same of the program, from the file or from a run of it."""
    file = options.verdicts
    if file is None or not file.exists():
        program = {"refinedweb": "dclm"}.get(options.recipe, options.recipe)
        script = Path(__file__).with_name("reference_verdicts.py")
        rows = documents.select("text", "lang").iter_rows(named=True)
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        answer = subprocess.run(
            [options.python, str(script), program, str(options.checkout)],
            input=lines, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
        if file is not None:
            file.write_text(answer)
    else:
        answer = file.read_text()
    verdicts: list[dict[str, Any]] = [json.loads(line) for line in answer.splitlines()]
    return pl.DataFrame(
        {
            "reasons": [each["rejected_by"] for each in verdicts],
            "text": [None if each["rejected_by"] else each["text"] for each in verdicts],
        },
        schema={"reasons": pl.List(pl.String), "text": pl.String},
    )


def print_rule(
    rule: str, documents: pl.DataFrame, sides: tuple[pl.DataFrame, pl.DataFrame], *, is_shown: bool
) -> None:
    """Print the row of a rule, or of the whole verdict, and the documents that are asked for."""
    column = pl.col("reasons")
    broken = column.list.len() > 0 if rule == "verdict" else column.list.contains(rule)
    our, their = (side.select(broken).to_series() for side in sides)
    numbers = " | ".join(str(each.sum()) for each in (our & their, our & ~their, ~our & their))
    equal = (our == their).sum() / max(1, documents.height)
    print(f"| {rule} | {numbers} | {equal:.2%} |")
    for row in (our != their).arg_true().head(SHOWN) if is_shown else ():
        reasons = [side["reasons"][row].to_list() for side in sides]
        print(f"  ours {reasons[0]}, theirs {reasons[1]}: {excerpt(documents, row)}")


def print_texts(ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    """Print how many documents that both keep have the same text, but for white space."""
    both = pl.DataFrame({"ours": ours["text"], "theirs": theirs["text"]}).drop_nulls()
    same = both.select((pl.col("ours") == pl.col("theirs")).sum()).item()
    words = [pl.col(side).str.replace_all(r"\s+", " ") for side in both.columns]
    similar = both.select((words[0] == words[1]).sum()).item()
    print(f"\nof {both.height} that both keep, {same} have the same text, {similar} the same words")


if __name__ == "__main__":
    main()
