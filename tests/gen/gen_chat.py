#!/usr/bin/env python3
"""Renders chats with the templates of models, by transformers, for tests/unit/lm_chat.c.

usage: gen_chat.py TEMPLATES OUTPUT

TEMPLATES holds NAME.jinja for every name below, as the models bring them; they are not part of this
project. OUTPUT gets, for each, what apply_chat_template makes of our messages, and instead of the
template the style of src/lm/chat/chat_family.c that writes the same; `unit_lm_chat OUTPUT TEMPLATES` checks
that the templates themselves are recognised as such.
"""

import json
import pathlib
import sys
import zlib

import jinja2
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

LONG = 150 # characters

# name: (style, default system message, begin and end of text)
FAMILIES = {
    "chatml": ("chatml", "", "", "<|im_end|>"),
    "qwen2": ("chatml", "You are a helpful assistant.", "", "<|im_end|>"),
    "qwen2.5": ("chatml-tools", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "",
                "<|im_end|>"),
    "qwq": ("qwq", "", "", "<|im_end|>"),
    "qwen3": ("qwen3", "", "", "<|im_end|>"),
    "qwen3-thinking-2507": ("qwen3-thinking", "", "", "<|im_end|>"),
    "qwen3-instruct-2507": ("chatml-tools", "", "", "<|im_end|>"),
    "smollm2": ("chatml", "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "<|im_start|>",
                "<|im_end|>"),
    "llama3": ("llama3", "", "<|begin_of_text|>", "<|eot_id|>"),
    "llama3-always": ("llama3-always", "", "<|begin_of_text|>", "<|eot_id|>"),
    "llama3.1": ("llama3.1", "", "<|begin_of_text|>", "<|eot_id|>"),
    "llama3.2": ("llama3.2", "", "<|begin_of_text|>", "<|eot_id|>"),
    "llama2": ("llama2", "", "<s>", "</s>"),
    "mistral-v0.1": ("mistral-v0.1", "", "<s>", "</s>"),
    "mistral-v1-old": ("mistral-v1-old", "", "<s>", "</s>"),
    "mistral-v1": ("mistral-v1", "", "<s>", "</s>"),
    "mistral-v3": ("mistral-v3", "", "<s>", "</s>"),
    "mistral-v3-tools": ("mistral-v3-tools", "", "<s>", "</s>"),
    "mistral-nemo": ("mistral-nemo", "", "<s>", "</s>"),
    "mistral-v7": ("mistral-v7", "", "<s>", "</s>"),
    "mistral-v7-tekken": ("mistral-v7-tekken", "", "<s>", "</s>"),
}

DATED = ("llama3.1", "llama3.2")
# Results of tools have a form of their own there, which is not written.
NO_TOOLS = DATED + tuple(name for name in FAMILIES if name.startswith(("llama2", "mistral")))


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


def params_of(name, chat):
    yield {"add_generation_prompt": True}
    if chat[-1]["role"] == "assistant" or len(chat) < 3:
        yield {"add_generation_prompt": False}
    if name.startswith("qw") and len(chat) < 4:
        yield {"add_generation_prompt": True, "enable_thinking": False}
        yield {"add_generation_prompt": True, "enable_thinking": True}
    if name in DATED:
        yield {"add_generation_prompt": True, "date_string": "03 Feb 2025"}


def expected(text):
    """A long text by its CRC-32; null where the template refuses the messages."""
    if text and len(text) > LONG:
        return {"crc": zlib.crc32(text.encode())}
    return {"text": text}


def lines(items):
    return ",\n".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) for x in items)


def main():
    folder, out = pathlib.Path(sys.argv[1]), []
    for name, (style, system, bos, eos) in FAMILIES.items():
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token=bos or None,
                                            eos_token=eos)
        tokenizer.chat_template = (folder / f"{name}.jinja").read_text(encoding="utf-8")
        cases = []
        for i, chat in enumerate(CHATS):
            if name in NO_TOOLS and any(m["role"] == "tool" for m in chat):
                continue
            for params in params_of(name, chat):
                if name == "llama3.2" and "date_string" not in params: # today's, which changes
                    continue
                try:
                    text = tokenizer.apply_chat_template(chat, tokenize=False, **params)
                except jinja2.exceptions.TemplateError:
                    text = None
                cases.append({"chat": i, **params, **expected(text)})
        out.append({"name": name, "style": style, "system": system, "bos": bos, "eos": eos, "cases": cases})
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(f"{{\"chats\":[\n{lines(CHATS)}],\n\"families\":[\n{lines(out)}]}}\n")


if __name__ == "__main__":
    main()
