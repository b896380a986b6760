"""Benchmarks: this package and its peers on the same work, each with its time and a check of what it drew.

`cases` is the table of everything that is measured. `runner` measures each entry in a process of its own, `claims` compares,
`page` and `charts` write. What measures us is in `ours`, `chores` and `worker`; what measures others is in `alone`, which
imports nothing of this package, so that it runs in an environment where only the peer is installed.
"""
