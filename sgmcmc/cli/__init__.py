"""The commands of ``sgmcmc``: one file each, with `declare`, which adds its arguments to a parser and returns what runs it."""
