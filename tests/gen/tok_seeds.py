"""Writes seeds for the fuzz targets of tokenizers: for lm_tokenizer every configuration of parts.jsonl with a
tiny model, each with a text behind a zero byte; for lm_chat the templates of jinja.json; for the others what
their files say.

usage: tok_seeds.py OUTPUT PARTS JINJA
"""

import json
import pathlib
import sys

MODEL = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "ignore_merges": True,
         "vocab": {"<unk>": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "e": 5, "\u2581": 6, "\u0120": 7,
                   "ab": 8, "\u2581a": 9, "\u2581ab": 10, "<0x0A>": 11, "<0xC3>": 12, "<0xA9>": 13, "aab": 14},
         "merges": ["a b", "\u2581 a", ["\u2581a", "b"], "a ab"]}
TEXTS = ["ab a e\u0301\u00e9\n aab. 12 [SEP]", "  \t\u3000\u2581ab<0xC3>\u4f60\U0001F600e", "abababaabb"]

MESSAGES = [
    {"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "assistant", "content": None, "reasoning": "r", "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"x": [1.5, None]}}}]},
    {"role": "tool", "content": "42", "tool_call_id": "abcdefghi"}, {"role": "user", "content": "\u00e9</think>"},
]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {"x": {"type": "array", "items": {"type": "number"}}}, "required": ["x"]}}}]

# Of tokenizers, and some that mean harm.
PATTERNS = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)",
    r" ?[^(\s|[.,!?…。，、।۔،])]+", r"\d{1,3}(?=(?:\d{3})*\b)", r"[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+", r"a\Kb|^|$|\b",
    r"(?<=(?1))b|(\Ka)", r"(?=(?1))a|(ab\K)", r"(?=\g<1>)|(ab\K)", r"(?R)?a",
    r"(?<n>a)\k<n>|(?>a|ab)c|(?!)|(?<!a)b", r"[[:alpha:]--[a-z]]|\h+|\X|\R", r"\x{41}|\u0041|a{,2}+|b{1,2}?",
]

# Type, score and text of the tokens, merges and a text.
TOKENS = [(2, 0, "<unk>"), (3, 0, "<s>"), (3, 0, "</s>"), (6, 0, "<0x21>"), (1, 9, "\u2581"), (1, 8, "a"), (1, 7, "b"),
          (1, 2, "ab"), (1, 1, "ba"), (1, 3, "\u2581a"), (1, 4, "\u2581ab"), (4, 5, "bab"), (1, 6, "aaaa"), (1, 6, "aa")]

FILES = [
    {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ m }}", "pad_token": None,
     "additional_special_tokens": ["b", {"content": "a"}], "add_bos_token": True, "add_eos_token": False},
    {"pad_token": "<pad>", "unk_token": "none"}, {"eos_token_id": [4, 1, 4]}, {"model_type": "llama", "eos_token_id": 2},
]


def text_of(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def tokenizers(lines):
    for i, line in enumerate(lines):
        yield text_of({**json.loads(line), "model": MODEL}) + "\0" + TEXTS[i % len(TEXTS)]


def patterns():
    for i, pattern in enumerate(PATTERNS):
        for options in (i, i + 8):
            yield chr(options % 16) + pattern + "\0" + TEXTS[i % len(TEXTS)] + "aaab ab" + "\0" + "x" * (i % 3)


def chats(fixtures):
    """Features with variables alone, and whole templates with messages."""
    for case in fixtures["features"]:
        yield "\2" + "\0".join([case["template"], "", "", fixtures["vars"]])
    for i, file in enumerate(fixtures["files"]):
        for options in (1, 5 + 16 * (i + 1)):
            parts = ["<s>", "</s>", '{"x":1}', text_of(MESSAGES), text_of(TOOLS), "<think>y</think>\n\n", "r"]
            yield chr(options) + "\0".join([file["template"], *parts])


def arrays():
    tokens = "".join(chr(kind) + chr(score + 1) + text + "\0" for kind, score, text in TOKENS)
    for i, options in enumerate((0x01, 0x19, 0x59, 0x00, 0x32)):
        merges = "a b\0\u2581 a\0" if i % 2 or options % 2 == 0 else ""
        yield chr(options) + tokens + "\0" + merges + "\0" + TEXTS[i % len(TEXTS)] + "<s>aaaaaa"


def settings():
    for skip in range(len(FILES) + 1):
        files = ["" if i == skip else text_of(f) for i, f in enumerate(FILES)]
        yield "\0".join([*files, "from the file" if skip % 2 else "", "ab<s>a</s>"])
    yield "\0".join([text_of({"chat_template": [{"name": "default", "template": "{{ x }}"}]}), "", "", "", "", "ab"])


def main():
    folder = pathlib.Path(sys.argv[1])
    lines = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    fixtures = json.loads(pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"))
    seeds = {"lm_tokenizer": tokenizers(lines), "lm_regex": patterns(), "lm_chat": chats(fixtures),
             "lm_arrays": arrays(), "lm_settings": settings()}
    for target, texts in seeds.items():
        for i, text in enumerate(texts):
            (folder / f"{i:02}.{target}").write_bytes(text.encode())


if __name__ == "__main__":
    main()
