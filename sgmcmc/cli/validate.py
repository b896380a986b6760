"""``sgmcmc validate``: the validation suite, with a report that shows every figure and its bound."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sgmcmc.cli.arguments import Run, at_least, teach, to_stderr

__all__ = ["declare"]


_LESSON = """\
examples:
  sgmcmc validate                          all topics, quick
  sgmcmc validate stein marginals          two of them
  sgmcmc validate --full --out report      the figures of docs/validation

The report has every figure with its bound, and deliberately wrong samplers that the checks reject.

exit codes: 0 every check passed, 1 some check failed or could not be run, 2 wrong arguments, 130 interrupted.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    from sgmcmc.evidence.validation.topics import TOPICS

    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two minutes on two cores (the default)")
    size.add_argument("--full", action="store_true", help="longer runs, more seeds: up to an hour")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("sgmcmc-validation"),
        metavar="DIR",
        help="where the report goes (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=at_least(0, int), default=0, metavar="S", help="seed of the random checks (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=at_least(1, int), default=None, metavar="N", help="processes (default: one per core)"
    )
    text = (
        "also run BlackJAX and posteriors (extra `peers`) through the same checks, and show their figures beside ours"
    )
    parser.add_argument("--peers", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    names = ", ".join(t.name for t in TOPICS)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"only these: {names}")
    return _run


def _run(arguments: argparse.Namespace) -> None:
    from sgmcmc.evidence.validation.document import write_documents
    from sgmcmc.evidence.validation.suite import require_peers, run_peers, run_suite

    profile, out = "full" if arguments.full else "quick", arguments.out
    if arguments.peers:
        require_peers()  # says so now, not after the work
    out.mkdir(parents=True, exist_ok=True)  # an error here comes before the work, not after it
    if not arguments.quiet:
        to_stderr(
            "The first run compiles the kernels of every sampler, for about a minute; later ones find them on disk."
        )
    topics = tuple(arguments.topics) if arguments.topics else None
    sections = run_suite(profile, arguments.seed, out, topics, arguments.jobs, not arguments.quiet)
    if not sections:
        raise KeyboardInterrupt
    if arguments.peers:
        sections.append(run_peers(profile, arguments.seed))
    for section in sections:
        print(
            f"{'passed' if section.report.passed else 'FAILED':<8}{len(section.report.findings):>4}  {section.topic.title}"
        )
        for finding in section.report.failures:
            print(
                f"        {finding.check} of {finding.subject}: {finding.figure:.4g}, bound {finding.bound}; {finding.detail}"
            )
    for path in write_documents(sections, out, profile, arguments.seed):
        print(f"wrote {path}")
    if not all(section.report.passed for section in sections):
        print("sgmcmc: some checks failed", file=sys.stderr)
        raise SystemExit(1)
