"""``sgmcmc reproduce EXPERIMENT``: one of the paper's experiments from tuning to tables and pictures."""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path
from typing import Any

from sgmcmc.cli.arguments import Run, at_least, teach, to_stderr

__all__ = ["declare"]

EXPERIMENTS = {
    "wells": "five wells with noisy gradients: how many are found, and how near to the truth",
    "logistic": "six logistic regressions against their exact posteriors",
    "lda": "topics of abstracts: perplexity against step size",
    "drbm": "digits by a discriminative RBM: accuracy against iterations",
    "music": "polyphonic music by a recurrent network: NLL per frame (--set jsb, piano, nottingham or muse)",
    "ptb": "Penn Treebank by a recurrent network: perplexity",
}


_LONG = ("music", "ptb")
_LESSON = """\
examples:
  sgmcmc reproduce wells --quick           does it run here?
  sgmcmc reproduce logistic --out figures  tables, pictures and a page in figures/
  sgmcmc reproduce drbm --data ~/data      with data from a folder, not from OpenML
  sgmcmc reproduce music --set nottingham  one of four sets of music; music and ptb want --data or SGMCMC_DATA
  sgmcmc reproduce ptb --epochs 10         goes on from a run of 3 epochs in the same folder

Every sampler is tuned with the same budget, on other seeds than the results. A stopped run goes on where it was.

exit codes: 0 done, 1 could not be done (one sentence says why), 2 wrong arguments, 130 interrupted.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    listing = "; ".join(f"{name}: {text}" for name, text in EXPERIMENTS.items())
    parser.add_argument("experiment", choices=EXPERIMENTS, metavar="EXPERIMENT", help=listing)
    parser.add_argument(
        "--quick", action="store_true", help="a small version, under two minutes; its figures mean little"
    )
    out = Path("sgmcmc-experiments")
    parser.add_argument(
        "--out", type=Path, default=out, metavar="DIR", help="where tables and pictures go (default: %(default)s)"
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write all sections in DIR as one page (default: DIR/experiments.md)",
    )
    parser.add_argument("--seed", type=at_least(0, int), default=0, metavar="S", help="seed (default: %(default)s)")
    parser.add_argument(
        "--data",
        type=Path,
        default=None,
        metavar="DIR",
        help="folder with the data (default: SGMCMC_DATA, else OpenML)",
    )
    sets = ("jsb", "piano", "nottingham", "muse")
    parser.add_argument("--set", choices=sets, default=None, help="of music: which data set (default: jsb)")
    parser.add_argument(
        "--epochs", type=at_least(1, int), default=None, metavar="N",
        help="of music and ptb: how long each method runs (default: 100 and 3); more than before goes on from there",
    )  # fmt: skip
    parser.add_argument(
        "--further", type=at_least(1, int), default=None, metavar="N",
        help="of music and ptb: go on with the best SGMGT-D to N epochs",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    return _run


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What goes to the experiment, beside what goes to all; ValueError for what it does not have."""
    name = arguments.experiment
    for option, homes in (("set", ("music",)), ("epochs", _LONG), ("further", _LONG)):
        if getattr(arguments, option) is not None and name not in homes:
            raise ValueError(f"--{option} is for {' and '.join(homes)}, not for {name}; leave it out")
    options: dict[str, Any] = (
        {} if name == "wells" else {"folder": None if arguments.data is None else str(arguments.data)}
    )
    if name in _LONG:
        options |= {"epochs": arguments.epochs, "further": arguments.further}
    if name == "music" and arguments.set is not None:
        options["name"] = arguments.set
    return options


def _run(arguments: argparse.Namespace) -> None:
    from sgmcmc.evidence.experiments.page import write_page

    options = _options(arguments)
    module = importlib.import_module(f"sgmcmc.evidence.experiments.{arguments.experiment}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not arguments.quiet:
        to_stderr(str(module.__doc__).strip().splitlines()[0])
    begin = time.perf_counter()
    found = module.run(arguments.quick, arguments.out, arguments.seed, not arguments.quiet, **options)
    page = write_page(arguments.out, arguments.page if arguments.page is not None else arguments.out / "experiments.md")
    print(found["table"].to_string(index=False))
    print("\n".join(f"* {remark}" for remark in found["remarks"]))
    print(
        f"{arguments.experiment}: {time.perf_counter() - begin:.0f} s; tables and pictures are in {arguments.out}, all in {page}"
    )
