# SPDX-License-Identifier: Apache-2.0
"""What a script turns back is noted with its file and line, and is not put back."""
import json

from conftest import needs_numpy, needs_torch

TRAIN = """\
import os, random, time, torch
{first}
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    opt.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    opt.step()
    {later}
"""


def notes(lab, python, first="pass", later="pass"):
    lab.write("train.py", TRAIN.format(first=first, later=later))
    lab.spec(python + " train.py")
    run = lab.run()
    assert not run.uncontrolled("state_check")
    return [(n["what"], n["detail"], n["file"], n["line"]) for n in run.manifest["python"]["notes"]]


@needs_torch
def test_a_script_that_leaves_the_flags_alone_has_no_notes(lab, python):
    assert notes(lab, python, "torch.manual_seed(7)", "torch.backends.cudnn.benchmark = False") == []


@needs_torch
def test_what_a_loader_and_the_shim_do_themselves_is_not_noted(lab, python):
    """A worker computes with one thread, and so does a loader without workers whose samples are seeded."""
    lab.write("train.py", TRAIN.format(first="""from torch.utils.data import DataLoader, TensorDataset
for workers in (0, 2):
    for batch in DataLoader(TensorDataset(torch.ones(8, 2)), num_workers=workers):
        pass""", later="pass"))
    for scope in ("worker", "sample"):
        lab.spec(python + " train.py", data={"seed_scope": scope})
        assert lab.run().manifest["python"]["notes"] == [], scope


@needs_torch
def test_a_flag_is_noted_where_it_is_turned_back(lab, python):
    for text, what, detail in (
        ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark", "was False, is True"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cuda.matmul.allow_tf32", "was False, is True"),
        ("torch.use_deterministic_algorithms(True, warn_only=True)", "torch.use_deterministic_algorithms(warn_only)",
         "was False, is True"),
        ("torch.set_num_threads(1 + torch.get_num_threads())", "torch.set_num_threads", None),
        ("torch.set_flush_denormal(True)", "torch.set_flush_denormal", "was False, is True"),
    ):
        found = [n for n in notes(lab, python, text) if n[0] == what]
        assert [n[2:] for n in found] == [("train.py", 2)], (text, found)
        assert detail is None or found[0][1] == detail


@needs_torch
def test_a_change_past_the_known_functions_is_noted_at_the_next_step(lab, python):
    assert notes(lab, python, later="torch._C._set_cudnn_benchmark(True)") == [
        ("torch.backends.cudnn.benchmark", "was False, is True", "", 0)]


@needs_torch
def test_a_seed_from_a_clock_is_noted_with_its_place(lab, python):
    for text, what in (("torch.manual_seed(int(time.time()))", "torch.manual_seed"),
                       ("random.seed(time.time_ns())", "random.seed"),
                       ("torch.manual_seed(os.getpid())", "torch.manual_seed")):
        found = notes(lab, python, text)
        assert [(n[0],) + n[2:] for n in found] == [(what, "train.py", 2)], (text, found)


@needs_torch
def test_b20_a_variable_that_is_set_too_late_in_the_script_is_noted(lab, python):
    found = notes(lab, python, "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':16:8'")
    assert [(n[0],) + n[2:] for n in found] == [("environment", "train.py", 2)]
    assert "CUBLAS_WORKSPACE_CONFIG was ':4096:8', is ':16:8': too late" in found[0][1]


@needs_torch
def test_a_flag_that_was_turned_back_is_shown_and_is_among_the_reasons(lab, python):
    lab.write("train.py", TRAIN.format(first="torch.manual_seed(time.time_ns() % 1000)", later="torch.backends.cudnn.benchmark = True"))
    lab.spec(python + " train.py")
    run = lab.run()
    assert "note: torch.backends.cudnn.benchmark: was False, is True (train.py:9)" in lab.stderr
    assert "train.py:9" in json.dumps(lab.verify(run.id, expect=1))


@needs_numpy
def test_a_numpy_seed_from_a_clock_is_noted_without_pytorch(lab, python):
    lab.write("draw.py", "import time, numpy as np\nnp.random.seed(int(time.time()))\n")
    lab.spec(python + " draw.py")
    found = lab.run().manifest["python"]["notes"]
    assert [(n["what"], n["file"], n["line"]) for n in found] == [("numpy.random.seed", "draw.py", 2)]
