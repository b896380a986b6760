"""The cost model of docs/scaling.md: measures its constants here and writes both tables into the page.

python benchmarks/scaling_model.py [--page docs/scaling.md]
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import sgmcmc as sg
from sgmcmc.run import remote

NETWORK = 1.25e9  # bytes a second, 10 Gbit/s: an assumption, not a measurement
OPTIONS = {"warmup": 0, "chains": 1, "seed": 1, "dtype": np.float32, "threads": 1, "progress": False}


def seconds_per_step(model: object, draws: int, repeats: int = 3, **options: object) -> float:
    """The quickest of a few runs."""
    found = [sg.sample(model, sg.SGNHT(1e-4), draws=draws, **OPTIONS | options).info for _ in range(repeats)]
    return min(info["seconds"] / info["steps"] for info in found)


def measure_row() -> float:
    """Seconds per row and column of a gradient: two batch sizes, logistic regression, rows not in the cache."""
    rng = np.random.default_rng(0)
    model = sg.models.LogisticRegression(rng.normal(size=(200_000, 100)).astype(np.float32), rng.random(200_000) < 0.5)
    kept = {"keep": "moments", "thin": 10}
    small, large = (seconds_per_step(model, 100, batch_size=n, **kept) for n in (100, 1100))
    return (large - small) / (1000 * 100)


def measure_coordinate() -> float:
    """Seconds per coordinate of a step of SGNHT, a trivial gradient included."""
    model = sg.models.Gaussian(np.zeros(1_000_000), 1.0)
    return seconds_per_step(model, 20, keep=lambda theta: theta[0]) / 1_000_000


def measure_disk() -> float:
    """Bytes a second of a checkpoint, flushed to the disk."""
    data = np.random.default_rng(0).random(25_000_000)
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "data", "wb") as file:
        begin = time.perf_counter()
        file.write(data.data)
        file.flush()
        os.fsync(file.fileno())
        return data.nbytes / (time.perf_counter() - begin)


def measure_travel() -> float:
    """Seconds that a chunk of a small chain is on its way to another process and back, and unpacked there."""
    seen: list[float] = []
    real = remote.RemoteTask.receive

    def receive(task: remote.RemoteTask, future: object) -> int:
        done = real(task, future)
        seen.append(float(task.travel))
        return done

    remote.RemoteTask.receive, remote.MOST_SECONDS = receive, 1e-3  # type: ignore[method-assign,misc,assignment]
    with ProcessPoolExecutor(1) as pool:
        sg.sample(sg.models.Gaussian(np.zeros(3), 1.0), sg.SGNHT(0.1), draws=20_000, executor=pool, **OPTIONS)
    remote.RemoteTask.receive = real  # type: ignore[method-assign]
    return min(seen)


CASES = [
    # name, workers, rows, columns, rows of a batch, steps
    ("laptop", 4, 1e5, 100, 100, 1e5),
    ("laptop, data in a file", 4, 1e8, 100, 100, 1e5),
    ("server", 64, 1e8, 100, 1000, 1e6),
    ("cluster", 1000, 1e10, 100, 1000, 1e6),
    ("cluster, many columns", 1000, 1e10, 10_000, 1000, 1e6),
]


def human(value: float, unit: str) -> str:
    for size, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {name}{unit}"
    return f"{value:.3g} {unit}"


def clock(seconds: float) -> str:
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.2g} {name}"
    return f"{seconds:.2g} s"


def line(case: tuple[str, int, float, int, int, float], row: float, coordinate: float, disk: float) -> str:
    name, workers, rows, d, n, steps = case
    step = n * d * row + d * coordinate
    data, state = 4.0 * rows * d, 8 * 4.0 * d
    cells = [name, str(workers), f"{rows:.0e}", str(d), str(n), human(data, "B"), clock(steps * step)]
    cells += [clock(rows * d * row), clock(data * workers / NETWORK), clock(data / workers / NETWORK)]
    cells += [clock(2 * workers * state / NETWORK), clock(workers * state / disk)]
    return "| " + " | ".join(cells) + " |"


HEAD = ["machine", "workers", "rows", "columns", "batch", "data", "a chain of 1e5 or 1e6 steps", "one full gradient"]
HEAD += [
    "all data to each worker, from one machine",
    "a shard to each worker, on links of their own",
    "states, there and back",
    "a checkpoint",
]


def tables() -> str:
    row, coordinate, disk, travel = measure_row(), measure_coordinate(), measure_disk(), measure_travel()
    name = platform.processor() if platform.processor() != "" else platform.machine()
    parts = [f"Measured with one core of an {name}, Python {platform.python_version()}, float32.", ""]
    parts += ["| constant | measured |", "|---|---|"]
    parts += [f"| a row and column of a gradient, g | {row * 1e9:.2g} ns |"]
    parts += [f"| a coordinate of a step of SGNHT, u | {coordinate * 1e9:.2g} ns |"]
    parts += [f"| writing to the disk, with fsync | {human(disk, 'B')}/s |"]
    parts += [f"| a chunk of a small chain to another process and back | {travel * 1e3:.2g} ms |"]
    parts += [f"| network | {human(NETWORK, 'B')}/s, assumed |", ""]
    parts += ["**Estimates**, from these constants; nobody ran them:", ""]
    parts += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(parts + [line(case, row, coordinate, disk) for case in CASES])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=Path(__file__).parent.parent / "docs" / "scaling.md")
    page: Path = parser.parse_args().page
    text = page.read_text(encoding="utf-8")
    before, after = text.split("<!-- begin tables -->")[0], text.split("<!-- end tables -->")[1]
    found = tables()
    page.write_text(f"{before}<!-- begin tables -->\n\n{found}\n\n<!-- end tables -->{after}", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
