# SPDX-License-Identifier: Apache-2.0
"""What a step's record is made of. The names of fields, in the order in which a step computes them:

    indices, batch, buffer/NAME, loss, gradient/NAME, optimizer/NAME.SLOT, parameter/NAME

NAME is the parameter's in the module that holds it ("conv1.weight"), with the module's class and number in front if there
are several that no other holds; "group0.3" if no module does. A digest covers dtype, shape and bytes; NaNs are one value.
"""
import os
import struct
import weakref

from . import report
from .trace_file import DIGEST, F32, TraceFile, digest_tensors, trace_path
from .trace_wishes import Wishes


class Recorder:
    def __init__(self, torch, every: int):
        self.torch, self.every = torch, every
        self.pid = os.getpid()
        self.is_inside = False
        self.wishes = Wishes(torch)
        self.optimizers, self.fields = [], None
        self.step, self.initial, self.file = 0, None, None
        self.loss, self.batches = None, []

    def is_loaders_worker(self) -> bool:
        return self.torch.utils.data.get_worker_info() is not None

    def after_fork(self) -> "Recorder":
        """A child that trains has a trace of its own, and may have optimizers that its parent made."""
        child = Recorder(self.torch, self.every)
        child.optimizers = [weakref.ref(o() if isinstance(o, weakref.ref) else o) for o in self.optimizers
                            if not isinstance(o, weakref.ref) or o() is not None]
        return child

    # ---- between steps ---------------------------------------------------------------------------------------------

    def add_optimizer(self, optimizer) -> None:
        if self.initial is None:
            self.optimizers.append(weakref.ref(optimizer))
        else:
            report.uncontrolled("trace", "a %s was made after the first step; its parameters are not traced"
                                % type(optimizer).__name__)

    def see_loss(self, tensors) -> None:
        if isinstance(tensors, self.torch.Tensor) and tensors.numel() == 1:
            self.loss = tensors.detach()
        else:
            self.loss = None

    def see_batch(self, indices, batch) -> None:
        if self._is_due(self.step + 1):
            self.batches.append((indices, tensors_of(self.torch, batch)))

    def _is_due(self, step: int) -> bool:
        return step % self.every == 0 or self.wishes.wants(step)

    # ---- a step ----------------------------------------------------------------------------------------------------

    def before_step(self) -> None:
        self.is_inside = True
        if self.step == 0 and self.initial is None:
            self._begin()
        if self._is_due(self.step + 1):
            self.gradients = digest_tensors(self.torch, [p.grad for _, p in self.parameters])
            if self.wishes.dumps(self.step + 1):
                for name, parameter in self.parameters:
                    self.wishes.dump("gradient/" + name, parameter.grad)

    def leave_step(self) -> None:
        self.is_inside = False

    def after_step(self) -> None:
        self.step += 1
        if self._is_due(self.step):
            if self.fields is None:
                self._open()
            self._record()
        self.batches, self.loss = [], None
        self.wishes.end_step(self.step)

    def _begin(self) -> None:
        """Before the first step: who the parameters are, and what they are worth."""
        self.optimizers = [o for o in (ref() for ref in self.optimizers) if o is not None]
        self.parameters, self.buffers = name_parameters(self.torch, self.optimizers)
        self.initial = digest_tensors(self.torch, [p for _, p in self.parameters])
        if self.wishes.dumps(0):
            for name, parameter in self.parameters:
                self.wishes.dump("parameter/" + name, parameter)
        self.wishes.watch_modules()

    def _open(self) -> None:
        """After the first recorded step: the optimizers have made their state now, so all fields are known."""
        self.slots = slot_names(self.torch, self.optimizers)
        names = [("indices", DIGEST), ("batch", DIGEST)]
        names += [("buffer/" + name, DIGEST) for name, _ in self.buffers]
        names += [("loss", F32)]
        names += [("gradient/" + name, DIGEST) for name, _ in self.parameters]
        names += [("optimizer/%s.%s" % (name, slot), DIGEST) for name, _ in self.parameters for slot in self.slots]
        names += [("parameter/" + name, DIGEST) for name, _ in self.parameters]
        self.fields = names
        self.file = TraceFile(trace_path(self.torch), names)
        self.step += self.file.last_step  # of an earlier process of the run
        if self.file.last_step == 0:
            zeros = [(0, 0)] * (len(names) - len(self.initial))
            self.file.append(0, zeros + self.initial)

    def _record(self) -> None:
        state = {id(p): slots for o in self.optimizers for p, slots in o.state.items()}
        optimizer = [as_tensor(self.torch, state.get(id(p), {}).get(slot)) for _, p in self.parameters for slot in self.slots]
        indices, batch = self._inputs()
        later = [b for _, b in self.buffers] + optimizer + [p for _, p in self.parameters]
        digests = digest_tensors(self.torch, [indices] + batch + later)
        n_batch, n_buffers = len(batch), len(self.buffers)
        values = digests[:1] + [join(digests[1:1 + n_batch])]
        values += digests[1 + n_batch:1 + n_batch + n_buffers]
        values += [self._loss_bits()] + self.gradients + digests[1 + n_batch + n_buffers:]
        self.file.append(self.step, values)
        if self.wishes.dumps(self.step):
            self._dump([indices] + batch + later)

    def _inputs(self):
        """The indices of all batches since the last step as one tensor of numbers, and their tensors."""
        numbers = flat_numbers([indices for indices, _ in self.batches])
        indices = self.torch.tensor(numbers, dtype=self.torch.int64) if numbers else None
        return indices, [t for _, tensors in self.batches for t in tensors]

    def _loss_bits(self):
        if self.loss is None:
            return (0, 0)
        value = self.loss.double().item()
        if value != value:
            return (0x7FC00000, 0)
        try:
            return (struct.unpack("<I", struct.pack("<f", value))[0], 0)
        except OverflowError:  # beyond float: an infinity of its sign
            return (0x7F800000 if value > 0 else 0xFF800000, 0)

    def _dump(self, tensors) -> None:
        names = ["indices"] + ["batch/%d" % i for i in range(len(tensors) - 1 - len(self.buffers)
                                                           - len(self.parameters) * (len(self.slots) + 1))]
        if len(names) == 2:
            names[1] = "batch"
        names += [name for name, _ in self.fields if name.startswith(("buffer/", "optimizer/", "parameter/"))]
        for name, tensor in zip(names, tensors):
            self.wishes.dump(name, tensor)


