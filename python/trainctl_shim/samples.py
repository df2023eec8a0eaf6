# SPDX-License-Identifier: Apache-2.0
"""seed_scope sample: in front of each sample every generator that can be reached is seeded from (loader, epoch, index).

What is made without a seed while a sample is loaded has a seed of that sample's; if it is kept (a data set that makes its
generator when it is first asked), it is seeded for each later sample as if that one had made it. One that the script seeds
itself within a sample and keeps can't be brought in line: it is named.
"""
import functools
import random

from . import generators, hooks, report, streams

_SEARCHES = 4  # for what samples have made, in each process and epoch of a loader


class Seeder:
    """Seeds for the samples of one epoch of a loader. `held`: what `generators.find` found; what samples make is added."""

    def __init__(self, torch, place: tuple, held: dict):
        self.torch, self.place, self.held = torch, place, held
        self.searches = 0

    def begin(self, index) -> None:
        try:
            number = int(index)
        except (TypeError, ValueError):  # a key of another kind: of a dict, a tuple of numbers
            number = streams.derive("index." + repr(index), 63)
        address = "sample.%d.%d.%d" % (self.place[0], self.place[1], number)
        seed = streams.derive(address, 64)
        random._inst.seed(seed)
        self.torch.default_generator.manual_seed(seed)
        numpy = generators.numpy_random()
        if numpy is not None:
            numpy.mtrand._rand.seed(seed & 0xFFFFFFFF)
        for name, made in self.held.items():
            number = streams.derive(address + "/" + name, 128)
            for one in made:
                one.reseed(number)
        streams.sample[0] = streams.Sample(address)

    def end(self) -> None:
        sample = streams.sample[0]
        if self.searches < _SEARCHES and (sample.entropies or sample.pythons):
            self.searches += 1
            self.held.update(generators.adopt(sample))

    def load(self, index, get):
        """The sample, loaded by `get`."""
        hooks.run("torch.utils.data.DataLoader", self.begin, index)
        before = generators.young() if self.searches == 0 else None
        item = get()
        hooks.run("torch.utils.data.DataLoader", self.end)
        if before is not None:
            self.searches += 1
            hooks.run("torch.utils.data.DataLoader", self._name_foreign, before)
        return item

    def _name_foreign(self, before: dict) -> None:
        """What a sample has seeded itself and kept: which worker loads what decides what comes next."""
        for number, one in generators.young().items():
            if number not in before and not one.unseeded:
                report.uncontrolled("torch.utils.data.DataLoader", "the data set made a %s with a seed of its own while it"
                                    " loaded a sample, and keeps it: its numbers depend on who loads which sample"
                                    % type(one.generator).__name__)


class _Surroundings:
    """The states of the script's process, put back behind the samples; and one thread, as a worker has it."""

    def __init__(self, torch, held: dict):
        self.torch, self.numpy = torch, generators.numpy_random()
        self.held = [one for made in held.values() for one in made]

    def __enter__(self):
        self.threads = self.torch.get_num_threads()
        self.random = random.getstate()
        self.generator = self.torch.default_generator.get_state()
        if self.numpy is not None:
            self.legacy = self.numpy.mtrand._rand.get_state()
        self.states = [one.state() for one in self.held]
        self.torch.set_num_threads(1)

    def __exit__(self, *ignored):
        self.torch.set_num_threads(self.threads)
        random.setstate(self.random)
        self.torch.default_generator.set_state(self.generator)
        if self.numpy is not None:
            self.numpy.mtrand._rand.set_state(self.legacy)
        for one, state in zip(self.held, self.states):
            one.restore(state)


def fetch(torch, fetcher, original, seeder: Seeder, in_worker: bool, indices):
    """A batch, by the fetcher's own method, with a data set that seeds in front of each sample."""
    dataset = fetcher.dataset
    fetcher.dataset = _Seeding(dataset, seeder)
    try:
        if in_worker:
            return original(fetcher, indices)
        with _Surroundings(torch, seeder.held):
            return original(fetcher, indices)
    finally:
        fetcher.dataset = dataset
        streams.sample[0] = None


class _Seeding:
    """A dataset that seeds in front of each sample. A dataset's `__getitems__` loads a batch at once, which can't be: it is
    given one index at a time."""

    def __init__(self, dataset, seeder: Seeder):
        self._dataset, self._seeder = dataset, seeder

    def __getattr__(self, name):
        return getattr(self._dataset, name)

    def __getitem__(self, index):
        return self._seeder.load(index, lambda: self._dataset[index])

    @property
    def __getitems__(self):
        if not getattr(self._dataset, "__getitems__", None):
            return None
        return self._load_each

    def _load_each(self, indices):
        items = []
        for index in indices:
            items.extend(self._seeder.load(index, functools.partial(self._dataset.__getitems__, [index])))
        return items
