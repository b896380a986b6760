"""The argument `minibatch` of a run: the name of a scheme, or a scheme itself."""

from __future__ import annotations

from typing import Any

from sgmcmc import checks
from sgmcmc.minibatch.interface import choose
from sgmcmc.minibatch.schemes import Blocks, EpochShuffle, FullData, WithoutReplacement, WithReplacement

__all__ = ["as_minibatch"]

_KINDS: dict[str, Any] = {
    "replacement": WithReplacement,
    "no-replacement": WithoutReplacement,
    "shuffle": EpochShuffle,
    "blocks": Blocks,
}


def as_minibatch(batch_size: int | None, kind: Any, n_rows: int) -> Any:
    """Returns the minibatch scheme for `batch_size` of `n_rows` rows.

    Parameters
    ----------
    batch_size : int or None, for the full gradient
    kind : "replacement", "no-replacement", "shuffle", "blocks" or NamedTuple
    n_rows : int

    Returns
    -------
    NamedTuple

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, "shuffle", n_rows=1000)
    EpochShuffle(size=32)
    """
    if not _is_scheme(kind):
        checks.one_of("minibatch", kind, tuple(_KINDS))
    if batch_size is None:
        return FullData()
    if n_rows == 0:
        raise ValueError(
            f"batch_size={checks.show(batch_size)} was given, but the model has no data rows; leave batch_size out"
        )
    size = checks.integer("batch_size", batch_size, 1)
    if size > n_rows:
        raise ValueError(
            f"batch_size={size} is larger than the data set of {n_rows} rows; "
            f"choose 1 to {n_rows}, or None for the full gradient"
        )
    if isinstance(kind, Blocks) or kind == "blocks":
        return _blocks(kind if isinstance(kind, Blocks) else None, size, n_rows)
    return kind._replace(size=size) if _is_scheme(kind) else _KINDS[kind](size)


def _is_scheme(kind: Any) -> bool:
    """Whether this is a scheme itself, of this module or of the user's: a NamedTuple with `choose` and a field `size`."""
    if not (isinstance(kind, tuple) and hasattr(kind, "_fields")):
        return False
    choose.require(kind)
    if "size" not in kind._fields:
        raise TypeError(f"minibatch={kind!r} has no field size, the number of rows of a step; give it one")
    return True


def _blocks(given: Blocks | None, size: int, n_rows: int) -> Blocks:
    """Blocks that fit the data; the default ones shrink with a small data set, given ones are refused."""
    if given is None:
        block = min(Blocks().block, n_rows)
        return Blocks(block, max(Blocks().window, -(-size // block)), size)
    block = checks.integer("Blocks.block", given.block, 1, n_rows)
    window = checks.integer("Blocks.window", given.window, 1)
    if block * window < size:
        raise ValueError(f"batch_size={size} does not fit into {given!r}; give block·window of at least batch_size")
    return Blocks(block, window, size)
