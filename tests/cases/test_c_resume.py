# SPDX-License-Identifier: Apache-2.0
"""Resuming is not exact: public reports C1 to C14.

Each program trains two epochs of three steps, in one process or in two with a checkpoint between. Where the checkpoint has all
that it must have, the traces are the same; where the reported part is missing, `diff` names the first step of the second
process and what was another there. Both are compared with the run that went through, not with another resumed one.
"""
import json

import pytest

from conftest import needs_torch

pytestmark = needs_torch

FIRST_AFTER = "4"  # the step behind the checkpoint

# The frame: {setup} makes what the case is about, {save} and {load} are what its checkpoint has, {batches} and {step} use it.
FRAME = """
    import os, sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    first, last = int(sys.argv[1]), int(sys.argv[2])
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = torch.linspace(-1, 1, 48).reshape(12, 4)
    y = torch.arange(12) % 3

    class Data(Dataset):
        noise = 0.0
        def __len__(self):
            return 12
        def __getitem__(self, i):
            return x[i] + self.noise * torch.rand(4), y[i]

    data = Data()
    def loss_of(a, b):
        return nn.functional.cross_entropy(net(a), b)
    def update(a, b):
        opt.zero_grad()
        loss_of(a, b).backward()
        opt.step()
    extra = lambda: None
    restore = lambda saved: None
    def batches(epoch):
        return iter(DataLoader(data, batch_size=4))
    restore_late = None
    {case}
    path = os.environ["TRAINCTL_OUT"] + "/state.pt"
    late = None
    if first > 1:
        saved = torch.load(path)
        net.load_state_dict(saved["net"])
        opt.load_state_dict(saved["opt"])
        restore(saved["extra"])
        late = saved["extra"]
    for epoch in range(first, last + 1):
        for number, (a, b) in enumerate(batches(epoch)):
            if number == 0 and late is not None and restore_late:
                restore_late(late)
                late = None
            update(a, b)
    torch.save({{"net": net.state_dict(), "opt": opt.state_dict(), "extra": extra()}}, path)
    """


def program(case):
    lines = case.strip("\n").split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    return FRAME.format(case="\n    ".join(line[indent:] for line in lines))


def run(lab, python, case, parts):
    lab.write("train.py", program(case))
    lab.spec(" && ".join("%s train.py %d %d" % (python, a, b) for a, b in parts))
    return lab.run()


def check(lab, python, right, wrong, field):
    """A program interrupted goes on exactly if its checkpoint has what it needs; if not, the first step behind it is named."""
    whole, parts = run(lab, python, right, [(1, 2)]), run(lab, python, right, [(1, 1), (2, 2)])
    assert parts.manifest["trace"]["sha256"] == whole.manifest["trace"]["sha256"]
    faulty = run(lab, python, wrong, [(1, 1), (2, 2)])
    found = json.loads(lab.trainctl("diff", whole.id, faulty.id, "--json", expect=1))["first_divergence"]
    assert (found["step"], found["field"]) == (FIRST_AFTER, field), found
    return faulty


SCALER = """
    class Scaler:  # grows after each two good steps, as GradScaler does after 2000
        scale, good = 2.0 ** 16, 0
    scaler = Scaler()
    def update(a, b):
        opt.zero_grad()
        (loss_of(a, b) * scaler.scale).backward()
        for p in net.parameters():
            p.grad /= scaler.scale
        opt.step()
        scaler.good += 1
        if scaler.good % 2 == 0:
            scaler.scale *= 2
    extra = lambda: (scaler.scale, scaler.good)
    """


def test_c1_a_loss_scaler_that_was_not_saved(lab, python):
    right = SCALER + "\n    def restore(saved):\n        scaler.scale, scaler.good = saved\n"
    check(lab, python, right, SCALER, "loss")


AUGMENT = """
    data.noise = 0.1
    extra = torch.get_rng_state
    """


