#!/usr/bin/env python3
"""Writes which tests a GPU machine runs, for pack_gpu.sh and gpu_check.sh.

usage: gpu_plan.py BUILD [PATTERN]

The tests are those of ctest whose names match, with their arguments and settings. A line for each,
separated by tabs:
    run     name  parts  seconds  failure  settings  command
    leave   name  why
parts is "tests" or "slow", with "alone" where nothing else may run; failure is a pattern that the
output must not match. Paths in commands begin with "@": the folder that pack_gpu.sh fills.
"""

import json
import pathlib
import re
import subprocess
import sys

# Tests of these need no GPU.
LEFT_OUT = {"lint": "checks of the source tree", "fuzz": "files only, on the CPU"}
SOURCE = pathlib.Path(__file__).resolve().parent.parent


def moved(text, build):
    """A path of the build or the source tree, as it is called in the archive."""
    for folder, name in ((build / "generated/tests", "data/made"), (build / "tests", "bin"),
                         (build / "mlx", "bin/mlx"), (SOURCE / "tests/data", "data/stored"),
                         (SOURCE / "tests/cli", "cli"), (SOURCE / "models", "models")):
        if text == str(folder) or text.startswith(f"{folder}/"):
            return "@/" + name + text[len(str(folder)):]
    return text


def line_of(test, build, pattern):
    has = {p["name"]: p["value"] for p in test["properties"]}
    labels = has.get("LABELS", [])
    command = [moved(word, build) for word in test.get("command", [])]
    why = next((LEFT_OUT[label] for label in labels if label in LEFT_OUT), None)
    if not why and not re.search(pattern, test["name"]):
        why = "not packed"
    if not why and not command:
        why = "not built"
    needed = [word for word in command if word.startswith("/")]
    if not why and needed:
        why = f"needs {needed[0]}"
    if why:
        return ["leave", test["name"], why]
    settings = [s for s in has.get("ENVIRONMENT", []) if not s.startswith("MLX_VK_CACHE_DIR=")]
    parts = ["slow" if "slow" in labels else "tests"] + ["alone"] * bool(has.get("RUN_SERIAL"))
    return ["run", test["name"], " ".join(parts), str(int(has.get("TIMEOUT", 600))),
            "|".join(has.get("FAIL_REGULAR_EXPRESSION", [])) or "-", " ".join(settings) or "-",
            " ".join(command)]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    for test in json.loads(shown)["tests"]:
        print("\t".join(line_of(test, build, sys.argv[2] if len(sys.argv) > 2 else "")))


if __name__ == "__main__":
    main()
