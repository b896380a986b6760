"""Splittings: integrators that are words of flows, such as "BAOAB".

`words` says what a word means: a cycle of flows with their times. `step_of_word` makes the cycle a function of a few lines, which
is compiled like any other; `Splitting("BAOAB").source` shows it.
"""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from sgmcmc.compiler.open_functions import implements, implements_by_type
from sgmcmc.integrators.state import advance, order
from sgmcmc.integrators.step_of_word import compiled_from, flow, source_of
from sgmcmc.integrators.words import LETTERS, Cycle, cycle_of, normals_of
from sgmcmc.thermostats import couples_coordinates

__all__ = ["BAOAB", "Splitting", "SymmetricSplitting", "flow", "form_for"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Splitting:
    """An integrator that is a word of flows, composed symmetrically or not; one gradient per step.

    Letters: A drift, B gradient kick, F friction, N noise on p, O friction and noise, U drift, friction and noise together,
    X noise and pull on ξ. A letter that occurs n times has 1/n of the step each time. The word is read as a cycle that is cut at
    the gradient, and the draw is the point where the gradient was taken: turns of a word (BAOAB and OABAO) are one sampler. A
    cycle that reads the same in both directions has order 2, any other order 1.

    Parameters
    ----------
    word : such as "BAOAB", "OBABO", "BNFAFNB" (`SymmetricSplitting`) or "UBU" (Gaussian kinetics, no thermostat).
    flows : flows of your own by their letter, each a NamedTuple with an implementation of `sgmcmc.integrators.flow`.

    Examples
    --------
    >>> import sgmcmc as sg
    >>> sg.integrators.Splitting("BAOAB")
    Splitting('BAOAB': order 2, 1 gradient per step)
    >>> sg.integrators.Splitting("BAOAB") == sg.integrators.BAOAB()
    True
    """

    __slots__ = ()
    _fields: tuple[str, ...]
    word = ""
    cycle: Cycle
    step: Callable[..., Any]  # one step, as it is compiled
    has = "RLX"  # what a step has beside its flows: a middle where momenta may be fresh, noise of θ, noise of ξ

    def __new__(cls, word: str = "", **flows: Any) -> Any:
        if cls is not Splitting:
            return super().__new__(cls, *flows.values())
        for letter, value in flows.items():
            if len(letter) != 1 or not letter.isupper() or letter in LETTERS or letter in "GHLR":
                raise ValueError(
                    f"{letter}= is not a letter for a flow of your own; give one capital letter that is not taken"
                )
            if not (isinstance(value, tuple) and hasattr(value, "_fields")):
                raise TypeError(f"{letter}={value!r} is not a flow; give a NamedTuple with an implementation of flow")
            flow.require(value)
        own = "".join(sorted(flows))
        cycle_of(word, own)  # an error in one sentence
        return _class_named(f"Splitting_{word}")._make(flows[letter] for letter in own)

    @property
    def order(self) -> int:
        """The order in h of the bias, with flows of order 2 or exact."""
        return self.cycle.order

    @property
    def gradients(self) -> int:
        """How many gradients a step takes."""
        return 1

    @property
    def normals(self) -> int:
        """How many normals of each coordinate the friction and noise on p take in a step."""
        return normals_of(self.cycle)

    @property
    def infers_noise(self) -> bool:
        """Whether there is a middle at which the variance of gradient noise can be inferred where it is not known."""
        return self.cycle.middle is not None and self.cycle.flows[self.cycle.middle].letters in "AO"

    @property
    def source(self) -> str:
        """The step as it is compiled."""
        return source_of(type(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"{str(self)[:-1]}: order {self.order}, {self.gradients} gradient per step)"

    def __str__(self) -> str:
        own = "".join(f", {name}={value!r}" for name, value in zip(self._fields, self._own(), strict=True))
        return f"Splitting({self.word!r}{own})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._own() == other._own()

    def __ne__(self, other: object) -> bool:
        return not self == other  # that of tuple knows nothing of the word

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._own()))

    def _own(self) -> tuple[Any, ...]:
        """The flows of the user's."""
        return tuple(getattr(self, name) for name in self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self).__name__, self._own())


def BAOAB() -> Splitting:
    """Second order, one gradient per step; the law of θ is exact for Gaussian targets with Gaussian kinetics.

    With a thermostat it is BADODAB (Leimkuhler and Shang 2016): the drift A also drives ξ.

    Returns
    -------
    Splitting("BAOAB")

    Examples
    --------
    >>> import sgmcmc as sg
    >>> sg.integrators.BAOAB()
    Splitting('BAOAB': order 2, 1 gradient per step)
    """
    return Splitting("BAOAB")  # type: ignore[no-any-return]


def SymmetricSplitting() -> Splitting:
    """F A F around a gradient kick with noise: second order for every kinetics, one gradient per step.

    Returns
    -------
    Splitting("BNFAFNB")

    Examples
    --------
    >>> import sgmcmc as sg
    >>> sg.integrators.SymmetricSplitting().order
    2
    """
    return Splitting("BNFAFNB")  # type: ignore[no-any-return]


def form_for(integrator: Any, middle: bool, theta_noise: bool, xi_noise: bool) -> Any:
    """The form of an integrator for a run: without what such a run does not have, which need not be compiled.

    `middle` is whether anything happens there (fresh momenta, gradient noise to infer), `theta_noise` and `xi_noise` whether θ
    and ξ have noise of their own.
    """
    if not isinstance(integrator, Splitting):
        return integrator
    has = "".join(letter for letter, there in zip("RLX", (middle, theta_noise, xi_noise), strict=True) if there)
    return _class_named(f"Splitting_{integrator.word}_{has}")._make(integrator._own())


def _class_named(name: str) -> Any:
    """The class of a word, in one of its forms: its structure is its name, so that another process finds it by name, too.

    One for each name: two threads that ask at once get the same.
    """
    with _making:
        if name not in _classes:
            _classes[name] = _new_class(name)
        return _classes[name]


_making = threading.RLock()
_classes: dict[str, Any] = {}


def _new_class(name: str) -> Any:
    _, word, has = (*name.split("_"), "RLX")[:3]
    own = "".join(sorted(set(word) - set(LETTERS)))
    base: Any = namedtuple(name, list(own))  # type: ignore[misc]  # its letters are known only now
    members = {
        "__slots__": (),
        "__module__": __name__,
        "__doc__": Splitting.__doc__,
        "word": word,
        "cycle": cycle_of(word, own),
        "has": has,
    }
    made: Any = type(name, (Splitting, base), members)
    made.step = staticmethod(compiled_from(made))
    return made


def _again(name: str, values: tuple[Any, ...]) -> Any:
    return _class_named(name)._make(values)


def __getattr__(name: str) -> Any:
    if name.startswith("Splitting_"):
        return _class_named(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@implements(order, Splitting)
def _(integrator):
    return integrator.order


@implements(couples_coordinates, Splitting)
def _(part):
    return any(couples_coordinates(getattr(part, name)) for name in part._fields)


@implements_by_type(advance, Splitting)
def _(cls: Any, _kinetics: type) -> Callable[..., Any]:
    return cls.step  # type: ignore[no-any-return]
