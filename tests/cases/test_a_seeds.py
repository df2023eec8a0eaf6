# SPDX-License-Identifier: Apache-2.0
"""Seeds, workers and the order of data: public reports A1 to A14."""
import pytest

from conftest import needs_numpy, needs_torch

# A loader whose samples are drawn from all the generators that people use, without a seed of the script's own.
LOADER = """
    import json, os, random, sys
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    workers = int(sys.argv[1])
    rng = np.random.default_rng()

    class Noise(Dataset):
        def __len__(self):
            return 24
        def __getitem__(self, i):
            return {"index": i, "python": random.random(), "numpy": np.random.random(), "generator": rng.random(),
                    "torch": torch.rand(()).item()}

    loader = DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=workers)
    epochs = [[{k: v.tolist() for k, v in batch.items()} for batch in loader] for _ in range(3)]
    with open(os.path.join(os.environ["TRAINCTL_OUT"], "epochs.json"), "w") as f:
        json.dump(epochs, f)
    """


def columns(epochs, key):
    return [[value for batch in epoch for value in batch[key]] for epoch in epochs]


def loader_run(lab, python, workers, scope="worker"):
    import json
    lab.write("loader.py", LOADER)
    lab.spec("%s loader.py %d" % (python, workers), outputs=["epochs.json"], data={"seed_scope": scope})
    run = lab.run()
    return run, json.loads(run.out("epochs.json"))


def plain_epochs(lab, python, workers):
    import json
    lab.write("loader.py", LOADER)
    lab.plain("%s loader.py %d" % (python, workers))
    return json.loads((lab.plain_out / "epochs.json").read_text())


@needs_torch
def test_a1_workers_do_not_repeat_each_others_numpy_numbers(lab, python):
    plain = columns(plain_epochs(lab, python, 2), "generator")
    assert len(set(plain[0])) < len(plain[0]), "each worker inherited the same generator"
    for scope in ("worker", "sample"):
        run, epochs = loader_run(lab, python, 2, scope)
        for key in ("python", "numpy", "generator", "torch"):
            drawn = [value for epoch in columns(epochs, key) for value in epoch]
            assert len(set(drawn)) == len(drawn), (scope, key)


@needs_torch
def test_a2_generators_of_workers_repeat_from_run_to_run(lab, python):
    assert plain_epochs(lab, python, 2) != plain_epochs(lab, python, 2)
    first, _ = loader_run(lab, python, 2)
    second, _ = loader_run(lab, python, 2)
    assert first.result == second.result
    assert lab.verify(second.id)["verdict"] == "identical"


@needs_torch
def test_a3_another_number_of_workers_gives_the_same_samples(lab, python):
    by_worker = {loader_run(lab, python, workers)[0].result for workers in (0, 2)}
    assert len(by_worker) == 2, "PyTorch's own rule: a worker's number is in its seed"
    runs = [loader_run(lab, python, workers, "sample") for workers in (0, 1, 2, 4)]
    assert len({run.result for run, _ in runs}) == 1
    order = columns(runs[0][1], "index")
    assert order[0] != order[1] != order[2], "every epoch is shuffled anew"


@needs_torch
def test_a4_transforms_are_seeded_without_workers_too(lab, python):
    lab.write("transform.py", """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Noise(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return torch.rand(())

        generator = torch.Generator()
        generator.manual_seed(0)  # reaches the shuffle, not the transform
        for batch in DataLoader(Noise(), shuffle=True, generator=generator):
            print(batch.item())
        """)
    assert lab.plain(python + " transform.py") != lab.plain(python + " transform.py")
    lab.spec(python + " transform.py > $TRAINCTL_OUT/drawn", outputs=["drawn"])
    first = lab.run()
    assert lab.run().result == first.result


@needs_torch
def test_a6_every_epoch_and_every_worker_is_augmented_differently(lab, python):
    plain = columns(plain_epochs(lab, python, 2), "generator")
    assert set(plain[0]) & set(plain[1]), "the workers of each epoch inherited the same generator"
    for scope in ("worker", "sample"):
        _, epochs = loader_run(lab, python, 2, scope)
        for key in ("python", "numpy", "generator", "torch"):
            first, second, third = columns(epochs, key)
            assert not set(first) & set(second) and not set(second) & set(third), (scope, key)


