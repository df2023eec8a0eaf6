# SPDX-License-Identifier: Apache-2.0
"""examples/pytorch-fashion: a script that differs from run to run repeats, with any number of workers."""
import shutil

import pytest

from conftest import SOURCE, needs_torch

SHORT = "--epochs 2 --samples 512 --out $TRAINCTL_OUT"


@pytest.fixture
def example(lab):
    shutil.copytree(SOURCE / "examples/pytorch-fashion", lab.folder, dirs_exist_ok=True)
    return lab


def run(lab, python, workers):
    return lab.run("--set", "run=%s train.py --workers %d %s" % (python, workers, SHORT))


@needs_torch
def test_the_script_alone_differs_from_run_to_run(example, python):
    first, second = (example.plain("%s train.py --workers 2 %s" % (python, SHORT)) for _ in range(2))
    assert first != second and first.startswith("epoch 1: loss ")


@needs_torch
def test_under_trainctl_it_repeats_with_any_number_of_workers(example, python):
    runs = [run(example, python, workers) for workers in (2, 0, 4)]
    assert len({r.result for r in runs}) == 1
    assert len({(r.path / "out/model.pt").read_bytes() for r in runs}) == 1
    verdict = example.verify(runs[0].id)
    assert verdict["verdict"] == "identical", verdict
