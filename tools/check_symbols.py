#!/usr/bin/env python3
"""The libraries export exactly the functions that the public headers declare.

usage: check_symbols.py CC libmlxc.so libmlxc.a
"""

import subprocess
import sys

import api_names


def symbols(library, *options):
    """Global symbols that a library defines."""
    run = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", *options,
                          library], capture_output=True, text=True, check=True)
    rows = (line.split() for line in run.stdout.splitlines())
    return {row[0] for row in rows if len(row) >= 2 and len(row[1]) == 1}


def main(compiler, shared, static):
    declared = api_names.declared_here(compiler)
    bad = 0
    for library, options in ((shared, ["--dynamic"]), (static, [])):
        exported = symbols(library, *options)
        for name in sorted(exported - declared):
            print(f"{library} exports {name}, which no public header declares")
        for name in sorted(declared - exported):
            print(f"{library} lacks {name}, which a public header declares")
        bad += len(exported ^ declared)
    print(f"{len(declared)} public functions, {bad} differences")
    return 1 if bad else 0


if len(sys.argv) != 4:
    sys.exit(__doc__)
sys.exit(main(*sys.argv[1:]))
