# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader: what its workers draw.

seed_scope worker: PyTorch seeds `random`, torch and (since 1.9) NumPy's global generator in each worker. Generators that the
script made without a seed are not known to PyTorch; every worker would inherit the same state, in every epoch. A
`worker_init_fn` of ours, or the script's with ours before it, gives each worker its own.

seed_scope sample: in front of each `__getitem__` all of them are seeded from (loader, epoch, index), so that what a sample
looks like does not depend on who loads it; in the process of the script the states are put back behind it, so that the next
shuffle and dropout do not depend on it either. The epoch counts iterators of the loader, from 0.

The order of samples is drawn from torch's global generator, as without us, not from a generator of our own: a script that
saves and restores `torch.get_rng_state()` to resume would otherwise lose its place in the order.
"""
import functools
import random

from . import generators, hooks, knobs, report, streams

_worker = {"place": None, "fetchers": 0}  # in a worker: (loader, epoch of its first fetcher)
_loaders = [0]


def prepare(dataloader) -> None:
    """`dataloader` is the module torch.utils.data.dataloader."""
    cls = dataloader.DataLoader
    _wrap_init(cls)
    _wrap_iter(cls)
    if knobs.value("seed_scope") == "sample":
        _wrap_fetch(dataloader.torch, dataloader._utils.fetch)
        report.setting("torch.utils.data.DataLoader", "each sample is seeded from its index")
    else:
        report.setting("torch.utils.data.DataLoader", "each worker is seeded")


def _wrap_init(cls) -> None:
    original = cls.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self._trainctl_place = [_loaders[0], -1]  # its number, its epoch
        self._trainctl_memory = _shared_memory() if self.num_workers > 0 and self.worker_init_fn is not None else None
        _loaders[0] += 1
        if getattr(self, "in_order", True) is False:
            report.uncontrolled("torch.utils.data.DataLoader",
                                "the script asked for in_order=False: batches come in the order in which workers end")

    cls.__init__ = init


def _shared_memory():
    """Where the workers of one epoch leave what the next one's compare with: digests of states, all forks see it."""
    import mmap  # multiprocessing has imported it
    return mmap.mmap(-1, _WORKERS * 3 * 8)


def _wrap_iter(cls) -> None:
    original = cls.__iter__

    @functools.wraps(original)
    def iterate(self):
        place = getattr(self, "_trainctl_place", None)
        if place is None:  # made without its __init__
            return original(self)
        place[1] += 1
        if knobs.value("seed_scope") == "sample":
            _draw_as_without_workers(self)
        users = self.worker_init_fn
        self.worker_init_fn = WorkerInit(users, tuple(place), self._trainctl_memory)
        try:
            iterator = original(self)
        finally:
            self.worker_init_fn = users
        fetcher = getattr(iterator, "_dataset_fetcher", None)
        if fetcher is not None:
            fetcher._trainctl_place = tuple(place)
        return iterator

    cls.__iter__ = iterate


def _draw_as_without_workers(loader) -> None:
    """A new iterator draws one number from the generator. Workers that persist keep their iterator, and would leave the
    generator, and with it the next shuffle, elsewhere than loaders without workers do."""
    if getattr(loader, "_iterator", None) is not None:
        import torch
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)


class WorkerInit:
    """Runs in each worker before its first sample, and then what the script gave."""

    def __init__(self, users, place: tuple, memory):
        self.users, self.place, self.memory = users, place, memory

    def __getstate__(self):  # a worker that is not forked shares no memory
        return {"users": self.users, "place": self.place, "memory": None}

    def __call__(self, worker: int) -> None:
        hooks.run("torch.utils.data.DataLoader", self._prepare, worker)
        if self.users is not None:
            self.users(worker)
            hooks.run("torch.utils.data.DataLoader", self._compare, worker)

    def _prepare(self, worker: int) -> None:
        _worker["place"], _worker["fetchers"] = self.place, 0
        if knobs.value("seed_scope") == "worker":
            import torch
            seed = torch.initial_seed()  # PyTorch's own: base_seed + worker
            generators.reseed((seed, seed >> 32))

    def _compare(self, worker: int) -> None:
        """The script's own function may give a worker the same state in every epoch."""
        if self.memory is None or knobs.value("seed_scope") == "sample" or worker >= _WORKERS:
            return
        for number, (name, state) in enumerate(_states()):
            at = (worker * 3 + number) * 8
            before, now = self.memory[at:at + 8], streams.digest(state)[:8]
            self.memory[at:at + 8] = now
            if before == now:
                report.uncontrolled("torch.utils.data.DataLoader", "worker %d began epoch %d with the same state of %s as an "
                                    "epoch before: its numbers repeat" % (worker, self.place[1], name))


