"""The peers' table: variance ÷ truth and the other checks from outside, for BlackJAX, posteriors and this package.

Needs the extra `peers`. Usage: python validation/peers.py [--quick] [--out docs/peers-variance.md].
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from sgmcmc.evidence.validation import peers

TEXT = """# Other libraries under the same checks

Written by `python validation/peers.py`{flags}, with {versions}.

The checks of `sgmcmc.testing.black_box`, which see nothing but draws of θ, on BlackJAX, posteriors and this package:
exact gradients, exact starts in θ, momenta and frictions started in their laws. ε is the step size, α the friction (for SGNHT the
diffusion), T the temperature, in each library's own documented parameters, which mean the same in all of them. A figure passes
while it is within 0.01 + 5.2 standard errors of the truth, so what fails is wrong by more than 1 % *at that step size*: the
error of the discretisation is part of the verdict, and with a small enough step all of them pass but BlackJAX's SGHMC at T ≠ 1.
Standard errors, in units of the last digit, are in brackets. A run that overflows, or a ratio above 1000, is "diverges"; where
α < ε explicit Euler grows without bound, and a finite figure is what the run had reached. These rows are information:
`sgmcmc validate` does not count them. Cases that differ only in T share their random numbers.

Variance of θ ÷ truth:

"""

WORDS = """
What is behind the figures, as read in the sources of these versions:

* BlackJAX's SGHMC draws its momenta afresh in every call, with variance 1 whatever the temperature is. At T ≠ 1 no step size
  repairs that.
* The SGHMC of BlackJAX and of posteriors moves θ with the old momentum and p with the gradient at the old θ (explicit Euler). On
  a Gaussian of unit scale that multiplies the variance by about 1/(1 − ε/α), and diverges for α < ε. Their default α is 0.01.
  BlackJAX's fresh momenta limit the damage. With ε much smaller than α both are fine.
* posteriors' BAOA is BAOAB in another order, as its documentation says: exact on Gaussians, like the SGHMC of this package.
* SGLD with explicit Euler is too wide by about ε/2; this package takes the gradient halfway through the noise.
* Both SGNHTs are of first order in ε.

The other checks, on the skew target in 20 dimensions, and the first draws (the worst of the three targets):

"""


def brackets(figure: float, se: float) -> str:
    """1.0023(12): the standard error in units of the last digit."""
    if not np.isfinite(figure) or abs(figure) > 1e3:
        return "diverges"
    digits = int(np.clip(1 - np.floor(np.log10(se)), 0, 5)) if se > 0.0 else 5
    return f"{figure:.{digits}f}({round(se * 10**digits)})"


def cell(rows: pd.DataFrame) -> str:
    """The figure that is farthest off among these."""
    if rows.passed.all():
        row = rows.iloc[0] if len(rows) == 1 else rows.loc[rows.off.idxmax()]
        return brackets(row.figure, row.se)
    wrong = rows[~rows.passed]
    row = wrong.loc[wrong.off.fillna(np.inf).idxmax()]
    return f"**{brackets(row.figure, row.se)}**"


def markdown(table: pd.DataFrame, columns: dict[str, tuple[str, str]]) -> str:
    """One row per library, sampler and case; a column is a check and the beginning of the target's name."""
    lines = ["| library | sampler | case | " + " | ".join(columns) + " | passed |", "|" + "---|" * (len(columns) + 4)]
    for (library, sampler, case), rows in table.groupby(["library", "sampler", "case"], sort=False):
        parts = [rows[rows.check.eq(c) & rows.target.str.contains(t, regex=False)] for c, t in columns.values()]
        passed = all(p.passed.all() for p in parts)
        cells = [library, sampler, case, *(cell(p) for p in parts), "yes" if passed else "NO"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def document(table: pd.DataFrame, quick: bool) -> str:
    truth = table.bound.str.extract(r"^([-\d.e]+) ±")[0].astype(float)
    table = table.assign(off=((table.figure - truth) / table.se).abs())
    versions = ", ".join(f"{name} {version}" for name, version in peers.installed().items())
    versions += f", numpy {np.__version__}"
    text = TEXT.format(flags=" --quick" if quick else "", versions=versions)
    variance = "variance ÷ truth"
    wide = {
        "Gaussian, d = 1": (variance, "Gaussian, precision 1, d = 1,"),
        "Gaussian, d = 20": (variance, "Gaussian, precision 1, d = 20,"),
        "skew, d = 20": (variance, "skew"),
    }
    others = {
        "mean, in sd": ("mean, in standard deviations", "skew"),
        "third moment ÷ E\\|·\\|³": ("third moment ÷ E|·|³", "skew"),
        "virial E[θU'] ÷ T": ("virial E[θU'] ÷ T", "skew"),
        "first draws: mean": ("first draws: mean, in standard deviations", ""),
        "first draws: variance": ("first draws: variance ÷ truth", ""),
    }
    return text + markdown(table, wide) + WORDS + markdown(table, others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the steps and half of the chains")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "peers-variance.md")
    arguments = parser.parse_args()
    here = peers.installed()
    if not here:
        raise SystemExit(peers.MISSING)
    found = []
    chosen = [c for c in peers.cases() if c.library == "sgmcmc" or c.library in here]
    for case in tqdm(chosen, unit="case"):
        found += peers.measured(case, "quick" if arguments.quick else "full")
    arguments.out.write_text(document(peers.peers_table(found=found), arguments.quick))


if __name__ == "__main__":
    main()
