"""Optimizers, and schedules of their learning rates."""

from mlx.optimizers.optimizers import *
from mlx.optimizers.schedulers import *
