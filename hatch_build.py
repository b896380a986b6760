"""When a wheel is made, the commonest kernels are compiled into it, for this processor: see sgmcmc/ready.py.

SGMCMC_READY=0 leaves them out, and so does an editable installation. A wheel without them works the same; first runs compile.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    folder = None

    def initialize(self, version, build_data):
        if version == "editable" or os.environ.get("SGMCMC_READY") == "0":
            return
        self.folder = tempfile.mkdtemp()
        command = [sys.executable, "-m", "sgmcmc.ready", self.folder]
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
