"""Outputs: where the draws of a run go, and its checkpoint, from the first step to the last."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.run.arguments import Place
from sgmcmc.run.checkpoint import Checkpoint, Saved, draws_beside, restore
from sgmcmc.run.draw_file import DrawFile
from sgmcmc.run.identity import identity
from sgmcmc.run.lock import Lock
from sgmcmc.run.recording import InMemory, Keep, KeepMoments, Recorder, Sink, Tally
from sgmcmc.run.scheduler import Chain
from sgmcmc.run.settings import Settings

__all__ = ["Keeping", "open_keeping"]


@dataclass(frozen=True)
class Keeping:
    """What is kept of a run, and where."""

    settings: Settings
    place: Place
    keep: Keep
    chains: list[Chain]
    sink: Sink
    recorder: Recorder | None  # None: kernels write straight into the array of the sink
    file: DrawFile | None
    checkpoint: Checkpoint | None

    def room(self, chains: list[Chain]) -> NDArray[Any]:
        """Where the engines record: the array of all draws, or a window for each of these chains."""
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
        """Save once more: the run is over, or was interrupted."""
        if self.checkpoint is not None:
            self.checkpoint.save()

    def values(self) -> NDArray[Any]:
        """All that was kept, (chain, draw, size)."""
        if self.file is None:
            assert isinstance(self.sink, InMemory)
            return self.sink.array
        return self.file.mapped() if self.place.out is not None else np.array(self.file.mapped())


@contextlib.contextmanager
def open_keeping(
    settings: Settings, place: Place, keep: Keep, chains: list[Chain], seed: int, saved: Saved | None
) -> Iterator[Keeping]:
    """Make the files, or go on with those there are."""
    if isinstance(keep, KeepMoments):
        for chain in chains:
            chain.tally = Tally(np.zeros(settings.dim), np.zeros(settings.dim))
    shape, numbers = (len(chains), settings.draws, keep.size), [c.number for c in chains]
    file = _file(place, keep, shape, numbers, saved)
    checkpoint = None
    if place.checkpoint is not None:
        known = identity(settings, seed, keep, chains)
        checkpoint = Checkpoint(place.checkpoint, place.every, known, chains, file)
    with contextlib.ExitStack() as stack:
        if file is not None:
            stack.enter_context(Lock(file.path, "the file of draws "))
            stack.callback(file.close)
        _begin(settings, chains, file, checkpoint, saved)
        sink = InMemory(_memory(shape, keep.dtype), numbers) if file is None else file
        direct = type(keep) is Keep and file is None and place.executor is None
        recorder = None if direct else Recorder(keep, sink)
        yield Keeping(settings, place, keep, chains, sink, recorder, file, checkpoint)


def _memory(shape: tuple[int, int, int], kind: Any) -> NDArray[Any]:
    """Memory for all draws, or a word on how much it would be."""
    try:
        return np.empty(shape, kind)
    except (MemoryError, ValueError) as error:  # ValueError: more than an address can tell
        chains, draws, size = shape
        gigabytes = math.prod(shape) * np.dtype(kind).itemsize / 2**30
        raise ValueError(
            f"draws={draws} of chains={chains} with {size} coordinates need {gigabytes:.3g} GiB, more than there is; ask for "
            "fewer draws (a larger thin= keeps the length of the run), dtype=np.float32, a file (out=) or keep='moments'"
        ) from error


def _file(
    place: Place, keep: Keep, shape: tuple[int, int, int], numbers: list[int], saved: Saved | None
) -> DrawFile | None:
    path = place.out
    if path is None and place.checkpoint is not None:
        path = draws_beside(place.checkpoint, saved)
    return None if path is None or keep.size == 0 else DrawFile(path, shape, keep.dtype, numbers)


def _begin(
    settings: Settings, chains: list[Chain], file: DrawFile | None, checkpoint: Checkpoint | None, saved: Saved | None
) -> None:
    """A checkpoint of the very start comes first: whatever happens later, there is one that fits the files."""
    if saved is not None and checkpoint is not None:
        restore(saved, checkpoint.known, chains, settings.plan, file)
        return
    if file is not None:
        file.refuse_existing()
    if checkpoint is not None:
        checkpoint.save_or_fail()
    if file is not None:
        file.create()