@needs_numpy
def test_a6_derived_seeds_differ_in_the_bits_that_a_generator_takes(lab, python):
    """The old derivation of one framework gave all base seeds the same low word; a 32-bit generator takes no other."""
    lab.write("low.py", """
        import os, random, numpy as np
        words = {random.Random().getrandbits(32), int(np.random.randint(2**32, dtype=np.uint64)),
                 int(np.random.default_rng().integers(2**32)), int(os.environ["PL_GLOBAL_SEED"]) & 0xffffffff,
                 int(os.environ["PYTHONHASHSEED"])}
        print(len(words), file=open(os.environ["TRAINCTL_OUT"] + "/n", "w"))
        """)
    lab.spec(python + " low.py", outputs=["n"])
    seen = {lab.run("--seed", seed).result for seed in (0, 42, 123, 999)}
    assert len(seen) == 1 and lab.run().out("n") == "5\n"


@needs_torch
def test_a7_a_seed_of_the_scripts_own_reaches_the_workers(lab, python):
    lab.write("own.py", """
        import os, sys, torch
        from torch.utils.data import DataLoader, Dataset

        class Noise(Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, i):
                return torch.rand(())

        def init(worker):
            open("%s/%s-init-%d" % (os.environ["TRAINCTL_OUT"], sys.argv[1], worker), "w").write(str(torch.initial_seed()))

        torch.manual_seed(int(sys.argv[1]))
        loader = DataLoader(Noise(), num_workers=2, worker_init_fn=init)
        print(torch.stack([b for b in loader]).flatten().tolist(),
              file=open(os.environ["TRAINCTL_OUT"] + "/drawn-" + sys.argv[1], "w"))
        """)
    command = "%s own.py 1 && %s own.py 2" % (python, python)
    lab.plain(command)
    lab.spec(command)
    run = lab.run()
    for name in ("drawn-1", "drawn-2", "1-init-0", "1-init-1", "2-init-1"):  # what the script chose, it gets
        assert run.out(name) == (lab.plain_out / name).read_text()
    assert run.out("drawn-1") != run.out("drawn-2")


@needs_torch
def test_a9_workers_seeded_with_their_number_alone_are_named(lab, python):
    """Each run of such a script, a resumed one too, augments as the first epoch did; equal draws give it away."""
    lab.write("number.py", LOADER.replace("num_workers=workers)",
              "num_workers=workers, worker_init_fn=lambda worker: np.random.seed(worker))"))
    import json
    lab.plain(python + " number.py 2")
    plain = columns(json.loads((lab.plain_out / "epochs.json").read_text()), "numpy")
    assert set(plain[0]) == set(plain[1]) == set(plain[2])
    lab.spec(python + " number.py 2", outputs=["epochs.json"])
    run = lab.run()
    said = run.uncontrolled("torch.utils.data.DataLoader")
    assert any("epoch 1" in why and "same state" in why and "numpy" in why for why in said), said
    lab.spec(python + " number.py 2", outputs=["epochs.json"], data={"seed_scope": "sample"})
    drawn = columns(json.loads(lab.run().out("epochs.json")), "numpy")
    assert not set(drawn[0]) & set(drawn[1]), "seeds of samples come after the script's"


def test_a12_the_hash_of_a_text_is_the_same_in_every_run(lab, python):
    lab.write("fingerprint.py", """
        import hashlib
        columns = {"text", "label", "id", "weight", "lang", "source"}
        print(hashlib.sha256(repr(columns).encode()).hexdigest(), hash("a text"))
        """)
    plain = {lab.plain(python + " fingerprint.py", env={"PYTHONHASHSEED": "random"}) for _ in range(6)}
    assert len(plain) > 1
    lab.spec(python + " fingerprint.py > $TRAINCTL_OUT/hash", outputs=["hash"])
    assert len({lab.run().result for _ in range(4)}) == 1


@needs_torch
def test_a14_what_is_initialised_before_the_script_seeds_is_the_same(lab, python):
    lab.write("head.py", """
        import sys, torch
        head = torch.nn.Linear(4, 2)  # a new head, as from_pretrained would make one
        torch.manual_seed(0)          # too late
        torch.save(head.state_dict(), sys.argv[1])
        print(head.weight.flatten().tolist(), file=open(sys.argv[1] + ".txt", "w"))
        """)
    def weights():
        lab.plain(python + " head.py w")
        return (lab.folder / "w.txt").read_text()
    assert weights() != weights()
    lab.spec(python + " head.py $TRAINCTL_OUT/w", outputs=["w.txt"])
    assert lab.run().result == lab.run().result


