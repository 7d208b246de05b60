"""Code score: literal texts, and a plain twin of the kernel."""

import math

from prelude import example, given, np, pairwise, pl, pytest, settings, st

from assets.filtered.code_score import MIDDLE, SLOPE, is_code, lexicon, score_code
from assets.filtered.filter_documents import filter_documents
from assets.filtered.kernels.code_lines import LIMIT, Sign, weigh_texts
from assets.filtered.language.detect_language import detect_language
from assets.text.buffers import text_buffers
from resources.settings.filtering.filter_steps import LanguageConfig
from resources.settings.filtering.filters import FilterConfig

PYTHON = """\
import os

def read_all(folder):
    # Hidden files are left out, as the shell does it.
    return [open(os.path.join(folder, name)).read() for name in os.listdir(folder)]
"""
C = """\
#include <stdio.h>

int main(int argc, char **argv)
{
\tfor (int i = 1; i < argc; i++)
\t\tputs(argv[i]);
\treturn 0;
}
"""
SHELL = 'if [ -z "$1" ]; then\n  echo "usage: $0 FILE" >&2\n  exit 1\nfi\nsort -u "$1" > "$1.new"\n'
SQL = "SELECT name, count(*)\n  FROM people p\n JOIN towns t ON t.id = p.town_id;\n"
PROSE = """\
The river rose twice that year. When it fell, the people of the lower town (those who
had stayed) came back to their houses, and found the mill gone.

"Well," said the miller, "I never liked it."
"""
GERMAN = "Der Fluss stieg in jenem Jahr zweimal; danach war die Mühle fort.\n"
RUSSIAN = "Река поднималась дважды в том году, и мельницы больше не было.\n"
CHINESE = "那一年河水上涨了两次,磨坊不见了。\n"
LATEX = "Let $x \\in \\mathbf{R}$ be such that $f(x) = 0$; see \\cite{tate} and \\ref{zero}.\n"
LIST = "- Apples, pears and plums\n- Bread from the baker\n- Milk, if there is any\n"


def scores(*texts: str) -> list[float]:
    return score_code(pl.Series(texts, dtype=pl.String))["code_score"].to_list()


def test_source_code_scores_near_one_and_prose_near_zero() -> None:
    assert min(scores(PYTHON, C, SHELL, SQL)) > 0.9
    assert max(scores(PROSE, GERMAN, RUSSIAN, CHINESE, LATEX, LIST)) < 0.1
    assert scores("", " \n\t\n") == [0, 0]
    found = scores(PYTHON, PROSE, LATEX)  # which stay as they are
    assert found == pytest.approx([0.9905393745, 0.0, 0.0], abs=1e-4)


def test_a_text_is_scored_by_its_own_bytes() -> None:
    prose = "The mill by the river was old, and its wheel had not turned for a year.\n" * 3
    texts = [f"{prose}so they left", "; } { (x) => [y]; }\n", f"{prose}and went", "return x;\n"]

    assert scores(*texts) == [scores(text)[0] for text in texts]


def test_source_code_has_no_language() -> None:
    found = detect_language(pl.Series([PYTHON, PROSE, GERMAN]), LanguageConfig())
    off = detect_language(pl.Series([PYTHON, PROSE]), LanguageConfig(max_code_score=None))

    assert found["lang"].to_list() == [None, "en", "de"]
    assert off["lang"].to_list() == ["en", "en"]
    assert found["lang_score"][0] == off["lang_score"][0] > 0


def test_rules_keep_code_out_of_prose_and_prose_out_of_code() -> None:
    documents = pl.DataFrame({"doc_id": ["1", "2"], "text": [PYTHON, PROSE], "lang": [None, None]})

    def reasons(**limits: float) -> list[list[str]]:
        config = FilterConfig.model_validate({"rules": {"code_content": limits}})
        return filter_documents(documents, config)[1]["reasons"].to_list()

    assert reasons(max_score=0.5) == [["code_content.is_code"], []]
    assert reasons(min_score=0.5) == [[], ["code_content.not_code"]]


