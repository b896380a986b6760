"""``sgmcmc compare``: samplers with the same budget, from a file to tables and a picture."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgmcmc.cli.arguments import Run, at_least, teach, to_stderr

__all__ = ["declare"]

_QUICK = 20  # a quick run has this fraction of the budget

_LESSON = """\
how to begin:
  sgmcmc compare --example > compare.toml   a file with every setting and what it means
  sgmcmc compare compare.toml --quick       does it run? (a twentieth of the budget, one seed)
  sgmcmc compare compare.toml               the figures

what is written to the folder:
  comparison.csv    one row per sampler and seed, all digits
  comparison.md     the same to be read, with medians over seeds and what each column means
  comparison.png    accuracy against time
  history.csv       the figures behind the picture

the file is TOML: budget, seeds and the like at the top, then [model], then [samplers.NAME] for
each sampler with its parameters. A budget is gradient evaluations (1_000_000) or a time ("10 s"),
the same for everybody. Compare samplers that were tuned alike, or nothing follows.

exit codes: 0 done, 1 could not be done (bad file, or no run has draws), 2 wrong arguments,
130 interrupted (what was finished is written).
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    parser.add_argument("config", nargs="?", type=Path, metavar="FILE.toml", help="what to compare, and how")
    parser.add_argument("--example", action="store_true", help="print a file to start from, and stop")
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of the budget, one seed; its figures mean little"
    )
    text = "where results go (default: `out` in the file, else sgmcmc-comparison)"
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help=text)
    text = "runs at a time (default: one per core)"
    parser.add_argument("--jobs", type=at_least(1, int), default=None, metavar="N", help=text)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")

    def run(arguments: argparse.Namespace) -> None:
        if arguments.config is None and not arguments.example:
            parser.error("give a FILE.toml, or --example for one to start from")
        _run(arguments)

    return run


def _run(arguments: argparse.Namespace) -> None:
    from sgmcmc.comparison.config import EXAMPLE, read_config

    if arguments.example:
        print(EXAMPLE, end="")
        return
    import sgmcmc as sg

    config = read_config(arguments.config)
    with _about(arguments.config):
        options = _quicker(config.options) if arguments.quick else config.options
    out = next(path for path in (arguments.out, config.out, Path("sgmcmc-comparison")) if path is not None)
    out.mkdir(parents=True, exist_ok=True)  # an error here comes before the work, not after it
    if not arguments.quiet:
        to_stderr("The first run compiles each sampler for some seconds; the next ones find them on disk.")
    shown: dict[str, Any] = {"threads": arguments.jobs, "progress": not arguments.quiet}
    with _about(arguments.config):
        table = sg.compare(config.samplers, config.model, **options, **shown)
    _write(table, out, arguments.config, arguments.quick)
    print(_readable(table).to_string(index=False))
    print(f"wrote {out / 'comparison.md'}, .csv and .png, and {out / 'history.csv'}")
    if table.about["interrupted"]:
        raise KeyboardInterrupt
    if not (table["draws"] > 0).any():
        raise ValueError("no run has draws; the column status of the table says why")


@contextlib.contextmanager
def _about(config: Path) -> Iterator[None]:
    """A value of the wrong type is an error of the file."""
    try:
        yield
    except TypeError as error:
        raise ValueError(f"{config}: {error}") from error


def _quicker(options: dict[str, Any]) -> dict[str, Any]:
    """A twentieth of the budget, the first seed."""
    from sgmcmc import checks
    from sgmcmc.comparison.budget import read_budget
    from sgmcmc.comparison.compare import read_seeds

    chains = checks.integer("chains", options.get("chains", 4), 1)
    whole = read_budget(options.get("budget", 100_000), chains)
    budget: Any = f"{whole.seconds / _QUICK} s" if whole.seconds is not None else None
    if whole.gradients is not None:
        budget = max(whole.gradients // _QUICK, 100 * chains)
    return options | {"budget": budget, "seeds": read_seeds(options.get("seeds", 1))[:1]}


def _readable(table: Any) -> Any:
    """Rounded to three digits, for people."""
    shown = table.copy()
    for column in shown.select_dtypes("float").columns:
        shown[column] = [f"{value:.3g}" for value in shown[column]]
    return shown


def _write(table: Any, out: Path, config: Path, quick: bool) -> None:
    table.to_csv(out / "comparison.csv", index=False)
    table.history.to_csv(out / "history.csv", index=False)
    drawn = _picture(table, out / "comparison.png")
    text = _page(table, config.read_text(encoding="utf-8"), quick, drawn)
    (out / "comparison.md").write_text(text, encoding="utf-8")


def _picture(table: Any, path: Path) -> bool:
    """Whether there was anything to draw."""
    from sgmcmc.plots import blank_figure

    figure = blank_figure(7.0, 4.4)
    try:
        table.plot(ax=figure.add_subplot())
    except ValueError:
        return False
    figure.savefig(path, dpi=150)
    return True


def _page(table: Any, config: str, quick: bool, drawn: bool) -> str:
    from sgmcmc.comparison.metrics import METRICS
    from sgmcmc.testing.report import markdown_table

    numbers = [c for c in table.columns if c not in ("sampler", "seed", "status")]
    medians = table.groupby("sampler", sort=False)[numbers].median().reset_index()
    about = table.about
    lines = ["# Samplers with the same budget", ""]
    lines += ["**A quick run, which shows that everything works; its figures mean little.**", ""] if quick else []
    lines += ["**Interrupted: these are the runs that there were.**", ""] if about["interrupted"] else []
    lines += [f"{about['model']}; each run spends {about['budget']} on {about['chains']} chains.", ""]
    lines += ["![accuracy against time](comparison.png)", ""] if drawn else []
    lines += ["## Medians over seeds", "", markdown_table(medians), "", "## Every run", "", markdown_table(table), ""]
    lines += [f"* `{name}`: {METRICS[name]}" for name in numbers if name in METRICS]
    return "\n".join([*lines, "", "## The file", "", "```toml", config.rstrip(), "```", ""])
