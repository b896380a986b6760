"""The claims about speed, each with its bound, and what a run says about it.

A figure over several settings is the worst of them, so a claim holds everywhere or not at all. It does not hold where our own
draws failed their check. A peer whose draws failed theirs is still compared with: that is never in our favour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sgmcmc.evidence.benchmarks.limit import limit_ratios
from sgmcmc.evidence.benchmarks.rows import Row, figure, is_right, measured, of_case, settings, speedup

__all__ = ["CLAIMS", "Claim", "Verdict", "verdicts"]

Worst = tuple[float, str]  # a figure, and the setting it is from
Measure = Callable[[list[Row]], "Worst | None"]


class Claim(NamedTuple):
    case: str
    text: str
    bound: float
    at_least: bool  # else at most
    measure: Measure


class Verdict(NamedTuple):
    claim: Claim
    figure: float | None  # None: not measured
    where: str

    @property
    def holds(self) -> bool | None:
        if self.figure is None:
            return None
        return self.figure >= self.claim.bound if self.claim.at_least else self.figure <= self.claim.bound


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for claim in CLAIMS:
        worst = claim.measure(of_case(rows, claim.case))
        found.append(Verdict(claim, None, "") if worst is None else Verdict(claim, *worst))
    return found


def _worst(pairs: Iterator[Worst], smallest: bool = True) -> Worst | None:
    found = list(pairs)
    if not found:
        return None
    return min(found) if smallest else max(found)


def against(
    *peers: str, method: str | None = None, chains: tuple[int, ...] | None = None, **numbers: object
) -> Measure:
    """Our speed over that of the fastest of these peers, in the setting where it is least; 0 where our draws are wrong."""

    def measure(rows: list[Row]) -> Worst | None:
        chosen = [r for r in rows if all(r.get(k) == v for k, v in numbers.items())]
        return _worst(_ratios(chosen, peers, method, chains))

    return measure


def _ratios(
    rows: list[Row], peers: tuple[str, ...], method: str | None, chains: tuple[int, ...] | None
) -> Iterator[Worst]:
    for where, group in settings(rows).items():
        if chains is not None and group[0].get("chains") not in chains:
            continue
        own = [r for r in group if r["who"] == "sgmcmc" and measured(r)]
        others = [r for r in group if r["who"] in peers and measured(r) and (method is None or r["method"] == method)]
        if own and others:
            ratio = min(speedup(own[0], other) for other in others)
            yield (ratio, where) if is_right(own[0]) else (0.0, f"{where}: our draws are wrong")


def _own_mgt(rows: list[Row]) -> Worst | None:
    """The speed of SGMGT-D over that of our SGNHT with the same chains and precision."""

    def pairs() -> Iterator[Worst]:
        own = [r for r in rows if r["who"] == "sgmcmc" and is_right(r)]
        for row in (r for r in own if r["method"] == "sgmgtd"):
            like = [r for r in own if r["method"] == "sgnht" and all(r[k] == row[k] for k in ("chains", "dtype"))]
            if like:
                yield speedup(row, like[0]), f"{row['dtype']}, {row['chains']:,} chains"

    return _worst(pairs())


def _mgt_update(rows: list[Row]) -> Worst | None:
    """SGMGT-D has no counterpart: the speed of its update over that of the fastest SGNHT of BlackJAX and posteriors."""

    def pairs() -> Iterator[Worst]:
        for row in (r for r in rows if r["who"] == "sgmcmc" and r["method"] == "sgmgtd" and is_right(r)):
            like = [r for r in rows if r["method"] == "sgnht" and r["dim"] == row["dim"] and measured(r)]
            others = [r for r in like if r["who"] in ("blackjax", "posteriors")]
            if others:
                yield min(speedup(row, other) for other in others), f"{row['dim']:,}"

    return _worst(pairs())


def _limit(rows: list[Row]) -> Worst | None:
    return _worst(((v, k) for k, v in limit_ratios(rows).items() if "SGNHT" in k), smallest=False)


def _megabytes(rows: list[Row]) -> Worst | None:
    size = {r["who"]: r["megabytes"] for r in rows if r["method"] == "installed" and measured(r)}
    if not {"sgmcmc", "blackjax"} <= set(size):
        return None
    return size["sgmcmc"] / size["blackjax"], f"{size['sgmcmc']:.0f} MB of {size['blackjax']:.0f} MB"


def best_against(nuts: bool) -> Measure:
    """Our best accurate sampler against the best of theirs; those that are not accurate do not count."""

    def measure(rows: list[Row]) -> Worst | None:
        right = [r for r in rows if is_right(r)]
        own = [r for r in right if r["who"] == "sgmcmc"]
        others = [r for r in right if r["who"] != "sgmcmc" and (r["method"] == "nuts") == nuts]
        if not own or not others:
            return None
        ours, theirs = max(own, key=figure), max(others, key=figure)
        return speedup(ours, theirs), f"{ours['method']} against {theirs['who']} {theirs['method']}"

    return measure


def _along(rows: list[Row], axis: str) -> dict[int, float]:
    return {r["at"]: figure(r) for r in rows if r["axis"] == axis and r["who"] == "sgmcmc" and is_right(r)}


def _slope_in_d(rows: list[Row]) -> Worst | None:
    """The exponent of time against d, from d = 1000 on."""
    times = {d: t for d, t in _along(rows, "d").items() if d >= 1000}
    if len(times) < 2:
        return None
    slope = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
    return float(slope), f"d = {min(times):,} to {max(times):,}"


def _spread(axis: str, low: int, high: int) -> Measure:
    """The longest time over the shortest within a range."""

    def measure(rows: list[Row]) -> Worst | None:
        times = {at: t for at, t in _along(rows, axis).items() if low <= at <= high}
        if len(times) < 2:
            return None
        return max(times.values()) / min(times.values()), f"{axis} = {min(times):,} to {max(times):,}"

    return measure


def _second_thread(rows: list[Row]) -> Worst | None:
    def pairs() -> Iterator[Worst]:
        own = [r for r in rows if r["axis"] == "threads" and is_right(r)]
        for also in {r["also"] for r in own}:
            time = {r["at"]: figure(r) for r in own if r["also"] == also}
            if {1, 2} <= set(time):
                yield time[1] / time[2], also

    return _worst(pairs())


def _memory(rows: list[Row]) -> Worst | None:
    own = [r for r in rows if r["axis"] == "memory" and is_right(r)]
    if not own:
        return None
    return own[0]["run_mb"] / own[0][
        "draws_mb"
    ], f"{own[0]['run_mb']:.0f} MiB for {own[0]['draws_mb']:.0f} MiB of draws"


_BLACKJAX = ("blackjax", "blackjax+pinned")  # as it is, or kept on one core: whichever is the faster
_PEERS = (*_BLACKJAX, "blackjax+tuned", "sgmcmcjax", "posteriors", "numpy")
_MANY = (64, 4096)


def _wells_claims() -> Iterator[Claim]:
    for dtype in ("float32", "float64"):
        yield Claim("wells", f"speed over BlackJAX, {dtype}", 5.0, True, against(*_BLACKJAX, dtype=dtype))
        one = against("sgmcmcjax", chains=(1,), dtype=dtype)
        yield Claim("wells", f"speed over SGMCMCJax, one chain, {dtype}", 2.0, True, one)
        many = against("blackjax+tuned", chains=_MANY, dtype=dtype)
        yield Claim("wells", f"speed over the tuned BlackJAX, many chains, {dtype}", 3.0, True, many)
        yield Claim(
            "wells", f"speed over the fastest peer of any kind, {dtype}", 1.0, True, against(*_PEERS, dtype=dtype)
        )
    yield Claim("wells", "speed of SGMGT-D over our SGNHT", 0.5, True, _own_mgt)


CLAIMS: tuple[Claim, ...] = (
    *_wells_claims(),
    Claim("logistic", "speed over BlackJAX, small", 10.0, True, against(*_BLACKJAX, size="small")),
    Claim("logistic", "speed over posteriors, small", 100.0, True, against("posteriors", size="small")),
    Claim("logistic", "speed over the fastest peer, large", 2.0, True, against(*_PEERS, size="large")),
    Claim("update", "speed over the fastest of BlackJAX and posteriors", 3.0, True, against("blackjax", "posteriors")),
    Claim("update", "speed of SGMGT-D over the fastest SGNHT of BlackJAX and posteriors", 3.0, True, _mgt_update),
    Claim("update", "speed of SGMGT-D over SGMGT-D by hand in JAX", 3.0, True, against("jax", method="sgmgtd")),
    Claim("update", "time of SGNHT over the limit of this run", 1.5, False, _limit),
    Claim("normals", "speed over NumPy's PCG64, float32", 3.0, True, against("numpy", method="PCG64", dtype="float32")),
    Claim(
        "normals", "speed over JAX's threefry, float32", 5.0, True, against("jax", method="threefry", dtype="float32")
    ),
    Claim("normals", "speed over PyTorch, float32", 1.5, True, against("torch", dtype="float32")),
    Claim("normals", "speed over NumPy's PCG64, float64", 1.5, True, against("numpy", method="PCG64", dtype="float64")),
    Claim("start", "second run: speed over BlackJAX", 2.5, True, against("blackjax", method="second run")),
    Claim("start", "first run: speed over BlackJAX", 1.0, True, against("blackjax", method="first run")),
    Claim("start", "import: speed over BlackJAX", 3.0, True, against("blackjax", method="import")),
    Claim("start", "installed size over BlackJAX's", 1.0, False, _megabytes),
    Claim("efficiency", "effective draws per second over every peer's SG sampler", 1.0, True, best_against(nuts=False)),
    Claim("efficiency", "effective draws per second over every peer's NUTS", 1.0, True, best_against(nuts=True)),
    Claim("scaling", "exponent of the time per step in d", 1.1, False, _slope_in_d),
    Claim("scaling", "time per step, longest over shortest, N up to 100,000", 1.25, False, _spread("N", 1, 100_000)),
    Claim(
        "scaling",
        "time per chain-step, longest over shortest, 64 to 10,000 chains",
        1.25,
        False,
        _spread("chains", 64, 10_000),
    ),
    Claim("scaling", "speed of two threads over one", 1.8, True, _second_thread),
    Claim("scaling", "memory of a run over that of its draws", 1.2, False, _memory),
)
