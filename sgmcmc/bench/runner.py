"""The runner: every entry in a process of its own, one at a time; what is finished is kept, so that a stopped run goes on.

Kept results are found by the entry and the sources that measured it, and forgotten when the run has come to its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

from sgmcmc.bench.alone.run import file_of
from sgmcmc.bench.cases import Config
from sgmcmc.bench.environments import OLD, Environments
from sgmcmc.bench.references import prepare, prepare_start

__all__ = ["forget", "kept_in", "run_entries"]

HERE = Path(__file__).parent
BUSY = 0.1  # an entry during which others used more of the machine than this is measured once more
TIMEOUT = 3600.0
Row = dict[str, Any]


def kept_in(out: Path) -> Path:
    """Where the results of an unfinished run are."""
    return out / "unfinished"


def run_entries(
    entries: list[Config],
    out: Path,
    environments: Environments,
    progress: bool = True,
    retry_busy: bool = True,
    rounds: int = 1,
) -> list[Row]:
    """Rows in the order of the entries: each is its entry and what was measured, or the reason why nothing was.

    All entries are measured, then all once more, `rounds` times: a noisy neighbour who spoils a minute spoils one round.
    """
    from tqdm import tqdm

    folder = kept_in(out)
    folder.mkdir(parents=True, exist_ok=True)
    found: list[list[Row]] = [[] for _ in entries]
    with tqdm(_in_rounds(entries, rounds), unit="entry", disable=not progress, smoothing=0.0) as bar:
        for place, entry in bar:
            bar.set_postfix_str(_label(entry))
            found[place].append(_result(entry, folder, environments, retry_busy))
    return [entry | _together(own) for entry, own in zip(entries, found, strict=True)]


def _in_rounds(entries: list[Config], rounds: int) -> list[tuple[int, Config]]:
    """(place, entry) of everything to be measured. An effective size belongs to the times of its own draws: it has one round."""
    todo = list(enumerate(entries))
    for number in range(1, rounds):
        todo += [(place, entry | {"round": number}) for place, entry in enumerate(entries) if "draws" not in entry]
    return todo


def _together(rounds: list[Row]) -> Row:
    """The times of all rounds in one row, whose check is the first that failed."""
    done = [row for row in rounds if "seconds" in row]
    if len(done) < 2:
        return done[0] if done else rounds[0]
    wrong = [row["check"] for row in done if not row["check"]["right"]]
    return done[0] | {
        "seconds": [s for row in done for s in row["seconds"]],
        "others": max(row["others"] for row in done),
        "check": wrong[0] if wrong else done[0]["check"],
        "until": done[-1]["at_time"],
    }


def forget(out: Path) -> None:
    """The kept results, once they are in the file of all results."""
    shutil.rmtree(kept_in(out), ignore_errors=True)


def _label(entry: Config) -> str:
    words = (
        str(entry[k]) for k in ("case", "who", "method", "dtype", "size", "axis", "at", "chains", "dim") if k in entry
    )
    return " ".join(words)


def _result(entry: Config, folder: Path, environments: Environments, retry_busy: bool) -> Row:
    missing = environments.missing(entry["who"])
    if missing != "":
        return {"missing": missing}
    file = folder / f"{_key(entry, environments)}.json"
    if file.exists():
        return dict(json.loads(file.read_text()))
    _prepare(entry, folder)
    measured = _measure(entry, folder, environments)
    if retry_busy and "error" not in measured and measured["others"] > BUSY:
        again = _measure(entry, folder, environments)
        measured = min((m for m in (measured, again) if "error" not in m), key=lambda m: float(m["others"]))
    if "error" not in measured:  # an error is tried again by the next run
        half = file.with_suffix(".part")
        half.write_text(json.dumps(measured))
        half.replace(file)
    return measured


def _prepare(entry: Config, folder: Path) -> None:
    """What several entries share: exact posteriors, data on disk."""
    problem = entry.get("problem", entry["case"])
    if problem in ("logistic", "efficiency", "nuts"):
        prepare(folder, entry["n"], entry["d"], quick=entry["budget"] < 1.0)
    if problem == "start":
        prepare_start(folder)


def _measure(entry: Config, folder: Path, environments: Environments) -> Row:
    given, found = folder / "entry.json", folder / "found.json"
    found.unlink(missing_ok=True)
    given.write_text(json.dumps(entry))
    program = ["-m", "sgmcmc.bench.worker"] if file_of(entry) is None else [str(HERE / "alone" / "run.py")]
    python = environments.python_of(entry["who"])
    command = [python, "-W", "ignore", *program, str(given.resolve()), str(folder.resolve()), str(found.resolve())]
    try:
        done = subprocess.run(
            command,
            env=_environment(entry),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {TIMEOUT:.0f} s"}
    if done.returncode != 0 or not found.exists():
        lines = [line for line in done.stderr.strip().splitlines() if line.strip() != ""]
        return {"error": lines[-1][:300] if lines else f"ended with code {done.returncode}"}
    measured: Row = json.loads(found.read_text())
    return _with_effective_sizes(entry, measured, folder) | {"at_time": datetime.now().isoformat(timespec="seconds")}


def _environment(entry: Config) -> dict[str, str]:
    """Ours is importable wherever it is, our path is not that of an older Python, the tuned BlackJAX has two devices."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed by pip, which compiles to bytecode
    if entry["who"] == "sgmcmc":
        paths = [str(HERE.parents[1]), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p != "")
    if entry["who"] in OLD:
        environment.pop("PYTHONPATH", None)
    if entry["who"] == "blackjax+tuned":
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    return environment


def _with_effective_sizes(entry: Config, measured: Row, folder: Path) -> Row:
    """ESS by ArviZ here, where it is installed, from the draws that were saved: (run, chain, draw, coefficient)."""
    if "draws" not in entry:
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


def _key(entry: Config, environments: Environments) -> str:
    """The same for the same entry, measured by the same sources in the same environment."""
    digest = hashlib.sha256(json.dumps(entry, sort_keys=True).encode())
    digest.update(environments.python_of(entry["who"]).encode())
    digest.update(_sources(HERE / "alone"))
    if entry["who"] == "sgmcmc":
        digest.update(_sources(HERE.parent))
    return digest.hexdigest()[:32]


def _sources(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