def test_c3_generators_restored_after_the_first_fetch(lab, python):
    right = AUGMENT + "\n    restore = torch.set_rng_state\n    sampler_draw = torch.rand(1)\n"
    wrong = AUGMENT + "\n    restore_late = torch.set_rng_state\n    sampler_draw = torch.rand(1)\n"
    check(lab, python, right, wrong, "batch")


SAMPLER = """
    class Shuffle(torch.utils.data.Sampler):
        epoch = 0
        def __init__(self):
            pass
        def __iter__(self):
            return iter(torch.randperm(12, generator=torch.Generator().manual_seed(self.epoch)).tolist())
        def __len__(self):
            return 12
    sampler = Shuffle()
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    def batches(epoch):
        iterator = iter(loader)
        return (batch for batch in iterator)
    """


def test_c4_the_epoch_of_the_sampler_is_lost(lab, python):
    right = SAMPLER.replace("iterator = iter(loader)", "sampler.epoch = epoch\n        iterator = iter(loader)")
    wrong = SAMPLER.replace("iterator = iter(loader)", "sampler.epoch = epoch - first + 1\n        iterator = iter(loader)")
    check(lab, python, right, wrong, "indices")


SHUFFLE = """
    def batches(epoch):
        return iter(DataLoader(data, batch_size=4, shuffle=True))
    extra = torch.get_rng_state
    """


def test_c10_no_generator_in_the_checkpoint(lab, python):
    check(lab, python, SHUFFLE + "\n    restore = torch.set_rng_state\n", SHUFFLE, "indices")


HIDDEN = """
    mask = torch.ones(4)
    def update(a, b):
        opt.zero_grad()
        loss_of(a * mask, b).backward()
        opt.step()
        mask.mul_(0.9)  # a cache that was meant to be constant
    """


def test_c11_repeatable_from_a_checkpoint_but_not_equal_to_the_run_that_went_through(lab, python):
    right = HIDDEN + "\n    extra = mask.clone\n    restore = mask.copy_\n"
    first = check(lab, python, right, HIDDEN, "loss")
    second = run(lab, python, HIDDEN, [(1, 1), (2, 2)])
    assert first.result == second.result, "resumed runs repeat each other, which hides it"


MASTERS = """
    net.to(torch.bfloat16)
    masters = [p.detach().float().requires_grad_() for p in net.parameters()]
    opt = torch.optim.SGD(masters, lr=0.1, momentum=0.9)
    def update(a, b):
        net.zero_grad()
        loss_of(a.to(torch.bfloat16), b).backward()
        for m, p in zip(masters, net.parameters()):
            m.grad = p.grad.float()
        opt.step()
        with torch.no_grad():
            for m, p in zip(masters, net.parameters()):
                p.copy_(m)
    extra = lambda: [m.detach().clone() for m in masters]
    """


def test_c14_master_weights_rebuilt_from_bfloat16(lab, python):
    copy = "\n    def restore(saved):\n        with torch.no_grad():\n            for m, s in zip(masters, %s):\n                m.copy_(s)\n"
    check(lab, python, MASTERS + copy % "saved", MASTERS + copy % "net.parameters()", "parameter/group0.0")


@pytest.mark.parametrize("lost", ["net", "opt"])
def test_a_part_that_is_not_loaded_is_named(lab, python, lost):
    """The plain kind of the same: the step behind the checkpoint, and the loss or the momentum."""
    lab.write("train.py", program("    pass"))
    lab.spec("%s train.py 1 2" % python)
    whole = lab.run()
    lab.write("train.py", program("    pass").replace("    %s.load_state_dict(" % lost, "    (lambda saved: 0)("))
    lab.spec("%s train.py 1 1 && %s train.py 2 2" % (python, python))
    found = json.loads(lab.trainctl("diff", whole.id, lab.run().id, "--json", expect=1))["first_divergence"]
    assert found["step"] == FIRST_AFTER
    assert found["field"] == ("loss" if lost == "net" else "optimizer/0.weight.momentum_buffer")
