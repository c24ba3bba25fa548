"""Names of public functions, as the API tools need them."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES_TABLE = ROOT / "docs" / "mlx-c-names.txt"
PROTOTYPE = re.compile(r"\b(_?mlx_\w+)\s*\([^;{}]*\)\s*;")


def upstream():
    """The functions of mlx-c: {name: header}."""
    names = {}
    header = None
    for line in NAMES_TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            continue
        if line.endswith(":"):
            header = line[:-1]
        elif line.strip():
            names[line.strip()] = header
    return names


def declared():
    """What include/mlx/c declares, on any target: {name: header}."""
    names = {}
    for path in sorted((ROOT / "include/mlx/c").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        text = "\n".join(l for l in text.splitlines() if not l.lstrip().startswith(("#", "typedef")))
        for name in PROTOTYPE.findall(text):
            names[name] = path.name
    return names


def declared_here(compiler):
    """The names of declared() that the compiler's target has."""
    unit = '#include "mlx/c/mlx.h"\n#include "mlx/c/ext.h"\n'
    run = subprocess.run([compiler, "-E", "-P", "-I", str(ROOT / "include"), "-"], input=unit,
                         capture_output=True, text=True, check=True)
    return set(PROTOTYPE.findall(run.stdout)) & set(declared())
