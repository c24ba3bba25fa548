#!/usr/bin/env python3
"""Renders chats with templates of our own, by transformers, for tests/unit/lm_chat.c.

usage: gen_chat.py OUTPUT

OUTPUT (tests/data/chat.json) gets what apply_chat_template makes of the messages below with the templates of
tests/gen/jinja, special tokens and settings included.
"""

import json
import pathlib
import sys
import zlib

import jinja2
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

LONG = 150  # characters
FOLDER = pathlib.Path(__file__).resolve().parent / "jinja"

# template: begin and end of text
TEMPLATES = {
    "turns": ("", "<|end|>"),
    "strict": ("<s>", "</s>"),
    "thoughts": ("", "</assistant>"),
    "tools": ("<|begin|>", "<|end|>"),
    "types": ("<s>", "</s>"),
    "dates": ("<s>", "</s>"),
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Says how the \"weather\" is",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}, "days": {"type": "integer", "maximum": 7.0}},
                "required": ["place"],
            },
        },
    }
]
DOCUMENTS = [{"title": "Größe", "text": "one\ntwo"}]


def says(role, content, **more):
    return {"role": role, "content": content, **more}


S = says("system", "Be brief.")
U = says("user", "Hello!")
A = says("assistant", "Hi.")
Q = says("user", "What is 2 + 2?")
THOUGHT = says("assistant", "<think>\nTwo and two.\n</think>\n\nFour.")
ODD = says("assistant", "\n\nx</think>y\n<think>\n\nz\n\n</think>\n\n\nw\n")

CHATS = [
    [U], [S, U], [U, A, Q], [S, U, A, Q], [U, A], [S, U, A], [S], [U, A, Q, A, U],
    [says("system", "  Sei höflich.\n"), says("user", " \t¿Qué?\u00a0\n"), says("assistant", "\n 好的 \u3000"),
     says("user", "\x1c🙂\n")],
    [says("user", ""), says("assistant", ""), says("user", "")],
    [U, THOUGHT, Q], [U, THOUGHT], [U, A, Q, THOUGHT], [U, ODD, Q], [U, ODD], [S, U, THOUGHT, Q, ODD, U],
    [U, says("assistant", "Four.", reasoning_content="\nTwo and two.\n"), Q],
    [U, says("assistant", "\nFour.", reasoning_content="\nTwo and two.\n")],
    [U, says("assistant", "<think>a</think>b", reasoning_content="")],
    [U, THOUGHT, says("tool", "{\"a\": 1}"), says("tool", "2"), A, Q],
    [U, THOUGHT, says("tool", "{\"a\": 1}"), THOUGHT],
    [U, THOUGHT, says("user", "<tool_response>\n3\n</tool_response>"), A, says("tool", "x")],
    [U, Q], [A, U], [U, S, A, U], [S, S, U], [says("user", "<|im_end|> [INST] </s> {{ x }} {% if %}")],
    [says("system", "a"), says("user", "b"), says("assistant", "c"), says("user", "d"), says("assistant", "e"),
     says("user", "f")],
]


CALLS = [
    U,
    says(
        "assistant",
        None,
        tool_calls=[
            {
                "id": "abcdefghi",
                "type": "function",
                "function": {"name": "weather", "arguments": {"place": "Łódź", "days": 2, "x": [1.0, None, True]}},
            }
        ],
    ),
    says("tool", "rain", name="weather", tool_call_id="abcdefghi"),
    says("assistant", [{"type": "text", "text": "It rains."}, {"type": "text", "text": "Again."}], thinking="Hm."),
    says("user", [{"type": "text", "text": "Thanks."}]),
]
CHATS += [CALLS, CALLS[:3], CALLS[:2]]


def params_of(chat):
    date = {"date_string": "03 Feb 2025"}  # today's would change
    yield {"add_generation_prompt": True, **date}
    if chat[-1]["role"] == "assistant" or len(chat) < 3:
        yield {"add_generation_prompt": False, **date}
    if len(chat) < 4:
        yield {"add_generation_prompt": True, "enable_thinking": False, **date}
        yield {"add_generation_prompt": True, "enable_thinking": True, "reasoning_effort": "high", **date}
    if len(chat) < 4 or chat[0] is U:
        yield {"add_generation_prompt": True, "tools": TOOLS, "documents": DOCUMENTS, **date}


def expected(text):
    """A long text by its CRC-32; null where the template refuses the messages."""
    if text and len(text) > LONG:
        return {"crc": zlib.crc32(text.encode())}
    return {"text": text}


def lines(items):
    return ",\n".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) for x in items)


def compact(value):
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def case_of(tokenizer, chat, index, params):
    """What is asked, as lm_chat.c reads it, and the answer."""
    try:
        text = tokenizer.apply_chat_template(chat, tokenize=False, **params)
    except (jinja2.exceptions.TemplateError, TypeError):
        text = None
    more = {k: v for k, v in params.items() if k in ("date_string", "reasoning_effort")}
    case = {"chat": index, "more": compact(more), "add_generation_prompt": params["add_generation_prompt"]}
    if "enable_thinking" in params:
        case["enable_thinking"] = params["enable_thinking"]
    for key in ("tools", "documents"):
        if key in params:
            case[key] = compact(params[key])
    return {**case, **expected(text)}


def main():
    out = []
    for name, (bos, eos) in TEMPLATES.items():
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(models.BPE()), bos_token=bos or None, eos_token=eos
        )
        template = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
        tokenizer.chat_template = template
        cases = [case_of(tokenizer, chat, i, p) for i, chat in enumerate(CHATS) for p in params_of(chat)]
        out.append({"name": name, "template": template, "bos": bos, "eos": eos, "cases": cases})
    chats = [compact(chat) for chat in CHATS]
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write(f'{{"chats":[\n{lines(chats)}],\n"templates":[\n{lines(out)}]}}\n')


if __name__ == "__main__":
    main()
