"""Writes seeds for the fuzz target lm_tokenizer: every configuration of parts.jsonl with a tiny model,
each with a text behind a zero byte; the last ones have chat templates as their text.

usage: tok_seeds.py OUTPUT PARTS
"""

import json
import pathlib
import sys

MODEL = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "ignore_merges": True,
         "vocab": {"<unk>": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "e": 5, "\u2581": 6, "\u0120": 7,
                   "ab": 8, "\u2581a": 9, "\u2581ab": 10, "<0x0A>": 11, "<0xC3>": 12, "<0xA9>": 13, "aab": 14},
         "merges": ["a b", "\u2581 a", ["\u2581a", "b"], "a ab"]}
TEXTS = ["ab a e\u0301\u00e9\n aab. 12 [SEP]", "  \t\u3000\u2581ab<0xC3>\u4f60\U0001F600e", "abababaabb"]
TEMPLATES = [
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nA"
    "<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "  {%- if a.b['c'].strip() is string -%}\n  {# '}} #}\n{{- \"\\\"\" ~ 'x' \"y\" }}{% generation %}{% endif +%}\n\n",
]


def main():
    folder = pathlib.Path(sys.argv[1])
    lines = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    texts = [TEXTS[i % len(TEXTS)] for i in range(len(lines) - len(TEMPLATES))] + TEMPLATES
    for i, (line, text) in enumerate(zip(lines, texts)):
        state = {**json.loads(line), "model": MODEL}
        data = json.dumps(state, separators=(",", ":")) + "\0" + text
        (folder / f"{i:02}.lm_tokenizer").write_bytes(data.encode())


if __name__ == "__main__":
    main()
