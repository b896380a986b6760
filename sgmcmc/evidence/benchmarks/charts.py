"""Pictures of the cases: bars for contestants side by side, lines for what grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.cases import CASES
from sgmcmc.evidence.benchmarks.limit import limits
from sgmcmc.evidence.benchmarks.rows import Row, contestant, figure, is_right, measured, of_case, settings
from sgmcmc.plots import COLOURS, blank_figure, dress

__all__ = ["draw_all"]

_HUES = ("sgmcmc", "blackjax", "sgmcmcjax", "posteriors", "numpy", "blackjax+tuned")
_AXES = {
    "d": ("dimension d of a Gaussian", "µs per step"),
    "N": ("rows N (batch 16, d = 25)", "µs per step"),
    "batch": ("batch (N = 10,000, d = 25)", "µs per step"),
    "chains": ("chains on the five wells", "ns per chain-step"),
}


_WRONG, _PAPER = "xxx", {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}


def draw_all(rows: list[Row], out: Path) -> dict[str, Path]:
    """CASE.png for every case that has something to show."""
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, draw in _DRAWN.items():
        own = [r for r in of_case(rows, name) if measured(r)]
        picture = draw(own) if own else None
        if picture is not None:
            found[name] = out / f"{name}.png"
            picture.savefig(found[name], dpi=110)
    return found


def _colour(name: str) -> str:
    """A contestant has the same colour in all pictures."""
    base = name.split(" ")[0]
    order = {**{who: i for i, who in enumerate(_HUES)}, "jax": 1, "blackjax+pinned": 1, "torch": 3, "numpyro": 6}
    return COLOURS[order.get(base, len(COLOURS) - 1)]


def _plain(value: float) -> str:
    """A number without powers of ten."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"  # 99.6 would be 1e+02


def _panels(rows: list[Row], key: Callable[[Row], str], width: float, height: float) -> Any:
    """One panel of bars per value of `key`; bars of one setting stand together."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    figure_ = blank_figure(width, height * len(groups))
    axes = figure_.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axis, (title, own) in zip(axes, groups.items(), strict=True):
        _bars(axis, own, title)
    handles = _legend(rows)
    figure_.legend(handles=handles, loc="outside lower center", ncol=4, frameon=False, fontsize=9)
    return figure_


def _legend(rows: list[Row]) -> list[Any]:
    from matplotlib.patches import Patch

    names = dict.fromkeys(contestant(r) for r in rows)
    found = [Patch(facecolor=_colour(n), hatch=_hatch(n), edgecolor="white", label=n) for n in names]
    if not all(is_right(r) for r in rows):
        found.append(Patch(facecolor="#BBBBBB", hatch=_WRONG, edgecolor="white", label="wrong draws"))
    return found


def _hatch(name: str) -> str:
    """Two of one colour in one picture."""
    return "//" if name == "jax" or name.endswith(("SFC64", "rbg", "+pinned")) else ""


def _bars(axis: Any, rows: list[Row], title: str) -> None:
    """Groups of bars on a logarithmic scale; crosses over a bar say that its draws were wrong."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    unit, names = CASES[rows[0]["case"]].unit, list(dict.fromkeys(contestant(r) for r in rows))
    groups = settings(rows)
    width = 0.84 / len(names)
    for x, group in enumerate(groups.values()):
        for i, row in enumerate(group):
            place, height, name = x + (i - 0.5 * (len(group) - 1)) * width, figure(row), contestant(row)
            hatch = _hatch(name) if is_right(row) else _WRONG
            axis.bar(place, height, 0.92 * width, color=_colour(name), hatch=hatch, edgecolor="white")
            text = _plain(height)
            axis.text(place, 1.05 * height, text, ha="center", va="bottom", fontsize=7, rotation=90)
    heights = [figure(r) for r in rows]
    axis.set_yscale("log")
    axis.set_ylim(min(heights) / 2.5, max(heights) * 5.0)
    axis.set_xlim(-0.6, len(groups) - 0.4)
    axis.set_xticks(range(len(groups)), [_short(where, title) for where in groups])
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    label = {"seconds": "s", "installed size": "MB"}.get(title, unit.label)
    axis.set_ylabel(f"{label}\n({'higher' if unit.is_rate else 'lower'} is better)", fontsize=8)
    dress(axis, title, "")


