#!/usr/bin/env python3
"""Renders templates by Jinja2 as transformers sets it up, for tests/unit/lm_jinja.c.

usage: gen_jinja.py OUTPUT            the stored results: tests/data/jinja.json
       gen_jinja.py --against DRIVER FOLDER COUNT SEED

OUTPUT gets what becomes of the templates in tests/gen/jinja: of features.txt, which has one after another,
with the variables below; and of each *.jinja file with conversations that are drawn at random. The second
form draws COUNT conversations, renders them with every FOLDER/*.jinja and compares with `unit_lm_jinja
--render`, which is DRIVER.
"""

import datetime
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import time
import zlib

import transformers.utils.chat_template_utils as chat

FOLDER = pathlib.Path(__file__).resolve().parent / "jinja"
NOW = 1732017600  # of strftime_now, in UTC
LONG = 150  # characters

VARS = {
    "s": "Hello Wörld",
    "e": "",
    "n": 3,
    "f": 2.5,
    "l": [3, 1, 2],
    "d": {"b": 1, "a": "x", "items": 9},
    "m": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "n": {"x": 1}}],
    "t": True,
    "no": None,
    "nested": {"a": [1, 2.0, None, True, "q'\"\n"], "b": {}},
    "sp": "  a  b \n c ",
    "emoji": "🙂日本",
    "big": 1e20,
    "sm": 1e-7,
    "neg": -7,
}

WORDS = (
    "Hello wörld <|im_end|> </think> <think> {{ x }} 🙂 日本語 'q' \"d\" \\ {\"a\":1} [INST] a b. < & "
    "<tool_response> </tool_response> /no_think x"
).split(" ") + ["\n", "  ", "\t", "\u00a0", "\r\n"]


