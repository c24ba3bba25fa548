#!/usr/bin/env python3
"""Reads kernels.def for the build.

gen_kernels.py list kernels.def args.h  prints one line per module:
                                        id|dtype|name|file|needs|macros|addresses
gen_kernels.py embed manifest out.c     writes the modules of a manifest (id dtype addresses path)
                                        as C arrays

addresses: how many device addresses the kernel's argument block begins with.
"""

import re
import struct
import sys

NEEDS = ("base", "int_dot", "coopmat", "coopmat2", "bfloat16")
FIELDS = ("id", "file", "dtypes", "macros", "args", "needs")
SPIRV_MAGIC = 0x07230203


def fail(text):
    sys.exit(f"gen_kernels.py: {text}")


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def parse_rows(path):
    with open(path, encoding="utf-8") as f:
        text = strip_comments(f.read())
    string_or_word = r'\s*("[^"]*"|[^,")]+?)\s*'
    pattern = r"\bKERN\(" + ",".join([string_or_word] * len(FIELDS)) + r"\)"
    rows = [dict(zip(FIELDS, (v.strip('"') for v in m))) for m in re.findall(pattern, text)]
    if len(rows) != len(re.findall(r"\bKERN\(", text)):
        fail(f"{path}: a row is not of the form KERN({', '.join(FIELDS)})")
    return rows


def modules(row):
    """(name, dtype) of every module of a row; "-" stands for a module without a dtype."""
    for dtype in row["dtypes"].split():
        name = row["id"].lower()
        yield (name if dtype == "-" else f"{name}_{dtype}"), dtype


class ArgumentBlocks:
    """The structs of args.h, as lists of (type, elements)."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            text = strip_comments(f.read())
        self.constants = dict(re.findall(r"#define\s+(\w+)\s+(\d+)u?\s", text))
        bodies = re.findall(r"struct\s+(\w+)\s*\{(.*?)\};", text, flags=re.S)
        self.fields = {name: list(self.parse(body)) for name, body in bodies}

    def parse(self, body):
        for declaration in body.replace("A_STRUCT ", "").split(";")[:-1]:
            kind, names = declaration.split(maxsplit=1)
            for name in names.split(","):
                array = re.search(r"\[(.+)\]", name)
                count = array[1] if array else "1"
                count = self.constants.get(count, count)
                yield kind, int(count) if count.isdigit() else None

    def is_all_addresses(self, kind):
        return kind == "A_ADDR" or (
            kind in self.fields and all(self.is_all_addresses(k) for k, _ in self.fields[kind])
        )

    def leading_addresses(self, struct_name):
        if struct_name not in self.fields:
            fail(f"args.h has no struct {struct_name}")
        total = 0
        for kind, count in self.fields[struct_name]:
            if not self.is_all_addresses(kind):
                break
            total += count * (1 if kind == "A_ADDR" else self.leading_addresses(kind))
        return total


def list_modules(path, args_path):
    seen = set()
    blocks = ArgumentBlocks(args_path)
    for row in parse_rows(path):
        file = row["file"] if row["file"].endswith(".comp") else row["file"] + ".comp"
        if row["needs"] not in NEEDS:
            fail(f"{path}: {row['id']} needs '{row['needs']}', which is none of {', '.join(NEEDS)}")
        for name, dtype in modules(row):
            if name in seen:
                fail(f"{path}: module {name} appears twice")
            seen.add(name)
            addresses = str(blocks.leading_addresses(row["args"]))
            print("|".join((row["id"], dtype, name, file, row["needs"], row["macros"], addresses)))


def read_words(path):
    with open(path, "rb") as f:
        data = f.read()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if len(data) % 4 or not words or words[0] != SPIRV_MAGIC:
        fail(f"{path} is not a SPIR-V module")
    return words


def write_array(out, index, path):
    words = read_words(path)
    out.write(f"static const uint32_t words_{index}[{len(words)}] = {{\n")
    for i in range(0, len(words), 8):
        out.write("    " + " ".join(f"0x{w:08x}," for w in words[i : i + 8]) + "\n")
    out.write("};\n\n")
    return len(words)


def embed(manifest, out_path):
    with open(manifest, encoding="utf-8") as f:
        rows = [line.split(maxsplit=3) for line in f if line.strip()]
    with open(out_path, "w", encoding="utf-8") as out:
        out.write("/* Written by tools/gen_kernels.py from kernels.def. */\n")
        out.write('#include "backend/vulkan/ops/kern.h"\n\n#include "graph/dtype.h"\n\n')
        sizes = [write_array(out, i, path.strip()) for i, (_, _, _, path) in enumerate(rows)]
        out.write(f"const struct kern_blob kern_blobs[{max(1, len(rows))}] = {{\n")
        for i, (kern, dtype, addresses, _) in enumerate(rows):
            value = "-1" if dtype == "-" else f"DT_{dtype.upper()}"
            out.write(f"    {{ KERN_{kern}, {value}, words_{i}, {sizes[i]}, {addresses} }},\n")
        if not rows:
            out.write("    { 0 },\n")
        out.write(f"}};\n\nconst size_t kern_blob_count = {len(rows)};\n")


def main(args):
    if len(args) == 3 and args[0] == "list":
        list_modules(args[1], args[2])
    elif len(args) == 3 and args[0] == "embed":
        embed(args[1], args[2])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
