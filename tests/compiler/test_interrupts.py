"""Ctrl-C while LLVM generates code or loads it: it is raised, once the code is there and kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from sgmcmc.compiler.interrupts import with_late_interrupts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a POSIX signal")

SCRIPT = """
import logging, os, signal, sys
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target
import sgmcmc as sg

signal.signal(signal.SIGINT, signal.default_int_handler)
logging.basicConfig(stream=sys.stdout, format="log: %(message)s")
engine, left = cpu_target.target_context.codegen()._engine, [int(sys.argv[1])]


def press(hook):
    def pressed(*given):
        if left[0] > 0:
            left[0] -= 1
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # Python answers the signal in here
                pass
        return hook(*given)

    return pressed


engine.set_object_cache(press(JITCodeLibrary._object_compiled_hook), press(JITCodeLibrary._object_getbuffer_hook))
options = {"draws": 3, "warmup": 0, "chains": 1, "seed": 1, "progress": False, "warn": False}
for attempt in range(2):
    try:
        trace = sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), **options)
        print("ended", trace.info["interrupted"], trace.draws.sum())
    except KeyboardInterrupt:
        print("raised")
"""


def run(folder, presses):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(presses)], capture_output=True, text=True, check=True, env=environment
    )
    assert "ignored" not in done.stderr  # what Python says of an exception that it cannot raise
    return done.stdout.splitlines()


def test_ctrl_c_while_code_is_generated_or_loaded_is_raised_and_the_code_is_kept(tmp_path):
    first = run(tmp_path, 1)
    assert first[0] == "raised"
    assert first[1].startswith("ended False")
    kernels = sorted(tmp_path.rglob("*.nbc"))
    assert kernels  # the second attempt found the code of the first, and nothing was logged
    assert run(tmp_path, 1) == first  # loaded, with Ctrl-C while it is
    assert run(tmp_path, 0) == [first[1], first[1]]  # the control
    assert sorted(tmp_path.rglob("*.nbc")) == kernels


def test_all_presses_together_are_one_interrupt_raised_after_the_outermost_kernel():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    order = []

    class Engine:
        def finalize_object(self):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
            order.append("generated")

    engine = Engine()
    inner = with_late_interrupts(lambda sig: engine.finalize_object() or order.append("inner"), lambda: engine)
    outer = with_late_interrupts(lambda sig: inner(sig) or order.append("outer"), lambda: engine)
    try:
        with pytest.raises(KeyboardInterrupt):
            outer(None)
        assert order == ["generated", "inner", "outer"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert "finalize_object" not in vars(engine)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_that_compiles_at_the_same_time_generates_code_as_ever():
    class Engine:
        threads: list[str] = []  # noqa: RUF012

        def finalize_object(self):
            self.threads.append(threading.current_thread().name)

    engine = Engine()

    def compile_for(sig):
        thread = threading.Thread(target=engine.finalize_object, name="other")
        thread.start()
        thread.join()

    with_late_interrupts(compile_for, lambda: engine)(None)
    assert engine.threads == ["other"]
