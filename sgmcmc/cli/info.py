"""``sgmcmc info``: what runs here, for a bug report or a comparison of two machines."""

from __future__ import annotations

import argparse
import os
import platform
import stat
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from sgmcmc.cli.arguments import Run, teach

__all__ = ["declare"]


_LESSON = """\
examples:
  sgmcmc info                 for a bug report, or to see whether a GPU is found
  sgmcmc info > machine.txt   to compare two machines

The line `kernel cache` says where compiled samplers are kept, and whose the folder is; NUMBA_CACHE_DIR puts them elsewhere.
`ready kernels` came with the wheel. `numba by` says whether Numba's insides are used or, some five times slower, its public API.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    return lambda arguments: print("\n".join(f"{name:<14}{value}" for name, value in _facts()))


def _facts() -> Iterator[tuple[str, str]]:
    """What a bug report, or a comparison of two machines, should say."""
    import llvmlite.binding as llvm
    import numba

    from sgmcmc.threads import usable_cores

    for package in ("sgmcmc", "numba", "llvmlite", "numpy", "scipy"):
        yield package, version(package)
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "platform", platform.platform()
    yield "cpu", f"{_cpu_name()} (LLVM: {llvm.get_host_cpu_name()})"
    yield "cores", f"{usable_cores()} usable of {os.cpu_count()}"
    yield "threads", f"{numba.config.NUMBA_NUM_THREADS} by default"
    yield "simd", _simd(llvm.get_host_cpu_features())
    yield "jit", "off (NUMBA_DISABLE_JIT is set)" if numba.config.DISABLE_JIT else "on"
    yield "numba by", _numba_by()
    yield "kernel cache", _cache()
    yield "ready kernels", _ready()
    from sgmcmc.gpu.availability import find_state

    yield "cuda", str(find_state())


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not a Linux
    name = platform.processor()
    return name if name != "" else platform.machine()


_SIMD = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "neon", "sve", "sve2")


def _simd(features: dict[str, bool]) -> str:
    there = [name for name in _SIMD if features.get(name, False)]
    return ", ".join(there) if there else "none known"


def _ready() -> str:
    """What came with the installation; whether it fits is seen when it is looked for."""
    from sgmcmc.compiler.store import INSTALLED

    count = len(list(INSTALLED.glob("*.nbc")))
    return f"{count} in {INSTALLED}" if count else "none: a wheel has them if it was built with SGMCMC_READY=1"


def _cache() -> str:
    """Where kernels are kept, how many, whose the folder is and who may write to it."""
    from sgmcmc.compiler.store import folder, state_of

    try:
        path = folder()
        status = path.lstat()
    except FileNotFoundError:
        return f"{path} (not there yet)"
    except (OSError, RuntimeError) as error:
        return f"none ({error}); set NUMBA_CACHE_DIR to a folder that can be written to"
    names = [file.name for file in path.glob("*.nbc")]
    parts, reason = sum(name.startswith("part.") for name in names), state_of(status)
    trust = "" if reason is None else f"; NOT TRUSTED, {reason}"
    found = f"{len(names) - parts} kernels, {parts} parts of such"
    return f"{path} ({found}; owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}{trust})"


def _numba_by() -> str:
    from sgmcmc.compiler.backend import plain_because

    reason = plain_because()
    return "its insides (fast compilation)" if reason is None else f"its public API alone: {reason}"
