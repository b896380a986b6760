"""What each case measures, in words, for the page."""

from __future__ import annotations

__all__ = ["EFFICIENCY", "HEAD", "LOGISTIC", "NORMALS", "SCALING", "START", "UPDATE", "WELLS"]

HEAD = """# Benchmarks

Written by `sgmcmc bench`: every figure, table, picture and verdict on this page comes from one file of results. Every entry ran
in a process of its own, and those that are compared took turns, run by run, so that whatever else used the processor met all
of them; no two ran at once. Times are medians of several runs in steady state (one of less than 0.2 s comes after others of it
that are not timed); the first call, which compiles, is apart. Beside every time stands a check of what was drawn, because it
is easy to be fast and wrong: **WRONG** marks an entry whose draws are off by more than the check allows. Peers run as their
documentation advises (jit, scan, vmap, donated buffers), with the same targets, step sizes and starts. Ratios are this package
against the other; below 1 we lose.
"""

WELLS = """A mixture of five round Gaussians (standard deviation 0.7) in two dimensions, gradients with added noise
N(0, 2B), B = 1; step size 0.02, friction 1, every 10th state kept. One step is one noisy gradient and one update of
one chain. Chains start in the exact law. The check: mean and variance of θ₁, and the temperature E[(θ − m)·∇U]/2,
each with its truth in brackets. `blackjax+tuned` is BlackJAX by hand: the gradient written out, chains on two host
devices by `pmap`. `blackjax+pinned` is BlackJAX as it is, kept on one core: with two, a step of a small model at times
takes up to twice as long, for a whole run (probably as JAX's threads hand work to each other). Claims are against the faster.
SGMGT-D (a = 1) has no counterpart elsewhere."""

LOGISTIC = """Prior N(0, 1), minibatches with replacement, float32, every state kept. Small: N = 1000, d = 25, batch
16 (h = 3e-4, friction 20; SGLD 1e-5). Large: N = 1,000,000, d = 100, batch 1000 (h = 3e-6, friction 500; SGLD 1e-9).
Chains start in the exact posterior. `blackjax+pinned` is BlackJAX on one core, as above. The check: rms error of
the posterior mean in standard deviations, and the mean ratio of standard deviations, against Hamiltonian Monte Carlo with
all the data (small) or Laplace's approximation (large)."""

UPDATE = """θ ~ N(0, 1) in float32, h = 0.05, friction 1, through `sampler.step(state, gradient, inplace=True)`, with
all cores. We read the gradient from memory and keep a thermostat per coordinate; in the peers' programs the gradient,
θ itself, is fused into the update, and their thermostat is one number. No peer has SGMGT-D: it is compared with their
SGNHT, which draws a third of its normals, and with SGMGT-D by hand in JAX, the paper's Euler scheme and no more (ours has
two friction flows, and learns where its thermostats belong). The limit is the time of our normals (in
cache, all cores) plus the time that the bytes that must move (θ, p and, with a thermostat, ξ, read and written, and
the gradient read) take in a STREAM triad, both measured in the same run. The check: the variance of θ (and of p),
which should be 1."""

NORMALS = """Standard normals on one core: an array of 10 million, and blocks of 10,000 that stay in the cache. JAX
adds its blocks up, or its compiler would leave them out. The check: mean, variance, fourth moment, with no allowance."""

START = """`python script.py` to the first 1000 draws of the small logistic regression by SGNHT with 4 chains: with an
empty compile cache, and with a filled one (Numba's for us; JAX's persistent cache; PyTorch has nothing to keep);
`python -c "import …"`; and the size of all files that pip installs, dependencies included, in MB (10⁶ bytes).
With `pip install`, this package compiles its presets on logistic regression for the processor at hand, so a first run
of these finds its kernel; in a working copy, or on a model of one's own, it compiles: `first run, own gradient` is the
same regression as a `numba.njit` function in the script. Peers compile in both, and run the same script in both."""

EFFICIENCY = """Effective draws per second on the small logistic regression (float32, 4 chains, minibatches of 16;
NUTS with all the data), for the coefficient with the fewest. Equal accuracy means: rms error of the posterior mean at
most 0.1 standard deviations, and the mean ratio of standard deviations within 5 % of 1. Every stochastic-gradient
sampler goes through the same grid (SGLD: 8 step sizes; others: 8 step sizes × frictions 1, 5, 20; 100,000 steps per
chain, every 5th kept; posteriors: 10,000) and is then timed, on other seeds, at the accurate setting with the most
effective draws per step. The first tenth of each run is dropped from the draws, not from the time. Of NUTS only the
sampling is timed, not its warm-up. Effective sample sizes are ArviZ's bulk ESS. **WRONG** means that no setting was
accurate, or that the timed runs were not."""

SCALING = """SGNHT in float32, one number varied at a time: the dimension d of a Gaussian (at least 100 steps a run, its
setting up included); the rows N and the batch of a logistic regression with d = 25 (batch 16 or N = 10,000); the chains
on the five wells (at least 4000 steps each, and 4 million in all); threads (64 chains run in one group of lanes on one
thread, in two half-full ones on two: `threads, one lane group`, which no claim is about); and the memory of
10,000 chains × 1000 draws × 10 dimensions (float64) beside the draws themselves: the growth of the peak resident
memory during the run."""
