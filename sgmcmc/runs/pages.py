"""Memory in large pages: a system hands memory over page by page as it is first written to, in 1.7 µs on a virtual machine.

Two megabytes are 512 pages, 0.9 ms: a fifth of a run of 5000 steps of four small chains. As one large page they take 0.2 ms.
NumPy asks for large pages from 4 MB on, and leaves it to chance whether its memory begins where one can.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["empty"]

LARGE = 1 << 21  # bytes of a page
MOST = 16 * LARGE  # beyond this, what lies before the first large page does not matter: NumPy's own will do
FULL = 0.9  # of its pages an array must fill so much: what is left is lost


def empty(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """``np.empty``, in large pages where that is of use and the system has them."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    pages = -(-size // LARGE)
    if not hasattr(mmap, "MADV_HUGEPAGE") or size > MOST or size < FULL * pages * LARGE or size == 0:
        return np.empty(shape, kind)
    try:
        memory = mmap.mmap(-1, (pages + 1) * LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel without them, or a limit on addresses
        return np.empty(shape, kind)
    whole = np.frombuffer(memory, np.uint8)
    first = -whole.__array_interface__["data"][0] % LARGE
    array: NDArray[Any] = whole[first : first + size].view(kind)
    return array.reshape(shape)
