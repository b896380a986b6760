"""The command line: ``sgmcmc COMMAND``, or ``python -m sgmcmc COMMAND``; each command is a file in sgmcmc/cli.

Exit codes: 0 done, 1 could not be done (one sentence on stderr), 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from sgmcmc.cli import bench, compare, compile, demo, info, reproduce, validate
from sgmcmc.cli.arguments import Run

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except KeyboardInterrupt:
        print("sgmcmc: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        print(f"sgmcmc: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sgmcmc", description="Stochastic-gradient MCMC on NumPy and Numba.")
    parser.add_argument("--version", action="version", version=f"sgmcmc {version('sgmcmc')}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (declare, text) in _COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(run=declare(subparser))
    return parser


_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], Run], str]] = {
    "info": (info.declare, "show versions, processor, instruction sets and the place of the kernel cache"),
    "demo": (demo.declare, "sample a potential with five wells by five samplers and draw what they found"),
    "compile": (compile.declare, "compile the presets before they are needed, or remove what is kept"),
    "compare": (compare.declare, "run samplers with the same budget, and write what their draws are worth"),
    "reproduce": (reproduce.declare, "run an experiment of the paper, from tuning to tables and pictures"),
    "validate": (validate.declare, "prove that the samplers draw from the right law, and write a report"),
    "bench": (bench.declare, "time this package and its peers on the same work, and check what they drew"),
}
