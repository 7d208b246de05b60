"""Records of supervised data in their public forms, by hand after what their sources publish."""

import json

USER, ANSWER = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
MORE = [{"role": "user", "content": "q2"}, {"role": "assistant", "content": "a2"}]
SYSTEM = {"role": "system", "content": "s"}
WEATHER = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": WEATHER}
CALL = {"name": "weather", "arguments": {"city": "Bern"}}
OPENAI_CALL = {"id": "c1", "type": "function", "function": CALL}
AS_TEXT = {"id": "c1", "type": "function", "function": {**CALL, "arguments": '{"city":"Bern"}'}}
HUMAN, GPT = {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}
CALLING = {"from": "function_call", "value": json.dumps(CALL)}
OBSERVED = {"from": "observation", "value": "12"}
PATH = {
    "role": "prompter",
    "text": "q",
    "message_id": "m1",
    "labels": {"spam": {"value": 0}},
    "replies": [
        {"role": "assistant", "text": "worse", "rank": 1, "replies": []},
        {"role": "assistant", "text": "gone", "rank": 0, "deleted": True, "replies": []},
        {
            "role": "assistant",
            "text": "a",
            "rank": 0,
            "replies": [{"role": "prompter", "text": "never answered", "replies": []}],
        },
    ],
}

TEXTS = {  # records whose messages are texts, which say `u` and `a` for a question and its answer
    "openai": ("messages", {"messages": [USER, ANSWER]}, "ua"),
    "openai system": ("messages", {"messages": [SYSTEM, USER, ANSWER]}, "sua"),
    "openai blank system": (
        "messages",
        {"messages": [{**SYSTEM, "content": ""}, USER, ANSWER]},
        "ua",
    ),
    "openai parts": (
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}, ANSWER]},
        "ua",
    ),
    "openai responses": (
        "input",
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            ]
        },
        "ua",
    ),
    "openai weight 1": ("messages", {"messages": [USER, {**ANSWER, "weight": 1}]}, "ua"),
    "openai json text": ("messages", {"messages": json.dumps([USER, ANSWER])}, "ua"),
    "anthropic": (
        "messages",
        {
            "system": "s",
            "messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}],
        },
        "sua",
    ),
    "anthropic system parts": (
        "messages",
        {"system": [{"type": "text", "text": "s"}], "messages": [USER, ANSWER]},
        "sua",
    ),
    "bedrock converse": (
        "messages",
        {
            "system": [{"text": "s"}],
            "messages": [
                {"role": "user", "content": [{"text": "q"}]},
                {"role": "assistant", "content": [{"text": "a"}]},
            ],
        },
        "sua",
    ),
    "gemini": (
        "contents",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"text": "a"}]},
            ]
        },
        "ua",
    ),
    "cohere": (
        "messages",
        {
            "messages": [
                {"role": "System", "content": "s"},
                {"role": "User", "content": "q"},
                {"role": "Chatbot", "content": "a"},
            ]
        },
        "sua",
    ),
    "sharegpt": ("conversations", {"conversations": [HUMAN, GPT], "id": "x"}, "ua"),
    "sharegpt system": (
        "conversations",
        {"conversations": [{"from": "system", "value": "s"}, HUMAN, GPT]},
        "sua",
    ),
    "sharegpt chatgpt": (
        "conversations",
        {"conversations": [HUMAN, {"from": "chatgpt", "value": "a"}]},
        "ua",
    ),
    "slimorca": (
        "conversations",
        {"conversations": [{**HUMAN, "weight": 0.0}, {**GPT, "weight": 1.0}]},
        "ua",
    ),
    "openthoughts": (
        "conversations",
        {
            "system": "s",
            "conversations": [{"from": "user", "value": "q"}, {"from": "assistant", "value": "a"}],
        },
        "sua",
    ),
    "nemo": (
        "conversations",
        {
            "mask": "User",
            "system": "s",
            "conversations": [{"from": "User", "value": "q"}, {"from": "Assistant", "value": "a"}],
        },
        "sua",
    ),
    "magpie": (
        "conversations",
        {"conversations": [HUMAN, GPT], "instruction": "q", "response": "a"},
        "ua",
    ),
    "alpaca": ("output", {"instruction": "q", "input": "", "output": "a"}, "ua"),
    "alpaca history": (
        "output",
        {"instruction": "q2", "output": "a2", "history": [["q", "a"]]},
        "ua22",
    ),
    "alpaca system": ("output", {"instruction": "q", "output": "a", "system": "s"}, "sua"),
    "ms-swift": ("response", {"query": "q2", "response": "a2", "history": [["q", "a"]]}, "ua22"),
    "dolly": (
        "response",
        {"instruction": "q", "context": "", "response": "a", "category": "c"},
        "ua",
    ),
    "openorca": (
        "response",
        {"id": "f", "system_prompt": "s", "question": "q", "response": "a"},
        "sua",
    ),
    "prompt completion": ("completion", {"prompt": "q", "completion": "a"}, "ua"),
    "prompt completion messages": ("completion", {"prompt": [USER], "completion": [ANSWER]}, "ua"),
    "prompt messages, text": ("completion", {"prompt": [SYSTEM, USER], "completion": "a"}, "sua"),
    "torchtune": ("output", {"input": "q", "output": "a"}, "ua"),
    "gsm8k": ("answer", {"question": "q", "answer": "a"}, "ua"),
    "metamath": ("response", {"query": "q", "response": "a", "type": "t"}, "ua"),
    "openmathinstruct": ("generated_solution", {"problem": "q", "generated_solution": "a"}, "ua"),
    "magicoder": ("solution", {"problem": "q", "solution": "a", "lang": "python"}, "ua"),
    "numinamath": ("messages", {"problem": "q", "solution": "a", "messages": [USER, ANSWER]}, "ua"),
    "flan": ("targets", {"inputs": "q", "targets": "a"}, "ua"),
    "aya": ("targets", {"inputs": "q", "targets": "a", "language": "Swahili"}, "ua"),
    "helpsteer": ("response", {"prompt": "q", "response": "a", "helpfulness": 3}, "ua"),
    "dpo texts": ("chosen", {"prompt": "q", "chosen": "a", "rejected": "b"}, "ua"),
    "dpo messages": ("chosen", {"chosen": [USER, ANSWER], "rejected": [USER]}, "ua"),
    "dpo prompt messages": ("chosen", {"prompt": [USER], "chosen": [ANSWER], "rejected": []}, "ua"),
    "ultrafeedback": (
        "chosen",
        {"prompt": "q", "chosen": [USER, ANSWER], "score_chosen": 8.0},
        "ua",
    ),
    "kto good": ("completion", {"prompt": "q", "completion": "a", "label": True}, "ua"),
    "ultrachat": ("data", {"id": "0", "data": ["q", "a", "q2", "a2"]}, "ua22"),
    "ultrachat 200k": (
        "messages",
        {"prompt": "q", "prompt_id": "i", "messages": [USER, ANSWER]},
        "ua",
    ),
    "lima": ("conversations", {"conversations": ["q", "a"], "source": "s"}, "ua"),
    "capybara": (
        "conversation",
        {"conversation": [{"input": "q", "output": "a"}, {"input": "q2", "output": "a2"}]},
        "ua22",
    ),
    "belle": ("conversations", {"conversations": [{"human": "q", "assistant": "a"}]}, "ua"),
    "wildchat": (
        "conversation",
        {"conversation": [{**USER, "toxic": False, "country": "CH"}, {**ANSWER, "timestamp": 1}]},
        "ua",
    ),
    "lmsys": ("conversation", {"conversation": [USER, ANSWER], "openai_moderation": [{}]}, "ua"),
    "no robots": ("messages", {"prompt": "q", "prompt_id": "p", "messages": [USER, ANSWER]}, "ua"),
    "tulu 3": ("messages", {"id": "i", "messages": [USER, ANSWER], "source": "s"}, "ua"),
    "smoltalk": ("messages", {"messages": [USER, ANSWER], "source": "s"}, "ua"),
    "nemotron post-training 1": (
        "output",
        {"input": [USER], "output": "a", "system_prompt": "s", "reasoning": "off"},
        "sua",
    ),
    "oasst tree": ("prompt", {"message_tree_id": "t", "prompt": PATH}, "ua"),
    "hh-rlhf": (
        "chosen",
        {"chosen": "\n\nHuman: q\n\nAssistant: a", "rejected": "\n\nHuman: q\n\nAssistant: b"},
        "ua",
    ),
    "glaive": (
        "chat",
        {"system": "SYSTEM: s\n\n", "chat": "USER: q\n\n\nASSISTANT: a <|endoftext|>\n\n\n"},
        "sua",
    ),
    "glaive two line ends": (
        "chat",
        {
            "chat": "USER: q\n\nASSISTANT: a <|endoftext|>\n\n"
            "USER: q2\n\nASSISTANT: a2 <|endoftext|>\n\n"
        },
        "ua22",
    ),
}

