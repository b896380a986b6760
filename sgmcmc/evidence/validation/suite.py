"""The validation suite: every topic of evidence, run on all cores, with a bar; what `sgmcmc validate` runs.

A topic is a module with `findings(profile, seed)`, which yields one Finding after another, and perhaps `figure(figure,
profile, seed)`, which draws. Topics run in processes of their own; what an interrupted run has found so far is kept.
"""

from __future__ import annotations

import time
import traceback
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from sgmcmc import checks
from sgmcmc.evidence.validation.topics import TOPICS, Topic, module_of
from sgmcmc.testing.report import Finding, Report
from sgmcmc.threads import usable_cores

__all__ = ["Section", "require_peers", "run_peers", "run_suite"]


# Begun first, so that no core waits for them in the end; and neighbours that do not compile the same kernels.
LONG = ("rates", "calibration", "marginals", "mutants", "gradient_noise", "black_box", "fokker_planck", "invariance")


class Section(NamedTuple):
    """What became of a topic."""

    topic: Topic
    report: Report
    seconds: float
    picture: Path | None = None
    table: Any = None  # a DataFrame of its own, where a topic has one
    error: str = ""  # the traceback, if it broke off


def run_suite(
    profile: str = "quick",
    seed: int = 0,
    out: Path | None = None,
    topics: tuple[str, ...] | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> list[Section]:
    """Run topics in parallel. Returns their sections, in the order of TOPICS.

    Ctrl-C stops the rest and returns what is there.

    Parameters
    ----------
    profile : "quick" or "full"
    seed : int
    out : Path, optional
        Where pictures go.
    topics : tuple of str, optional
        None is all of them.
    workers : int, optional
        None is one for each core.
    progress : bool

    Returns
    -------
    list of Section

    Examples
    --------
    >>> sg.testing.run_suite(topics=("speed",))
    Traceback (most recent call last):
        ...
    ValueError: topic='speed' is unknown; choose one of ...
    """
    from tqdm import tqdm

    checks.one_of("profile", profile, ("quick", "full"))
    names = tuple(t.name for t in TOPICS)
    for name in topics or ():
        checks.one_of("topic", name, names)
    chosen = [t for t in TOPICS if topics is None or t.name in topics]
    workers = min(len(chosen), usable_cores() if workers is None else workers)
    sections: dict[str, Section] = {}
    # A fresh process per worker, not a fork: Numba's threads do not survive one.
    import multiprocessing

    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    bar = tqdm(total=len(chosen), unit="topic", disable=not progress, smoothing=0.0)
    try:
        order = sorted(chosen, key=lambda t: LONG.index(t.name) if t.name in LONG else len(LONG))
        pending: dict[Future[Section], Topic] = {pool.submit(_run_topic, t, profile, seed, out): t for t in order}
        for done in as_completed(pending):
            section = done.result()
            sections[section.topic.name] = section
            bar.set_postfix_str(f"{section.topic.name}: {'passed' if section.report.passed else 'FAILED'}")
            bar.update()
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
    finally:
        bar.close()
        pool.shutdown(wait=False, cancel_futures=True)
    return [sections[t.name] for t in chosen if t.name in sections]


PEERS = Topic(
    "peers",
    "Other libraries under the same checks",
    "Samplers of other libraries through the adapter, in their own parameters, beside ours, as measured. For information: what "
    "fails here is not counted, and with a small enough step most of it passes.",
)


def require_peers() -> None:
    """One sentence if no other library is installed."""
    from sgmcmc.evidence.validation import peers

    if not peers.installed():
        raise ImportError(peers.MISSING)


def run_peers(profile: str = "quick", seed: int = 0) -> Section:
    """The table of the other libraries, in this process."""
    from sgmcmc.evidence.validation import peers

    require_peers()
    begin = time.perf_counter()
    table = peers.peers_table(profile, seed)
    ran = Finding("ran", "other libraries", float(len(table)), "for information", True)
    return Section(PEERS, Report(PEERS.title, [ran]), time.perf_counter() - begin, None, table)


def _run_topic(topic: Topic, profile: str, seed: int, out: Path | None) -> Section:
    """One topic in this process: its findings, its picture, its table. An error is a finding that failed."""
    import warnings

    begin = time.perf_counter()
    module = module_of(topic.name)
    findings: list[Finding] = []
    error, picture, table = "", None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a step is stiff is often the point
        try:
            for name in (topic.name, *topic.also):
                findings.extend(module_of(name).findings(profile, seed))
            if hasattr(module, "mutation_table"):
                table = module.mutation_table(profile, seed)
            if out is not None:
                picture = _draw(module, out, topic.name, profile, seed)
        except Exception:
            error = traceback.format_exc()
            findings.append(
                Finding("ran to its end", topic.name, float("nan"), "no error", False, error.splitlines()[-1])
            )
    return Section(topic, Report(topic.title, findings), time.perf_counter() - begin, picture, table, error)


def _draw(module: Any, out: Path, name: str, profile: str, seed: int) -> Path | None:
    from sgmcmc.evidence.validation import figures
    from sgmcmc.plots import blank_figure

    figure = blank_figure(9.0, 4.5)
    if not figures.draw(figure, module, name, profile, seed):
        return None
    path = out / f"{name}.png"
    figure.savefig(path, dpi=110)
    return path
