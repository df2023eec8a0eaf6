# SPDX-License-Identifier: Apache-2.0
"""The trace of a PyTorch script: what it records without the script's help, and what a difference is called."""
import json

from conftest import BUILD, needs_torch

pytestmark = needs_torch

# Arguments: first and last epoch. What differs between two variants is edited into the text.
TRAIN = """
    import os, sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    first, last = int(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(0)
    x = torch.arange(48.).reshape(12, 4) / 48
    y = (x.sum(1) * 2).long()
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    state = os.environ["TRAINCTL_OUT"] + "/state.pt"
    if first > 1:
        saved = torch.load(state)
        net.load_state_dict(saved["net"])
        opt.load_state_dict(saved["opt"])
    for epoch in range(first, last + 1):
        for a, b in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(a), b)
            loss.backward()
            opt.step()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, state)
    """


def run(lab, python, text=TRAIN, command="{python} train.py 1 2"):
    lab.write("train.py", text)
    lab.spec(command.format(python=python), outputs=["state.pt"])
    return lab.run()


def divergence(lab, a, b):
    said = json.loads(lab.trainctl("diff", a.id, b.id, "--json", expect=1))
    return said["first_divergence"]


def test_every_step_is_recorded_with_names_of_the_modules(lab, python):
    made = run(lab, python)
    assert made.manifest["trace"]["steps"] == "7"  # and what there was before the first
    assert made.manifest["trace"]["fields"] == 2 + 3 + 1 + 3 * 6
    assert not made.uncontrolled("trace")
    assert run(lab, python).result == made.result
    assert lab.verify(made.id)["verdict"] == "identical"


def test_a_difference_is_named_by_where_it_begins(lab, python):
    made = run(lab, python)
    for change, step, field in (
        (("manual_seed(0)", "manual_seed(1)"), 0, "parameter/0.weight"),
        (("x = torch.arange(48.)", "x = torch.arange(48.).flip(0)"), 1, "batch"),
        (("batch_size=4)", "batch_size=4, sampler=list(range(12))[::-1])"), 1, "indices"),
        (("loss.backward()", "(loss * 2).backward()"), 1, "loss"),
        (("            opt.step()", "            net[3].bias.grad.mul_(epoch)\n            opt.step()"), 4, "gradient/3.bias"),
        (("            opt.step()", "            opt.param_groups[0]['lr'] = 0.1 / epoch\n            opt.step()"), 4,
         "parameter/0.weight"),
        (("momentum=0.9)", "momentum=0.8)"), 2, "optimizer/0.weight.momentum_buffer"),
    ):
        assert TRAIN.count(change[0]) == 1, change
        found = divergence(lab, made, run(lab, python, TRAIN.replace(*change)))
        assert (found["step"], found["field"]) == (str(step), field), (change, found)


def test_a_resumed_process_goes_on_in_the_same_trace(lab, python):
    whole = run(lab, python)
    parts = run(lab, python, command="{python} train.py 1 1 && {python} train.py 2 2")
    assert parts.manifest["trace"] == whole.manifest["trace"]


def test_gradients_of_two_optimizers_are_in_one_record(lab, python):
    made = run(lab, python, TRAIN.replace(
        "opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
        "opt = torch.optim.SGD(net[0].parameters(), lr=0.1, momentum=0.9); two = torch.optim.Adam(net[3].parameters())")
        .replace("            opt.step()", "            opt.step()\n            two.step()"))
    assert made.manifest["trace"]["steps"] == "13"
    assert not made.uncontrolled("trace")


def test_no_record_where_the_spec_wants_none_and_fewer_where_it_wants_fewer(lab, python):
    lab.write("train.py", TRAIN)
    lab.spec(python + " train.py 1 2", outputs=["state.pt"], determinism={"trace": 0})
    assert lab.run().manifest["trace"] is None
    lab.spec(python + " train.py 1 2", outputs=["state.pt"], determinism={"trace": 3})
    assert lab.run().manifest["trace"]["steps"] == "3"  # 0, 3 and 6


def test_a_step_of_the_scripts_own_optimizer_and_odd_tensors_are_traced(lab, python):
    made = run(lab, python, """
        import os, torch

        class Own(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        weights = [torch.zeros(3, dtype=torch.bfloat16, requires_grad=True), torch.zeros(2, 3).t().requires_grad_(),
                   torch.zeros((), dtype=torch.complex64, requires_grad=True), torch.zeros(0, requires_grad=True),
                   torch.tensor([float("nan")], requires_grad=True), torch.zeros(2, requires_grad=True)]
        opt = Own(weights, lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            sum((w.abs() if w.is_complex() else w).sum().float() for w in weights[:5]).backward()
            opt.step()
        torch.save(weights, os.environ["TRAINCTL_OUT"] + "/state.pt")
        """)
    assert made.manifest["trace"]["steps"] == "3" and not made.uncontrolled("trace")


