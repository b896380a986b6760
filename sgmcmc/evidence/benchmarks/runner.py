"""The runner: one group of entries after the other, in which all take turns; what is finished is kept, so that a stopped run
goes on.

Kept results are found by the entries and the sources that measured them, and forgotten when the run has come to its end.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.cases import CASES, Config
from sgmcmc.evidence.benchmarks.contestant import Contestant
from sgmcmc.evidence.benchmarks.environments import Environments
from sgmcmc.evidence.benchmarks.references import prepare, prepare_start
from sgmcmc.threads import usable_cores

__all__ = ["forget", "kept_entries", "kept_in", "run_entries"]

HERE = Path(__file__).parent
PAUSE = 0.1  # seconds between two turns: threads that go on waiting for work give up, and cores are awake when the next begins
Row = dict[str, Any]
Tell = Callable[[str], None]


def kept_in(out: Path) -> Path:
    """Where the results of an unfinished run are."""
    return out / "unfinished"


def kept_entries(out: Path) -> int:
    """How many entries of an unfinished run are finished."""
    return sum(len(json.loads(file.read_text())) for file in kept_in(out).glob("?" * 32 + ".json"))


def run_entries(entries: list[Config], out: Path, environments: Environments, progress: bool = True) -> list[Row]:
    """Rows in the order of the entries: each is its entry and what was measured, or the reason why nothing was."""
    from tqdm import tqdm

    folder = kept_in(out)
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = [{} for _ in entries]
    with tqdm(total=len(entries), unit="entry", disable=not progress, smoothing=0.0) as bar:
        for places in _groups(entries):
            found = _results([entries[i] for i in places], folder, environments, bar.set_postfix_str)
            for i, row in zip(places, found, strict=True):
                rows[i] = entries[i] | row
            bar.update(len(places))
    return rows


def _groups(entries: list[Config]) -> list[list[int]]:
    """The places of entries that take turns, in the order of the first of each."""
    found: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        same = [entry["case"], *(entry[key] for key in CASES[entry["case"]].beside)]
        found.setdefault(json.dumps(same), []).append(place)
    return list(found.values())


def forget(out: Path) -> None:
    """The kept results, once they are in the file of all results."""
    shutil.rmtree(kept_in(out), ignore_errors=True)


def _label(entry: Config) -> str:
    words = (
        str(entry[k]) for k in ("case", "who", "method", "dtype", "size", "axis", "at", "chains", "dim") if k in entry
    )
    return " ".join(words)


def _results(group: list[Config], folder: Path, environments: Environments, tell: Tell) -> list[Row]:
    """Those of a group: kept, or measured now."""
    rows: list[Row] = [{"missing": environments.missing(e["who"])} for e in group]
    here = [i for i, row in enumerate(rows) if row["missing"] == ""]
    file = folder / f"{_key([group[i] for i in here], environments)}.json"
    if file.exists():
        found = list(json.loads(file.read_text()))
    else:
        found = _measure([group[i] for i in here], folder, environments, tell)
        if not any("error" in row for row in found):  # an error is tried again by the next run
            half = file.with_suffix(".part")
            half.write_text(json.dumps(found))
            half.replace(file)
    for i, row in zip(here, found, strict=True):
        rows[i] = row
    return rows


def _measure(group: list[Config], folder: Path, environments: Environments, tell: Tell) -> list[Row]:
    """One gets ready after the other; then each has a turn, until all have had theirs. Never do two of them run at once."""
    begin = datetime.now().isoformat(timespec="seconds")
    contestants = [Contestant(entry, folder, i, environments) for i, entry in enumerate(group)]
    left, turn = contestants, 0
    try:
        while left:
            still = []
            for contestant in left:
                tell(_label(contestant.entry) + (f", run {turn}" if turn > 0 else ", getting ready"))
                if turn == 0:
                    _prepare(contestant.entry, folder)
                else:
                    _keep_awake(PAUSE)
                if contestant.take_turn():
                    still.append(contestant)
            left, turn = still, turn + 1
    finally:
        for contestant in contestants:
            contestant.close()
    when = {"at_time": begin, "until": datetime.now().isoformat(timespec="seconds")}
    return [_with_effective_sizes(c.entry, c.result(), folder) | when for c in contestants]


def _keep_awake(seconds: float) -> None:
    """Work on every core: after a second of idleness one is up to half slower for the first tenth of a second."""
    end, room = time.perf_counter() + seconds, bytes(1 << 18)

    def spin() -> None:
        while time.perf_counter() < end:
            hashlib.sha256(room)  # which lets go of the GIL

    helpers = [threading.Thread(target=spin) for _ in range(usable_cores() - 1)]
    for helper in helpers:
        helper.start()
    spin()
    for helper in helpers:
        helper.join()


def _prepare(entry: Config, folder: Path) -> None:
    """What several entries share: exact posteriors, data on disk."""
    problem = entry.get("problem", entry["case"])
    if problem in ("logistic", "efficiency", "nuts"):
        prepare(folder, entry["n"], entry["d"], quick=entry["budget"] < 1.0)
    if problem == "start":
        prepare_start(folder)


def _with_effective_sizes(entry: Config, measured: Row, folder: Path) -> Row:
    """ESS by ArviZ here, where it is installed, from the draws that were saved: (run, chain, draw, coefficient)."""
    if "draws" not in entry or "error" in measured:
        return measured
    import numpy as np

    from sgmcmc.diagnostics import ess

    file = folder / entry["draws"]
    runs = np.load(file)
    sizes = np.array([[ess(run[:, :, j]) for j in range(run.shape[-1])] for run in runs])
    file.unlink()
    return measured | {
        "ess_min": float(np.mean(sizes.min(1))),
        "ess_median": float(np.mean(np.median(sizes, axis=1))),
    }


def _key(group: list[Config], environments: Environments) -> str:
    """The same for the same entries, measured by the same sources in the same environment."""
    digest = hashlib.sha256(json.dumps(group, sort_keys=True).encode())
    for who in sorted({entry["who"] for entry in group}):
        digest.update(environments.python_of(who).encode())
    digest.update(_sources(HERE.parents[1]))
    return digest.hexdigest()[:32]


def _sources(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