PIECES = [
    *("a", "B", "é", "漢", "7", " ", "\t", "\n", "\n", "(", ")", "{", "}", ";", ":", ",", ".", "?"),
    *("_", "=", "#", "//", "/*", "*", "--", '"', "'", "`", "```", "~~~", "\\", "$", "\x00", "\r"),
    *("return", "fi", "continue", "continued", "The river", "  ", "x.y", "f(x);\n", "aB"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def evidence_slowly(line: str, is_indented: bool) -> float:
    tables = lexicon()
    data = line.encode()
    total = sum(int(tables.pairs[a + b * 256]) for a, b in pairwise(b"\n" + data))
    weight = total / len(data) + tables.signs[Sign.BIAS] + tables.signs[Sign.INDENT] * is_indented
    names = {";": "SEMICOLON", ",": "COMMA"} | dict.fromkeys("{}", "BRACE")
    names |= dict.fromkeys(")]", "BRACKET") | dict.fromkeys(".?!", "FULL_STOP")
    if line[-1] in names:
        weight += tables.signs[Sign[names[line[-1]]]]
    if "a" <= line[0] <= "z":
        weight += tables.signs[Sign.LOWER_CASE]
    word = "".join(c if c.isascii() and c.isalpha() else " " for c in line).split(" ")[0]
    if word and int.from_bytes(word.encode(), "big") in set(tables.keywords.tolist()):
        weight += tables.signs[Sign.KEYWORD]
    weight = min(max(weight, -LIMIT), LIMIT)
    marks = ("#", "//", "/*", "--", '""', "''", "*/")
    is_star = line[0] == "*" and line[1:2] <= " "
    return max(weight, 0.0) if line.startswith(marks) or is_star else weight


def lines_slowly(text: str) -> list[tuple[str, float]]:
    blanks = "".join(map(chr, range(33)))
    lines = []
    for raw in text.split("\n"):
        if line := raw.strip(blanks):
            indent = raw[: len(raw) - len(raw.lstrip(blanks))]
            is_indented = len(indent) >= 2 or indent == "\t"
            lines.append((line, evidence_slowly(line, is_indented)))
    return lines


@settings(max_examples=100)
@given(st.lists(TEXTS, max_size=4))
def test_scores_match_a_plain_twin(texts: list[str]) -> None:
    for text, score in zip(texts, scores(*texts), strict=True):
        lines = lines_slowly(text)
        if not lines:
            assert score == 0
            continue
        mean = sum(weight for _, weight in lines) / len(lines)
        assert score == pytest.approx(1 / (1 + math.exp(-SLOPE * (mean - MIDDLE))))


@settings(max_examples=100)
@given(TEXTS)
def test_lines_weigh_the_same_where_64_bytes_follow_them(text: str) -> None:
    assert scores(text + "\n" * 70) == scores(text)


def test_evidence_has_a_bound_on_each_line() -> None:
    data, starts = text_buffers(pl.Series(["a_b(c_d(e_f(g)));", "the end of it all. " * 9]))
    found = np.zeros((2, 2))

    weigh_texts(starts, data, lexicon(), np.nan, found)

    assert found.tolist() == [[LIMIT, 1], [-LIMIT, 1]]


@given(st.lists(TEXTS, max_size=5), st.sampled_from([0.0, 0.01, 0.5, 0.9, 1.0]))
@example([f"{PROSE}{C}\n \n\n{PYTHON}", f"{C * 9}\n\n{PROSE}", PROSE * 9, ""], 0.5)
def test_code_is_what_has_a_higher_score(texts: list[str], most: float) -> None:
    series = pl.Series(texts, dtype=pl.String)

    assert is_code(series, most).to_list() == (score_code(series)["code_score"] > most).to_list()


def test_code_is_found_on_either_side_of_a_score_nearby() -> None:
    [score] = scores(PROSE + C)

    found = [is_code(pl.Series([PROSE + C]), score + beyond).item() for beyond in (-1e-9, 0, 1e-9)]

    assert found == [True, False, False]
