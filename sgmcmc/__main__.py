"""``python -m sgmcmc`` is the command ``sgmcmc``."""

from __future__ import annotations

import sys

from sgmcmc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
