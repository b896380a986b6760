"""The same checks on other libraries: samplers of BlackJAX and posteriors behind the door of `BlackBox`, beside ours.

Each is used through its public functions and with its own parameters: step size ε, friction α, temperature T mean the same in
all of them, θ ← θ + εp, p ← p − ε∇U − εαp + √(2αεT) n (SGLD: θ ← θ − ε∇U + √(2εT) n). Gradients are exact. Hidden momenta and
frictions start in their laws, also where a library's default start has another temperature. BlackJAX runs in its default
float32 (round-off is far below what is measured), posteriors in float64. What fails here is information, and no failure of
this package. Install them with ``pip install "sgmcmc[peers]"``.

How BlackJAX's SGLD is put to the test, without this module:

    import blackjax, jax
    from sgmcmc.testing.black_box import BlackBox, check_black_box

    sgld = blackjax.sgld(lambda position, minibatch: -minibatch)  # what we hand in as a minibatch is the gradient of U
    sweep = jax.jit(jax.vmap(lambda key, theta, g: sgld.step(key, theta, g, 0.01)))

    def step(state, gradient):
        theta, key = state
        keys = jax.random.split(key, len(theta) + 1)
        return sweep(keys[1:], theta, gradient), keys[0]

    box = BlackBox("SGLD", lambda theta, seed: (theta, jax.random.PRNGKey(seed)), step, lambda s: s[0], vectorised=True)
    print(check_black_box(box).table)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sgmcmc.testing.adapter import Array, BlackBox, as_black_box
from sgmcmc.testing.black_box import check_black_box
from sgmcmc.testing.report import WRONG, Finding
from sgmcmc.testing.targets import GAUSSIAN, SKEW

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "Case", "cases", "findings", "installed", "peers_table"]

PEERS = {"blackjax": "jax", "posteriors": "torch"}  # a library, and what it stands on
MISSING = 'neither blackjax nor posteriors is installed; `pip install "sgmcmc[peers]"` brings both'


def installed() -> dict[str, str]:
    """Versions of the libraries that are here, and of what they stand on."""
    versions: dict[str, str] = {}
    for library, base in PEERS.items():
        try:
            versions |= {name: metadata.version(name) for name in (library, base)}
        except metadata.PackageNotFoundError:
            continue
    return versions


# ---- BlackJAX --------------------------------------------------------------------------------------------------------


def _jax_box(name: str, T: float, init: Any, step: Any, position: Any = None, calls_gradient: bool = False) -> BlackBox:
    """Chains side by side by `vmap`; init(θ, key) and step(key, state, gradient) are those of one chain."""
    import jax

    @lru_cache(maxsize=8)  # compiled once for each gradient that is called
    def compiled(function: Any) -> Any:
        def sweep(state: Any, key: Any, gradient: Any, chains: int) -> Any:
            key, own = jax.random.split(key)
            own = jax.random.split(own, chains)
            if function is not None:
                return jax.vmap(lambda k, s: step(k, s, _traceable(function)))(own, state), key
            return jax.vmap(step)(own, state, gradient), key

        return jax.jit(sweep, static_argnums=3)

    def begin(theta: Array, seed: int) -> Any:
        key, own = jax.random.split(jax.random.PRNGKey(seed))
        return jax.vmap(init)(theta.astype(np.float32), jax.random.split(own, len(theta))), key, len(theta)

    def advance(state: Any, gradient: Any) -> Any:
        chains, key, n = state
        if calls_gradient:
            return *compiled(gradient)(chains, key, None, n), n
        return *compiled(None)(chains, key, gradient.astype(np.float32), n), n

    where = (lambda state: state[0]) if position is None else (lambda state: position(state[0]))
    return BlackBox(name, begin, advance, where, T, True, calls_gradient)


def _traceable(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A gradient that JAX can compile: itself if it is plain arithmetic, else called back."""
    import jax

    def call(x: Any) -> Any:
        try:
            return function(x)
        except jax.errors.TracerArrayConversionError:
            shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
            plain = lambda y: np.asarray(function(np.asarray(y)), y.dtype)  # noqa: E731
            return jax.pure_callback(plain, shape, x, vmap_method="broadcast_all")

    return call


