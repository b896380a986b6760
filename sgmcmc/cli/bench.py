"""``sgmcmc bench``: this package against its peers, with an accuracy check beside every time."""

from __future__ import annotations

import argparse
from pathlib import Path

from sgmcmc.cli.arguments import Run, teach, to_stderr

__all__ = ["declare"]


_LESSON = """\
examples:
  sgmcmc bench --quick                     does it run here?
  sgmcmc bench logistic normals            two cases
  sgmcmc bench --peers --out figures       beside other libraries, from the extra `peers`

Every time has a check of what was drawn beside it. What is compared takes turns, run by run, and never runs at once. A stopped
run goes on where it was.

exit codes: 0 done, 1 could not be done (one sentence says why), 2 wrong arguments, 130 interrupted.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    names = "wells, logistic, update, normals, start, efficiency, scaling"
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {names}")
    parser.add_argument("--peers", action="store_true", help="also run other libraries (extra `peers`)")
    parser.add_argument(
        "--old-python",
        type=Path,
        default=None,
        metavar="PATH",
        help="the python of an environment with SGMCMCJax, which needs a JAX of 2024",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, under two minutes; its figures mean little")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("sgmcmc-benchmarks"),
        metavar="DIR",
        help="where benchmarks.json and pictures go, and what a stopped run has finished (default: %(default)s)",
    )
    parser.add_argument("--page", type=Path, default=None, metavar="FILE", help="the page (default: DIR/benchmarks.md)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return _run


def _run(arguments: argparse.Namespace) -> None:
    from sgmcmc.evidence.benchmarks.claims import verdicts
    from sgmcmc.evidence.benchmarks.results import FILE, run_bench
    from sgmcmc.evidence.benchmarks.runner import kept_entries, kept_in

    out = arguments.out
    page = arguments.page if arguments.page is not None else out / "benchmarks.md"
    try:
        results = run_bench(
            arguments.cases,
            out,
            page,
            peers=arguments.peers,
            quick=arguments.quick,
            old_python=arguments.old_python,
            progress=not arguments.quiet,
        )
    except KeyboardInterrupt:
        to_stderr(
            f"{kept_entries(out)} finished entries are kept in {kept_in(out)}; the same command goes on from there"
        )
        raise
    for verdict in verdicts(results["rows"]):
        if verdict.figure is not None:
            claim, state = verdict.claim, "holds" if verdict.holds else "DOES NOT HOLD"
            bound = f"{'≥' if claim.at_least else '≤'} {claim.bound:g}"
            print(f"{state:<14}{claim.case}: {claim.text} {verdict.figure:.3g} ({bound}; {verdict.where})")
    wrong = [row for row in results["rows"] if "check" in row and not row["check"]["right"]]
    failed = [row for row in results["rows"] if "error" in row]
    print(f"{len(results['rows'])} entries, {len(wrong)} with wrong draws, {len(failed)} failed")
    print(f"wrote {out / FILE} and {page}")
