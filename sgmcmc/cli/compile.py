"""``sgmcmc compile``: kernels before they are needed."""

from __future__ import annotations

import argparse

from sgmcmc.cli.arguments import Run, teach

__all__ = ["declare"]

_LESSON = """
A first run of a sampler on a model compiles a kernel, some seconds; later runs find it. This command does so in advance, for
the presets on logistic regression (both precisions) and on the potential of the demo, and the parts around a gradient of yours.

  sgmcmc compile                all presets
  sgmcmc compile SGNHT SGMGTD   these alone (SGMGT has the kernel of SGMGTD)
  sgmcmc compile --remove       take all kept kernels away, before `pip uninstall sgmcmc` for instance

The kernel around a gradient of your own is compiled when it is first run, in about half the time if its parts are there.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)
    parser.add_argument("what", nargs="*", metavar="WHAT", help="names of presets; all of them without any")
    parser.add_argument("--remove", action="store_true", help="remove all kernels that are kept for this user")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return _run


def _run(arguments: argparse.Namespace) -> None:
    from sgmcmc.compiler import store

    if arguments.remove:
        print(f"{store.remove()} files removed from {store.folder()}")
        return
    import numba
    from tqdm.auto import tqdm

    from sgmcmc.compiler import backend
    from sgmcmc.run import ahead_of_time as ahead

    chosen = ahead.cases(_presets(arguments.what))
    if numba.config.DISABLE_JIT:
        raise ValueError("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    where = "where Numba keeps its files" if backend.plain_because() else f"in {store.own_folder()}"
    bar = tqdm(total=len(chosen), unit="kernel", disable=arguments.quiet)
    with bar:
        for case in ahead.compile_all(chosen):
            bar.set_postfix_str(", ".join(case))
            bar.update()
    print(f"{len(chosen)} samplers compiled, kept {where}")


def _presets(names: list[str]) -> tuple[str, ...]:
    from sgmcmc.run.ahead_of_time import PRESETS

    known = {name.lower(): name for name in PRESETS} | {"sgmgt": "SGMGTD", "sgmgt-d": "SGMGTD"}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise ValueError(f"{unknown[0]} is no preset; choose from SGLD, SGHMC, SGNHT, SGMGT and SGMGTD")
    return tuple(dict.fromkeys(known[name.lower()] for name in names)) if names else PRESETS
