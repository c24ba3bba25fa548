"""Layers, losses and initializers for neural networks, on top of mlx.core."""

from mlx.nn import init, losses
from mlx.nn.layers import *
from mlx.nn.utils import average_gradients, value_and_grad
