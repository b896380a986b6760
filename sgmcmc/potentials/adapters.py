"""Adapters: a user's gradient function in the form of `add_gradient`, by whether it has data and whether it fills `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ADAPTERS", "filled_free_within", "filled_within"]


def filled(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, out: Any) -> None:
        part = np.zeros_like(out)  # the user may assign to out, which may hold a sum already
        user(theta, model.data, rows, part)
        for j in range(out.size):
            out[j] += part[j]

    return adapter


def filled_free(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, out: Any) -> None:
        part = np.zeros_like(out)
        user(theta, part)
        for j in range(out.size):
            out[j] += part[j]

    return adapter


def filled_within(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> None:
        for j in range(out.size):
            scratch[j] = 0.0
        user(theta, model.data, rows, scratch)
        for j in range(out.size):
            out[j] += scratch[j]

    return adapter


def filled_free_within(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> None:
        for j in range(out.size):
            scratch[j] = 0.0
        user(theta, scratch)
        for j in range(out.size):
            out[j] += scratch[j]

    return adapter


def returned(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, out: Any) -> None:
        part = user(theta, model.data, rows)
        if part.size != out.size:
            raise ValueError("gradient returned an array of another length than theta")
        for j in range(out.size):
            out[j] += part[j]

    return adapter


def returned_free(user: Any) -> Any:
    def adapter(model: Any, theta: Any, rows: Any, out: Any) -> None:
        part = user(theta)
        if part.size != out.size:
            raise ValueError("gradient returned an array of another length than theta")
        for j in range(out.size):
            out[j] += part[j]

    return adapter


ADAPTERS = {
    (True, True): filled,
    (True, False): returned,
    (False, True): filled_free,
    (False, False): returned_free,
}
