"""Every test runs on the CPU and on the GPU, by the fixture device, unless it says otherwise."""

import mlx.core as mx
import pytest


@pytest.fixture(params=["cpu", "gpu"])
def device(request):
    """Makes a device the default, and puts the old one back."""
    before = mx.default_device()
    mx.set_default_device(getattr(mx, request.param))
    yield request.param
    mx.set_default_device(before)
