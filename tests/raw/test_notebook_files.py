"""Jupyter notebooks of several programs and versions of the format."""

from typing import Any

from input_files import COMPRESS, as_input, read, texts, write
from prelude import Path, given, json, pytest, settings, st

from assets.raw.readers.formats import tell_format

ROOT = Path(__file__).parents[2]
PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
CODE = "```python\n1 + 1\n```"
STREAM = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
RESULT = {"output_type": "execute_result", "data": {"text/plain": "2"}, "execution_count": 1}
PICTURE = {"output_type": "display_data", "data": {"image/png": "aGk="}, "metadata": {}}
FAULT = {
    "output_type": "error",
    "ename": "E",
    "evalue": "x",
    "traceback": ["\x1b[0;31mE\x1b[0m: x"],
}


def cell(kind: str, source: str | list[str], **others: object) -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "source": source, **others}


def code(source: str | list[str] = "1 + 1", *outputs: object) -> dict[str, object]:
    return cell("code", source, outputs=list(outputs), execution_count=None)


def notebook(*cells: object, **metadata: object) -> dict[str, Any]:
    return {"cells": [*cells], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def older(*cells: object) -> dict[str, Any]:
    sheets = [{"cells": [*cells], "metadata": {}}]
    return {"metadata": {"name": "T"}, "nbformat": 3, "nbformat_minor": 0, "worksheets": sheets}


HI = cell("markdown", "# Bees\n\nThey fly.")
OLD_CODE = {"cell_type": "code", "input": ["1 +", " 1"], "language": "python", "outputs": []}
OLD_OUTPUT = {"output_type": "pyout", "prompt_number": 1, "text": ["2"], "metadata": {}}
FILES: dict[str, tuple[dict[str, Any], str, int]] = {  # notebook, text, outputs that are left out
    "markdown": (notebook(HI), "# Bees\n\nThey fly.", 0),
    "order": (
        notebook(code(), HI, code(), **PYTHON),
        f"{CODE}\n\n# Bees\n\nThey fly.\n\n{CODE}",
        0,
    ),
    "lines": (notebook(code(["1 +", " 1\n"]), **PYTHON), CODE, 0),
    "language_info": (notebook(code(), language_info={"name": "python"}), CODE, 0),
    "r": (
        notebook(code("x <- 1"), kernelspec={"name": "ir", "language": "R"}),
        "```R\nx <- 1\n```",
        0,
    ),
    "no_kernel": (notebook(code()), "```\n1 + 1\n```", 0),
    "null_kernel": (notebook(code(), kernelspec=None, language_info={}), "```\n1 + 1\n```", 0),
    "raw": (
        notebook(cell("raw", "---\ntitle: T\n---"), HI),
        "---\ntitle: T\n---\n\n# Bees\n\nThey fly.",
        0,
    ),
    "empty_cells": (
        notebook(code(""), HI, cell("markdown", []), code("\n")),
        "# Bees\n\nThey fly.",
        0,
    ),
    "stream": (notebook(code("1 + 1", STREAM), **PYTHON), CODE, 1),
    "result": (notebook(code("1 + 1", RESULT), **PYTHON), CODE, 1),
    "picture": (notebook(code("1 + 1", RESULT, PICTURE), **PYTHON), CODE, 2),
    "fault": (notebook(code("1 + 1", FAULT), **PYTHON), CODE, 1),
    "magic": (notebook(code("%%bash\nls"), **PYTHON), "```python\n%%bash\nls\n```", 0),
    "fences": (notebook(code("'''\n```\n'''")), "````\n'''\n```\n'''\n````", 0),
    "ids": (notebook(cell("markdown", "Fly.", id="a1b2")), "Fly.", 0),
    "colab": (notebook(code(), colab={"name": "T.ipynb"}, accelerator="GPU"), "```\n1 + 1\n```", 0),
    "wide": (notebook(cell("markdown", "Grüße 蜂 🐝")), "Grüße 蜂 🐝", 0),
    "version_3": (older(OLD_CODE, cell("markdown", "Fly.")), f"{CODE}\n\nFly.", 0),
    "heading_3": (older(cell("heading", "Bees", level=2), OLD_CODE), f"## Bees\n\n{CODE}", 0),
    "output_3": (older(OLD_CODE | {"outputs": [OLD_OUTPUT]}), CODE, 1),
    "two_sheets_3": (
        older(OLD_CODE) | {"worksheets": older(OLD_CODE)["worksheets"] * 2},
        f"{CODE}\n\n{CODE}",
        0,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_cells_are_one_document(tmp_path: Path, name: str) -> None:
    content, text, num_outputs = FILES[name]

    chunk = read(write(tmp_path, f"{name}.ipynb", json.dumps(content, indent=1)))

    assert (texts(chunk), chunk.quarantine.height) == ([text], 0)
    assert chunk.left_out["notebook_output"] == num_outputs
    assert chunk.rows_in == 1 + num_outputs


def test_texts_of_outputs_are_kept_up_to_a_length(tmp_path: Path) -> None:
    outputs = (STREAM, RESULT, PICTURE, FAULT)
    file = write(tmp_path, "a.ipynb", json.dumps(notebook(code("1 + 1", *outputs), **PYTHON)))

    kept, cut = (read(file, notebook_outputs=number) for number in (10, 3))

    assert texts(kept) == [f"{CODE}\n\n```\none\ntwo\n```\n\n```\n2\n```\n\n```\nE: x\n```"]
    assert texts(cut) == [f"{CODE}\n\n```\none\n```\n\n```\n2\n```\n\n```\nE: \n```"]
    assert (kept.left_out, cut.left_out) == ({"notebook_output": 1}, {"notebook_output": 3})


def test_pictures_of_a_cell_are_counted(tmp_path: Path) -> None:
    shown = cell("markdown", "![x](attachment:x.png)", attachments={"x.png": {"image/png": "aGk="}})

    chunk = read(write(tmp_path, "a.ipynb", json.dumps(notebook(shown))))

    assert (texts(chunk), chunk.left_out) == (["![x](attachment:x.png)"], {"attachment": 1})


def test_the_notebook_of_this_project_is_read() -> None:
    [text] = texts(read(as_input(ROOT / "examples/notebook.ipynb")))

    assert text.startswith("# A corpus in a notebook\n\nInstall:")
    assert text.count("```python\n") == 7


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('{"cells": [', "notebook cannot be read: Input data was truncated"),
        ('{"cells": [{"cell_type": "code", "source": 5}]}', "`$.cells[0].source`"),
        ('{"cells": [{"source": "x"}]}', "missing required field `cell_type` - at `$.cells[0]`"),
        ('{"text": "a record"}', "it has no cells, as nbformat 3 and 4 have them"),
        ('[{"cells": []}]', "Expected `object`, got `array`"),
        ('{"cells": [{"cell_type": "raw", "source": "\\ud800"}]}', "notebook cannot be read"),
        ('{"cells": [], "metadata": {"a": ' + "[" * 999 + "]" * 999 + "}}", "levels deep"),
        ("<html><title>Sign in</title></html>", "this is an HTML page"),
    ],
)
def test_what_is_no_notebook_goes_to_quarantine(tmp_path: Path, data: str, reason: str) -> None:
    chunk = read(write(tmp_path, "a.ipynb", data))

    [row] = chunk.quarantine.rows(named=True)
    assert (texts(chunk), row["raw"]) == ([], data.encode())
    assert reason in row["error"]


def test_packed_damaged_empty_and_large_files(tmp_path: Path) -> None:
    data = json.dumps(notebook(HI)).encode()

    assert texts(read(write(tmp_path, "a.ipynb.gz", COMPRESS["gz"](data)))) == [
        "# Bees\n\nThey fly."
    ]
    assert read(write(tmp_path, "b.ipynb", b"")).rows_in == 0
    large = read(write(tmp_path, "c.ipynb", data), max_record_bytes=100)
    broken = read(write(tmp_path, "d.ipynb", data.replace(b"They", b"\xff")))
    assert "ipynb file is above max_record_bytes=100" in large.quarantine["error"][0]
    assert "notebook cannot be read" in broken.quarantine["error"][0]
    assert tell_format("a.ipynb.zst") == ("ipynb", "zst")


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"cell_type": st.sampled_from(["code", "raw", "x"])},
            optional=dict.fromkeys(["source", "outputs", "attachments"], json_values),
        )
    ),
    json_values,
)
def test_any_cells_end_in_a_document_or_quarantine(
    tmp_path_factory: pytest.TempPathFactory, cells: list[object], metadata: object
) -> None:
    file = write(
        tmp_path_factory.mktemp("any"),
        "a.ipynb",
        json.dumps({"cells": cells, "metadata": metadata}),
    )
    chunk = read(file, notebook_outputs=9)

    assert len(chunk.documents) + len(chunk.quarantine) == 1
