"""Chains on an executor: other processes, or other machines.

A chunk is sent as the states of a few chains; their new states and draws are returned. Nothing changes here before that, so a
chunk that is lost with its worker is sent again, with the same result. The model is sent once to every worker, which then
knows it by its digest.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.integrators.state import State
from sgmcmc.run import scheduler
from sgmcmc.run.job import Chain
from sgmcmc.run.pickling import from_bytes, to_bytes
from sgmcmc.run.recording import Collected, Keep, Recorder, Sink
from sgmcmc.run.settings import Settings, local_tasks
from sgmcmc.threads import undisturbed

__all__ = ["RemoteTask", "remote_tasks", "run_there"]

log = logging.getLogger("sgmcmc")
MOST_GROUPS = 1024
MOST_ATTEMPTS = 5  # per chunk, before its loss is an error
LEAST_SECONDS, MOST_SECONDS = 1.0, 60.0  # of a chunk; in between, 20 times the time of its transfer


class Reply(NamedTuple):
    """The result of a chunk."""

    seconds: float
    chains: list[dict[str, Any]]
    draws: list[tuple[int, int, Any]]  # number, first, rows


class Unknown(NamedTuple):
    """The worker does not know the model."""


class Failure(NamedTuple):
    """The user's gradient or `keep` raised this."""

    error: Exception


# ---- worker -------------------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """A run that this worker knows; its threads share the model."""

    job: scheduler.Job
    keep: Keep
    turn: contextlib.AbstractContextManager[Any]  # one thread at a time calls a Python gradient


_known: OrderedDict[str, Known] = OrderedDict()  # the last two runs
_telling = threading.Lock()


def run_there(digest: str, content: bytes | None, seed: int, parcels: list[dict[str, Any]], count: int) -> Any:
    """Run `count` steps of some chains, on a worker; several of its threads may do so at once."""
    with _telling:
        known = _known.get(digest)
        if known is None:
            if content is None:
                return Unknown()
            known = _learn(digest, content)
    try:
        with known.turn:
            return _run_chains(known.job, known.keep, seed, parcels, count)
    except Exception as error:
        return Failure(error)


def _learn(digest: str, content: bytes) -> Known:
    while len(_known) > 1:
        _known.popitem(last=False)
    settings, keep = from_bytes(content)
    turn = threading.Lock() if settings.interpreted else contextlib.nullcontext()
    _known[digest] = Known(settings.job(None), keep, turn)
    return _known[digest]


def _run_chains(job: scheduler.Job, keep: Keep, seed: int, parcels: list[dict[str, Any]], count: int) -> Reply:
    sink = Collected()
    job = replace(job, recorder=Recorder(keep, sink))
    chains = [_unpacked(parcel) for parcel in parcels]
    steps = [(c.step, min(c.step + count, job.end)) for c in chains]
    most = max(job.plan.recorded_before(b) - job.plan.recorded_before(a) for a, b in steps)
    out = np.empty((len(chains), max(1, most), chains[0].state.theta.size), job.dtype)
    for chain, own in zip(chains, out, strict=True):
        chain.out = own
    tasks = local_tasks("cpu", job, chains, seed, 1, out)
    tasks[0].prepare()
    begin = time.perf_counter()
    for task in tasks:
        task.count = count
        task.chunk()
        task.finish()
    return Reply(time.perf_counter() - begin, [_parcel(c) for c in chains], sink.found)


def _parcel(chain: Chain) -> dict[str, Any]:
    """The fields of a chain without its `out`."""
    return {field.name: getattr(chain, field.name) for field in fields(Chain) if field.name != "out"}


def _unpacked(parcel: dict[str, Any]) -> Chain:
    """The chain of a parcel, with writable arrays; some executors return read-only ones."""
    chain = Chain(**copy.deepcopy(parcel), out=np.empty(0))
    chain.state = State(*(np.array(a) for a in chain.state))
    return chain


# ---- caller -------------------------------------------------------------------------------------------------------------


def remote_tasks(
    executor: Executor, settings: Settings, keep: Keep, job: scheduler.Job, sink: Sink, chains: list[Chain], seed: int
) -> list[RemoteTask]:
    """The chains in groups, at most one per worker that there may be."""
    content = to_bytes((replace(settings, cores=1), keep))
    groups = scheduler.split(chains, MOST_GROUPS)
    return [RemoteTask(executor, content, settings.window(len(g)), job, sink, g, seed) for g in groups]


class RemoteTask(scheduler.Task):
    """Chains that an executor advances by a chunk at a time."""

    on_copies = True

    def __init__(
        self,
        executor: Executor,
        content: bytes,
        window: int,
        job: scheduler.Job,
        sink: Sink,
        chains: list[Chain],
        seed: int,
    ) -> None:
        super().__init__(job, chains)
        self.executor, self.content, self.seed, self.sink = executor, content, seed, sink
        self.digest = hashlib.sha256(content).hexdigest()
        self.window, self.sent = window, 0
        self.send_model, self.attempts, self.travel, self.begin = False, 0, np.inf, 0.0

    def prepare(self) -> None:
        """Nothing: workers compile, or load from their disk cache, what they run."""

    def launch(self, pool: ThreadPoolExecutor) -> Future[Any]:
        alive = [c for c in self.chains if c.diverged is None]
        first = min(c.step for c in alive)
        group = [c for c in alive if c.step == first]  # after Ctrl-C chains may be in different steps
        count = min(self.count, self.steps_left, self.job.plan.fitting(first, self.window))
        later = min((c.step for c in alive if c.step > first), default=self.job.end)
        self.sent = min(count, later - first)
        self.begin, content = time.perf_counter(), self.content if self.send_model else None
        return self.executor.submit(run_there, self.digest, content, self.seed, [_parcel(c) for c in group], self.sent)

    def receive(self, future: Future[Any]) -> int:
        try:
            reply = future.result()
        except BrokenProcessPool as error:
            raise RuntimeError(
                "a process of executor= died and took the pool with it; start again with a new executor, with resume=True if "
                "there is a checkpoint"
            ) from error
        except Exception as error:
            return self._again(error)
        if isinstance(reply, Unknown):
            self.send_model = True
            return 0
        if isinstance(reply, Failure):
            raise reply.error
        self.send_model, self.attempts = False, 0
        self.travel = min(self.travel, max(0.0, time.perf_counter() - self.begin - reply.seconds))
        with undisturbed():
            done = self._store(reply)
        self._next_length(reply.seconds)
        return done

    def _again(self, error: Exception) -> int:
        """A chunk was lost, for example with its worker: send it again."""
        self.attempts += 1
        if self.attempts >= MOST_ATTEMPTS:
            raise RuntimeError(
                f"a chunk of chain {self.chains[0].number} was lost {self.attempts} times by executor= (at last: {error!r}); "
                "look at the logs of the workers, for memory above all"
            ) from error
        log.warning("a chunk of chain %d is sent again: %r", self.chains[0].number, error)
        return 0

    def _store(self, reply: Reply) -> int:
        own, done = {c.number: c for c in self.chains}, 0
        for number, first, rows in reply.draws:
            self.sink.write(number, first, rows)
        for parcel in reply.chains:
            chain = own[parcel["number"]]
            done += parcel["step"] - chain.step
            for name, value in parcel.items():
                setattr(chain, name, value)
        return int(done)

    def _next_length(self, seconds: float) -> None:
        target = min(MOST_SECONDS, max(LEAST_SECONDS, 20.0 * self.travel))
        self.steps_done += self.sent
        self.count = max(1, min(int(self.sent * target / max(seconds, 1e-9)), self.growth * self.count, 1 << 30))
