"""Memory and disk reads of docs/long-runs.md: measured in fresh processes, and written into the page.

python benchmarks/long_runs.py [--page docs/long-runs.md] [--dim 6000000] [--only memory | disk]
python benchmarks/long_runs.py --only growth [--steps 100000]        half an hour

Peak memory is what Linux calls the high-water mark of the resident set, of a whole process that does one run. The bytes read
from the disk are those that a process caused (`/proc/self/io`), of a file that was put out of the cache beforehand.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS, COLUMNS, BATCH, STEPS = 1_000_000, 100, 100, 655

MEMORY = """
import sys
import numpy as np
import sgmcmc as sg

dim, draws, kept = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
keep = {"function": {"keep": lambda theta: theta[:64] + theta[64:128]}, "moments": {"keep": "moments"}, "theta": {}}[kept]
model = sg.Potential(lambda theta: theta, dim=dim)
sg.sample(model, sg.SGNHT(0.01), draws=draws, warmup=0, chains=1, seed=1, dtype=np.float32, progress=False, **keep)
status = open("/proc/self/status").read()  # not ru_maxrss: that begins with the peak of the process that started this one
print(int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""

DISK = """
import os, sys
import numpy as np
import sgmcmc as sg

path, rule, steps, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with open(path, "rb") as file:  # put it out of the cache
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
X = np.load(path, mmap_mode="r")
model = sg.models.LogisticRegression(X, np.zeros(len(X), np.float32))
options = dict(warmup=0, chains=1, seed=1, dtype=np.float32, batch_size=batch, minibatch=rule, threads=1, progress=False)
small = sg.models.LogisticRegression(np.ones((10_000, X.shape[1]), np.float32), np.zeros(10_000, np.float32))
sg.sample(small, sg.SGNHT(1e-4), draws=1, **options)  # compile, and read the code from the disk
read = lambda: int(open("/proc/self/io").read().split("read_bytes: ")[1].split()[0])
before = read()
sg.sample(model, sg.SGNHT(1e-4), draws=steps, keep="moments", **options)
print(read() - before)
"""

GROWTH = """
import sys
import numpy as np
import sgmcmc as sg

dim, steps = int(sys.argv[1]), int(sys.argv[2])
model = sg.models.Gaussian(np.zeros(dim, np.float32), 1.0)
done, following = 0, 100


def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024


def told(more):
    global done, following
    done += more
    if done >= following:
        print(done, peak(), flush=True)
        following = done + steps // 20


options = dict(warmup=0, chains=1, seed=1, dtype=np.float32, init=np.zeros(dim), progress=told, warn=False)
sg.sample(model, sg.SGLD(0.1), draws=steps // 100, thin=100, keep=lambda theta: theta[:64], **options)
print(done, peak())
"""

LENGTHS = {"function": (100, 400), "moments": (100, 400), "theta": (15, 60)}
WORDS = {"function": "64 numbers (`keep=` a function)", "moments": '`keep="moments"`', "theta": "every θ, in memory"}


def fresh(code: str, *arguments: object) -> int:
    """The number that a process of its own prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def memory_table(dim: int) -> str:
    """Peak memory of runs of two lengths, and of one that must grow."""
    lines = [f"One chain of SGNHT on {dim:,} parameters in float32, with a gradient in Python:", ""]
    lines += ["| what is kept | steps | peak memory |", "|---|---|---|"]
    for kept, lengths in LENGTHS.items():
        for i, draws in enumerate(lengths):
            peak = fresh(MEMORY, dim, draws, kept)
            lines.append(f"| {WORDS[kept] if i == 0 else ''} | {draws} | {peak / 1e6:.0f} MB |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def growth_table(dim: int, steps: int) -> str:
    """The peak of one long run on its way."""
    command = [sys.executable, "-c", GROWTH, str(dim), str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        found = []
        for line in run.stdout:
            print(line, end="", flush=True)
            found.append(tuple(map(int, line.split())))
    if run.returncode != 0:
        raise SystemExit(f"the run ended with code {run.returncode}")
    return growth_lines(dim, found)


def growth_lines(dim: int, found: list[tuple[int, ...]]) -> str:
    lines = [f"One run of SGLD on {dim:,} parameters in float32, on its way (64 numbers are kept every 100 steps)."]
    lines[0] += " The last row is after its end, when the last state has been copied into the trace:"
    lines += [""]
    lines += ["| steps so far | peak memory |", "|---:|---|"]
    return "\n".join(lines + [f"| {done:,} | {peak / 1e6:.0f} MB |" for done, peak in found])


def write(path: Path, rows: int) -> None:
    """A file of ones; it is mapped no longer than this takes, for pages that are mapped stay in memory."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, COLUMNS))
    for first in range(0, rows, 100_000):
        X[first : first + 100_000] = 1.0
    X.flush()


def disk_reads(folder: Path, rule: str, rows: int = ROWS) -> int:
    """Bytes read from the disk by a run over a file that is not in memory."""
    path = folder / "x.npy"
    if not path.exists():
        write(path, rows)
    return fresh(DISK, path, rule, STEPS, BATCH)


def disk_table() -> str:
    """What the two ways to choose rows read of one file."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        place = os.stat(folder).st_dev
        ahead = Path(f"/sys/dev/block/{os.major(place)}:{os.minor(place)}/bdi/read_ahead_kb")
        told = (
            f"`read_ahead_kb` at {ahead.read_text().strip()}"
            if ahead.exists()
            else "a `read_ahead_kb` that we cannot see"
        )
        size = 4 * ROWS * COLUMNS
        lines = [
            f"{STEPS} steps of {BATCH} rows, which are {4 * STEPS * BATCH * COLUMNS / 1e6:.0f} MB, from a file of "
        ]
        lines[0] += f"{size / 1e6:.0f} MB that was not in memory, with {told}:"
        lines += ["", "| rows | read from the disk |", "|---|---|"]
        for rule in ("replacement", "blocks"):
            lines.append(f'| `"{rule}"` | {disk_reads(Path(folder), rule) / 1e6:.0f} MB |')
            print(lines[-1], flush=True)
    return "\n".join(lines)


def put(page: Path, name: str, found: str) -> None:
    """Write between the two comments of this name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    text = page.read_text(encoding="utf-8")
    before, after = text.split(begin)[0], text.split(end)[1]
    page.write_text(f"{before}{begin}\n\n{found}\n\n{end}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=Path(__file__).parent.parent / "docs" / "long-runs.md")
    parser.add_argument("--dim", type=int, default=6_000_000)
    parser.add_argument("--only", choices=("memory", "disk", "growth"))
    parser.add_argument("--steps", type=int, default=100_000, help="of the run of --only growth (default: %(default)s)")
    given = parser.parse_args()
    if given.only == "growth":
        put(given.page, "growth", growth_table(given.dim, given.steps))
    if given.only in (None, "memory"):
        put(given.page, "memory", memory_table(given.dim))
    if given.only in (None, "disk"):
        put(given.page, "disk", disk_table())


if __name__ == "__main__":
    main()
