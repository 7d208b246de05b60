"""Corpora which between them use every feature, and the ways in which one thing of them changes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from builders import sentence, write_jsonl
from chat_corpus import write_chat_corpus
from chat_server import judge_url
from every_stage import CONFIG, write_inputs
from plug_in_package import forget, install
from verbs import Cli

from assets.tokenized.chat_template_files import CHATML
from resources.settings.filtering.filter_steps import DEFAULT_KINDS, KINDS
from resources.settings.shards import FORMAT_NAMES, MASK_FORMATS

TOOL = {"type": "function", "function": {"name": "weather", "description": "of a place"}}
RULE = """
import polars as pl
from assets.filtered.rules import CustomRule
RULES = [CustomRule("marked", pl.col("text").str.count_matches("{word}"), maximum=0)]
"""
CLASSES = {"score": "meta.n", "limits": [0.5, 10, 20]}  # a percentile is a share
BY_TOPIC = CLASSES | {"label": "topics.topic", "min_tokens": 700}
TOPICS = ("art", "law", "C++", "C#")
FEW, MANY = [[0.5, 1], [10, 1], [20, 0], [99, 2]], [[0.5, 2], [10, 1], [20, 1], [99, 3]]
BY_LENGTH = {"score": "tokens", "limits": [200]}
PACKED = {"mode": "pack", "sequence_length": 384, "classes": BY_LENGTH}  # some chats are longer
FEW_LONG, MANY_LONG = {0: 0.8, 200: 0.2}, {0: 0.3, 200: 0.7}
RULES = CONFIG["filters"]["rules"] | {
    "opt_out": {"domains_file": "opted_out.txt"},
    "metadata": {"blocked_licenses": ["nd"], "blocked_domains_file": "blocked.txt"},
}
CUSTOM = {"custom": "rules.py", "rules": {"custom": {"marked": True}}}  # tried in 3 CPU seconds
PROSE = {"name": "prose", "where": "input/prose/*", "fill_in_the_middle": {"rate": 0.3}}
NOTES = {"name": "notes", "where": "input/notes/*", "column_names": ["text", "k"]}
FORTUNES = {"name": "fortunes", "where": "input/fortunes/*", "format": "fortunes"}
LABELLED = {
    **{"name": "topics", "where": "topics/*", "by": "meta.n", "columns": {"topic": "label"}},
    **{"sources": ["prose"], "min_matched": 0},
}
JUDGE = {
    **{"name": "judge", "kind": "ask", "model": "any", "prompt": "prompt.txt", "share": 0.8},
    **{"columns": {"score": "number"}, "drop": "score > 4"},
}
TAUGHT = {
    **{"name": "taught", "kind": "classify", "by": "judge", "good": "score > 2"},
    "drop": "score < 0.2",
}
SCORES = [r"Score: (?P<score>\d)", r"or else (?P<score>\d)"]
PLUG_INS = {"plug_ins": ["shouting"], "rules": {"custom": {"shouting": 0.5}}}


@dataclass
class Site:
    """A corpus on disk that changes step by step; `step` is a number that no other change has."""

    config: Path
    cli: Cli
    random: random.Random
    step: int = 0

    @property
    def folder(self) -> Path:
        return self.config.parent

    def settings(self, path: str, change: Callable[[Any], Any]) -> None:
        """Change the value of a key, such as sources.0.where."""
        content = yaml.safe_load(self.config.read_text())
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        model = content
        for key in parents:
            model = model[key] if isinstance(key, int) else model.setdefault(key, {})
        model[last] = change(model[last] if isinstance(last, int) else model.get(last))
        self.config.write_text(yaml.safe_dump(content, sort_keys=False))

    def record(self, pattern: str, change: Callable[[Any], Any]) -> None:
        """Change one record of the files of a pattern, in its place."""
        paths = [path for path in sorted(self.folder.glob(pattern)) if "}" in path.read_text()]
        path = self.random.choice(paths)
        lines = path.read_text().splitlines()
        whole = [number for number, line in enumerate(lines) if line.endswith("}")]
        number = self.random.choice(whole)
        lines[number] = json.dumps(change(json.loads(lines[number])))
        path.write_text("\n".join([*lines, ""]))


Change = Callable[[Site], None]


def text_corpus(folder: Path, **changes: Any) -> Path:
    """Texts with every feature for them, every format and documents of known sites."""
    (folder / "prompt.txt").write_text("How good is it?")
    (folder / "opted_out.txt").write_text("nobody.example\n")
    (folder / "blocked.txt").write_text("nobody.example\n")
    (folder / "rules.py").write_text(RULE.replace("{word}", "nobody"))
    settings = {
        "sources": [PROSE, NOTES],
        "filters": {"pii": {}, "rules": RULES},
        "shards": {"target_bytes": 4096, "rewrite_share": 1, "formats": list(FORMAT_NAMES)},
        "annotations": [
            *(*CONFIG["annotations"], LABELLED),
            JUDGE | {"endpoint": judge_url(), "pattern": SCORES[0]},
            TAUGHT,
        ],
        "phases": [
            {"name": "main", "weighting": "natural", "batch_samples": 4},
            {
                "name": "late",
                "budgets": {"prose": 4000},
                "batch_samples": 4,
                "formats": ["parquet"],
                "upsample": FEW,
            },
        ],
        "buckets": {"mode": "buckets", "edges": [64, 256], "classes": CLASSES},
    }
    write_inputs(folder, **settings | changes)
    pages = [
        {
            "text": sentence(700 + i, 40),
            "url": f"https://site{i}.example/a",
            "license": "by",
            "n": i,
        }
        for i in range(30)
    ]
    write_jsonl(folder / "input/prose/pages.jsonl", pages)
    topics = [{"n": str(n), "topic": TOPICS[n % 7 % 4]} for n in range(35)]
    write_jsonl(folder / "topics/a.jsonl", topics)
    write_jsonl(folder / "input/prose/broken.jsonl", ["{"])
    rows = "".join(f"{sentence(800 + i, 40)},{sentence(850 + i, 40)}\n" for i in range(30))
    (folder / "input/notes/table.csv").write_text(rows)
    return with_more_files(folder / "pipeline.yaml")


def plug_in_corpus(folder: Path) -> Path:
    """Texts with a reader, a rule and a shard format of a package, installed in `site`."""
    install(folder / "site")
    forget()
    (folder / "input/fortunes").mkdir(parents=True)
    texts = "\n%\n".join(["BUY NOW", *(sentence(300 + i, 40) for i in range(20))])
    (folder / "input/fortunes/a.fortunes").write_text(texts)
    changes = {"mode": "decompose", "sequence_length": 256, "classes": BY_TOPIC}
    config = text_corpus(
        folder, sources=[PROSE, NOTES, FORTUNES | {"filters": PLUG_INS}], buckets=changes
    )
    content = yaml.safe_load(config.read_text())
    content["shards"]["formats"].append("json_lines")
    words = {"name": "words", "kind": "plug_in", "plug_in": "word_length"}
    content["annotations"].append(
        words | {"columns": {"letters": "number"}, "drop": "letters > 99"}
    )
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    return config


def chat_corpus(folder: Path, **changes: Any) -> Path:
    """Conversations of two forms, some with tools, beside texts."""
    settings = {
        "shards": {"target_bytes": 4096, "rewrite_share": 1, "formats": list(MASK_FORMATS)},
        "holdout": {"share": 0.1},
        "annotations": [
            {"name": "about", "kind": "topics", "drop": "distance > 1.99"},
            JUDGE | {"sources": ["asked", "told"], "endpoint": judge_url(), "pattern": SCORES[0]},
        ],
        "buckets": PACKED,
        "phases": [
            {"name": "main", "weighting": "natural", "batch_samples": 4},
            {"name": "long", "weighting": "natural", "batch_samples": 4, "lengths": FEW_LONG},
        ],
    }
    (folder / "prompt.txt").write_text("How good is it?")
    config = write_chat_corpus(folder, **settings | changes)
    path = folder / "input/asked/a.jsonl"
    lines = path.read_text().splitlines()
    some = [json.loads(line) | {"tools": [TOOL]} for line in lines[:5]]
    write_jsonl(path, [*some, *lines[5:]])
    return with_more_files(config)


def with_more_files(config: Path) -> Path:
    """Write one file that will go and one that will get another name; return the config."""
    for number, name in enumerate(("spare", "named")):
        texts = [{"text": sentence(900 + number, 40)}]
        write_jsonl(config.parent / f"input/prose/{name}.jsonl", texts)
    return config


CORPORA: dict[str, Callable[[Path], Path]] = {
    "texts in buckets": lambda folder: text_corpus(
        folder, sources=[PROSE, NOTES | {"filters": CUSTOM}]
    ),
    "packed chats": chat_corpus,
    "decomposed texts": plug_in_corpus,
    "concatenated chats": lambda folder: chat_corpus(folder, buckets=PACKED | {"mode": "concat"}),
}


def swapped(text: str) -> str:
    """Let two of the first words that differ change places: as many tokens."""
    words = text.split(" ")
    first, second = next((n, n + 2) for n in range(1, len(words)) if words[n] != words[n + 2])
    words[first], words[second] = words[second], words[first]
    return " ".join(words)


def two_words_change_places(site: Site) -> None:
    site.record("input/prose/*", lambda record: record | {"text": swapped(record["text"])})


def a_word_of_equal_length(site: Site) -> None:
    def change(record: Any) -> Any:
        return record | {"text": f"w{site.step:04d}{record['text'][5:]}"}

    site.record("input/prose/*", change)


def an_answer_changes_words(site: Site) -> None:
    def change(record: Any) -> Any:
        [*before, last] = record["conversations"]
        return {"conversations": [*before, last | {"value": swapped(last["value"])}]}

    site.record("input/told/*", change)


def a_system_prompt(site: Site) -> None:
    prompt = {"from": "system", "value": f"s{site.step}"}

    def change(record: Any) -> Any:
        return {"conversations": [prompt, *record["conversations"][-2:]]}

    site.record("input/told/*", change)


def a_prompt_beside_the_answer(site: Site) -> None:
    prompt = [{"from": "human", "value": f"p{site.step}"}]

    def change(record: Any) -> Any:
        return {"prompt": prompt, "conversations": record["conversations"][-1:]}

    site.record("input/told/*", change)


def other_tools(site: Site) -> None:
    tool = {"type": "function", "function": {"name": f"tool{site.step}"}}
    path = site.folder / "input/asked/a.jsonl"
    first, *rest = path.read_text().splitlines()
    write_jsonl(path, [json.loads(first) | {"tools": [tool]}, *rest])


def an_answer_is_told(key: str, value_of: Callable[[int], Any]) -> Change:
    """Change what is beside the last answer of a conversation, or take it away."""

    def change(site: Site) -> None:
        def told(record: Any) -> Any:
            *turns, last = record["conversations"]
            given = None if last.get(key) == 0 else value_of(site.step)
            return record | {"conversations": [*turns, last | {key: given}]}

        site.record("input/told/*", told)

    return change


def an_answer_has_another_weight(site: Site) -> None:
    """Learn with the weights of messages, of which one changes."""
    site.settings("sources.2.learn", lambda now: "weights")
    an_answer_is_told("weight", lambda step: round(0.1 * (step % 9 + 1), 1))(site)


def the_end_of_answers_is_learned_or_not(site: Site) -> None:
    """Other masks for the same tokens."""
    end = "{{- '<|im_end|>' }}{% endgeneration %}"
    other = "{% endgeneration %}{{ '<|im_end|>' }}"
    assert end in CHATML
    not_learned = CHATML.replace(end, other)
    site.settings("tokenizer.chat_template", lambda now: None if now else not_learned)


def another_pattern(site: Site) -> None:
    site.settings("tokenizer.retrain", lambda _: "when_config_changes")
    key("tokenizer.pattern", "gpt4o", "qwen")(site)


def of_pages(**fields: str) -> Change:
    def change(site: Site) -> None:
        values = {name: value.format(site.step) for name, value in fields.items()}
        site.record("input/prose/pages.jsonl", lambda record: record | values)

    return change


def the_number_of_a_page(site: Site) -> None:
    site.record("input/prose/pages.jsonl", lambda record: record | {"n": record["n"] + 11})


def page_of(site: Site) -> Any:
    """Return a page that no other change takes."""
    path = site.folder / "input/prose/pages.jsonl"
    return json.loads(path.read_text().splitlines()[site.step])


def an_evaluation_item(site: Site) -> None:
    words = page_of(site)["text"].split()
    item = {"question": " ".join(words[:25]), "n": 100 + site.step}
    append(site.folder / "quiz/a.jsonl", json.dumps(item))


def another_line_of(name: str) -> Change:
    return lambda site: append(site.folder / name, page_of(site)["url"].split("/")[2])


def a_custom_rule(site: Site) -> None:
    (site.folder / "rules.py").write_text(RULE.replace("{word}", f" {100 + site.step}a "))


def code_of_a_plug_in(module: str, place: str, code: str) -> Change:
    """Return the change of code in a module of the package, for a process that begins after it."""

    def change(site: Site) -> None:
        path = site.folder / f"site/tokenmill_examples/{module}.py"
        before, after = path.read_text().split(place)
        path.write_text(before + code.format(site.step) + after)
        forget()

    return change


def a_file_is_appended_to(site: Site) -> None:
    path = site.random.choice(sorted((site.folder / "input/prose").iterdir()))
    append(path, json.dumps({"text": sentence(2000 + site.step, 40)}))


def a_file_comes(site: Site) -> None:
    texts = [{"text": sentence(4000 + 10 * site.step + i, 40)} for i in range(3)]
    write_jsonl(site.folder / f"input/prose/new{site.step}.jsonl", texts)


def a_file_goes(site: Site) -> None:
    (site.folder / "input/prose/spare.jsonl").unlink()


def a_file_gets_another_name(site: Site) -> None:
    path = site.folder / "input/prose/named.jsonl"
    path.rename(path.with_name("renamed.jsonl"))


def a_takedown(site: Site) -> None:
    site.cli.out("takedown", "--url", page_of(site)["url"], "--reason", "asked for")


def a_takedown_of_an_item(site: Site) -> None:
    """Take down the text of an evaluation item, and of the document that has it."""
    text = site.folder / "asked.txt"
    text.write_text(
        json.loads((site.folder / "quiz/a.jsonl").read_text().splitlines()[0])["question"]
    )
    site.cli.out("takedown", "--match", str(text), "--reason", "asked for")


def a_patch(site: Site) -> None:
    """Mend the record of a file that cannot be read."""
    place = {"file": "input/prose/broken.jsonl", "position": "byte 0"}
    patch = write_jsonl(site.folder / "patch.jsonl", [place | {"record": {"text": sentence(6000)}}])
    site.cli.out("quarantine", "replay", "prose", "--patched", str(patch))


def a_score_of_a_document(site: Site) -> None:
    site.record("liked/a.jsonl", lambda record: record | {"likes": record["likes"] % 7 + 2})


def a_file_of_scores(site: Site) -> None:
    record = {"n": str(site.step % 30), "likes": 0}
    write_jsonl(site.folder / f"liked/new{site.step}.jsonl", [record])


def a_label_of_a_document(site: Site) -> None:
    """A topic that is there, or one that no other document has."""

    def change(record: Any) -> Any:
        topics = [topic for topic in (*TOPICS, f"new {site.step}") if topic != record["topic"]]
        return record | {"topic": site.random.choice(topics)}

    site.record("topics/a.jsonl", change)


def a_class_falls_below_the_smallest(site: Site) -> None:
    """All documents of the largest topic but one get topics of their own."""
    path = site.folder / "topics/a.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    [(largest, _)] = Counter(record["topic"] for record in records).most_common(1)
    _, *others = [record for record in records if record["topic"] == largest]
    for number, record in enumerate(others):
        record["topic"] = f"rare {site.step} {number}"
    write_jsonl(path, records)


def key(path: str, *values: Any) -> Change:
    """Return the change of a setting to the first of some values that it has not."""

    def change(now: Any) -> Any:
        return next(value for value in values if value != now)

    return lambda site: site.settings(path, change)


def append(path: Path, line: str) -> None:
    """Append a line to a file."""
    with path.open("a") as file:
        file.write(f"{line}\n")


OF_ALL: dict[str, Change] = {
    "two words change places": two_words_change_places,
    "a word of equal length": a_word_of_equal_length,
    "a file is appended to": a_file_is_appended_to,
    "a file comes": a_file_comes,
    "a file goes": a_file_goes,
    "a file gets another name": a_file_gets_another_name,
    "shards.seed": key("shards.seed", 1, 2, 3),
    "shards.target_bytes": key("shards.target_bytes", 2048, 8192),
    "holdout.share": key("holdout.share", 0.3, 0.05),
    "part_bytes": key("part_bytes", 4096, 16384),
    "compression": key("compression", "lz4", "zstd"),
    "dedup.ngram": key("dedup.ngram", 3, 5),
    "phases.0.seed": key("phases.0.seed", 1, 2, 3),
    "loss_weights": key("phases.0.loss_weights", {"prose": 2.0}, None),
    "min_chars": key("filters.rules.length.min_chars", 150, 20),
    "another pattern": another_pattern,
    "a token before documents": key("tokenizer.begin_of_document", "<|endoftext|>", None),
}
OF_TEXTS: dict[str, Change] = OF_ALL | {
    "column_names": key("sources.1.column_names", ["k", "text"], ["text", "k"]),
    "a url": of_pages(url="https://other{}.example/b"),
    "a licence": of_pages(license="nd"),
    "a label": of_pages(label="{}"),
    "the number of a page": the_number_of_a_page,
    "an evaluation item": an_evaluation_item,
    "an opt-out": another_line_of("opted_out.txt"),
    "a blocked domain": another_line_of("blocked.txt"),
    "a takedown": a_takedown,
    "a takedown of an item": a_takedown_of_an_item,
    "a patch": a_patch,
    "a score of a document": a_score_of_a_document,
    "a file of scores": a_file_of_scores,
    "a label of a document": a_label_of_a_document,
    "a class falls below the smallest": a_class_falls_below_the_smallest,
    "classes by a label": key("buckets.classes.label", "topics.topic", None),
    "min_tokens": key("buckets.classes.min_tokens", 800, 100),
    "the condition of an annotator": key("annotations.0.drop", "likes > 7", "likes < 1"),
    "the condition of topics": key("annotations.1.drop", "distance > 0.6", "distance > 1.99"),
    "the condition of answers": key("annotations.3.drop", "score > 3", "score > 4"),
    "the pattern of answers": key("annotations.3.pattern", SCORES[1], SCORES[0]),
    "the share that is asked about": key("annotations.3.share", 1.0, 0.8),
    "what a classifier learns": key("annotations.4.good", "score < 2", "score > 2"),
    "the condition of a classifier": key("annotations.4.drop", "score > 0.6", "score < 0.2"),
    "topics are found again": key("annotations.1.seed", 1, 2),
    "classes by an annotator": key("buckets.classes.score", "liked.likes", "meta.n"),
    "fill_in_the_middle.seed": key("sources.0.fill_in_the_middle.seed", 1, 2),
    "score of classes": key("buckets.classes.score", "quality_percentile", "meta.n"),
    "upsample": key("phases.1.upsample", MANY, FEW),
    "substrings": key("dedup.substrings.min_words", 150, 50),
    "lines": key("dedup.lines.min_count", 9, 4),
    "kinds of personal data": key("filters.pii.kinds", [*KINDS], [*DEFAULT_KINDS]),
    "min_words": key("filters.rules.gopher_quality.min_words", 14, 5),
    "classifier.seed": key("classifier.seed", 1, 2),
}
OF_CHATS: dict[str, Change] = OF_ALL | {
    "the condition of answers": key("annotations.1.drop", "score > 3", "score > 4"),
    "an answer changes words": an_answer_changes_words,
    "a system prompt": a_system_prompt,
    "a prompt beside the answer": a_prompt_beside_the_answer,
    "other tools": other_tools,
    "an answer is not learned": an_answer_is_told("weight", lambda step: 0),
    "only last answers are learned": key("sources.1.learn", "last", "all"),
    "questions are learned": key("sources.1.learn", {"roles": ["user", "assistant"]}, "all"),
    "an answer has another weight": an_answer_has_another_weight,
    "turns are split": key("sources.2.reasoning", "split_turns", "as_template"),
    "an answer has reasoning": an_answer_is_told("reasoning", "thought {}".format),
    "an answer calls a tool": an_answer_is_told(
        "tool_calls", lambda step: [{"name": "f", "arguments": {"n": step}}]
    ),
    "the end of answers is learned, or not": the_end_of_answers_is_learned_or_not,
    "lengths": key("phases.1.lengths", MANY_LONG, FEW_LONG),
    "limits of lengths": key("buckets.classes.limits", [200, 300], [200]),
    "long conversations": key("buckets.long_conversations", "drop", "cut_turns"),
    "sequence_length": key("buckets.sequence_length", 256, 512),
    "pad_documents_to": key("buckets.pad_documents_to", 16, 1),
}
CHANGES = {
    "texts in buckets": OF_TEXTS | {"a custom rule": a_custom_rule},
    "packed chats": OF_CHATS | {"neighbours": key("buckets.neighbours", "similar", None)},
    "decomposed texts": OF_TEXTS
    | {
        "the reader of a plug-in": code_of_a_plug_in("reader", 'b"\\n".join(', 'b" w{} ".join('),
        "the rule of a plug-in": code_of_a_plug_in(
            "rule", "CAPITALS, maximum", "CAPITALS * 1.0{}, maximum"
        ),
        "the annotator of a plug-in": code_of_a_plug_in("annotator", ".mean()", ".mean() + {}"),
        "the format of a plug-in": code_of_a_plug_in(
            "writer", 'select("tokens")', 'select("tokens", n=pl.lit({}))'
        ),
    },
    "concatenated chats": OF_CHATS,
}
