# SPDX-License-Identifier: Apache-2.0
"""Generators that a data set keeps, in all the ways that people keep them: seeds of samples and workers reach them (A1, A3)."""
import json

import pytest

from conftest import needs_torch

# One data set for each way; each sample is its index and what it drew.
KEEPING = """
    import json, os, random, sys
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    rng = np.random.default_rng(11)

    class Base(Dataset):
        make = None
        def __init__(self):
            self.rng = type(self).make() if type(self).make else None
        def __len__(self):
            return 10
        def __getitem__(self, i):
            return torch.tensor([float(i), float(self.draw())], dtype=torch.float64)
        def draw(self):
            return self.rng.random()

    class Bits(Base):
        make = np.random.default_rng
    class Seeded(Base):
        make = staticmethod(lambda: np.random.default_rng(7))
    class Philox(Base):
        make = staticmethod(lambda: np.random.Generator(np.random.Philox()))
    class Legacy(Base):
        make = np.random.RandomState
        def draw(self):
            return self.rng.randn()  # keeps half a pair
    class SeededLegacy(Legacy):
        make = staticmethod(lambda: np.random.RandomState(3))
    class Python(Base):
        make = random.Random
    class SeededPython(Base):
        make = staticmethod(lambda: random.Random(5))
    class Torch(Base):
        make = torch.Generator
        def draw(self):
            return torch.rand((), generator=self.rng)
    class Global(Base):
        def draw(self):
            return rng.random()
    class Local(Base):
        def draw(self):
            return np.random.default_rng().random() + random.Random().random()
    class Late(Base):
        def draw(self):
            self.rng = self.rng or np.random.default_rng()
            return self.rng.random()
    class LateLegacy(Legacy):
        make = None
        def draw(self):
            self.rng = self.rng or np.random.RandomState()
            return self.rng.randn()
    class LatePython(Base):
        def draw(self):
            self.rng = self.rng or random.Random()
            return self.rng.random()
    class LateSeeded(Base):
        def draw(self):
            self.rng = self.rng or np.random.default_rng(9)
            return self.rng.random()
    class Items(Base):
        def draw(self):
            return random.random()
        def __getitems__(self, indices):
            return [self[i] for i in indices]
    class Stream(IterableDataset):
        def __iter__(self):
            yield from torch.rand(10, 2)

    if __name__ == "__main__":
        workers, way, names = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
        more = {}
        if workers > 0:
            more = {"persistent_workers": True} if way == "persist" else {"multiprocessing_context": way}
        drawn = {}
        for name in names:
            data = globals()[name]()
            loaders = [DataLoader(data, batch_size=3, shuffle=name != "Stream", num_workers=workers, **more),
                       DataLoader(data, batch_size=4, num_workers=workers, **more)]
            drawn[name] = [[b.tolist() for b in loader] for _ in range(2) for loader in loaders]
        drawn["after"] = [random.random(), np.random.random(), torch.rand(()).item(), random.Random().random()]
        with open(os.path.join(os.environ["TRAINCTL_OUT"], "drawn.json"), "w") as f:
            json.dump(drawn, f)
    """

ALL = ["Bits", "Seeded", "Philox", "Legacy", "SeededLegacy", "Python", "SeededPython", "Torch", "Global", "Local", "Late",
       "LateLegacy", "LatePython", "Items"]


def keeping(lab, python, workers, way, names, scope):
    lab.write("keeping.py", KEEPING)
    lab.spec("%s keeping.py %d %s %s" % (python, workers, way, " ".join(names)), outputs=["drawn.json"],
             data={"seed_scope": scope})
    run = lab.run()
    return run, json.loads(run.out("drawn.json"))


def said(run):
    return " ".join(run.uncontrolled("torch.utils.data.DataLoader"))


@needs_torch
def test_a3_samples_draw_the_same_however_a_generator_is_kept(lab, python):
    run, alone = keeping(lab, python, 0, "-", ALL, "sample")
    for workers, way in ((2, "fork"), (3, "persist")):
        _, drawn = keeping(lab, python, workers, way, ALL, "sample")
        assert [name for name in drawn if drawn[name] != alone[name]] == [], (workers, way)
    for name in ALL:
        values = [row[1] for epoch in alone[name] for batch in epoch for row in batch]
        assert len(set(values)) == 40, name
    assert said(run) == ""


@needs_torch
def test_a3_workers_that_are_not_forked_find_what_they_were_sent(lab, python):
    names = ["Bits", "SeededLegacy", "Python", "Late"]  # a torch.Generator can't be sent
    assert keeping(lab, python, 0, "-", names, "sample")[1] == keeping(lab, python, 1, "spawn", names, "sample")[1]


@needs_torch
def test_a1_kept_generators_without_a_seed_differ_between_workers(lab, python):
    names = ["Bits", "Philox", "Legacy", "Python", "Torch"]
    run, drawn = keeping(lab, python, 2, "fork", names, "worker")
    for name in names:
        values = [row[1] for epoch in drawn[name] for batch in epoch for row in batch]
        assert len(set(values)) == 40, name
    assert keeping(lab, python, 2, "fork", names, "worker")[0].result == run.result


@needs_torch
@pytest.mark.parametrize("name, scope, text", [
    ("LateSeeded", "sample", "seed of its own while it loaded a sample"),
    ("Stream", "sample", "has no indices"),
])
def test_a3_what_still_depends_on_the_workers_is_named(lab, python, name, scope, text):
    assert text in said(keeping(lab, python, 2, "fork", [name], scope)[0])


@needs_torch
def test_a1_copies_of_a_seeded_generator_are_noted(lab, python):
    run, drawn = keeping(lab, python, 2, "fork", ["Seeded"], "worker")
    values = [row[1] for batch in drawn["Seeded"][0] for row in batch]
    assert len(set(values)) < len(values), "what the script asked for, it gets"
    notes = [note["detail"] for note in run.manifest["python"]["notes"]]
    assert any("copy of a PCG64" in note for note in notes), notes