def test_each_rank_of_a_distributed_run_has_a_trace_of_its_own(lab, python):
    lab.write("train.py", """
        import os, torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def work(rank, meeting):
            dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
            net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(3):
                opt.zero_grad()
                net(torch.ones(2, 4) * rank).sum().backward()
                opt.step()
            dist.destroy_process_group()

        meeting = os.environ["TRAINCTL_REPORT"] + "/meeting"
        children = [mp.get_context("fork").Process(target=work, args=(rank, meeting)) for rank in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
            assert child.exitcode == 0
        """)
    lab.spec(python + " train.py")
    made = lab.run()
    assert made.manifest["trace"]["steps"] == "4"
    assert (made.path / "trace-rank1.bin").stat().st_size == (made.path / "trace.bin").stat().st_size
    assert lab.run().result == made.result


def test_every_second_step_of_a_resumed_process_is_the_same_one(lab, python):
    made = []
    for command in ("{python} train.py 1 2", "{python} train.py 1 1 && {python} train.py 2 2"):  # of three steps each
        lab.write("train.py", TRAIN)
        lab.spec(command.format(python=python), outputs=["state.pt"], determinism={"trace": 2})
        made.append(lab.run().manifest["trace"])
    assert made[0]["steps"] == "4" and made[1] == made[0]


def test_batches_are_not_kept_where_no_step_comes(lab, python):
    made = run(lab, python, """
        import os, torch, weakref
        from torch.utils.data import DataLoader, TensorDataset

        net = torch.nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = []
        for batch, in DataLoader(TensorDataset(torch.ones(12, 4)), batch_size=4):
            seen.append(weakref.ref(batch))
        del batch
        assert all(ref() is None for ref in seen), "something keeps what an evaluation went through"
        torch.save(net.state_dict(), os.environ["TRAINCTL_OUT"] + "/state.pt")
        """)
    assert not made.uncontrolled("trace")


TWO = """
    import gc, os, torch
    from torch import nn

    first = nn.Linear(2, 2)
    {between}
    torch.manual_seed(0)
    second = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    opt = torch.optim.SGD(list(second.parameters()) + list(first.parameters()), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        second(first(torch.eye(2))).square().sum().backward()
        opt.step()
    torch.save(first.state_dict(), os.environ["TRAINCTL_OUT"] + "/state.pt")
    """


def test_names_do_not_depend_on_the_collector_and_what_it_left(lab, python):
    """Modules of other generations of the collector, garbage among them."""
    plain = run(lab, python, TWO.format(between="gc.disable()"))
    other = run(lab, python, TWO.format(between="gc.collect(); gc.disable(); "
                                        "net = nn.Linear(3, 3); net.itself = [net]; del net"))
    assert plain.manifest["trace"]["fields"] == 2 + 3 + 1 + 3 * 6 - 6  # plain SGD has no state
    assert plain.manifest["trace"] == other.manifest["trace"]


def test_batches_that_another_thread_fetches_are_left_out_and_reported(lab, python):
    text = TRAIN.replace("    for epoch in", """
    import queue, threading
    def ahead(batches):
        ready = queue.Queue()
        threading.Thread(target=lambda: [ready.put(b) for b in list(batches) + [None]], daemon=True).start()
        return iter(ready.get, None)
    for epoch in""").replace("in loader:", "in ahead(loader):")
    made = run(lab, python, text)
    assert made.manifest["trace"]["steps"] == "7"
    assert made.uncontrolled("trace") == ["batches are fetched in another thread than the step's; they are not traced"]
    assert run(lab, python, text).result == made.result


def test_the_first_step_of_each_process_has_its_modules_outputs(lab, python):
    """What `verify --deep` asks for, of the step behind a checkpoint."""
    lab.write("train.py", TRAIN)
    folder = lab.folder.parent
    env = {"TRAINCTL_SEED": "1", "TRAINCTL_KNOBS": "trace=1", "TRAINCTL_TRACE": str(folder / "trace.bin"),
           "TRAINCTL_TRACE_DUMP": "4", "PYTHONPATH": str(BUILD / "lib/trainctl/python")}
    lab.plain(python + " train.py 1 1", env={**env, "TRAINCTL_TRACE_FINE": "1-1"})
    names = (folder / "trace-fine.bin").read_bytes()
    assert all(field in names for field in (b"forward/0", b"forward/3", b"gradient-of/3", b"gradient-of/0"))
    (folder / "trace-fine.bin").unlink()
    lab.plain(python + " train.py 2 2", env={**env, "TRAINCTL_TRACE_FINE": "4-4"})
    assert (folder / "trace-fine.bin").read_bytes()[:len(names) // 2] == names[:len(names) // 2]
    dumped = {str(path.relative_to(folder / "dump-4")) for path in (folder / "dump-4").rglob("*.npy")}
    assert {"indices.npy", "batch/0.npy", "gradient/0.weight.npy", "parameter/3.bias.npy",
            "optimizer/0.weight.momentum_buffer.npy"} <= dumped