def blackjax_sgld(eps: float, T: float = 1.0) -> BlackBox:
    import blackjax

    step = blackjax.sgld(lambda position, minibatch: -minibatch).step  # the minibatch is the gradient that is handed in
    return _jax_box("SGLD", T, lambda theta, key: theta, lambda k, s, g: step(k, s, g, eps, T))


def blackjax_sghmc(eps: float, alpha: float, inner: int, T: float = 1.0) -> BlackBox:
    """One call is `inner` steps with fresh momenta, as the library has it."""
    import blackjax

    def step(key: Any, theta: Any, gradient: Any) -> Any:
        sampler = blackjax.sghmc(lambda position, minibatch: -gradient(position), inner, alpha)
        return sampler.step(key, theta, None, eps, T)

    return _jax_box("SGHMC", T, lambda theta, key: theta, step, calls_gradient=True)


def blackjax_sgnht(eps: float, alpha: float, T: float = 1.0) -> BlackBox:
    import blackjax
    import jax

    sampler = blackjax.sgnht(lambda position, minibatch: -minibatch, alpha)

    def init(theta: Any, key: Any) -> Any:
        one, two = jax.random.split(key)
        state = sampler.init(theta, one)
        xi = alpha + (T / theta.size) ** 0.5 * jax.random.normal(two)
        return state._replace(momentum=T**0.5 * state.momentum, xi=xi)

    return _jax_box("SGNHT", T, init, lambda k, s, g: sampler.step(k, s, g, eps, T), lambda s: s.position)


# ---- posteriors ------------------------------------------------------------------------------------------------------


def posteriors_box(kind: str, eps: float, T: float = 1.0, **parameters: float) -> BlackBox:
    """sgld, sghmc and baoa act coordinate by coordinate, so one state holds all chains; sgnht goes through `vmap`."""
    import posteriors
    import torch

    module = getattr(posteriors.sgmcmc, kind)

    def log_posterior(params: Any, gradient: Any) -> Any:  # its gradient is minus what is handed in
        return -(params * gradient).sum(), torch.zeros(())

    transform = module.build(log_posterior, lr=eps, temperature=T, **parameters)

    def init(theta: Array, seed: int) -> Any:
        torch.manual_seed(seed)
        params = torch.from_numpy(theta)
        if kind == "sgld":
            return transform.init(params)
        momenta = T**0.5 * torch.randn_like(params)
        if kind != "sgnht":
            return module.init(params, momenta)
        spread = (T / theta.shape[1]) ** 0.5
        return params, momenta, parameters["alpha"] + spread * torch.randn(len(theta), dtype=torch.float64)

    def one(params: Any, momenta: Any, xi: Any, gradient: Any) -> Any:
        state, _ = transform.update(module.SGNHTState(params, momenta, xi), gradient)
        return state.params, state.momenta, state.xi

    def step(state: Any, gradient: Array) -> Any:
        g = torch.from_numpy(gradient)
        if kind == "sgnht":
            return torch.func.vmap(one, randomness="different")(*state, g)
        return transform.update(state, g)[0]

    position = (lambda s: s[0]) if kind == "sgnht" else (lambda s: s.params)
    return BlackBox(kind.upper(), init, step, position, T, vectorised=True)


# ---- the cases -------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """One sampler with its parameters, and how long a run must be: time to reach its stationary law, and to average."""

    library: str
    sampler: str
    setting: str
    make: Callable[[], BlackBox]
    eps: float  # time that passes in one call
    settle: float
    average: float


def _ours(name: str, **parameters: Any) -> BlackBox:
    from sgmcmc.samplers import presets

    return as_black_box(getattr(presets, name)(**parameters), name)