# ---- not in the reports, of the same kind ----------------------------------------------------------------------------


def test_children_of_one_process_draw_different_numbers_each_time_the_same(lab, python):
    lab.write("children.py", """
        import multiprocessing, os, random, subprocess, sys

        def draw(queue):
            queue.put(random.random())

        if __name__ == "__main__":
            drawn = [random.random(), random.Random().random()]
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                for _ in range(2):
                    queue = context.Queue()
                    child = context.Process(target=draw, args=(queue,))
                    child.start()
                    drawn.append(queue.get())
                    child.join()
            for _ in range(2):
                drawn.append(float(subprocess.check_output([sys.executable, "-c", "import random; print(random.random())"])))
            assert len(set(drawn)) == len(drawn), drawn
            print(drawn, file=open(os.environ["TRAINCTL_OUT"] + "/drawn", "w"))
        """)
    lab.spec(python + " children.py", outputs=["drawn"])
    assert lab.run().result == lab.run().result


def test_a_sitecustomize_of_the_users_own_still_runs(lab, python):
    lab.write("mine/sitecustomize.py", "import sys; sys.mine = True\n")
    lab.spec(python + " -c 'import sys, random; print(sys.mine, random.random())' > $TRAINCTL_OUT/said", outputs=["said"])
    env = {"PYTHONPATH": str(lab.folder / "mine")}
    first, second = lab.run(env=env), lab.run(env=env)
    assert first.out("said").startswith("True ") and first.result == second.result


def test_the_script_imports_no_more_than_without_us(lab, python):
    command = python + " -c 'import sys; print(sorted(m for m in sys.modules if not m.startswith(\"trainctl_shim\")))'"
    lab.spec(command + " > $TRAINCTL_OUT/modules", outputs=["modules"])
    with_us, without = set(eval(lab.run().out("modules"))), set(eval(lab.plain(command, env={"LC_ALL": "C"})))
    assert sorted(with_us - without - {"sitecustomize"}) == []


@pytest.mark.parametrize("module, text, calls", [
    ("tensorflow", """
        __version__ = "2.99"
        calls = []
        class random:
            set_seed = staticmethod(lambda seed: calls.append(("seed", seed)))
        class config:
            class experimental:
                enable_op_determinism = staticmethod(lambda: calls.append(("determinism",)))
            class threading:
                set_intra_op_parallelism_threads = staticmethod(lambda n: calls.append(("intra", n)))
                set_inter_op_parallelism_threads = staticmethod(lambda n: calls.append(("inter", n)))
        """, ["determinism", "inter", "intra", "seed"]),
    ("jax", """
        __version__ = "0.99"
        calls = []
        class config:
            jax_threefry_partitionable = True
            jax_default_prng_impl = "threefry2x32"
            update = staticmethod(lambda name, value: calls.append((name, value)))
        """, ["jax_default_matmul_precision"]),
])
def test_other_frameworks_are_prepared_when_they_are_imported(lab, python, module, text, calls):
    """Stand-ins that record what is called: neither is installed where the tests run."""
    lab.write(module + ".py", text)
    lab.spec("%s -c 'import %s; print(sorted(c[0] for c in %s.calls))' > $TRAINCTL_OUT/calls"
             % (python, module, module), outputs=["calls"])
    run = lab.run()
    assert eval(run.out("calls")) == calls
    assert run.manifest["python"]["settings"][module] in ("2.99", "0.99")


def test_an_unknown_version_is_reported_and_the_run_goes_on(lab, python):
    lab.write("torch.py", '__version__ = "9.0"\n')
    lab.spec(python + " -c 'import torch; print(torch.__version__)' > $TRAINCTL_OUT/said", outputs=["said"])
    run = lab.run()
    assert run.out("said") == "9.0\n"
    assert any("newer" in why for why in run.uncontrolled("torch"))
    assert run.uncontrolled("torch.use_deterministic_algorithms")


def test_a_python_that_reads_no_variables_is_named(lab, python):
    lab.spec(python + " -I -c 'import random'")
    said = lab.run().uncontrolled("python")
    assert any("-I" in why for why in said), said
