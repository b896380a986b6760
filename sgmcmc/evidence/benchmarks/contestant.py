"""A contestant: the process of one entry, which gets ready by itself and then runs once whenever it is its turn.

Contestants that are compared take turns, run by run. Another process on the same processor, or a processor that slows down, then
meets all of them; measured one after the other, each met a minute of its own, and their ratios were those of the minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.alone.clock import GO, READY, TURNS
from sgmcmc.evidence.benchmarks.alone.run import file_of
from sgmcmc.evidence.benchmarks.cases import Config
from sgmcmc.evidence.benchmarks.environments import OLD, Environments

__all__ = ["Contestant"]

HERE = Path(__file__).parent
TIMEOUT = 3600.0
Row = dict[str, Any]


class Contestant:
    """Its first `take_turn` starts it and lasts until it is ready; every other is a run. In between it only waits."""

    def __init__(self, entry: Config, folder: Path, number: int, environments: Environments) -> None:
        self.entry = entry
        self._given, self._found, self._said = (
            (folder / f"{name}-{number}.json").resolve() for name in ("entry", "found", "said")
        )
        self._found.unlink(missing_ok=True)
        self._given.write_text(json.dumps(entry))
        program = (
            ["-m", "sgmcmc.evidence.benchmarks.worker"] if file_of(entry) is None else [str(HERE / "alone" / "run.py")]
        )
        files = [str(self._given), str(folder.resolve()), str(self._found)]
        self._command = [environments.python_of(entry["who"]), "-W", "ignore", *program, *files]
        self._process: subprocess.Popen[str] | None = None
        self._is_late = False

    def take_turn(self) -> bool:
        """Get ready, or run once; returns whether there are more turns to take."""
        watchdog = threading.Timer(TIMEOUT, self._stop_late)
        watchdog.start()
        try:
            if self._process is None:
                self._process = self._start()
            else:
                _tell(self._process, GO)
            assert self._process.stdout is not None  # it is a pipe
            if any(line.strip() == READY for line in self._process.stdout):
                return True
            self._process.wait()  # it has said all that it will say
            return False
        finally:
            watchdog.cancel()

    def _start(self) -> subprocess.Popen[str]:
        with self._said.open("w") as said:
            return subprocess.Popen(
                self._command,
                env=_environment(self.entry),
                cwd=self._given.parent,  # else `-m` would measure a package in the folder of the caller, not this one
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def _stop_late(self) -> None:
        self._is_late = True
        self.kill()

    def kill(self) -> None:
        """End it, wherever it is."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        """End it, if it has not come to its end, and let go of its pipes."""
        self.kill()
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError), self._process:
                pass

    def result(self) -> Row:
        """What it measured, or the reason why nothing was; when it has taken its last turn."""
        if self._is_late:
            return {"error": f"not done after {TIMEOUT:.0f} s"}
        code = None if self._process is None else self._process.wait()
        if code != 0 or not self._found.exists():
            lines = [line for line in self._said.read_text().strip().splitlines() if line.strip() != ""]
            return {"error": lines[-1][:300] if lines else f"ended with code {code}"}
        return dict(json.loads(self._found.read_text()))


def _tell(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None  # it is a pipe
    with contextlib.suppress(BrokenPipeError):  # it died while it waited, and its result will say so
        process.stdin.write(f"{word}\n")
        process.stdin.flush()


def _environment(entry: Config) -> dict[str, str]:
    """Ours is importable wherever it is, our path is not that of an older Python, the tuned BlackJAX has two devices."""
    environment = dict(os.environ) | {TURNS: "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed by pip, which compiles to bytecode
    if entry["who"] == "sgmcmc":
        paths = [str(HERE.parents[2]), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p != "")
    if entry["who"] in OLD:
        environment.pop("PYTHONPATH", None)
    if entry["who"] == "blackjax+tuned":
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    return environment
