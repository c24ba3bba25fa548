#!/usr/bin/env python3
"""Writes the table of op cases: calls with their inputs and what NumPy says of the result.

usage: gen_cases.py OUTPUT HEADER...

Every function that the headers declare must have a row; the program fails otherwise. The format is
described in case_table.py, tests/ops/cases.c runs the rows.
"""

import re
import sys

import numpy as np

import cases_conv
import cases_einsum
import cases_elementwise
import cases_fast
import cases_fft
import cases_grid
import cases_linalg
import cases_quant
import cases_reduce
import cases_scatter
import cases_shape
import cases_slice_update
import cases_sort
from case_table import write_table


def all_rows():
    rows = []
    for module in (cases_elementwise, cases_shape, cases_slice_update, cases_reduce,
                   cases_sort, cases_quant, cases_fast, cases_grid, cases_einsum, cases_linalg,
                   cases_conv, cases_scatter, cases_fft):
        for family, found in module.rows(np.random.default_rng(20240229)):
            for row in found:
                row.family = family
            rows += found
    return rows


def declared(headers):
    """Kernels of Metal and CUDA are no ops of the graph: tests/api/metal_cuda.c has them."""
    names = set()
    for header in headers:
        with open(header, encoding="utf-8") as f:
            names |= set(re.findall(r"^int mlx_(?!fast_(?:metal|cuda)_)(\w+)\(", f.read(), re.M))
    return names


def main():
    rows = all_rows()
    missing = declared(sys.argv[2:]) - {row.fn for row in rows}
    if missing:
        sys.exit(f"gen_cases.py: functions without a row: {' '.join(sorted(missing))}")
    write_table(sys.argv[1], rows)


if __name__ == "__main__":
    main()
