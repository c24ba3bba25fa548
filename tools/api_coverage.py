#!/usr/bin/env python3
"""How much of mlx-c the public headers declare: "n of 620", by header with -v.

With --c FILE writes the counts by header as a C table for the command line.

Fails if a header declares a function under mlx-c's names that mlx-c does not have there; additions
of our own belong to ext.h.
"""

import sys

import api_names


def write_table(path, upstream, declared):
    """struct api_header rows (cli/ops.c): header, functions declared, functions in mlx-c."""
    with open(path, "w", encoding="utf-8") as out:
        out.write('#include "cli/api_headers.h"\n\nconst struct api_header api_headers[] = {\n')
        headers = sorted(set(upstream.values()))
        for header in headers:
            names = [n for n, h in upstream.items() if h == header]
            have = sum(n in declared for n in names)
            out.write(f'    {{ "{header}", {have}, {len(names)} }},\n')
        out.write(f"}};\nconst size_t api_header_count = {len(headers)};\n")


def main(verbose, table):
    upstream = api_names.upstream()
    declared = api_names.declared()
    bad = 0
    for name, header in sorted(declared.items()):
        if header != "ext.h" and upstream.get(name) != header:
            print(f"{header}: {name} is not in mlx-c's {header}")
            bad += 1
    if verbose:
        for header in sorted(set(upstream.values())):
            names = [n for n, h in upstream.items() if h == header]
            have = sum(n in declared for n in names)
            print(f"{have:4} of {len(names):3}  {header}")
    if table:
        write_table(table, upstream, declared)
    print(f"{sum(n in declared for n in upstream)} of {len(upstream)}")
    return 1 if bad else 0


args = sys.argv[1:]
sys.exit(main("-v" in args, args[args.index("--c") + 1] if "--c" in args else None))