def _short(where: str, title: str) -> str:
    """The setting without what the panel's title says already."""
    words = [word for word in where.split(", ") if word not in title.split(", ")]
    return "\n".join(words) if words else where


def _wells(rows: list[Row]) -> Any:
    return _panels(rows, lambda r: str(r["dtype"]), 11.0, 3.6)


def _logistic(rows: list[Row]) -> Any:
    return _panels(rows, lambda r: str(r["size"]), 9.0, 3.6)


def _normals(rows: list[Row]) -> Any:
    return _panels(rows, lambda r: "one core", 8.0, 4.0)


def _start(rows: list[Row]) -> Any:
    names = {"installed": "installed size"}
    return _panels(rows, lambda r: names.get(r["method"], "seconds"), 8.0, 3.2)


def _update(rows: list[Row]) -> Any:
    limit = limits(rows)
    own = [r for r in rows if "problem" not in r]
    if not own:
        return None
    drawn = _panels(own, lambda r: "float32, all cores", 9.0, 4.2)
    axis = drawn.axes[0]
    for x, group in enumerate(settings(own).values()):
        if group[0]["method"] in limit:
            level = limit[group[0]["method"]]
            axis.hlines(level, x - 0.42, x + 0.42, color="#333333", ls="--", lw=1.5)
            axis.text(x + 0.42, level, f"limit {level:.2g}", fontsize=7, va="center", ha="right", bbox=_PAPER)
    lowest = min([*limit.values(), axis.get_ylim()[0]])
    axis.set_ylim(bottom=0.6 * lowest)
    return drawn


def _efficiency(rows: list[Row]) -> Any:
    """Horizontal bars, the best on top; hatched if not accurate."""
    ranked = sorted(rows, key=figure)
    drawn = blank_figure(8.0, 1.2 + 0.35 * len(ranked))
    axis = drawn.subplots()
    for y, row in enumerate(ranked):
        value = figure(row)
        axis.barh(y, value, color=_colour(row["who"]), hatch="" if is_right(row) else _WRONG, edgecolor="white")
        axis.text(value, y, f" {_plain(value)}{'' if is_right(row) else ', not accurate'}", va="center", fontsize=8)
    axis.set_yticks(range(len(ranked)), [contestant(r) for r in ranked], fontsize=8)
    axis.set_xscale("log")
    axis.set_xlim(right=axis.get_xlim()[1] * 3.0)
    axis.set_xlabel("effective draws per second, of the coefficient with the fewest")
    dress(axis, "Small logistic regression at equal accuracy", "")
    return drawn


def _scaling(rows: list[Row]) -> Any:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    lines = [r for r in rows if r["axis"] in _AXES]
    if not lines:
        return None
    drawn = blank_figure(10.0, 7.4)
    for axis, (name, (across, up)) in zip(drawn.subplots(2, 2).ravel(), _AXES.items(), strict=True):
        own = [r for r in lines if r["axis"] == name]
        if not own:
            continue
        scale = 1e-3 if up.startswith("µs") else 1.0
        for who, marker in (("sgmcmc", "o"), ("blackjax", "s")):
            points = sorted((r["at"], scale * figure(r)) for r in own if r["who"] == who)
            if points:
                axis.loglog(*zip(*points, strict=True), color=_colour(who), marker=marker, ms=5, lw=1.5, label=who)
        dress(axis, "", "")
        axis.set(xlabel=across, ylabel=up)
        heights = [scale * figure(r) for r in own]
        axis.set_ylim(min(heights) / 3.0, max(heights) * 3.0)  # so that what is constant looks constant
        for side in (axis.xaxis, axis.yaxis):
            side.set_minor_formatter(NullFormatter())
            side.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axis.legend(frameon=False, fontsize=8)
    return drawn


_DRAWN: dict[str, Callable[[list[Row]], Any]] = {
    "wells": _wells,
    "logistic": _logistic,
    "update": _update,
    "normals": _normals,
    "start": _start,
    "efficiency": _efficiency,
    "scaling": _scaling,
}
