"""``python -m mlx``: the version, and where the package is."""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    import mlx.core as mx

    parser = argparse.ArgumentParser(prog="python -m mlx")
    parser.add_argument(
        "--version", action="version", version=mx.__version__, help="print the version and exit"
    )
    parser.add_argument(
        "--cmake-dir", action="store_true", help="print the folder of the package, for CMake"
    )
    if parser.parse_args().cmake_dir:
        print(Path(__file__).parent)


if __name__ == "__main__":
    main()
