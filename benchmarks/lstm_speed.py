"""One training step of a recurrent network, gradient and SGMGT-D update, against PyTorch's nn.LSTM on the same processor.

The shapes are those of `sgmcmc reproduce music` and `ptb`. The sampler in torch is the same splitting (a = 1, fixed centre),
written on one flat vector with operations in place. Both do the same steps in turn in one process, on the same number of threads;
a figure is the median, by the processor's clock if there is one thread. First the gradients of both at one θ are compared. Prints
and writes docs/lstm-speed.md.
Usage: python benchmarks/lstm_speed.py [--threads N] [--quick]; wants pip install "sgmcmc[peers]".
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHAPES = {  # name: (sequences, steps) of a batch
    "JSB, 1 sequence of 60 frames": (1, 60),
    "Piano, 2 pieces of 180 frames": (2, 180),
    "Nottingham and Muse, 4 pieces of 150 frames": (4, 150),
    "Penn Treebank, 32 windows of 20 words": (32, 20),
}
KEYS, WORDS, HIDDEN, EMBEDDING = 88, 10_000, 200, 300
H, SOFTENING, SIGMA_THETA, SIGMA_P, SIGMA_XI, GAMMA = 1e-5, 3.0, 0.1, 10.0, 0.1, 1.0


def ours(name: str, threads: int):
    """(model, θ, rows, what takes a gradient, what takes a step)."""
    import numpy as np

    import sgmcmc as sg

    rng, (width, steps) = np.random.default_rng(0), SHAPES[name]
    if name.startswith("Penn"):
        text = rng.integers(0, WORDS, width * steps * 4 + 1)
        model = sg.models.LSTM(text, None, HIDDEN, 2, steps, WORDS, EMBEDDING, threads=threads)
    else:
        frames = rng.random((width * steps * 4, KEYS)) < 0.045
        model = sg.models.LSTM(frames, np.arange(0, len(frames) + 1, steps), HIDDEN, threads=threads)
    sampler = sg.SGMGTD(H, 1.0, SOFTENING, SIGMA_THETA, SIGMA_P, SIGMA_XI, GAMMA, None, None, center="fixed")
    theta, rows = model.init(1).astype(np.float32), np.arange(width)
    gradient, weight = np.zeros_like(theta), np.float32(4.0)
    box = [sampler.init(theta, seed=1)]

    def slope() -> None:
        model.estimate(box[0].theta, rows, weight, gradient)

    def update() -> None:
        box[0] = sampler.step(box[0], gradient, inplace=True)

    return model, theta, rows, slope, update


class TorchSampler:
    """SGMGT-D by the symmetric splitting, a = 1 (K' = tanh(cp/2), K'' = (c/2)(1 − K'²)), on one flat vector."""

    def __init__(self, theta) -> None:
        import torch

        self.torch, self.theta = torch, theta
        self.p, self.xi, self.noise = torch.zeros_like(theta), torch.full_like(theta, SIGMA_P), torch.zeros_like(theta)
        self.v, self.w, self.n = (torch.empty_like(theta) for _ in range(3))

    def _drift(self) -> None:
        """A: θ += (h/2) K', ξ += (h/2) γ (K'² − K'')."""
        self.torch.mul(self.p, 0.5 * SOFTENING, out=self.v).tanh_()
        self.theta.add_(self.v, alpha=0.5 * H)
        self.v.square_()
        self.xi.add_(self.v, alpha=0.5 * H * GAMMA * (1.0 + 0.5 * SOFTENING)).sub_(0.25 * H * GAMMA * SOFTENING)

    def _relax(self) -> None:
        """X: half a step of ξ's Ornstein–Uhlenbeck process, exactly."""
        import math

        decay = math.exp(-0.5 * H * SIGMA_XI / GAMMA)
        self.n.normal_()
        self.xi.sub_(SIGMA_P).mul_(decay).add_(self.n, alpha=math.sqrt(GAMMA * (1.0 - decay**2))).add_(SIGMA_P)

    def _rub(self) -> None:
        """B: the friction flow over half a step, exactly: sinh(cp/2) ← sinh(cp/2) exp(−ξ c h/4)."""
        torch, c = self.torch, SOFTENING
        torch.mul(self.xi, -0.25 * c * H, out=self.w).exp_()
        torch.mul(self.p, 0.5 * c, out=self.v).sinh_().mul_(self.w).asinh_()
        torch.mul(self.v, 2.0 / c, out=self.p)

    def step(self, gradient) -> None:
        """The gradient is that at θ, which is halfway through the θ-noise."""
        self.theta.add_(self.noise).add_(gradient, alpha=-H * SIGMA_THETA)
        self.p.add_(gradient, alpha=-H).add_(self.n.normal_(), alpha=(2.0 * SIGMA_P * H) ** 0.5)
        for part in (self._rub, self._relax, self._drift, self._drift, self._relax, self._rub):
            part()
        self.noise.normal_().mul_(0.5 * (2.0 * SIGMA_THETA * H) ** 0.5)
        self.theta.add_(self.noise)


