#!/usr/bin/env python3
"""Checks the include graph against the dependency rule of ARCHITECTURE.md.

Dependencies point one way: each row lists what the files of a folder may include besides their own.
Tables (.def) are data: base reads those of rewrites and of Vulkan's kernel variants, which have
settings. Only src/backend/vulkan includes Vulkan headers; only src/api and programs include the
public headers. src/lm builds graphs with the constructors of src/ops and is no part of the library.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKEND_H = "src/backend/backend.h"
PUBLIC = "include/mlx/c"

BASE, GRAPH, PLAN, EVAL = "src/base", "src/graph", "src/plan", "src/eval"
DIST = "src/dist"
SPIRV = "src/spirv"
LIBRARY = [BASE, SPIRV, GRAPH, PLAN, EVAL, DIST, "src/ops", "src/io"]
LM = ["src/lm", "src/lm/chat", "src/lm/files", "src/lm/jinja", "src/lm/model", "src/lm/tokenizer"]
STR = "src/lm/str.h"
OPS_DEF = "src/ops/*.def"
COMMON = "src/backend/common"
BACKEND = [BASE, GRAPH, PLAN, EVAL, BACKEND_H, COMMON, OPS_DEF]
VK = "src/backend/vulkan"
VK_RT, VK_JIT, VK_OPS = VK + "/rt", VK + "/jit", VK + "/ops"
VK_CHECK, VK_KERNELS = VK + "/check", VK + "/kernels"

# folder: what its files may include besides their own folder. The most specific folder counts.
ALLOWED = {
    PUBLIC: [],
    BASE: [PLAN + "/*.def", VK_OPS + "/*.def", EVAL + "/report.h"],
    SPIRV: [BASE],
    GRAPH: [BASE, SPIRV, BACKEND_H, OPS_DEF],
    PLAN: [BASE, GRAPH, BACKEND_H],
    EVAL: [BASE, GRAPH, PLAN, BACKEND_H],
    DIST: [BASE, GRAPH],
    "src/ops": [BASE, SPIRV, GRAPH, DIST, EVAL + "/stream.h", BACKEND_H],
    "src/io": [BASE, SPIRV, GRAPH, EVAL, "src/ops"],
    "src/transforms": [BASE, GRAPH, EVAL, "src/ops", "src/io"],
    "src/lm": LIBRARY + LM,
    "src/lm/chat": LIBRARY + ["src/lm/jinja", "src/lm/tokenizer"],
    "src/lm/files": LIBRARY + [STR, "src/lm/gguf_model.h", "src/lm/model", "src/lm/tokenizer"],
    "src/lm/jinja": [BASE, STR],
    "src/lm/model": LIBRARY + ["src/lm/gguf_model.h"],
    "src/lm/tokenizer": LIBRARY + [STR, "src/lm/gguf_model.h"],
    "src/api": LIBRARY + ["src/transforms", PUBLIC],
    "src/backend": [BASE, GRAPH, PLAN, EVAL],
    COMMON: [BASE, GRAPH, EVAL, BACKEND_H, OPS_DEF],
    "src/backend/cpu": BACKEND + [DIST],
    "src/backend/null": BACKEND,
    VK: BACKEND + [VK_RT, VK_OPS, VK_CHECK],
    VK_RT: [BASE, SPIRV, GRAPH, EVAL, BACKEND_H, COMMON, VK_CHECK, VK_OPS + "/variant.h"],
    VK_JIT: [BASE, GRAPH, PLAN, OPS_DEF, VK_RT, VK_KERNELS],
    VK_OPS: BACKEND + [SPIRV, VK_RT, VK_JIT, VK_CHECK, VK_KERNELS],
    VK_CHECK: [BASE],
    VK_KERNELS: [],
    "cli": LIBRARY + LM + [BACKEND_H, "bench", PUBLIC],
    "bench": LIBRARY + LM + [BACKEND_H, "cli", PUBLIC],
    "examples": [PUBLIC],
    "python": [PUBLIC],
    "tests": ["src", "bench", "cli", PUBLIC],
}
INCLUDE_DIRS = ("src", "include", "tests", "python/src", ".")
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
        if VULKAN.match(name) and not folder.startswith(VK):
            return f"<{name}>: Vulkan headers belong to src/backend/vulkan"
        return None
    target = resolve(name)
    if target is None:
        generated = folder in ("tests", "python") or folder.startswith(VK)
        return None if generated else f'"{name}" is not relative to src/, include/ or the top folder'
    if folder_of(target) == folder or any(permits(e, target) for e in ALLOWED[folder]):
        return None
    return f'"{name}": {folder} may not include {target}'


def main():
    files = [p for top in ("src", "include", "cli", "bench", "examples", "python", "tests")
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
