#!/usr/bin/env python3
"""Checks the include graph against the dependency rule of ARCHITECTURE.md.

Dependencies point one way: api -> ops -> core; a backend -> backend/common -> core; core sees a
backend only through backend/backend.h. Tables (.def) of ops are data and may be read by all; core
also reads the table of Vulkan's kernel variants, which have settings. Only src/backend/vulkan
includes Vulkan headers; only src/api and programs include the public headers. src/lm builds graphs
with the constructors of src/ops and is no part of the library.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKEND_H = "src/backend/backend.h"
PUBLIC = "include/mlx/c"

# folder: what its files may include besides their own folder. The most specific folder counts.
ALLOWED = {
    PUBLIC: [],
    "src/core": [BACKEND_H, "src/ops/*.def", "src/backend/vulkan/*.def"],
    "src/ops": ["src/core"],
    "src/io": ["src/core", "src/ops"],
    "src/lm": ["src/core", "src/ops", "src/io"],
    "src/api": ["src/core", "src/ops", "src/io", PUBLIC],
    "src/backend": ["src/core"],
    "src/backend/common": ["src/core", BACKEND_H, "src/ops/*.def"],
    "src/backend/cpu": ["src/core", BACKEND_H, "src/backend/common", "src/ops/*.def"],
    "src/backend/null": ["src/core", BACKEND_H, "src/backend/common", "src/ops/*.def"],
    "src/backend/vulkan": ["src/core", BACKEND_H, "src/backend/common", "src/ops/*.def"],
    "cli": ["src/core", "src/ops", "src/io", "src/lm", BACKEND_H, "bench", PUBLIC],
    "bench": ["src/core", "src/ops", "src/io", "src/lm", BACKEND_H, "cli", PUBLIC],
    "examples": [PUBLIC],
    "tests": ["src", "bench", "cli", PUBLIC],
}
INCLUDE_DIRS = ("src", "include", "tests", ".")
VULKAN = re.compile(r"vulkan/|vk_video/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The entry of ALLOWED that path falls under, or None."""
    for parent in pathlib.PurePosixPath(path).parents:
        if str(parent) in ALLOWED:
            return str(parent)
    return None


def resolve(name):
    """The project file that an include names, or None."""
    for base in INCLUDE_DIRS:
        if (ROOT / base / name).is_file():
            return (pathlib.PurePosixPath(base) / name).as_posix()
    return None


def permits(entry, target):
    if entry.endswith("*.def"):
        return target.startswith(entry[:-5]) and target.endswith(".def")
    if entry.endswith(".h"):
        return target == entry
    # A folder entry covers its subfolders only where these have no entry of their own.
    return folder_of(target) == entry or (entry == "src" and target.startswith("src/"))


def check_include(path, folder, bracket, name):
    """The complaint about one include, or None."""
    if bracket == "<":
        if VULKAN.match(name) and folder != "src/backend/vulkan":
            return f"<{name}>: Vulkan headers belong to src/backend/vulkan"
        return None
    target = resolve(name)
    if target is None:
        generated = folder == "tests" or folder == "src/backend/vulkan"
        return None if generated else f'"{name}" is not relative to src/, include/ or the top folder'
    if folder_of(target) == folder or any(permits(e, target) for e in ALLOWED[folder]):
        return None
    return f'"{name}": {folder} may not include {target}'


def main():
    files = [p for top in ("src", "include", "cli", "bench", "examples", "tests")
             for p in sorted((ROOT / top).rglob("*")) if p.suffix in (".c", ".h", ".def")]
    bad = 0
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        folder = folder_of(path)
        if folder is None:
            print(f"{path}: this folder has no place in the dependency rule")
            bad += 1
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            complaint = match and check_include(path, folder, *match.groups())
            if complaint:
                print(f"{path}:{number}: {complaint}")
                bad += 1
    print(f"{len(files)} files checked, {bad} includes break the dependency rule")
    return 1 if bad else 0


sys.exit(main())
