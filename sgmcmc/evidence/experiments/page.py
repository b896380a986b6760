"""The page of the experiments: every run writes its own section, and the page is all the sections there are."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgmcmc.evidence.experiments.harness import unfinished
from sgmcmc.testing.report import markdown_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ORDER", "write_page", "write_section", "write_table"]

ORDER = ("wells", "logistic", "lda", "drbm", "music-jsb", "music-piano", "music-nottingham", "music-muse", "ptb")
HEAD = """# The paper's experiments

Written by `sgmcmc reproduce`: tables, pictures and the sentences about them come from the runs. Every sampler is tuned
with the same budget by the same procedure, on other seeds than the results; what was tried is in the CSV files beside the
pictures. The published figures stand beside ours where the paper prints any, and what does not reproduce is said.
"""


def write_table(table: pd.DataFrame, out: Path, name: str) -> str:
    """NAME.csv with all digits; returns the table in Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    table.to_csv(out / f"{name}.csv", index=False)
    return markdown_table(table, digits=4, missing="–")


def write_section(
    out: Path,
    name: str,
    title: str,
    setting: str,
    tables: Sequence[str],
    pictures: Sequence[Path],
    remarks: Sequence[str],
    quick: bool,
    seconds: float,
    seed: int,
    command: str | None = None,
    cost: str | None = None,
) -> Path:
    """NAME.md: what was done, what came out, the pictures, and what it says about the paper's claims.

    cost : what it took, where that is not the seconds of this call: a run that was stopped may have gone on.
    """
    if command is None:
        command = f"sgmcmc reproduce {name}{' --quick' if quick else ''} --seed {seed}"
    lines = [f"## {title}", "", setting, ""]
    if quick:
        lines += ["**A quick run, which shows that everything works; its figures mean little.**", ""]
    for table in tables:
        lines += [table, ""]
    lines += [f"* {remark}" for remark in remarks]
    lines += ["", *(f"![{title}]({p.name})" for p in pictures), ""]
    machine = f"Python {platform.python_version()}, sgmcmc {version('sgmcmc')}, numpy {np.__version__}"
    lines += [
        f"`{command}`: {cost or f'{seconds:.0f} s'}, {date.today().isoformat()}, {machine}, {platform.machine()}."
    ]
    path = out / f"{name}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _forget(out, name)
    return path


def _forget(out: Path, name: str) -> None:
    """The results that were kept in case the run were stopped."""
    kept = unfinished(out, name)
    shutil.rmtree(kept, ignore_errors=True)
    if kept.parent.exists() and not any(kept.parent.iterdir()):
        kept.parent.rmdir()


def write_page(out: Path, page: Path) -> Path:
    """All the sections in `out` as one page, with its links to the pictures put right."""
    page.parent.mkdir(parents=True, exist_ok=True)
    base = Path(os.path.relpath(out.resolve(), page.parent.resolve()))
    parts = [HEAD]
    for name in ORDER:
        path = out / f"{name}.md"
        if path.exists():
            text = path.read_text(encoding="utf-8")
            parts.append(text.replace("](", f"]({base.as_posix()}/") if base != Path() else text)
    page.write_text("\n".join(parts), encoding="utf-8")
    return page