class Clock(datetime.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls.utcfromtimestamp(NOW)


class Draw:
    """Conversations, tools and settings, drawn at random."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def is_(self, chance):
        return self.r.random() < chance

    def text(self):
        return "".join(self.r.choice(WORDS) + self.r.choice(["", " "]) for _ in range(self.r.randint(0, 6)))

    def value(self, depth=0):
        kind = self.r.randint(0, 9 if depth < 3 else 6)
        if kind < 4:
            return self.text()
        if kind < 7:
            return self.r.choice([None, True, False, 1.0, 2.5, -0.1, 1e20, 1e-7, self.r.randint(-9, 10**6)])
        if kind == 7:
            return [self.value(depth + 1) for _ in range(self.r.randint(0, 3))]
        return {
            self.r.choice(["a", "b", "items", "x y", "é"]): self.value(depth + 1) for _ in range(self.r.randint(0, 3))
        }

    def schema(self, depth=0):
        kind = self.r.choice(["string", "integer", "number", "boolean", "array", "object", "null", ["string", "null"]])
        s = {"type": kind}
        if self.is_(0.7):
            s["description"] = self.text()
        if kind == "string" and self.is_(0.3):
            s["enum"] = ["a", "b"]
        if kind == "array" and depth < 3:
            s["items"] = self.schema(depth + 1)
        if kind == "object" and depth < 3:
            names = self.r.sample(["a", "b", "c"], self.r.randint(0, 3))
            s["properties"] = {name: self.schema(depth + 1) for name in names}
        for chance, key, value in ((0.1, "default", self.value(2)), (0.05, "nullable", True)):
            if self.is_(chance):
                s[key] = value
        if self.is_(0.1):
            s["anyOf"] = [self.schema(3), self.schema(3)]
        return s

    def tool(self, i):
        f = {"name": f"get_{i}", "description": self.text()}
        if self.is_(0.9):
            names = self.r.sample(["loc", "unit", "n", "date"], self.r.randint(0, 4))
            f["parameters"] = {
                "type": "object",
                "properties": {name: self.schema() for name in names},
                "required": self.r.sample(["loc", "unit"], self.r.randint(0, 2)),
            }
        if self.is_(0.1):
            f["return"] = {"type": "string"}
        return {"type": "function", "function": f} if self.is_(0.95) else f

    def content(self):
        if self.is_(0.75):
            return self.text()
        if self.is_(0.8):
            return [{"type": "text", "text": self.text()} for _ in range(self.r.randint(0, 3))]
        return None

    def call(self, i):
        args = {name: self.value() for name in self.r.sample(["loc", "unit", "n"], self.r.randint(0, 3))}
        return {
            "id": self.r.choice(["abcdefghi", "call_1", "functions.get_0:0"]),
            "type": "function",
            "function": {"name": f"get_{i}", "arguments": args if self.is_(0.8) else json.dumps(args)},
        }

    def calls(self):
        n = self.r.randint(1, 3)
        asks = {
            "role": "assistant",
            "content": self.r.choice(["", None, self.text()]),
            "tool_calls": [self.call(i) for i in range(n)],
        }
        if self.is_(0.3):
            asks["reasoning_content"] = self.text()
        yield asks
        for i in range(n):
            content = self.r.choice([self.text(), json.dumps(self.value())])
            yield {
                "role": "tool",
                "content": content,
                "name": f"get_{i}",
                "tool_call_id": asks["tool_calls"][i]["id"],
            }

    def messages(self):
        out = []
        if self.is_(0.4):
            out.append({"role": self.r.choice(["system", "system", "developer"]), "content": self.content()})
        for _ in range(self.r.randint(0, 3)):
            out.append({"role": "user", "content": self.content()})
            if self.is_(0.35):
                out += self.calls()
            if self.is_(0.85):
                says = {"role": "assistant", "content": self.content()}
                if self.is_(0.3):
                    says[self.r.choice(["reasoning_content", "thinking", "reasoning"])] = self.text()
                out.append(says)
        if self.is_(0.6):
            out.append({"role": "user", "content": self.content()})
        if self.is_(0.05):
            self.r.shuffle(out)
        return chat._alias_reasoning_fields(out)

    def vars(self):
        v = {
            "messages": self.messages(),
            "tools": None if self.is_(0.5) else [self.tool(i) for i in range(self.r.randint(0, 3))],
            "documents": None if self.is_(0.9) else [{"title": self.text(), "text": self.text()}],
            "add_generation_prompt": self.is_(0.7),
            "bos_token": "<s>",
            "eos_token": "</s>",
        }
        for chance, key, values in (
            (0.3, "enable_thinking", (True, False)),
            (0.1, "thinking", (True, False)),
            (0.1, "reasoning_effort", ("low", "medium", "high")),
            (0.1, "date_string", ("1 Jan 2025",)),
        ):
            if self.is_(chance):
                v[key] = self.r.choice(values)
        return v


def render(template, variables):
    """The text, or None where that fails."""
    try:
        return chat._compile_jinja_template(template).render(**variables)
    except Exception:  # whatever Python raises within a template
        return None


def stored(text):
    """A long text by its CRC-32."""
    if text and len(text) > LONG:
        return {"crc": zlib.crc32(text.encode())}
    return {"text": text}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def lines(items):
    return ",\n".join(compact(x) for x in items)


def write(output):
    features = (FOLDER / "features.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n=====\n")
    cases = [{"template": t, **stored(render(t, VARS))} for t in features]
    draw = Draw(1)
    drawn = [draw.vars() for _ in range(60)]
    files = []
    for path in sorted(FOLDER.glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        results = [stored(render(template, v)) for v in drawn]
        files.append({"name": path.name, "template": template, "results": results})
    with open(output, "w", encoding="utf-8") as f:
        f.write(f'{{"vars":{compact(compact(VARS))},\n"features":[\n{lines(cases)}],\n')
        f.write(f'"drawn":[\n{lines(compact(v) for v in drawn)}],\n"files":[\n{lines(files)}]}}\n')


def ask(driver, template, variables):
    """What DRIVER makes of it; None where that fails."""
    for part in (template.encode(), compact(variables).encode()):
        driver.stdin.write(struct.pack("<I", len(part)) + part)
    driver.stdin.flush()
    ok, n = struct.unpack("<BI", driver.stdout.read(5))
    text = driver.stdout.read(n).decode()
    return text if ok else None


def compare(program, folder, count, seed):
    templates = {p.name: p.read_text(encoding="utf-8") for p in sorted(pathlib.Path(folder).glob("*.jinja"))}
    draw, differ, refused = Draw(seed), {}, 0
    with subprocess.Popen([program, "--render"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        for _ in range(count):
            v = draw.vars()
            for name, template in templates.items():
                expected = render(template, v)
                refused += expected is None
                if ask(driver, template, v) != expected:
                    differ[name] = differ.get(name, 0) + 1
        driver.stdin.close()
    print(f"{len(templates)} templates, {count} conversations, {refused} of {count * len(templates)} refused")
    print("all the same" if not differ else f"not the same: {differ}")
    return bool(differ)


def main():
    os.environ["TZ"] = "UTC"
    time.tzset()
    chat.datetime = Clock
    if len(sys.argv) == 6 and sys.argv[1] == "--against":
        return compare(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    return write(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
