#!/usr/bin/env python3
"""Every file of the project is where files belong, and none is a binary that nobody meant to add."""

import fnmatch
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What stands at the top.
TOP = {
    ".ci", ".clang-format", ".clang-tidy", ".gitattributes", ".gitignore",
    "ARCHITECTURE.md", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
    "LICENSE", "Makefile", "README.md", "pyproject.toml",
    "bench", "cli", "cmake", "docs", "examples", "include", "models", "python", "src", "tests",
    "tools",
}

# Files that are no text.
BINARIES = (
    "models/*/model.safetensors",
    "tests/data/differential.json.gz",
    "tests/data/mlxfn/*.mlxfn",
    "tests/data/mlxfn/*.npz",
    "tests/data/tokenizers/*.crc",
)

# What a tree without git has besides.
MADE = ("build*", ".cache", "__pycache__", "compile_commands.json")


def listed_by_walking():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if not any(fnmatch.fnmatch(f, m) for m in MADE)]
        for name in files:
            if not any(fnmatch.fnmatch(name, m) for m in MADE):
                yield str(pathlib.Path(folder, name).relative_to(ROOT))


def listed():
    """Paths of the project's files. What lies about and was not added is nobody's concern."""
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if git.returncode:
        return sorted(listed_by_walking())
    return sorted(p for p in git.stdout.decode().split("\0") if p and (ROOT / p).is_file())


def is_text(path):
    data = path.read_bytes()
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def faults(paths):
    for path in paths:
        if path.split("/")[0] not in TOP:
            yield f"{path}: nothing of that name belongs at the top"
        elif not any(fnmatch.fnmatch(path, b) for b in BINARIES) and not is_text(ROOT / path):
            yield f"{path}: a binary"


def main():
    paths = listed()
    found = [*faults(paths)]
    for fault in found:
        print(fault)
    if found:
        print("the tables of tools/check_tree.py say what belongs here")
    else:
        print(f"{len(paths)} files, all where they belong")
    return bool(found) or not paths


sys.exit(main())
