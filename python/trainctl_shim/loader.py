# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader: what its workers draw.

seed_scope worker: PyTorch seeds `random`, torch and (since 1.9) NumPy's global generator in each worker. Generators that the
script keeps in objects of its own are not known to PyTorch; every worker would inherit the same state, in every epoch. A
`worker_init_fn` of ours, or the script's with ours before it, gives each worker its own, unless the script chose the seed.

seed_scope sample: in front of each `__getitem__` all of them are seeded from (loader, epoch, index), also those that the
script gave a seed, so that what a sample looks like does not depend on who loads it (`samples`); in the process of the script
the states are put back behind it, so that the next shuffle and dropout do not depend on it either. The epoch counts
iterators of the loader, from 0. Samples of an IterableDataset have no index: that is reported.

The order of samples is drawn from torch's global generator, as without us, not from a generator of our own: a script that
saves and restores `torch.get_rng_state()` to resume would otherwise lose its place in the order.
"""
import functools
import random

from . import generators, hooks, knobs, report, streams
from .samples import Seeder, fetch as samples_fetch

_worker = {"place": None, "fetchers": 0, "held": {}}  # in a worker: (loader, epoch of its first fetcher), its generators
_loaders = [0]


def prepare(dataloader) -> None:
    """`dataloader` is the module torch.utils.data.dataloader."""
    cls = dataloader.DataLoader
    _wrap_init(cls, _wrap_iter(cls))
    if knobs.value("seed_scope") == "sample":
        _wrap_fetch(dataloader.torch, dataloader._utils.fetch)
        report.setting("torch.utils.data.DataLoader", "each sample is seeded from its index")
    else:
        report.setting("torch.utils.data.DataLoader", "each worker is seeded")


def _wrap_init(cls, iterate) -> None:
    original = cls.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self._trainctl_place = [_loaders[0], -1]  # its number, its epoch
        self._trainctl_memory = _shared_memory() if self.num_workers > 0 and self.worker_init_fn is not None else None
        _loaders[0] += 1
        hooks.run("torch.utils.data.DataLoader", _name_what_is_beyond, self, iterate)

    cls.__init__ = init


def _name_what_is_beyond(loader, iterate) -> None:
    if getattr(loader, "in_order", True) is False:
        report.uncontrolled("torch.utils.data.DataLoader",
                            "the script asked for in_order=False: batches come in the order in which workers end")
    if type(loader).__iter__ is not iterate:
        report.uncontrolled("torch.utils.data.DataLoader", "%s.%s iterates in a way of its own: its workers are seeded as it"
                            " does it" % (type(loader).__module__, type(loader).__name__))
    if knobs.value("seed_scope") == "sample" and not _has_indices(loader.dataset):
        report.uncontrolled("torch.utils.data.DataLoader", "%s has no indices: its samples depend on the number of workers, in"
                            " spite of seed_scope: sample" % type(loader.dataset).__name__)


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
        held = {}
        hooks.run("torch.utils.data.DataLoader", _before_epoch, self, held)
        users = self.worker_init_fn
        self.worker_init_fn = WorkerInit(users, tuple(place), self._trainctl_memory, held)
        try:
            iterator = original(self)
        finally:
            self.worker_init_fn = users
        fetcher = getattr(iterator, "_dataset_fetcher", None)
        if fetcher is not None and _is_by_sample(self.dataset):
            import torch
            fetcher._trainctl_seeder = Seeder(torch, tuple(place), held)
        return iterator

    cls.__iter__ = iterate
    return iterate


def _has_indices(dataset) -> bool:
    from torch.utils.data import IterableDataset
    return not isinstance(dataset, IterableDataset)  # which may have inherited a __getitem__ that raises


def _is_by_sample(dataset) -> bool:
    return knobs.value("seed_scope") == "sample" and _has_indices(dataset)


def _before_epoch(loader, held: dict) -> None:
    import torch
    if _is_by_sample(loader.dataset):
        _draw_as_without_workers(loader)
    if _is_by_sample(loader.dataset) or (loader.num_workers > 0 and getattr(loader, "_iterator", None) is None):
        held.update(generators.find(torch, loader.dataset, loader.collate_fn))
    if loader.num_workers > 1 and not _is_by_sample(loader.dataset):
        _name_copies(torch, loader, held)


def _name_copies(torch, loader, held: dict) -> None:
    reached = generators.reached(torch, loader.dataset, loader.collate_fn)
    for made in held.values():
        for one in made:
            if not one.unseeded and id(one.generator) in reached:
                report.note("torch.utils.data.DataLoader", "each worker has a copy of a %s that the script has seeded: they draw"
                            " the same numbers" % type(one.generator).__name__)


def _draw_as_without_workers(loader) -> None:
    """A new iterator draws one number from the generator. Workers that persist keep their iterator, and would leave the
    generator, and with it the next shuffle, elsewhere than loaders without workers do."""
    if getattr(loader, "_iterator", None) is not None:
        import torch
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)


class WorkerInit:
    """Runs in each worker before its first sample, and then what the script gave."""

    def __init__(self, users, place: tuple, memory, held: dict):
        self.users, self.place, self.memory, self.held = users, place, memory, held
        self.unseeded = [name for name, made in held.items() if made[0].unseeded]

    def __getstate__(self):  # a worker that is not forked shares no memory, and finds what it was sent by itself
        return {**self.__dict__, "memory": None, "held": None}

    def __call__(self, worker: int) -> None:
        hooks.run("torch.utils.data.DataLoader", self._prepare, worker)
        if self.users is not None:
            self.users(worker)
            hooks.run("torch.utils.data.DataLoader", self._compare, worker)

    def _prepare(self, worker: int) -> None:
        import torch
        dataset = torch.utils.data.get_worker_info().dataset
        held = self.held
        if held is None:
            held = generators.find(torch, dataset)
        _worker["place"], _worker["fetchers"], _worker["held"] = self.place, 0, held
        if _is_by_sample(dataset):
            return
        for name in self.unseeded:
            number = streams.derive("worker.%d/%s" % (torch.initial_seed(), name), 128)  # PyTorch's own: base_seed + worker
            for one in held.get(name, ()):
                one.reseed(number)

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
    numpy = generators.numpy_random()
    if numpy is not None:
        _, words, *rest = numpy.get_state()
        states.append(("numpy", repr(tuple(rest)).encode() + words.tobytes()))
    return states


# ---- samples -------------------------------------------------------------------------------------------------------


def _wrap_fetch(torch, fetch_module) -> None:
    cls = fetch_module._MapDatasetFetcher
    original_init, original = cls.__init__, cls.fetch

    @functools.wraps(original_init)
    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        self._trainctl_seeder = None
        if _worker["place"] is not None:  # a worker that persists has a new fetcher for each epoch
            loader, epoch = _worker["place"]
            self._trainctl_seeder = Seeder(torch, (loader, epoch + _worker["fetchers"]), _worker["held"])
            _worker["fetchers"] += 1

    @functools.wraps(original)
    def fetch(self, indices):
        if self._trainctl_seeder is None:
            return original(self, indices)
        return samples_fetch(torch, self, original, self._trainctl_seeder, _worker["place"] is not None, indices)

    cls.__init__ = init
    cls.fetch = fetch
