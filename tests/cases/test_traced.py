# SPDX-License-Identifier: Apache-2.0
"""A command that keeps the trace's contract: the stage, the step, the tensor and the element at which it parts with itself."""
import conftest
import pytest

TOY = conftest.BUILD / "tests/traced-toy"
# A sanitizer's library must be the first of a program, so that nothing is preloaded into such a toy.
IS_SANITIZED = any(name in TOY.read_bytes() for name in (b"libasan.so", b"libtsan.so", b"libclang_rt"))

# What goes wrong, and the stage, the field and the element that must be named.
STAGES = {
    "initial": ("initial weights", "parameter/w", [2]),
    "batch": ("batch", "batch", [2]),
    "loss": ("forward", "forward/layer1", [2]),
    "gradient": ("gradient", "gradient/w", [2]),
    "parameter": ("optimizer", "parameter/w", [2]),
}


def plant(lab, wrong, every, steps=40):
    lab.spec(f"{TOY} {steps} {wrong}", contract="machine", determinism={"trace": every}, outputs=["model.txt"])
    return lab.run()


@pytest.mark.parametrize("field", STAGES)
@pytest.mark.parametrize("every", [1, 10])
def test_the_stage_and_the_element_are_named(lab, field, every):
    """Also where the recorded trace is too coarse to tell."""
    step = 0 if field == "initial" else 13
    plant(lab, f"{field} {step}", every)
    said = lab.verify("last", "--deep", expect=1)
    first = said["first_divergence"]
    stage, name, element = STAGES[field]
    assert (first["stage"], first["step"], first["field"]) == (stage, str(step), name), said["reason"]
    assert first["element"] == element and first["tensor"] == name and first["ulps"] > 0
    assert first["a"] != first["b"] and len(first["a"]) == 8
    assert said["self"] == "disagrees"
    assert IS_SANITIZED or first["circumstances"] == ["clock"]


def test_a_coarse_trace_leaves_the_stage_open_without_a_deep_look(lab):
    plant(lab, "gradient 13", 10)
    first = lab.verify(expect=1)["first_divergence"]
    assert (first["stage"], first["confidence"]) == ("training", "unknown")
    assert (first["step"], first["after"]) == ("20", "10")


def test_the_first_batch_has_a_name_of_its_own(lab):
    plant(lab, "batch 1", 1)
    first = lab.verify(expect=1)["first_divergence"]
    assert (first["stage"], first["step"], first["confidence"]) == ("first batch", "1", "certain")


def test_probes_end_behind_the_step_at_which_it_shows(lab):
    """Forty thousand steps, and what is wrong shows in the third: the probes do not go on to the end."""
    plant(lab, "gradient 3", 1, steps=40000)
    said = lab.verify("last", "--deep", "--keep", expect=1)
    assert said["first_divergence"]["step"] == "3"
    sizes = sorted(trace.stat().st_size for trace in conftest.pathlib.Path(said["folder"]).glob("again-*/trace.bin"))
    assert len(sizes) > 5 and sizes[-1] > 1000 * sizes[-2]


def test_a_command_repeats_its_first_steps_before_the_run(lab):
    plant(lab, "gradient 99", 10)
    said = lab.run("--twice", 5).said
    assert said["state"] == "done" and said["first_divergence"] is None
    assert "the first 5 steps gave the same bits twice" in lab.stderr


def test_a_command_that_does_not_repeat_is_not_run(lab):
    lab.spec(f"{TOY} 40 loss 2", contract="machine", outputs=["model.txt"])
    said = lab.run("--twice", 5, expect=1).said
    assert said["state"] == "failed" and said["first_divergence"]["stage"] == "forward"
    assert "the first 5 steps gave other bits the second time (stage forward): step 2, field 'loss'" in said["reason"]


SCRIPT = """
    import os
    import sys
    import time
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(10, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    if "weights" in sys.argv:
        with torch.no_grad():
            net[2].bias[1] = time.time_ns() % 1000003 / 1000003
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(1, 9):
        x = torch.randn(4, 10)
        if "input" in sys.argv and step == 5:
            x[1, 2] = time.time_ns() % 1000003 / 1000003
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), os.path.join(os.environ["TRAINCTL_OUT"], "model.pt"))
"""


@conftest.needs_torch
def test_the_module_of_an_unmodified_pytorch_script_is_named(lab, python):
    lab.write("train.py", SCRIPT)
    lab.spec(f"{python} train.py input", outputs=["model.pt"], determinism={"trace": 3})
    lab.run()
    said = lab.verify("last", "--deep", "--keep", expect=1)
    first = said["first_divergence"]
    assert (first["stage"], first["step"], first["after"]) == ("forward", "5", "4"), said["reason"]
    assert first["field"] == first["tensor"] == "forward/0" and first["element"] == [1, 0]
    assert first["circumstances"] == ["clock"] and first["ulps"] > 0


@conftest.needs_torch
def test_initial_weights_of_a_pytorch_script_are_named_before_the_run(lab, python):
    lab.write("train.py", SCRIPT)
    lab.spec(f"{python} train.py weights", outputs=["model.pt"])
    first = lab.run("--twice", 2, expect=1).said["first_divergence"]
    assert (first["stage"], first["step"], first["field"]) == ("initial weights", "0", "parameter/2.bias")