def cases() -> Iterator[Case]:
    """What is compared: the settings of the literature and of the defaults, and step sizes at which all should be fine."""
    for eps, T in ((0.1, 1.0), (0.01, 1.0), (0.01, 0.1)):
        setting = f"ε = {eps:g}, T = {T:g}"
        run = (eps, 4.0, 12.0 if eps < 0.05 else 40.0)
        yield Case("blackjax", "SGLD", setting, partial(blackjax_sgld, eps, T), *run)
        yield Case("posteriors", "SGLD", setting, partial(posteriors_box, "sgld", eps, T), *run)
        yield Case("sgmcmc", "SGLD", setting, partial(_ours, "SGLD", step_size=eps, temperature=T), *run)
    # step size, friction, temperature, BlackJAX's inner steps, time to settle, time to average
    for eps, alpha, T, inner, settle, average in (
        (0.1, 0.01, 1.0, 50, 100.0, 300.0),
        (0.05, 0.1, 1.0, 50, 100.0, 120.0),
        (0.05, 0.01, 0.1, 10, 50.0, 150.0),
        (0.05, 1.0, 0.1, 10, 10.0, 60.0),
        (0.005, 1.0, 1.0, 200, 8.0, 16.0),
        (0.005, 1.0, 0.1, 200, 8.0, 16.0),
    ):
        setting = f"ε = {eps:g}, α = {alpha:g}, T = {T:g}"
        run = (eps, settle, average)
        own: dict[str, Any] = {"step_size": eps, "friction": alpha, "temperature": T}
        jax = (inner * eps, 50.0, max(average, 100.0))  # fresh momenta: it settles soon
        words = f"{setting}, {inner} inner steps"
        yield Case("blackjax", "SGHMC", words, partial(blackjax_sghmc, eps, alpha, inner, T), *jax)
        yield Case("posteriors", "SGHMC", setting, partial(posteriors_box, "sghmc", eps, T, alpha=alpha), *run)
        if eps > 0.01:
            yield Case("posteriors", "BAOA", setting, partial(posteriors_box, "baoa", eps, T, alpha=alpha), *run)
        yield Case("sgmcmc", "SGHMC", setting, partial(_ours, "SGHMC", **own), *run)
    for eps, alpha, T in ((0.1, 1.0, 1.0), (0.05, 0.1, 1.0), (0.05, 1.0, 0.1), (0.01, 1.0, 1.0), (0.01, 1.0, 0.1)):
        setting = f"ε = {eps:g}, α = {alpha:g}, T = {T:g}"
        run = (eps, 10.0, 50.0) if eps > 0.01 else (eps, 8.0, 16.0)
        own = {"step_size": eps, "diffusion": alpha, "temperature": T, "per": "chain"}
        yield Case("blackjax", "SGNHT", setting, partial(blackjax_sgnht, eps, alpha, T), *run)
        yield Case("posteriors", "SGNHT", setting, partial(posteriors_box, "sgnht", eps, T, alpha=alpha), *run)
        yield Case("sgmcmc", "SGNHT", setting, partial(_ours, "SGNHT", **own), *run)


def measured(case: Case, profile: str = "full", seed: int = 0) -> Iterator[Finding]:
    """The checks of one case."""
    full = profile == "full"
    warmup, steps = (max(20, round((1.0 if full else 0.25) * t / case.eps)) for t in (case.settle, case.average))
    version, box = metadata.version(case.library), case.make()
    for target, dim, chains in ((GAUSSIAN, 1, 1024), (GAUSSIAN, 20, 256), (SKEW, 20, 256)):
        chains = chains if full else chains // 2
        for f in check_black_box(box, target, dim, chains, warmup, steps, seed, longest=warmup + steps):
            yield f._replace(subject=f"{case.library} {version}, {case.sampler}, {case.setting}")


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """What the libraries that are installed do, case by case, and ours beside them; for a table of its own."""
    here = installed()
    for case in cases() if here else ():
        if case.library == "sgmcmc" or case.library in here:
            yield from measured(case, profile, seed)


def peers_table(profile: str = "quick", seed: int = 0, found: list[Finding] | None = None) -> pd.DataFrame:
    """One row per library, sampler, case and check: figure, standard error, bound, passed."""
    import pandas as pd

    if found is None and not installed():
        raise ImportError(MISSING)
    rows = []
    for f in findings(profile, seed) if found is None else found:
        library, sampler, setting = f.subject.split(", ", 2)
        check, target = f.check.split("; ", 1)
        se = float(f.detail.split(";")[0].removeprefix("se ")) if f.detail.startswith("se ") else np.nan
        rows.append((library, sampler, setting, check, target, f.figure, se, f.bound, f.verdict != WRONG))
    names = ("library", "sampler", "case", "check", "target", "figure", "se", "bound", "passed")
    return pd.DataFrame(rows, columns=list(names))
