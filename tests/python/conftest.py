# SPDX-License-Identifier: Apache-2.0
"""A run of the shortened example, made once, and a way to call the program."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["TRAINCTL_BUILD"])
SOURCE = pathlib.Path(os.environ["TRAINCTL_SOURCE"])


class Program:
    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "TRAINCTL_STORE": str(folder / "store"), "XDG_CACHE_HOME": str(folder / "cache")}

    def __call__(self, *words, expect=0):
        done = subprocess.run([BUILD / "bin/trainctl", *map(str, words)], cwd=self.folder, env=self.env,
                              capture_output=True, text=True)
        assert done.returncode == expect, done.stderr + done.stdout
        return done.stdout

    def json(self, *words, expect=0):
        return json.loads(self(*words, "--json", expect=expect))


@pytest.fixture(scope="session")
def trainctl(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="session")
def run(trainctl):
    return trainctl.json("run", SOURCE / "examples/fashion-mnist/short.yaml")
