"""What the tests of the Python package share: the device, as DEVICE says."""

import os

import mlx.core as mx

if "DEVICE" in os.environ:
    mx.set_default_device(getattr(mx, os.environ["DEVICE"]))
