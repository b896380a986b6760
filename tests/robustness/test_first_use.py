"""The first use of a process, by several threads at once: nothing is seen half loaded, nothing half made, nothing is shared."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import checks
from sgmcmc.potentials import wrapped

THREADS = 8
SCRIPT = """
import json, sys, threading, traceback
import numpy as np
import sgmcmc as sg

sys.setswitchinterval(1e-6)  # threads change places wherever they can
O = {"draws": 5, "warmup": 0, "chains": 2, "seed": 1, "progress": False, "warn": False}


def plain(theta, data, rows):
    return (theta - data[rows]).sum(axis=0)


def looped(theta, data, rows, out):
    for i in rows:
        for j in range(theta.size):
            out[j] += theta[j] - data[i, j]


def logistic():
    model = sg.models.LogisticRegression(np.eye(4), np.arange(4) % 2, sg.priors.Gaussian(1.0))
    return sg.sample(model, sg.SGNHT(1e-2), batch_size=2, **O).draws


def python():
    return sg.sample(sg.Potential(plain, dim=3, data=np.ones((5, 3))), sg.SGNHT(1e-2), **O).draws


def compiled():
    import numba

    return sg.sample(sg.Potential(numba.njit(looped), dim=3, data=np.ones((5, 3))), sg.SGNHT(1e-2), **O).draws


def asked():
    sampler = sg.SGLD(0.1)
    state = sampler.init(np.zeros(3), seed=1)
    return sampler.step(state, gradient=state.theta).theta


kinds = [globals()[name] for name in sys.argv[1].split(",")]
found, errors, barrier = {}, [], threading.Barrier(8)


def work(i):
    kind = kinds[i % len(kinds)]
    try:
        barrier.wait()
        found.setdefault(kind.__name__, []).append(kind().tolist())
    except BaseException:
        errors.append(traceback.format_exc())


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"errors": errors, "found": found}))
"""


@pytest.mark.parametrize("kinds", ["logistic", "compiled", "python,logistic,asked,compiled"])
def test_eight_threads_may_make_the_first_runs_of_a_process(kinds):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kinds], capture_output=True, text=True, check=True, timeout=300
    )
    said = json.loads(done.stdout)
    assert said["errors"] == []
    assert sum(map(len, said["found"].values())) == THREADS
    for draws in said["found"].values():
        assert all(each == draws[0] for each in draws)


def test_a_module_that_another_thread_is_loading_is_not_looked_into(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))  # as it is at its first line
    np.testing.assert_array_equal(checks.any_array("x", [1, 2]), [1, 2])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="x has masked entries"):  # the control
        checks.any_array("x", np.ma.masked_array([1, 2], [True, False]))


def test_no_module_asks_for_a_lazy_name_while_it_is_loaded():
    """It would hold its own lock and wait for that of `lazily`, whose holder may wait for this module."""
    root, lazy, found = Path(sg.__file__).parent, {}, []
    for package in ("sgmcmc", "sgmcmc.models"):
        assert "lazily(" in Path(importlib.import_module(package).__file__).read_text()
        lazy[package] = set(importlib.import_module(package).__all__)
    for path in root.rglob("*.py"):
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        found += [(path.name, n.lineno) for n in imports if lazy.get(n.module, set()) & {a.name for a in n.names}]
    assert found == []
    lazily_used = [p for p in root.rglob("__init__.py") if "lazily(" in p.read_text()]
    assert len(lazily_used) == len(lazy)


@numba.njit
def slope(theta):
    return 3.0 * theta


def test_threads_with_equal_functions_find_one_class(monkeypatch):
    real, barrier, found = hasattr, threading.Barrier(2), []

    def slow(home, name):
        there = real(home, name)
        if name.startswith("Potential_"):
            try:
                barrier.wait(timeout=0.3)  # where there is no lock both are here, and see none
            except threading.BrokenBarrierError:
                barrier.reset()
        return there

    monkeypatch.setattr(wrapped, "hasattr", slow, raising=False)
    threads = [threading.Thread(target=lambda: found.append(type(sg.Potential(slope, dim=2)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] is found[1]


_inside, _most = [], []


def counted(theta):
    _inside.append(None)
    _most.append(len(_inside))
    time.sleep(1e-4)
    _inside.pop()
    return theta


def test_a_python_gradient_is_called_by_one_thread_of_a_worker_at_a_time():
    model = sg.Potential(counted, dim=2)  # of a module, so that it is the very same function there
    with ThreadPoolExecutor(4) as pool:
        options = {"draws": 20, "warmup": 0, "chains": 4, "seed": 1, "progress": False, "warn": False}
        trace = sg.sample(model, sg.SGNHT(0.1), executor=pool, **options)
    assert len(_most) > 80
    assert max(_most) == 1
    np.testing.assert_array_equal(trace.draws, sg.sample(model, sg.SGNHT(0.1), **options).draws)


def test_a_torch_module_is_not_shared_by_two_threads():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 1).double()
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    model = sg.from_torch(lambda net, batch: (time.sleep(1e-4), -(net(batch)[:, 0] ** 2))[1], module, x)
    points = [np.full(model.dim, float(i)) for i in range(4)]
    alone = [model.gradient(point) for point in points]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            for one, other in zip(pool.map(model.gradient, points), alone, strict=True):
                np.testing.assert_array_equal(one, other)


# ---- Dask ----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_dask_workers_with_several_threads_draw_the_same_bits():
    distributed = pytest.importorskip("distributed")
    model = sg.models.LogisticRegression(np.eye(4), np.arange(4) % 2, sg.priors.Gaussian(1.0))
    options = {"draws": 10, "warmup": 0, "chains": 4, "seed": 1, "batch_size": 2, "progress": False, "warn": False}

    def task(seed, options):
        import numpy as np

        import sgmcmc as sg

        model = sg.models.LogisticRegression(np.eye(4), np.arange(4) % 2, sg.priors.Gaussian(1.0))
        return sg.sample(model, sg.SGNHT(1e-2), **options | {"seed": seed}).draws

    settings = {"n_workers": 1, "threads_per_worker": 4, "processes": True, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(**settings, silence_logs=50) as cluster, distributed.Client(cluster) as client:
            found = client.gather([client.submit(task, seed, options, pure=False) for seed in range(8)])
            there = sg.sample(model, sg.SGNHT(1e-2), executor=client.get_executor(), **options)
    for seed, draws in enumerate(found):
        np.testing.assert_array_equal(draws, task(seed, options))
    np.testing.assert_array_equal(there.draws, task(1, options))
