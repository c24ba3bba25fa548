"""Calls whose results MLX 0.32.4 gave, made again. An interpreter that has MLX wrote them:
`run.py tests/data/differential.json.gz --calls 8`."""

from pathlib import Path

import mlx.core as mx
import pytest
from compare import differences, load
from run import run
from table import ROWS

STORED = Path(__file__).parent.parent / "data" / "differential.json.gz"


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_results_are_those_of_mlx(device):
    assert mx.is_available(getattr(mx, device))
    reference = load(STORED)
    names = sorted(ROWS)
    assert len(reference["results"]) == len(names) * reference["calls"]
    other = {"results": run(names, reference["seed"], reference["calls"], device)}
    found = [
        f"{call}: {text}" for call, text, why in differences(reference, other) if text and not why
    ]
    assert not found, "\n".join(found)
