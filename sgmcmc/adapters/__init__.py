"""Models from elsewhere: log densities that JAX or PyTorch differentiates, and parameters with bounds."""

from sgmcmc.adapters.autodiff import AutodiffPotential
from sgmcmc.adapters.bounds import Constrained, constrained
from sgmcmc.adapters.jax_model import from_jax
from sgmcmc.adapters.torch_model import from_torch

__all__ = ["AutodiffPotential", "Constrained", "constrained", "from_jax", "from_torch"]
