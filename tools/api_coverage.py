#!/usr/bin/env python3
"""How much of mlx-c the public headers declare: "n of 620", by header with -v.

Fails if a header declares a function under mlx-c's names that mlx-c does not have there; additions
of our own belong to ext.h.
"""

import sys

import api_names


def main(verbose):
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
    print(f"{sum(n in declared for n in upstream)} of {len(upstream)}")
    return 1 if bad else 0


sys.exit(main("-v" in sys.argv[1:]))
