#!/usr/bin/env python3
"""Writes docs/kernels.md from the tables of kernels and of kernel variants.

usage: kernels_doc.py > docs/kernels.md
"""
import re
from pathlib import Path

VULKAN = Path(__file__).resolve().parent.parent / "src/backend/vulkan"
NEEDS = {
    "base": "-",
    "int_dot": "integer dot products",
    "coopmat": "cooperative matrices",
    "coopmat2": "cooperative matrices of workgroups",
    "bfloat16": "cooperative matrices of bfloat16",
}
SWITCHES = {
    "OWN": "`MLX_VK_ENABLE_{id}`",
    "SHARED": "its family's",
    "LAST": "takes what is left",
}


def rows(path, pattern):
    """Matches of the pattern in a table, without its comments."""
    text = re.sub(r"/\*.*?\*/", "", (VULKAN / path).read_text(), flags=re.S)
    return re.findall(pattern, text)


def main():
    print("# Kernels\n")
    print("The GLSL kernels of the Vulkan backend, one module for each dtype; elementwise programs are")
    print("emitted at run time and are not among them. Written by `tools/kernels_doc.py`.\n")
    print("| kernel | file | dtypes | arguments | needs |")
    print("|---|---|---|---|---|")
    string = r'"([^"]*)"'
    for name, file, dtypes, _, args, needs in rows(
            "kernels/kernels.def",
            rf"KERN\((\w+), {string}, {string}, {string}, (\w+), (\w+)\)"):
        print(f"| {name.lower()} | `{file}.comp` | {dtypes} | `{args}` | {NEEDS[needs]} |")
    print("\n# Variants\n")
    print("What a family of ops chooses among, in its order: the first that fits is taken.\n")
    print("| family | variant | switched off by |")
    print("|---|---|---|")
    for kind, family, name in rows("ops/variants.def", r"VARIANT_(OWN|SHARED|LAST)\((\w+), (\w+)\)"):
        print(f"| {family.lower()} | {name.lower()} | {SWITCHES[kind].format(id=name)} |")


if __name__ == "__main__":
    main()
