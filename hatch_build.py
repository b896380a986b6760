"""A wheel is pure Python, unless SGMCMC_READY=1 asks for the commonest kernels in it (sgmcmc/run/ahead_of_time.py)."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def is_wanted():
    return os.environ.get("SGMCMC_READY", "0") == "1"


class CustomBuildHook(BuildHookInterface):
    folder = None

    def dependencies(self):
        return ["numba>=0.61", "scipy>=1.13", "tqdm>=4.66"] if is_wanted() else []

    def initialize(self, version, build_data):
        if version == "editable" or not is_wanted():
            return
        self.folder = tempfile.mkdtemp()
        command = [sys.executable, "-m", "sgmcmc.run.ahead_of_time", self.folder]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.app.display_warning(f"no kernels are compiled in advance: {done.stderr.strip().splitlines()[-1:]}")
            return
        for kernel in Path(self.folder).glob("*.nbc"):
            build_data["force_include"][str(kernel)] = f"sgmcmc/compiled/{kernel.name}"
        build_data["pure_python"] = False  # machine code: the wheel is for this platform and this Python
        build_data["infer_tag"] = True

    def finalize(self, version, build_data, artifact_path):
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