# ---- tensors and their names ---------------------------------------------------------------------------------------


def tensors_of(torch, batch) -> list:
    """The tensors in what a loader handed out, in order; numbers among them become one."""
    found = []

    def walk(value, depth):
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, dict) and depth < 16:
            for key in value:
                walk(value[key], depth + 1)
        elif isinstance(value, (list, tuple)) and depth < 16:
            for item in value:
                walk(item, depth + 1)
        elif isinstance(value, (int, float)):
            found.append(torch.tensor(value, dtype=torch.float64))
        elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            try:
                found.append(torch.as_tensor(value))
            except TypeError:  # an array of texts
                pass

    walk(batch, 0)
    return found


def as_tensor(torch, value):
    """A slot of an optimizer's state: a tensor, a number, or something that is not traced."""
    if value is None or isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64) if isinstance(value, (int, float)) else None


def flat_numbers(value) -> list:
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in flat_numbers(item)]
    try:
        return [] if value is None else [int(value)]
    except (TypeError, ValueError):  # a key of another kind
        return [int.from_bytes(repr(value).encode()[-8:], "little") >> 1]


def join(digests) -> tuple:
    """Of several tensors one digest; of one, its own."""
    from .trace_file import digest_bytes
    if len(digests) == 1:
        return digests[0]
    return digest_bytes(b"".join(struct.pack("<QQ", *d) for d in digests)) if digests else (0, 0)


def slot_names(torch, optimizers) -> list:
    """The names of what optimizers remember of a parameter, in the order in which they made them."""
    names = {}
    for optimizer in optimizers:
        for slots in optimizer.state.values():
            for name, value in (slots.items() if isinstance(slots, dict) else ()):
                if as_tensor(torch, value) is not None:
                    names[str(name)] = None
    return list(names)


def name_parameters(torch, optimizers):
    """[(name, parameter)] of all parameters of the optimizers, and [(name, buffer)] of the modules that hold them."""
    names, buffers = module_names(torch)
    found, seen, used = [], set(), set()
    for number, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                plain = "group%d.%d" % (g, i) if number == 0 else "optimizer%d.group%d.%d" % (number, g, i)
                name = names.get(id(parameter), plain)
                if name in used:
                    name = plain
                used.add(name)
                found.append((name, parameter))
    return found, buffers


def root_modules(torch) -> list:
    """Modules that no other holds, in the order in which they were made, which the collector knows. `type` instead of
    isinstance, which may run code of lazy objects."""
    import gc
    modules = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module) and "_modules" in o.__dict__]
    held = {id(child) for m in modules for child in m._modules.values()}
    return [m for m in modules if id(m) not in held]


def module_names(torch):
    """id of each parameter -> name, and the buffers, of all modules that there are and that no other holds."""
    roots = [m for m in root_modules(torch) if any(True for _ in m.parameters())]
    names, buffers = {}, []
    for number, root in enumerate(roots):
        prefix = "" if len(roots) == 1 else "%s%d." % (type(root).__name__.lower(), number)
        for name, parameter in root.named_parameters():
            names.setdefault(id(parameter), prefix + name)
        buffers += [(prefix + name, buffer) for name, buffer in root.named_buffers()]
    return names, buffers
