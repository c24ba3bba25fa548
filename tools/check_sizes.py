#!/usr/bin/env python3
"""Fails on source files over 1,000 lines and on functions over 100 lines; prints the sizes.

A function is what stands between a "{" and a "}" in the first column, as the formatter writes it,
together with its signature. One that is a table or a switch at heart may be longer if the line
above it holds the marker.
"""

import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPS = ("src", "include", "cli", "bench", "examples", "python", "tests", "tools")
SUFFIXES = (".c", ".h", ".def", ".comp", ".glsl", ".py", ".sh")
MAX_FILE = 1000
MAX_FUNCTION = 100
MARKER = "/* long: table */"


def signature_start(lines, brace):
    """Index of the first line of the signature whose body opens at line `brace`."""
    start = brace
    while start > 0:
        above = lines[start - 1].rstrip()
        if not above or above.startswith("#") or above.endswith((";", "}", "*/", "\\")):
            break
        start -= 1
    return start


def functions(lines):
    """(first line index, number of lines) of every function."""
    brace = None
    for i, line in enumerate(lines):
        if line.rstrip() == "{" and brace is None:
            brace = i
        elif line.startswith("}") and brace is not None:
            start = signature_start(lines, brace)
            yield start, i - start + 1
            brace = None


def main():
    bad = 0
    lengths = []
    totals = {}
    files = [p for top in TOPS for p in sorted((ROOT / top).rglob("*"))
             if p.suffix in SUFFIXES and p.is_file()]
    for file in files:
        path = file.relative_to(ROOT)
        lines = file.read_text(encoding="utf-8").splitlines()
        folder = path.parent.as_posix()
        totals[folder] = totals.get(folder, 0) + len(lines)
        if len(lines) > MAX_FILE:
            print(f"{path}: {len(lines)} lines, the limit is {MAX_FILE}")
            bad += 1
        if file.suffix not in (".c", ".h"):
            continue
        for start, length in functions(lines):
            lengths.append(length)
            marked = start > 0 and MARKER in lines[start - 1]
            if length > MAX_FUNCTION and not marked:
                print(f"{path}:{start + 1}: function of {length} lines, the limit is {MAX_FUNCTION}")
                bad += 1
    for folder, total in sorted(totals.items()):
        print(f"{total:8} lines  {folder}")
    if lengths:
        ordered = sorted(lengths)
        p90 = ordered[len(ordered) * 9 // 10]
        print(f"{len(lengths)} functions: median {statistics.median_low(ordered)}, "
              f"p90 {p90}, longest {ordered[-1]} lines")
    print(f"{len(files)} files checked, {bad} over the limits")
    return 1 if bad else 0


sys.exit(main())
