"""Words of flows: what a splitting such as "BAOAB" means as a cycle of flows with their times, and whether it makes sense.

A word is read as a cycle that is cut at the gradient: the gradient is taken once a step, and the draw is the point where it was
taken. So words that are turns of one another (BAOAB and OABAO; OBABO and ABOBA) are one sampler. A letter that occurs n times
has 1/n of the step each time; equal letters that meet become one. What goes with the gradient lasts w = (h_before + h)/2.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Cycle", "Flow", "cycle_of", "normals_of"]

LETTERS = {
    "A": "drift",
    "B": "gradient kick",
    "F": "friction",
    "N": "noise on p",
    "O": "friction and noise",
    "U": "drift, friction and noise",
    "X": "noise and pull on ξ",
}
MOVE_THETA = "AU"
WITH_GRADIENT = "BNX"  # they commute: two move p by what does not depend on p, the third moves ξ


class Flow(NamedTuple):
    """A flow of a step, or several that commute and go with the gradient; its time is before·h_before + own·h."""

    letters: str
    before: float
    own: float


class Cycle(NamedTuple):
    """A step: its flows in the order in which they are taken from the gradient on."""

    flows: tuple[Flow, ...]
    middle: int | None  # the flow opposite to the gradient, if the cycle is symmetric
    order: int


def cycle_of(word: str, own: str = "") -> Cycle:
    """The cycle of a word; `own` are letters of the user's flows. A ValueError, in one sentence, if it makes no sense."""
    _check(word, own)
    runs = _merged(word)
    kicks = [i for i, (letters, _) in enumerate(runs) if "B" in letters]
    segment, rest = _cut(word, runs, kicks, MOVE_THETA + own)
    symmetric = _is_palindrome(segment) and _is_palindrome(rest)
    flows = [*_around_gradient(segment, symmetric), *(Flow(letters, 0.0, share) for letters, share in rest)]
    first = next(i for i, flow in enumerate(flows) if "B" in flow.letters)
    head = [Flow(f.letters, 0.0, f.before + f.own) for f in flows[:first]]  # taken at the end of the step before
    middle = len(segment) - first + len(rest) // 2 if symmetric else None
    ordered = _with_thermostat(word, [*flows[first:], *head], middle)
    found = Cycle(tuple(ordered), middle, 2 if symmetric else 1)
    if normals_of(found) > 2:
        raise ValueError(f"word={word!r} takes more than two normals for each momentum; give a shorter word")
    return found


def normals_of(cycle: Cycle) -> int:
    """How many normals of each coordinate the friction and noise on p take in a step."""
    return sum({"U": 2}.get(f.letters, int("N" in f.letters or f.letters == "O")) for f in cycle.flows)


def _check(word: str, own: str) -> None:
    if not isinstance(word, str) or not word:
        raise ValueError(f"word={word!r} is not a word of flows; give one such as 'BAOAB'")
    known = "".join(LETTERS) + own
    for letter in word:
        if letter not in known:
            table = ", ".join(f"{name} {what}" for name, what in LETTERS.items())
            raise ValueError(
                f"word={word!r} has the unknown letter {letter!r}; there are {table}; give others as {letter}=your flow"
            )
    lacking = [letter for letter in own if letter not in word]
    if lacking:
        raise ValueError(f"{lacking[0]}= was given, but word={word!r} does not have the letter {lacking[0]}")
    has = set(word)
    rules = (
        ("B" in has, "has no B, the gradient kick"),
        ("A" in has or "U" in has, "has no A, the drift, nor U, which contains it"),
        (not ("U" in has and has & set("AOFN")), "has U, which is A and O together, beside one of A, O, F, N"),
        (not ("O" in has and has & set("FN")), "has O, which is F and N together, beside one of F, N"),
        (("F" in has) == ("N" in has), "has only one of F and N, friction and noise; it takes both, or O"),
        (has & set("OFU"), "has no friction and no noise; add O, or F and N"),
    )
    for holds, problem in rules:
        if not holds:
            raise ValueError(f"word={word!r} {problem}")


def _merged(word: str) -> list[tuple[str, float]]:
    """Letters with their shares, in a cycle; neighbours that are equal, or commute, are one."""
    runs: list[tuple[str, dict[str, float]]] = []
    for letter in word:
        share = 1.0 / word.count(letter)
        kind = "K" if letter in WITH_GRADIENT else letter
        if runs and runs[-1][0] == kind:
            runs[-1][1][letter] = runs[-1][1].get(letter, 0.0) + share
        else:
            runs.append((kind, {letter: share}))
    if len(runs) > 1 and runs[0][0] == runs[-1][0]:
        for letter, share in runs.pop()[1].items():
            runs[0][1][letter] = runs[0][1].get(letter, 0.0) + share
    found = []
    for _kind, shares in runs:
        if len(set(shares.values())) > 1:
            raise ValueError(f"word={word!r} gives {', '.join(shares)} different times where they stand together")
        found.append(("".join(sorted(shares)), next(iter(shares.values()))))
    return found


def _cut(
    word: str, runs: list[tuple[str, float]], kicks: list[int], movers: str
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """The part of the cycle at the point where the gradient is taken, and the rest, which begins and ends with a move of θ."""
    n = len(runs)
    moving = [i for i in range(n) if runs[i][0][0] in movers]
    after = next(i % n for i in range(kicks[0] + 1, kicks[0] + n + 1) if i % n in moving)
    turned = runs[after:] + runs[:after]
    last = max(i for i, (letters, _) in enumerate(turned) if letters[0] in movers)
    segment, rest = turned[last + 1 :], turned[: last + 1]
    if any("B" in letters for letters, _ in rest):
        raise ValueError(
            f"word={word!r} needs more than one gradient a step, as θ moves between its kicks; give a word with all B at one θ"
        )
    return segment, rest


def _is_palindrome(runs: list[tuple[str, float]]) -> bool:
    return runs == runs[::-1]


def _around_gradient(segment: list[tuple[str, float]], symmetric: bool) -> list[Flow]:
    """The flows where the gradient is taken: those before the middle belong to the step before, the middle one to both."""
    if not symmetric:
        return [Flow(letters, 0.0, share) for letters, share in segment]
    center = len(segment) // 2
    before = [Flow(letters, share, 0.0) for letters, share in segment[:center]]
    both = [Flow(letters, 0.5 * share, 0.5 * share) for letters, share in segment[center : center + 1]]
    return before + both + [Flow(letters, 0.0, share) for letters, share in segment[center + 1 :]]


def _with_thermostat(word: str, flows: list[Flow], middle: int | None) -> list[Flow]:
    """X goes with the gradient, unless the word says where; if no kick is in the middle there, with the middle of A."""
    count = sum("X" in flow.letters for flow in flows)
    if count > 1:
        raise ValueError(f"word={word!r} has X in {count} places of the cycle, and a step has the normals for one")
    if count == 1:
        return flows
    at = next((i for i, f in enumerate(flows) if "B" in f.letters and (middle is None or f.before > 0.0 < f.own)), None)
    if at is not None:
        flows[at] = flows[at]._replace(letters=flows[at].letters + "X")
    elif middle is None or flows[middle].letters != "A":
        raise ValueError(
            f"word={word!r} has no place for X, the noise on ξ, in the middle of the cycle; say where it goes"
        )
    return flows
