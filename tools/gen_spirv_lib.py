#!/usr/bin/env python3
"""Packs the elementwise function library for the run-time SPIR-V emitter.

gen_spirv_lib.py main in.comp out.comp   adds a main that calls every function, so that none is lost
gen_spirv_lib.py pack lib.spv out.c      writes types, constants and functions as C tables

In the tables every word that is an id holds a number instead: a global (type, constant or the
extended instruction set), then a function, then a value local to the function, in that order.
"""

import re
import struct
import sys

MAGIC = 0x07230203

# Operands after the opcode word: t = result type, r = result, i = id, l = literal, a trailing *
# repeats the last one or, for "p", pairs of literal and id. "s" is a string of literals.
GLOBALS = {
    11: "rs",  # OpExtInstImport
    19: "r",  # OpTypeVoid
    20: "r",  # OpTypeBool
    21: "rll",  # OpTypeInt
    22: "rl",  # OpTypeFloat
    23: "ril",  # OpTypeVector
    28: "rii",  # OpTypeArray
    30: "ri*",  # OpTypeStruct
    32: "rli",  # OpTypePointer
    33: "ri*",  # OpTypeFunction
    41: "tr",  # OpConstantTrue
    42: "tr",  # OpConstantFalse
    43: "trl*",  # OpConstant
    44: "tri*",  # OpConstantComposite
}
BODY = {
    12: "tril" + "i*",  # OpExtInst
    54: "trli",  # OpFunction
    55: "tr",  # OpFunctionParameter
    56: "",  # OpFunctionEnd
    57: "trii*",  # OpFunctionCall
    59: "trli*",  # OpVariable
    61: "tril*",  # OpLoad
    62: "iil*",  # OpStore
    65: "trii*",  # OpAccessChain
    79: "triil*",  # OpVectorShuffle
    80: "tri*",  # OpCompositeConstruct
    81: "tril*",  # OpCompositeExtract
    82: "triil*",  # OpCompositeInsert
    245: "tri*",  # OpPhi
    246: "iil*",  # OpLoopMerge
    247: "il*",  # OpSelectionMerge
    248: "r",  # OpLabel
    249: "i",  # OpBranch
    250: "iiil*",  # OpBranchConditional
    251: "iip*",  # OpSwitch
    253: "",  # OpReturn
    254: "i",  # OpReturnValue
    255: "",  # OpUnreachable
}
# Conversions, arithmetic, bits, comparisons: type, result and only ids.
PLAIN = [*range(109, 116), 124, *range(126, 143), *range(148, 153), *range(154, 206)]
BODY.update({op: "tri*" for op in PLAIN})

SKIPPED = {  # header, names and what concerns main alone
    3, 4, 5, 6, 7, 8, 10, 14, 15, 16, 17, 71, 72,
}  # fmt: skip


def fail(text):
    sys.exit(f"gen_spirv_lib.py: {text}")


# ---- main ----


def outer_text(text):
    """The text outside all braces; a body becomes a semicolon."""
    out, depth = [], 0
    for c in text:
        if c == "}":
            depth -= 1
            if depth == 0:
                out.append(";")
        elif c == "{":
            depth += 1
        elif depth == 0:
            out.append(c)
    return "".join(out)


ZERO = {"bool": "false", "float": "0.0", "int": "0", "uint": "0u", "vec2": "vec2(0.0)"}
ZERO.update({"int64_t": "0l", "uint64_t": "0ul"})


def add_main(source, target):
    with open(source, encoding="utf-8") as f:
        text = f.read()
    calls = []
    for name, params in re.findall(r"\b\w+\s+(\w+)\(([^()]*)\)\s*;", outer_text(text)):
        types = [p.split()[-2] for p in params.split(",") if p.strip()]
        if all(t in ZERO for t in types):
            calls.append(f"    {name}({', '.join(ZERO[t] for t in types)});\n")
    with open(target, "w", encoding="utf-8") as f:
        f.write(text + "\nvoid main()\n{\n" + "".join(calls) + "}\n")


# ---- pack ----


class Instruction:
    def __init__(self, words, table):
        self.op = words[0] & 0xFFFF
        if self.op not in table:
            fail(f"opcode {self.op} is not in the table")
        self.words = words
        self.kinds = list(self.expand(table[self.op], len(words) - 1))
        if len(self.kinds) != len(words) - 1:
            fail(f"opcode {self.op} with {len(words) - 1} operands")

    @staticmethod
    def expand(pattern, n):
        repeat = pattern[-2] if pattern.endswith("*") else "s" if pattern.endswith("s") else ""
        fixed = pattern[: len(pattern) - (2 if pattern.endswith("*") else len(repeat))]
        yield from fixed
        for i in range(n - len(fixed)):
            yield {"p": "li"[i % 2], "s": "l"}.get(repeat, repeat)

    def result(self):
        return self.words[1 + self.kinds.index("r")] if "r" in self.kinds else None

    def ids(self):
        return (w for w, k in zip(self.words[1:], self.kinds) if k in "ti")