CALLED = json.dumps([{"type": "function", "function": CALL}], separators=(",", ":"))
WITH_ID = json.dumps([OPENAI_CALL], separators=(",", ":"))
TOOL_TURNS = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "12"},
    ANSWER,
]
ID = '{"tool_call_id":"c1"}'

GLAIVE_CALL = """{"name": "weather", "arguments": '{"city":"Bern"}'}"""
GLAIVE = (
    "USER: q\n\n\nASSISTANT: <functioncall> %s <|endoftext|>\n\n\n"
    "FUNCTION RESPONSE: 12\n\n\nASSISTANT: a <|endoftext|>\n\n\n"
)

CALLS = {  # records with calls of tools: the JSON text of the calls, and what the result is told
    "openai": ("messages", {"tools": [TOOL], "messages": TOOL_TURNS}, WITH_ID, ID),
    "openai arguments as text": (
        "messages",
        {
            "tools": [TOOL],
            "messages": [USER, {"role": "assistant", "tool_calls": [AS_TEXT]}, *TOOL_TURNS[2:]],
        },
        json.dumps([AS_TEXT], separators=(",", ":")),
        ID,
    ),
    "openai functions": (
        "messages",
        {
            "functions": [WEATHER],
            "messages": [
                USER,
                {"role": "assistant", "content": None, "function_call": CALL},
                {"role": "function", "name": "weather", "content": "12"},
                ANSWER,
            ],
        },
        CALLED,
        '{"name":"weather"}',
    ),
    "anthropic": (
        "messages",
        {
            "tools": [{"name": "weather", "description": "d", "input_schema": {"type": "object"}}],
            "messages": [
                USER,
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "tool_use",
                            "id": "c1",
                            "name": "weather",
                            "input": CALL["arguments"],
                        }
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12"}],
                },
                ANSWER,
            ],
        },
        WITH_ID,
        ID,
    ),
    "llama-factory": (
        "conversations",
        {"tools": json.dumps([WEATHER]), "conversations": [HUMAN, CALLING, OBSERVED, GPT]},
        CALLED,
        "",
    ),
    "toucan": (
        "messages",
        {
            "tools": json.dumps([TOOL]),
            "messages": json.dumps(
                [
                    USER,
                    {"role": "tool_call", "content": json.dumps(CALL)},
                    {"role": "tool_response", "content": "12"},
                    ANSWER,
                ]
            ),
        },
        CALLED,
        "",
    ),
    "nemotron post-training 2": (
        "messages",
        {
            "tools": [TOOL],
            "messages": [
                USER,
                {"role": "assistant", "content": "", "tool_calls": json.dumps([CALL])},
                {"role": "tool", "content": "12", "tool_call_id": "c1"},
                ANSWER,
            ],
        },
        CALLED,
        ID,
    ),
    "glaive": (
        "chat",
        {"system": f"SYSTEM: {json.dumps(WEATHER, indent=4)}\n", "chat": GLAIVE % GLAIVE_CALL},
        json.dumps([{"type": "function", "function": AS_TEXT["function"]}], separators=(",", ":")),
        "",
    ),
}
