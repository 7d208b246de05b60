"""Conversations of two forms, beside a source of texts, as a corpus on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from builders import SMALL_CORPUS, sentence, write_jsonl

TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BAD: list[dict[str, Any] | str] = [
    {"messages": [{"role": "judge", "content": "order"}]},  # no role
    {"messages": [{"role": "user", "content": "a question and no answer"}]},
    {"messages": "no list"},
]


def question(number: int) -> str:
    return f"what of number {number}? {sentence(300 + number, 12)}"


def answers(number: int) -> list[str]:
    """What the assistant says in a conversation: one to three turns."""
    count = 1 + number % 3
    return [f"answer {number}.{turn} {sentence(600 + number, 8)}" for turn in range(count)]


def chat(number: int) -> list[tuple[str, str]]:
    """The (role, content) of a conversation, every third with a system prompt."""
    system = [("system", f"be brief {number}")] if number % 3 == 0 else []
    turns = [
        turn
        for place, answer in enumerate(answers(number))
        for turn in (("user", f"{question(number)} {place}"), ("assistant", answer))
    ]
    return [*system, *turns]


def openai(number: int) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in chat(number)]}


def sharegpt(number: int) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    turns = [{"from": names[role], "value": text} for role, text in chat(number)]
    return {"conversations": turns}


def write_chat_corpus(folder: Path, **changes: Any) -> Path:
    """Write 24 conversations of each form, three bad ones, and forty texts; return the config."""
    write_jsonl(folder / "input/asked/a.jsonl", [*map(openai, range(24)), *BAD])
    write_jsonl(folder / "input/told/t.jsonl", list(map(sharegpt, range(24, 48))))
    write_jsonl(folder / "input/prose/p.jsonl", [{"text": sentence(i, 20 + i)} for i in range(40)])
    chats = {"kind": "chat", "filters": {"rules": {"gopher_quality": None, "length": None}}}
    config = yaml.safe_load(SMALL_CORPUS.read_text()) | {
        "sources": [
            {"name": "prose", "where": "input/prose/*"},
            {"name": "asked", "where": "input/asked/*", **chats},
            {"name": "told", "where": "input/told/*", "text_field": "conversations", **chats},
        ],
        "tokenizer": {"vocab_size": 320, "sample_bytes": 100_000, "special_tokens": TOKENS},
        "buckets": {"mode": "pack", "sequence_length": 512},
        "phases": [{"name": "main", "weights": {"prose": 0.4, "asked": 0.3, "told": 0.3}}],
        "engine": {"kind": "in_process"},
    }
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config | changes, sort_keys=False))
    return path