_WORKERS = 64  # of which the states are compared


def _states() -> list:
    import torch
    states = [("random", repr(random.getstate()).encode()), ("torch", torch.default_generator.get_state().numpy().tobytes())]
    numpy = _numpy()
    if numpy is not None:
        states.append(("numpy", repr(numpy.random.get_state()[2:]).encode() + numpy.random.get_state()[1].tobytes()))
    return states


# ---- one sample ----------------------------------------------------------------------------------------------------


def _seed_sample(torch, place: tuple, index) -> None:
    """All generators that can be reached, from the sample's address alone."""
    try:
        number = int(index)
    except (TypeError, ValueError):  # a key of another kind: of a dict, a tuple of numbers
        number = streams.derive("index." + repr(index), 63)
    address = "sample.%d.%d.%d" % (place[0], place[1], number)
    seed = streams.derive(address, 64)
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    numpy = _numpy()
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
        generators.reseed((seed, seed >> 32))


def _numpy():
    import sys
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and hasattr(numpy, "random") else None


class _Surroundings:
    """The states of the script's process, put back behind the samples; and one thread, as a worker has it."""

    def __init__(self, torch):
        self.torch = torch
        self.numpy = _numpy()
        self.threads = torch.get_num_threads()

    def __enter__(self):
        self.random = random.getstate()
        self.generator = self.torch.default_generator.get_state()
        if self.numpy is not None:
            self.legacy = self.numpy.random.get_state()
            self.states = generators.states()
        self.torch.set_num_threads(1)

    def __exit__(self, *ignored):
        self.torch.set_num_threads(self.threads)
        random.setstate(self.random)
        self.torch.default_generator.set_state(self.generator)
        if self.numpy is not None:
            self.numpy.random.set_state(self.legacy)
            generators.restore(self.states)


def _wrap_fetch(torch, fetch_module) -> None:
    cls = fetch_module._MapDatasetFetcher
    original_init, original = cls.__init__, cls.fetch

    @functools.wraps(original_init)
    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        self._trainctl_place = None
        if _worker["place"] is not None:  # a worker that persists has a new fetcher for each epoch
            loader, epoch = _worker["place"]
            self._trainctl_place = (loader, epoch + _worker["fetchers"])
            _worker["fetchers"] += 1

    @functools.wraps(original)
    def fetch(self, indices):
        if self._trainctl_place is None:
            return original(self, indices)
        dataset = self.dataset
        self.dataset = _Seeding(torch, dataset, self._trainctl_place)
        try:
            if _worker["place"] is not None:
                return original(self, indices)
            with _Surroundings(torch):
                return original(self, indices)
        finally:
            self.dataset = dataset

    cls.__init__ = init
    cls.fetch = fetch


class _Seeding:
    """A dataset that seeds in front of each sample. A dataset's `__getitems__` loads a batch at once, which can't be: it is
    given one index at a time."""

    def __init__(self, torch, dataset, place: tuple):
        self._torch, self._dataset, self._place = torch, dataset, place

    def __getattr__(self, name):
        return getattr(self._dataset, name)

    def __getitem__(self, index):
        _seed_sample(self._torch, self._place, index)
        return self._dataset[index]

    @property
    def __getitems__(self):
        if not getattr(self._dataset, "__getitems__", None):
            return None
        return self._load_each

    def _load_each(self, indices):
        items = []
        for index in indices:
            _seed_sample(self._torch, self._place, index)
            items.extend(self._dataset.__getitems__([index]))
        return items
