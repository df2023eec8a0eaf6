# SPDX-License-Identifier: Apache-2.0
"""Generators that a script keeps in objects of its own: where they are, their names, and their seeds for a worker or a sample.

Found are NumPy's `Generator` and `RandomState` and Python's `random.Random`, wherever they are (the garbage collector knows
them), and `torch.Generator`, which it does not know, where the data set, what collates, or a module of the script's holds one.
Not found: a generator within a library of another language.

The name of a generator is the digest of its state at the moment when the loader's iterator is made. Copies in workers have
the same name, forked or pickled; two that the script seeded differently have different ones, and keep apart.
"""
import random
import sys

from . import report, streams

_LIMIT = 64  # each costs microseconds per sample
_TORCH_DEFAULT = 67280421310721  # the seed of every torch.Generator that was given none


class _Held:
    """One generator. `unseeded`: the script gave it no seed. `as_new`: to be seeded as one that is made without a seed is."""
    bits = 128
    as_new = False

    def __init__(self, generator, unseeded: bool):
        self.generator, self.unseeded = generator, unseeded

    def reseed(self, number: int) -> None:
        """`number` has 128 bits."""
        number &= (1 << self.bits) - 1
        if self.as_new:
            self.seed_as_new(number)
        else:
            self.seed(number)

    def seed_as_new(self, number: int) -> None:
        self.seed(number)


class _Python(_Held):
    bits = 64

    def __init__(self, generator):
        super().__init__(generator, id(generator) in streams.unseeded_python)

    def state(self):
        return self.generator.getstate()

    def restore(self, state) -> None:
        self.generator.setstate(state)

    def seed(self, number: int) -> None:
        unseeded = self.unseeded
        random.Random.seed(self.generator, number)
        if unseeded:
            streams.unseeded_python.add(id(self.generator))

    def bytes(self) -> bytes:
        return repr(self.state()).encode()


class _Bits(_Held):
    """A bit generator of NumPy's: the state of a `Generator`."""

    def __init__(self, generator):
        self.entropy = _entropy(generator)
        super().__init__(generator, self.entropy in streams.unseeded_numpy)

    def state(self):
        return self.generator.state

    def restore(self, state) -> None:
        self.generator.state = state

    def seed(self, number: int) -> None:
        self.generator.state = type(self.generator)(numpy_random().SeedSequence(number)).state

    def bytes(self) -> bytes:
        return repr(_plain(self.state())).encode()


class _Legacy(_Held):
    """A RandomState, which has half a Gaussian besides its bit generator's state."""

    def __init__(self, generator):
        self.entropy = _entropy(generator._bit_generator)
        super().__init__(generator, self.entropy in streams.unseeded_numpy)

    def state(self):
        return self.generator.get_state(legacy=False)

    def restore(self, state) -> None:
        self.generator.set_state(state)

    def seed(self, number: int) -> None:
        self.generator.seed([number >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)])

    def seed_as_new(self, number: int) -> None:
        """What RandomState() makes of this entropy; a hundred times slower."""
        numpy = numpy_random()
        self.generator.set_state(numpy.RandomState(numpy.MT19937(numpy.SeedSequence(number))).get_state(legacy=False))

    def bytes(self) -> bytes:
        return repr(_plain(self.state())).encode()


class _Torch(_Held):
    bits = 64

    def __init__(self, generator):
        super().__init__(generator, generator.initial_seed() == _TORCH_DEFAULT)

    def state(self):
        return self.generator.get_state()

    def restore(self, state) -> None:
        self.generator.set_state(state)

    def seed(self, number: int) -> None:
        self.generator.manual_seed(number)

    def bytes(self) -> bytes:
        return self.state().numpy().tobytes()


def _plain(state):
    """Arrays as bytes: the text of a long array leaves out its middle."""
    if isinstance(state, dict):
        return sorted((key, _plain(value)) for key, value in state.items())
    return state.tobytes() if hasattr(state, "tobytes") else state


def numpy_random():
    """The module numpy.random, if the script has imported it."""
    return sys.modules.get("numpy.random")


def _entropy(bit_generator):
    """What a generator without a seed was given for its entropy; None for RandomState(3)."""
    sequence = getattr(bit_generator, "_seed_seq", None) or getattr(bit_generator, "seed_seq", None)
    entropy = getattr(sequence, "entropy", None)
    return entropy if isinstance(entropy, int) else None


# ---- finding -------------------------------------------------------------------------------------------------------