def read_module(path):
    with open(path, "rb") as f:
        data = f.read()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if not words or words[0] != MAGIC:
        fail(f"{path} is not a SPIR-V module")
    at = 5
    while at < len(words):
        n = words[at] >> 16
        yield words[at : at + n]
        at += n


def text_of(words):
    return b"".join(struct.pack("<I", w) for w in words).split(b"\0")[0].decode()


def parse(path):
    """Global instructions, and functions as lists of instructions by name."""
    names, entry, globals_, functions, body = {}, None, [], {}, None
    for words in read_module(path):
        op = words[0] & 0xFFFF
        if op == 15:
            entry = words[2]
        elif op == 5:
            names[words[1]] = text_of(words[2:])
        if op == 54:
            body = []
        if body is not None:
            body.append(Instruction(words, BODY))
            if op == 56:
                name = names[body[0].result()].split("(")[0]
                if body[0].result() != entry:
                    if name in functions:
                        fail(f"{name} is overloaded")
                    functions[name] = body
                body = None
        elif op not in SKIPPED:
            globals_.append(Instruction(words, GLOBALS))
    return globals_, functions


class Packer:
    """Renumbers ids and collects words with one flag per word: is it a number?"""

    def __init__(self, globals_, functions):
        self.words, self.flags = [], []
        self.globals_, self.functions = globals_, functions
        self.number = {g.result(): i for i, g in enumerate(globals_)}
        for name in functions:
            self.number[functions[name][0].result()] = len(self.number)

    def add(self, instruction, number, keep_result):
        start = len(self.words)
        self.words.append(instruction.words[0])
        self.flags.append(0)
        for word, kind in zip(instruction.words[1:], instruction.kinds):
            if kind == "l":
                self.words.append(word)
            elif kind != "r" or keep_result:
                self.words.append(number[word])
            else:
                continue
            self.flags.append(int(kind != "l"))
        return start

    def add_global(self, g):
        start = self.add(g, self.number, False)
        return start, len(self.words) - start, int("t" in g.kinds)

    def add_function(self, body):
        number = dict(self.number)
        for instruction in body:
            if instruction.result() is not None and instruction.result() not in number:
                number[instruction.result()] = len(number)
        start = len(self.words)
        for instruction in body:
            self.add(instruction, number, True)
        return start, len(self.words) - start, len(number) - len(self.number)


def weights(functions):
    """Words of a function with everything it calls, every call counted."""
    by_id = {body[0].result(): name for name, body in functions.items()}
    known = {}

    def weigh(name):
        if name not in known:
            known[name] = 0
            size = sum(len(i.words) for i in functions[name])
            calls = (by_id[i.words[3]] for i in functions[name] if i.op == 57)
            known[name] = size + sum(weigh(c) for c in calls)
        return known[name]

    return {name: weigh(name) for name in functions}


def write_words(out, name, ctype, words):
    out.write(f"const {ctype} {name}[] = {{\n")
    for i in range(0, len(words), 10):
        out.write("    " + " ".join(f"{w:#x}," for w in words[i : i + 10]) + "\n")
    out.write("};\n\n")


def pack(source, target):
    globals_, functions = parse(source)
    functions = dict(sorted(functions.items()))  # the emitter searches by name
    packer = Packer(globals_, functions)
    global_rows = [packer.add_global(g) for g in globals_]
    function_rows = [packer.add_function(body) for body in functions.values()]
    weight = weights(functions)
    flags = packer.flags + [0] * (-len(packer.flags) % 32)
    masks = [sum(b << j for j, b in enumerate(flags[i : i + 32])) for i in range(0, len(flags), 32)]
    with open(target, "w", encoding="utf-8") as out:
        out.write("/* Written by tools/gen_spirv_lib.py from kernels/elementwise.comp. */\n")
        out.write('#include "backend/vulkan/jit/spirv.h"\n\n')
        write_words(out, "spv_lib_words", "uint32_t", packer.words)
        write_words(out, "spv_lib_id_mask", "uint32_t", masks)
        out.write("const struct spv_lib_global spv_lib_globals[] = {\n")
        for start, n, typed in global_rows:
            out.write(f"    {{ {start}, {n}, {typed} }},\n")
        out.write(f"}};\nconst uint32_t spv_lib_n_globals = {len(global_rows)};\n\n")
        out.write("const struct spv_lib_fn spv_lib_fns[] = {\n")
        for name, (start, n, locals_) in zip(functions, function_rows):
            result = packer.number[functions[name][0].words[1]]
            out.write(f'    {{ "{name}", {start}, {n}, {locals_}, {result}, {weight[name]} }},\n')
        out.write(f"}};\nconst uint32_t spv_lib_n_fns = {len(function_rows)};\n")


def main(args):
    commands = {"main": add_main, "pack": pack}
    if len(args) != 3 or args[0] not in commands:
        sys.exit(__doc__)
    commands[args[0]](*args[1:])


main(sys.argv[1:])
