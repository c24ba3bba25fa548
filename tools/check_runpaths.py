#!/usr/bin/env python3
"""No program or library of a build looks for libraries in a folder that depends on where it is started:
the entries of run paths are absolute, or relative to the file itself.

usage: check_runpaths.py BUILD_FOLDER
"""

import os
import re
import subprocess
import sys

# Other people's programs and libraries, and builds within the build with checks of their own.
LEFT_OUT = {"toolchain", "drivers", "sysroot", "CMakeFiles", "asan", "tsan", "fuzz", "smollm2",
            "tokenizers"}


def elf_files(folder):
    for path, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f not in LEFT_OUT]
        for name in names:
            full = os.path.join(path, name)
            if os.path.islink(full) or name.endswith((".o", ".a")):
                continue
            with open(full, "rb") as f:
                if f.read(4) == b"\x7fELF":
                    yield full


def run_paths(path):
    run = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True,
                         check=True, env={**os.environ, "LC_ALL": "C"})
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]$", run.stdout, re.MULTILINE)


def main(folder):
    checked = bad = 0
    for path in sorted(elf_files(folder)):
        checked += 1
        for run_path in run_paths(path):
            wrong = [e for e in run_path.split(":") if not re.match(r"/|\$ORIGIN(/|$)", e)]
            if wrong:
                print(f"{path}: run path '{run_path}' has {wrong}")
                bad += 1
    print(f"{checked} files, {bad} with a run path that is not absolute")
    return 1 if bad or not checked else 0


if len(sys.argv) != 2:
    sys.exit(__doc__)
sys.exit(main(sys.argv[1]))
