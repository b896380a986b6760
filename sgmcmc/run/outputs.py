"""Outputs: the files and arrays of a run, opened before its first step and closed after its last."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.run.arguments import Destination
from sgmcmc.run.checkpoint import Checkpoint, Saved, draws_beside, restore
from sgmcmc.run.draw_file import DrawFile
from sgmcmc.run.identity import identity
from sgmcmc.run.job import Chain
from sgmcmc.run.lock import Lock
from sgmcmc.run.recording import InMemory, Keep, KeepMoments, Recorder, Sink, Tally
from sgmcmc.run.settings import Settings

__all__ = ["Outputs", "open_outputs"]


@dataclass(frozen=True)
class Outputs:
    """What is kept of a run, where it goes, and its checkpoint."""

    settings: Settings
    destination: Destination
    keep: Keep
    chains: list[Chain]
    sink: Sink
    recorder: Recorder | None  # None: kernels write straight into the array of the sink
    file: DrawFile | None
    checkpoint: Checkpoint | None

    def windows(self, chains: list[Chain]) -> NDArray[Any]:
        """The array that kernels write to: of all draws, or of the draws of one chunk per chain."""
        if self.recorder is None:
            assert isinstance(self.sink, InMemory)
            array = self.sink.array
        else:
            shape = len(chains), self.settings.window(len(chains)), self.settings.dim
            array = np.empty(shape, self.settings.dtype)
        for chain, own in zip(chains, array, strict=True):
            chain.out = own
        return array

    def end(self) -> None:
        """Save a last time: the run is over, or was interrupted."""
        if self.checkpoint is not None:
            self.checkpoint.save()

    def values(self) -> NDArray[Any]:
        """All that was kept, (chain, draw, size)."""
        if self.file is None:
            assert isinstance(self.sink, InMemory)
            return self.sink.array
        return self.file.mapped() if self.destination.out is not None else np.array(self.file.mapped())


@contextlib.contextmanager
def open_outputs(
    settings: Settings, destination: Destination, keep: Keep, chains: list[Chain], seed: int, saved: Saved | None
) -> Iterator[Outputs]:
    """Create the files, or reopen those of the run to resume."""
    if isinstance(keep, KeepMoments):
        for chain in chains:
            chain.tally = Tally(np.zeros(settings.dim), np.zeros(settings.dim))
    shape, numbers = (len(chains), settings.draws, keep.size), [c.number for c in chains]
    file = _file(destination, keep, shape, numbers, saved)
    checkpoint = None
    if destination.checkpoint is not None:
        known = identity(settings, seed, keep, chains)
        checkpoint = Checkpoint(destination.checkpoint, destination.every, known, chains, file)
    with contextlib.ExitStack() as stack:
        if file is not None:
            stack.enter_context(Lock(file.path, "the file of draws "))
            stack.callback(file.close)
        _begin(settings, chains, file, checkpoint, saved)
        sink = InMemory(_memory(shape, keep.dtype), numbers) if file is None else file
        direct = type(keep) is Keep and file is None and destination.executor is None
        recorder = None if direct else Recorder(keep, sink)
        yield Outputs(settings, destination, keep, chains, sink, recorder, file, checkpoint)


def _memory(shape: tuple[int, int, int], kind: Any) -> NDArray[Any]:
    """An array for all draws; ValueError with the size needed if there is no memory for it."""
    try:
        return np.empty(shape, kind)
    except (MemoryError, ValueError) as error:  # ValueError: more than fits in an address space
        chains, draws, size = shape
        gigabytes = math.prod(shape) * np.dtype(kind).itemsize / 2**30
        raise ValueError(
            f"draws={draws} of chains={chains} with {size} coordinates need {gigabytes:.3g} GiB, more than there is; ask for "
            "fewer draws (a larger thin= keeps the length of the run), dtype=np.float32, a file (out=) or keep='moments'"
        ) from error


def _file(
    destination: Destination, keep: Keep, shape: tuple[int, int, int], numbers: list[int], saved: Saved | None
) -> DrawFile | None:
    path = destination.out
    if path is None and destination.checkpoint is not None:
        path = draws_beside(destination.checkpoint, saved)
    return None if path is None or keep.size == 0 else DrawFile(path, shape, keep.dtype, numbers)


def _begin(
    settings: Settings, chains: list[Chain], file: DrawFile | None, checkpoint: Checkpoint | None, saved: Saved | None
) -> None:
    """Save a checkpoint of the start first, so that there is always one that matches the files."""
    if saved is not None and checkpoint is not None:
        restore(saved, checkpoint.known, chains, settings.plan, file)
        return
    if file is not None:
        file.refuse_existing()
    if checkpoint is not None:
        checkpoint.save_or_fail()
    if file is not None:
        file.create()
