"""Integrators: how one step advances (θ, p, ξ).

A step begins where the last gradient was taken and ends where the next one will be, so that a draw and its gradient belong
together and one gradient is paid per step. `Splitting` is an integrator that is a word of the flows in flows.py:

    SymmetricSplitting   BNFAFNB   (L X B N)(w)  F(h/2) A(h) F(h/2)
    BAOAB                BAOAB     (L X B)(w)    A(h/2) O(h) A(h/2)
    Euler                no word: all drifts at the old state

What goes with the gradient lasts w = (h_before + h)/2, the mean of the step sizes on either side: at the very beginning
h_before = 0, and a step of size 0 at the end closes the cycle at its point of symmetry.
"""

from __future__ import annotations

from sgmcmc.integrators import overdamped  # noqa: F401  the steps without momentum
from sgmcmc.integrators.euler import Euler, halves_theta_noise, is_explicit
from sgmcmc.integrators.splitting import BAOAB, Splitting, SymmetricSplitting
from sgmcmc.integrators.state import Dynamics, Moment, Noise, State, advance, order
from sgmcmc.integrators.step_of_word import flow

__all__ = [
    "BAOAB",
    "Dynamics",
    "Euler",
    "Moment",
    "Noise",
    "Splitting",
    "State",
    "SymmetricSplitting",
    "advance",
    "flow",
    "halves_theta_noise",
    "is_explicit",
    "order",
]
