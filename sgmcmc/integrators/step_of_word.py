"""The step of a word, as a function of a few lines that is written for it.

What is not a flow happens at named points of the cycle, and is written here once:

    at the gradient   the noise of θ, L, and of ξ, X, unless the word says where X goes; ξ is drawn afresh in the place of X
    at the middle     momenta are drawn afresh, and gradient noise is inferred where it is not known: between two halves of the
                      middle flow, or in the place of O

Flows that a fused loop does faster together are looked up in `PEEPHOLES`. Other words are taken flow by flow.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from typing import Any

import sgmcmc.thermostats as thermostats
from sgmcmc.compiler.open_functions import LOOP, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.integrators import flows as _flows
from sgmcmc.integrators.fused_aoa import fused_aoa
from sgmcmc.integrators.fused_faf import fused_faf, has_fused_faf
from sgmcmc.integrators.joint import joint_flow
from sgmcmc.integrators.resampling import refresh
from sgmcmc.integrators.state import center_now, injected, is_turn
from sgmcmc.integrators.words import Flow
from sgmcmc.thermostats import crosstalk_rate

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

__all__ = ["compiled_from", "flow", "source_of"]


@open_function(fastmath=LOOP)
def flow(own, tau, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    """A flow of your own over a time tau, in place on `state`: a letter of a `Splitting`.

    Together with the other flows it must leave exp(−H/T) invariant. Unless `couples_coordinates` says otherwise, what it does to
    one coordinate may depend on all of them.
    """


HEAD = """\
def advance_{name}(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    thermostat, sigma_p, temperature, p, xi = dynamics.thermostat, dynamics.sigma_p, dynamics.temperature, state.p, state.xi
    before, h = moment.before, moment.h
    diffusion, rate, virial = injected(dynamics), crosstalk_rate(dynamics.sigma_theta, temperature, h), zero(h)
"""
END_LANGEVIN = """\
    end_langevin(scale, dynamics, state, gradient, 0.5 * (before + h))
"""
INTERRUPTIONS = """\
    center, exact = center_now(dynamics, moment), is_exact(kinetics)
    learning = thermostats.is_learning(dynamics.noise, thermostat, moment.step)
    resampling = is_turn(dynamics.resample_momentum, moment.step)
"""
BEGIN_LANGEVIN = """\
    begin_langevin(scale, dynamics, state, noise, h)
"""
LEARN = "thermostats.learn(dynamics.noise, thermostat, kinetics, temperature, diffusion, center, state, {back}, {ahead}, moment)"
REFRESH = "refresh(kinetics, dynamics.noise, thermostat, temperature, p, state.loss, stream, moment)"


class _Writer:
    """Writes the step of a word, flow by flow."""

    def __init__(self, cls: Any) -> None:
        self.cls, self.flows, self.middle = cls, list(cls.cycle.flows), cls.cycle.middle
        self.interrupted, self.xi_noise = "R" in cls.has, "X" in cls.has
        self.lines: list[str] = []
        self.normals = ["noise.p", "noise.theta"]  # those that are still to be used
        self.drifts = sum(f.letters in "AU" for f in self.flows)
        self.drifted = False

    def source(self) -> str:
        text = HEAD.format(name=self.cls.__name__)
        text += END_LANGEVIN if "L" in self.cls.has else ""
        text += INTERRUPTIONS if self.interrupted else ""
        skip = 0
        for i, each in enumerate(self.flows):
            if skip > 0:
                skip -= 1
            elif self.middle is not None and i == self.middle - 1 and self._has_peephole():
                skip = self._peephole(i)
            elif i == self.middle and (self.interrupted or self._late_x()):
                self._at_middle(each)
            else:
                self._flow(each, self._time(each))
        if self.middle is None and self.interrupted:
            self.add("if resampling:", f"    {REFRESH}")
        text += "".join(f"    {line}\n" for line in self.lines)
        return text + (BEGIN_LANGEVIN if "L" in self.cls.has else "") + "    return virial\n"

    def add(self, *lines: str) -> None:
        self.lines += lines

    def _time(self, f: Flow, part: float = 1.0) -> str:
        if (f.before, f.own, part) == (0.5, 0.5, 1.0):
            return "0.5 * (before + h)"
        terms = [
            name if share == 1.0 else f"{share!r} * {name}"
            for name, share in (("before", part * f.before), ("h", part * f.own))
            if share > 0.0
        ]
        return " + ".join(terms)

    def _next_normals(self) -> str:
        return self.normals.pop(0)

    def _flow(self, f: Flow, time: str, indent: str = "") -> None:
        """The lines of one flow, or of several that go with the gradient."""
        if "B" in f.letters:
            noisy = "N" in f.letters
            if "X" in f.letters and self.xi_noise:
                self.add(f"{indent}move_thermostat(dynamics, state, noise, moment, {time})")
            normals = self._next_normals() if noisy else "noise.p"
            self.add(f"{indent}kick(p, gradient, {normals}, scale, {time}, {'diffusion' if noisy else 'zero(h)'})")
            return
        for letter in f.letters:
            if letter != "X" or self.xi_noise:
                self.add(indent + self._line(letter, f, time))

    def _line(self, letter: str, f: Flow, time: str) -> str:
        if letter == "A":
            return self._drift(f, time)
        if letter == "F":
            name, scratch = (
                ("apply_friction_with_scratch", ", noise.p")
                if "noise.p" not in self.normals
                else ("apply_friction", "")
            )
            return f"{name}(kinetics, thermostat, sigma_p, p, xi, {time}{scratch})"
        if letter == "O":
            return f"thermalise(kinetics, thermostat, sigma_p, p, xi, {self._next_normals()}, {time}, diffusion)"
        if letter == "N":
            return f"add_noise(p, {self._next_normals()}, {time}, diffusion)"
        if letter == "X":
            return f"move_thermostat(dynamics, state, noise, moment, {time})"
        if letter == "U":
            self.normals.clear()
            arguments = "kinetics, thermostat, scale, dynamics, state, noise, diffusion, True, like(h, 1)"
            return f"virial = joint_flow({arguments}, {time})"
        return f"flow(integrator.{letter}, {time}, kinetics, scale, dynamics, state, gradient, noise, stream, moment)"

    def _drift(self, f: Flow, time: str) -> str:
        first, share = not self.drifted, f.before + f.own
        self.drifted = True
        weight = "" if share == 1.0 else f"{share!r} * "
        sign = "=" if first else "+="
        return (
            f"virial {sign} {weight}drift(kinetics, scale, dynamics, state, rate, {first}, like(h, {share!r}), {time})"
        )

    # ---- the middle of the cycle ------------------------------------------------------------------------------------

    def _has_peephole(self) -> bool:
        around = self.flows[self.middle - 1], self.flows[self.middle], self.flows[(self.middle + 1) % len(self.flows)]
        letters = "".join(f.letters for f in around)
        scratch = letters != "FAF" or ("noise.p" not in self.normals and "X" in self.flows[0].letters)
        return letters in PEEPHOLES and scratch and around[1].own == 1.0 and len(self.flows) == 4

    def _peephole(self, i: int) -> int:
        """The three flows around the middle by a fused loop, and flow by flow where there is none, or an interruption."""
        letters = "".join(f.letters for f in self.flows[i : i + 3])
        PEEPHOLES[letters](self, self.flows[i], self.flows[i + 1])
        return 2

    def _late_x(self) -> bool:
        """Whether ξ gets its noise in the middle of the cycle, as no kick is in the middle of what goes with the gradient."""
        return self.xi_noise and not any("X" in f.letters for f in self.flows)

    def _at_middle(self, f: Flow) -> None:
        """The middle flow, with fresh momenta, and with gradient noise to infer, halfway through it."""
        if f.letters == "A":
            self._halved_drift(f)
        elif f.letters in "OU":
            self.add("if resampling:")
            if f.letters == "U":  # friction and noise are left out: fresh momenta do their work
                half = f"virial = drift(kinetics, scale, dynamics, state, rate, True, like(h, 1), {self._time(f, 0.5)})"
                self.add(
                    "    for half in range(2):", "        if half == 1:", f"            {REFRESH}", f"        {half}"
                )
            else:
                self.add(f"    {REFRESH}")
            self.add("else:")
            self._flow(f, self._time(f), "    ")
        else:
            self._flow(f, self._time(f))
            self.add("if resampling:", f"    {REFRESH}")

    def _halved_drift(self, f: Flow) -> None:
        interrupted, late_x = self.interrupted, self._late_x()
        reasons = ["learning or resampling"] if interrupted else []
        reasons += ["dynamics.sigma_xi > 0.0 or is_turn(dynamics.resample_thermostat, moment.step)"] if late_x else []
        self.add(f"halved = {' or '.join(reasons)}")
        self.add(f"part = {self._time(f, 0.5)} if halved else {self._time(f)}")
        self.add("for half in range(2 if halved else 1):", "    if half == 1:")
        if late_x:
            self.add(f"        move_thermostat(dynamics, state, noise, moment, {self._time(f)})")
        if interrupted:
            self.add(
                "        if learning:", "            " + LEARN.format(back=self._friction(-1), ahead=self._friction(1))
            )
            self.add("        if resampling:", f"            {REFRESH}")
        if self.drifts == 1:  # what counts for Σ p K'(p) is the last part, with the momenta after it
            self.add("    virial = drift(kinetics, scale, dynamics, state, rate, True, like(h, 1), part)")
            return
        self.add(f"    share = {0.5 * f.own!r} if halved else {f.own!r}")
        first = "False" if self.drifted else "half == 0"
        self.add(f"    virial += share * drift(kinetics, scale, dynamics, state, rate, {first}, like(h, share), part)")
        self.drifted = True

    def _friction(self, direction: int) -> str:
        """The time of the friction flow between the middle and the nearest noise, in one direction of the cycle."""
        n, total = len(self.flows), 0.0
        for k in range(1, n + 1):
            f = self.flows[(self.middle + direction * k) % n]
            total += f.before + f.own if f.letters == "F" else 0.0
            if "N" in f.letters:
                return f"{total!r} * h" if total > 0.0 else "zero(h)"
            if f.letters == "O":
                own = 0.5 * (f.before + f.own)
                return (
                    f"{total!r} * h + (zero(h) if exact else {own!r} * h)"
                    if total > 0.0
                    else f"zero(h) if exact else {own!r} * h"
                )
        return "zero(h)"


def _write_faf(writer: _Writer, friction: Flow, drift: Flow) -> None:
    fused = "fused_faf(thermostat, kinetics, scale, dynamics, state, moment, {}, diffusion, {}, noise.p, noise.xi)"
    if writer.interrupted:
        writer.add("fused = has_fused_faf(thermostat, kinetics) and not resampling", "if fused:")
        writer.add("    virial = " + fused.format("learning", "center"), "else:")
    else:
        writer.add("fused = has_fused_faf(thermostat, kinetics)", "if fused:")
        writer.add("    virial = " + fused.format("False", "center_now(dynamics, moment)"), "else:")
    outer, writer.lines = writer.lines, []
    writer._flow(friction, writer._time(friction))
    writer._at_middle(drift) if writer.interrupted else writer._flow(drift, writer._time(drift))
    writer._flow(friction, writer._time(friction))
    writer.lines = outer + [f"    {line}" for line in writer.lines]


def _write_aoa(writer: _Writer, drift: Flow, thermal: Flow) -> None:
    h, normals = writer._time(thermal), writer._next_normals()
    arguments = f"thermostat, scale, dynamics.crosstalk, kinetics, dynamics, state, {normals}, rate, diffusion, {h}"
    fused = f"virial = fused_aoa({arguments})"
    if not writer.interrupted:
        writer.add(fused)
        return
    writer.add(
        "halved = learning or resampling", "if not halved:", f"    {fused}", "for half in range(2 if halved else 0):"
    )
    writer.add("    if half == 1:", "        if resampling:", f"            {REFRESH}", "        else:")
    writer.add(f"            thermalise(kinetics, thermostat, sigma_p, p, xi, {normals}, {h}, diffusion)")
    own = f"(zero(h) if exact else {0.5 * thermal.own!r} * h)"
    writer.add("        if learning:", "            " + LEARN.format(back=own, ahead="zero(h)"))
    half, share = writer._time(drift), drift.own
    writer.add(
        f"    virial += {share!r} * drift(kinetics, scale, dynamics, state, rate, half == 0, like(h, {share!r}), {half})"
    )
    writer.add("    if learning and half == 0:", "        " + LEARN.format(back="zero(h)", ahead=own))


# Three flows around the middle that one loop does faster, where there is one for the types: figures in `fused_faf`, `fused_aoa`.
PEEPHOLES: dict[str, Callable[[_Writer, Flow, Flow], None]] = {"FAF": _write_faf, "AOA": _write_aoa}


@functools.cache
def source_of(cls: Any) -> str:
    """The step of a class of words as text."""
    return _Writer(cls).source()


_NAMES: dict[str, Any] = {name: getattr(_flows, name) for name in _flows.__all__} | {
    "__name__": __name__,
    "center_now": center_now,
    "crosstalk_rate": crosstalk_rate,
    "flow": flow,
    "fused_aoa": fused_aoa,
    "fused_faf": fused_faf,
    "has_fused_faf": has_fused_faf,
    "injected": injected,
    "is_turn": is_turn,
    "joint_flow": joint_flow,
    "like": like,
    "refresh": refresh,
    "thermostats": thermostats,
    "zero": zero,
}


def compiled_from(cls: Any) -> Callable[..., Any]:
    """The step of a class of words as a function; a debugger and a traceback find its lines."""
    source, file = source_of(cls), f"<the step of {cls.__name__}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope = dict(_NAMES)
    exec(compile(source, file, "exec"), scope)
    made: Callable[..., Any] = scope[f"advance_{cls.__name__}"]
    made.__module__ = __name__
    return made