def _with_subclasses(cls) -> set:
    found = {cls}
    for sub in cls.__subclasses__():
        found |= _with_subclasses(sub)
    return found


def _of_the_system() -> set:
    """Generators that are not the script's, by id: those that are seeded by name, and the one for names of files."""
    ours = {id(random._inst)}
    numpy = numpy_random()
    if numpy is not None:
        ours |= {id(numpy.mtrand._rand), id(numpy.mtrand._rand._bit_generator)}
    names = getattr(sys.modules.get("tempfile"), "_name_sequence", None)
    return ours | {id(getattr(names, "_rng", None))}


def _collected(objects) -> list:
    pythons = _with_subclasses(random.Random) - _with_subclasses(random.SystemRandom)
    numpy = numpy_random()
    legacy = _with_subclasses(numpy.RandomState) if numpy is not None else set()
    bits = _with_subclasses(numpy.BitGenerator) if numpy is not None else set()
    wanted = pythons | legacy | bits
    candidates = [o for o in objects if type(o) in wanted]
    skip = _of_the_system() | {id(o._bit_generator) for o in candidates if type(o) in legacy}
    found = []
    for one in candidates:
        if id(one) not in skip:
            kind = _Python if type(one) in pythons else _Legacy if type(one) in legacy else _Bits
            found.append(kind(one))
    return found


def _walk(torch, roots) -> dict:
    """{id: object}: what is within some steps of `roots`, and of the globals of the modules that define them."""
    modules = {"__main__"} | {getattr(type(root), "__module__", "__main__") for root in roots}
    seen, layer = {}, list(roots)
    for name in sorted(modules):
        layer.extend(vars(sys.modules.get(name, sys)).values())
    for _ in range(5):
        following = []
        for one in layer:
            if id(one) in seen or len(seen) > 4096:
                continue
            seen[id(one)] = one
            if isinstance(one, (list, tuple)):
                following.extend(one[:64])
            elif isinstance(one, dict):
                following.extend(list(one.values())[:64])
            elif not isinstance(one, (type, type(sys), str, bytes, torch.Tensor)):
                following.extend(getattr(one, "__dict__", {}).values())
        layer = following
    return seen


def reached(torch, *roots) -> set:
    """The ids of what is within some steps of `roots`; of a Generator, that of its bits."""
    seen = _walk(torch, roots)
    return set(seen) | {id(one.bit_generator) for one in seen.values() if type(one).__name__ == "Generator"
                        and hasattr(one, "bit_generator")}


def _torches(torch, roots) -> list:
    return [_Torch(one) for one in _walk(torch, roots).values() if isinstance(one, torch.Generator)
            and one is not torch.default_generator and one.device.type == "cpu"]


def find(torch, *roots) -> dict:
    """{name: [generator]}. `roots` are what torch.Generators are looked for in, besides the modules that define them."""
    import gc
    named = {}
    for one in _collected(gc.get_objects()) + _torches(torch, roots):
        known = _adopted.get(id(one.generator))
        one.as_new = known is not None
        name = known[0] if known else "held." + streams.digest(type(one).__name__.encode() + one.bytes()).hex()[:24]
        named.setdefault(name, []).append(one)
    if len(named) > _LIMIT:
        report.uncontrolled("torch.utils.data.DataLoader", "the script holds %d generators; %d of them are not seeded for its"
                            " loaders" % (len(named), len(named) - _LIMIT))
    return {name: named[name] for name in sorted(named)[:_LIMIT]}


def _references(pairs) -> list:
    return [sys.getrefcount(generator) for _, generator in pairs]


def adopt(sample) -> dict:
    """{name: [generator]} of those that were made without a seed while `sample` was loaded, and are kept."""
    import gc
    named = {}
    nobodys, = _references([("", object())])
    counts = _references(sample.pythons)
    for (name, generator), count in zip(sample.pythons, counts):
        if count > nobodys:
            named.setdefault(name, []).append(_Python(generator))
    if sample.entropies:
        for one in _collected(gc.get_objects()):
            name = sample.entropies.get(getattr(one, "entropy", None))
            if name is not None:
                named.setdefault(name, []).append(one)
    for name, made in named.items():
        for one in made:
            one.as_new = True
            _adopted[id(one.generator)] = (name, one.generator)
    return named


def young() -> dict:
    """{id: generator} of those that were made lately."""
    import gc
    return {id(one.generator): one for one in _collected(gc.get_objects(0) + gc.get_objects(1))}


_adopted = {}  # {id: (name, generator)}: made within a sample; kept alive, so that the id is theirs