def theirs(name: str, model, theta, rows):
    """(what gives the gradient, what takes a step) in torch, from the same θ on the same rows."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    flat = torch.tensor(theta)
    parts = {}
    first = 0
    for key, shape in model.parameters.items():
        size = int(torch.Size(shape).numel())
        parts[key] = flat[first : first + size].view(shape)
        first += size
    layers, language = model.layers, model.words is not None
    net = torch.nn.LSTM(EMBEDDING if language else KEYS, HIDDEN, layers)
    own = _own_weights(net, parts, layers)
    leaves = [*own.values()]
    steps, width = model.sizes[0], rows.size
    x = torch.tensor(model.x[: width * steps + language])
    before, now = (x[:-1], x[1:]) if language else (x.float(), x.float())
    before, now = (a.reshape(width, steps, *a.shape[1:]).transpose(0, 1).contiguous() for a in (before, now))
    if not language:
        before = torch.cat([torch.zeros(1, width, KEYS), before[:-1]])
    out = torch.zeros_like(flat)

    def slope():
        inputs = own["embedding"][before] if language else before
        h, _ = net(inputs)
        logits = h.reshape(-1, HIDDEN) @ own["output"] + own["output_bias"]
        if language:
            loss = cross_entropy(logits, now.reshape(-1), reduction="sum")
        else:
            loss = binary_cross_entropy_with_logits(logits, now.reshape(-1, KEYS), reduction="sum")
        found = dict(zip(own, torch.autograd.grad(loss, leaves), strict=True))
        _gather(found, model, out, layers)
        return out.mul_(4.0).add_(flat)  # N/n, and the prior N(0, 1)

    sampler = TorchSampler(flat)

    def update() -> None:
        sampler.step(out)
        _scatter(own, parts, layers)

    return slope, update


def _own_weights(net, parts, layers: int):
    """Leaves for autograd: those of nn.LSTM, whose matrices are the transposed ones, and the rest."""
    import torch

    own = {}
    for n in range(layers):
        for ours_name, name in ((f"input_{n}", f"weight_ih_l{n}"), (f"recurrent_{n}", f"weight_hh_l{n}")):
            own[ours_name] = getattr(net, name)
        own[f"bias_{n}"] = getattr(net, f"bias_ih_l{n}")
        getattr(net, f"bias_hh_l{n}").data.zero_()
        getattr(net, f"bias_hh_l{n}").requires_grad_(False)
    for key in ("embedding", "output", "output_bias"):
        if key in parts:
            own[key] = torch.nn.Parameter(parts[key].clone())
    _scatter(own, parts, layers)
    return own


def _scatter(own, parts, layers: int) -> None:
    """Put θ where the network reads it."""
    import torch

    with torch.no_grad():
        for key, value in own.items():
            value.copy_(parts[key].T if key.startswith(("input", "recurrent")) else parts[key])


def _gather(found, model, out, layers: int) -> None:
    """Put the gradient into one vector."""
    first = 0
    for key, shape in model.parameters.items():
        part = found[key].T if key.startswith(("input", "recurrent")) else found[key]
        size = part.numel()
        out[first : first + size].view(shape).copy_(part)
        first += size


def clock(threads: int) -> float:
    """Seconds; of one thread those of the processor, which other programs disturb less."""
    return time.process_time() if threads == 1 else time.perf_counter()


def compare(name: str, threads: int, seconds: float) -> dict[str, float]:
    """Milliseconds of the two parts of a step, in turn: ours, theirs, ours, …"""
    import numpy as np

    model, theta, rows, slope, update = ours(name, threads)
    their_slope, their_update = theirs(name, model, theta, rows)
    check = np.zeros_like(theta)
    model.estimate(theta, rows, np.float32(4.0), check)
    error = np.abs(their_slope().numpy() - check).max() / np.abs(check).max()
    assert error < 1e-4, f"{name}: the two gradients differ by {error:.1e} of the largest entry"
    jobs = {"slope": slope, "update": update, "their slope": their_slope, "their update": their_update}
    times: dict[str, list[float]] = {key: [] for key in jobs}
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times["slope"]) < 5:
        for key, job in jobs.items():
            start = clock(threads)
            job()
            times[key].append(clock(threads) - start)
    return {key: 1e3 * float(np.median(found[2:])) for key, found in times.items()}


def updates(gradient: float, threads: int) -> list[str]:
    """Updates of the other samplers on the parameters of Penn Treebank, and their shares of a step with this gradient (ms)."""
    import numpy as np

    import sgmcmc as sg

    none = {"resample_momentum": None, "resample_thermostat": None}
    samplers = {
        "SGLD (one normal per parameter)": sg.SGLD(H),
        "SGNHT (one)": sg.SGNHT(H),
        "SGMGT, a = 1 (one)": sg.SGMGT(H, **none),
        "SGMGT-D, a = 1, by Euler's scheme (three)": sg.SGMGTD(H, integrator=sg.integrators.Euler(), **none),
        "SGMGT-D, a = 1 (three)": sg.SGMGTD(H, **none),
        "SGMGT-D, a = 2 (three)": sg.SGMGTD(H, a=2, **none),
    }
    lines = ["| update of 5,731,600 parameters | ms | share of a step |", "|---|---|---|"]
    theta = np.zeros(5_731_600, np.float32)
    for name, sampler in samplers.items():
        state, times = sampler.init(theta, seed=1), []
        for _ in range(9):
            begin = clock(threads)
            state = sampler.step(state, theta, inplace=True)
            times.append(1e3 * (clock(threads) - begin))
        found = float(np.median(times[2:]))
        lines.append(f"| {name} | {found:.1f} | {found / (found + gradient):.0%} |")
    return [*lines, normals_alone(theta.size, gradient, threads)]


def normals_alone(size: int, gradient: float, threads: int) -> str:
    """Three normals per parameter and nothing else, in blocks that stay in the first cache: what SGMGT-D cannot go below."""
    import numpy as np

    from sgmcmc.evidence.benchmarks.fill import fill
    from sgmcmc.rng import stream

    out, own, times = np.zeros((1, 512), np.float32), stream(1, 0), []
    for _ in range(9):
        begin = clock(threads)
        fill(out, own, np.int64(0), np.int64(3 * size // 512))
        times.append(1e3 * (clock(threads) - begin))
    found = float(np.median(times[2:]))
    return f"| nothing but three normals per parameter (one thread) | {found:.1f} | {found / (found + gradient):.0%} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="of both (default: 1)")
    parser.add_argument("--quick", action="store_true", help="one second per shape, and do not write the page")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(given.threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])  # our update uses all cores there are
    import torch

    torch.set_num_threads(given.threads)
    head = ["ours: gradient", "update", "step", "torch: gradient", "update", "step", "torch ÷ ours", "update's share"]
    lines = [f"| one step of SGMGT-D, ms | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    print("\n".join(lines), flush=True)
    worst, share = 1e9, 0.0
    for name in SHAPES:
        t = compare(name, given.threads, 1.0 if given.quick else 12.0)
        whole, other = t["slope"] + t["update"], t["their slope"] + t["their update"]
        figures = [t["slope"], t["update"], whole, t["their slope"], t["their update"], other]
        ratio, share = other / whole, t["update"] / whole
        worst = min(worst, ratio / (0.8 if name.startswith("Penn") else 1.0))
        cells = " | ".join(f"{f:.2f}" for f in figures)
        lines.append(f"| {name} | {cells} | {ratio:.2f} | {share:.0%} |")
        print(lines[-1], flush=True)
    table = updates(t["slope"], given.threads)
    print("\n".join(table), flush=True)
    if not given.quick:
        where = f"{platform.machine()}, {given.threads} thread(s), Python {platform.python_version()}, torch {torch.__version__}"
        text = "# Time per step: recurrent networks\n\n" + __doc__.split("\n\n", 1)[1].split("Usage")[0].strip()
        text += f"\n\nWritten by `python benchmarks/lstm_speed.py --threads {given.threads}` ({where}).\n\n"
        (ROOT / "docs" / "lstm-speed.md").write_text(text + "\n".join([*lines, "", *table]) + "\n", encoding="utf-8")
    print(f"worst ratio ÷ bound (1 for music, 0.8 for language): {worst:.2f}; the update is {share:.0%} of a PTB step")
    return int(worst < 1.0)


if __name__ == "__main__":
    raise SystemExit(main())
