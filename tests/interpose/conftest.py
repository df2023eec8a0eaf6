# SPDX-License-Identifier: Apache-2.0
"""Running a program with the interposer in front of it, and reading what it reported."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["TRAINCTL_BUILD"])
LIBRARY = BUILD / "lib/trainctl/libtrainctl-det.so"
PROGRAMS = BUILD / "tests/interpose"


class Preloaded:
    def __init__(self, folder):
        self.folder, self.lines = folder, []
        self.report = folder / "report"
        self.report.mkdir()

    def __call__(self, *words, knobs="", seed="7", preload=str(LIBRARY), expect=0, env=None, **more):
        """Standard output of a program of ours, or any other, under the interposer (preload=None: without it)."""
        words = [str(word) for word in words]
        if "/" not in words[0] and (PROGRAMS / words[0]).exists():
            words[0] = str(PROGRAMS / words[0])
        around = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TRAINCTL_KNOBS": knobs, "TRAINCTL_SEED": seed,
                  "TRAINCTL_REPORT": str(self.report), "TRAINCTL_PROCESS": "0" * 16, **(env or {})}
        if preload:
            around["LD_PRELOAD"] = preload
        done = subprocess.run(words, env=around, capture_output=True, text=True, timeout=60, **more)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        assert done.stderr == "", done.stderr
        file = self.report / "interposer.jsonl"
        self.lines = [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []
        if file.exists():
            file.unlink()
        return done.stdout

    def events(self, what):
        return [line for line in self.lines if line.get("event") == what]

    def counts(self):
        sums = {}
        for line in self.lines:
            for name, count in line.get("counts", {}).items():
                sums[name] = sums.get(name, 0) + count
        return sums

    def objects(self):
        return [item for line in self.lines for item in line.get("objects", [])]


@pytest.fixture
def run(tmp_path):
    return Preloaded(tmp_path)
