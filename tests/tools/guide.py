#!/usr/bin/env python3
"""Runs the programs of docs/kernels_of_your_own.md, as they stand there.

usage: guide.py GUIDE GLSLC CC INCLUDE LIBRARY [PYTHON]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", re.S)
PRINTS = {
    "saxpy": "array([1, 3, 5, 7, 9], dtype=float32)",
    "saxpy.py": "[1.0, 3.0, 5.0, 7.0, 9.0]\n[2.0, 2.0, 2.0, 2.0, 2.0]",
}


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(f"{command[0]}: exit code {done.returncode}")
    return done.stdout.strip()


def expect(name, found):
    if found != PRINTS[name]:
        sys.exit(f"{name} printed {found!r}")


def main(guide, glslc, cc, include, library, python=None):
    library = pathlib.Path(library)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILE.findall(pathlib.Path(guide).read_text(encoding="utf-8")):
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        run(folder, glslc, "--target-env=vulkan1.2", "-o", "saxpy.spv", "saxpy.comp")
        flags = ["-Wall", "-Wextra", "-Werror", "-I", include, "-L", str(library.parent), "-lmlxc"]
        run(folder, cc, "saxpy.c", *flags, f"-Wl,-rpath,{library.parent}", "-o", "saxpy")
        expect("saxpy", run(folder, os.path.join(folder, "saxpy")))
        if python:
            expect("saxpy.py", run(folder, python, "-B", "saxpy.py"))


if __name__ == "__main__":
    main(*sys.argv[1:])
