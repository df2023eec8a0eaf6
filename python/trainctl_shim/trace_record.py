# SPDX-License-Identifier: Apache-2.0
"""What a step's record is made of. The names of fields, in the order in which a step computes them:

    indices, batch, buffer/NAME, loss, gradient/NAME, optimizer/NAME.SLOT, parameter/NAME

NAME is the parameter's in the module that holds it ("conv1.weight"), with the module's class and number in front if the
optimizers' parameters are in several that no other holds; "group0.3" if no module has it. A digest covers dtype, shape and bytes; NaNs are one value.
"""
import _thread
import os
import struct
import weakref

from . import report
from .trace_file import DIGEST, F32, StepCount, TraceFile, digest_bytes, digest_tensors, is_fake, trace_path
from .trace_wishes import Wishes


class Recorder:
    def __init__(self, torch, every: int):
        self.torch, self.every = torch, every
        self.pid = os.getpid()
        self.is_inside = False
        self.wishes = Wishes(torch)
        self.optimizers, self.fields = [], None
        self.step, self.initial, self.file = 0, None, None
        self.path, self.count = None, None
        self.loss, self.inputs, self.batch = None, {}, []

    def is_loaders_worker(self) -> bool:
        return self.torch.utils.data.get_worker_info() is not None

    def _go_on(self) -> None:
        """Until the first step: the number of steps that earlier processes of the run have made in this one's file."""
        if self.initial is None and self.path != trace_path(self.torch):
            self.path = trace_path(self.torch)
            self.count = StepCount(self.path)
            self.step = self.count.read() if os.path.exists(self.path) else 0
            self.wishes.step = self.step + 1

    def after_fork(self) -> "Recorder":
        """A child that trains has a trace of its own, and may have optimizers that its parent made."""
        child = Recorder(self.torch, self.every)
        known = [o() if isinstance(o, weakref.ref) else o for o in self.optimizers]
        child.optimizers = [weakref.ref(o) for o in known if o is not None]
        return child

    # ---- between steps ---------------------------------------------------------------------------------------------

    def add_optimizer(self, optimizer) -> None:
        if self.initial is None:
            self.optimizers.append(weakref.ref(optimizer))
            self._go_on()
            self.wishes.watch_modules()
        else:
            report.uncontrolled("trace", "a %s was made after the first step; its parameters are not traced"
                                % type(optimizer).__name__)

    def see_loss(self, tensors) -> None:
        if isinstance(tensors, (list, tuple)) and len(tensors) == 1:
            tensors = tensors[0]
        if isinstance(tensors, self.torch.Tensor) and tensors.numel() == 1 and not is_fake(tensors):
            self.loss = tensors.detach()
        else:
            self.loss = None

    def see_batch(self, indices, batch) -> None:
        """What came since the last step, as two digests: a script may change a batch in place, and one that goes through its
        data without a step must not have all of it kept. By thread, for one that fetches ahead is at no certain place."""
        self._go_on()
        if not self._is_due(self.step + 1):
            return
        tensors = tensors_of(self.torch, batch)
        numbers = self._numbers(indices)
        digests = digest_tensors(self.torch, [numbers] + tensors)
        thread, now = _thread.get_ident(), (digests[0], join(digests[1:]))
        before = self.inputs.get(thread)
        self.inputs[thread] = now if before is None else (join([before[0], now[0]]), join([before[1], now[1]]))
        if self.wishes.dumps(self.step + 1):
            self.batch += [t.detach().clone() for t in tensors]
            self.wishes.dump("indices", numbers)

    def _is_due(self, step: int) -> bool:
        return step % self.every == 0 or self.wishes.wants(step)

    # ---- a step ----------------------------------------------------------------------------------------------------

    def before_step(self) -> None:
        self.is_inside = True
        if self.initial is None:
            self._go_on()
            self._begin()
        if self._count_grouped() != self.n_grouped:
            report.uncontrolled("trace", "an optimizer has other parameters than at the first step; new ones are not traced")
        if self._is_due(self.step + 1):
            self.gradients = digest_tensors(self.torch, [p.grad for _, p in self.parameters])
            if self.wishes.dumps(self.step + 1):
                for name, parameter in self.parameters:
                    self.wishes.dump("gradient/" + name, parameter.grad)

    def _count_grouped(self) -> int:
        return sum(len(group["params"]) for optimizer in self.optimizers for group in optimizer.param_groups)

    def leave_step(self) -> None:
        self.is_inside = False

    def after_step(self) -> None:
        self.step += 1
        if self.fields is None:
            self._open()
        if self._is_due(self.step):
            self._record()
        self.count.write(self.step)
        self.inputs.pop(_thread.get_ident(), None)
        self.loss, self.batch = None, []
        self.wishes.end_step(self.step)

    def _begin(self) -> None:
        """Before the first step: who the parameters are, and what they are worth."""
        self.optimizers = [o for o in (ref() for ref in self.optimizers) if o is not None]
        self.parameters, self.buffers = name_parameters(self.torch, self.optimizers)
        self.initial = digest_tensors(self.torch, [p for _, p in self.parameters])
        self.n_grouped = self._count_grouped()
        if self.wishes.dumps(0):
            for name, parameter in self.parameters:
                self.wishes.dump("parameter/" + name, parameter)

    def _open(self) -> None:
        """After the first step: the optimizers have made their state now, so all fields are known."""
        self.slots = slot_names(self.torch, self.optimizers)
        names = [("indices", DIGEST), ("batch", DIGEST)]
        names += [("buffer/" + name, DIGEST) for name, _ in self.buffers]
        names += [("loss", F32)]
        names += [("gradient/" + name, DIGEST) for name, _ in self.parameters]
        names += [("optimizer/%s.%s" % (name, slot), DIGEST) for name, _ in self.parameters for slot in self.slots]
        names += [("parameter/" + name, DIGEST) for name, _ in self.parameters]
        self.fields = names
        self.file = TraceFile(self.path, names)
        self.step = max(self.step, self.file.last_step + 1)
        if self.file.last_step == 0:
            zeros = [(0, 0)] * (len(names) - len(self.initial))
            self.file.append(0, zeros + self.initial)

    def _record(self) -> None:
        state = {id(p): slots for o in self.optimizers for p, slots in o.state.items()}
        optimizer = [as_tensor(self.torch, state.get(id(p), {}).get(slot)) for _, p in self.parameters for slot in self.slots]
        later = [b for _, b in self.buffers] + optimizer + [p for _, p in self.parameters]
        digests, n_buffers = digest_tensors(self.torch, later), len(self.buffers)
        inputs = self.inputs.get(_thread.get_ident())
        if inputs is None and self.inputs:
            report.uncontrolled("trace", "batches are fetched in another thread than the step's; they are not traced")
        values = list(inputs or [(0, 0), (0, 0)]) + digests[:n_buffers]
        values += [self._loss_bits()] + self.gradients + digests[n_buffers:]
        self.file.append(self.step, values)
        if self.wishes.dumps(self.step):
            self._dump(later)

    def _numbers(self, indices):
        """The indices of a batch as one tensor; on the CPU, whatever the script's default device is."""
        numbers = flat_numbers(indices)
        return self.torch.tensor(numbers, dtype=self.torch.int64, device="cpu") if numbers else None

    def _loss_bits(self):
        if self.loss is None:
            return (0, 0)
        value = self.loss.item()
        value = value.real if isinstance(value, complex) else float(value)
        if value != value:
            return (0x7FC00000, 0)
        try:
            return (struct.unpack("<I", struct.pack("<f", value))[0], 0)
        except OverflowError:  # beyond float: an infinity of its sign
            return (0x7F800000 if value > 0 else 0xFF800000, 0)

    def _dump(self, later) -> None:
        for i, tensor in enumerate(self.batch):
            self.wishes.dump("batch" if len(self.batch) == 1 else "batch/%d" % i, tensor)
        names = [name for name, _ in self.fields if name.startswith(("buffer/", "optimizer/", "parameter/"))]
        for name, tensor in zip(names, later):
            self.wishes.dump(name, tensor)


# ---- tensors and their names ---------------------------------------------------------------------------------------


def tensors_of(torch, batch) -> list:
    """The tensors in what a loader handed out, in order; numbers among them become one."""
    found = []
    _collect(torch, batch, found, 0)
    return found


def _collect(torch, value, found: list, depth: int) -> None:
    """Not a closure: one that calls itself would keep the tensors until the collector comes."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (dict, list, tuple)) and depth < 16:
        for item in (value.values() if isinstance(value, dict) else value):
            _collect(torch, item, found, depth + 1)
    elif isinstance(value, (int, float)):
        found.append(torch.tensor(value, dtype=torch.float64, device="cpu"))
    elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        try:
            found.append(torch.as_tensor(value))
        except TypeError:  # an array of texts
            pass


def as_tensor(torch, value):
    """A slot of an optimizer's state: a tensor, a number, or something that is not traced."""
    if value is None or isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64, device="cpu") if isinstance(value, (int, float)) else None


def flat_numbers(value) -> list:
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in flat_numbers(item)]
    try:
        return [] if value is None else [int(value)]
    except (TypeError, ValueError):  # a key of another kind
        return [int.from_bytes(repr(value).encode()[-8:], "little") >> 1]


def join(digests) -> tuple:
    """Of several tensors one digest; of one, its own."""
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
    names, buffers = module_names(torch, [p for o in optimizers for group in o.param_groups for p in group["params"]])
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
    """Modules that no other holds, in no certain order: that of the collector, which depends on when it ran. `type` instead
    of isinstance, which may run code of lazy objects."""
    import gc
    modules = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module) and "_modules" in o.__dict__]
    held = {id(child) for m in modules for child in m._modules.values()}
    return [m for m in modules if id(m) not in held]


def roots_of(torch, parameters) -> list:
    """The root modules that hold these parameters, in the parameters' order, so that a module which is garbage, or not
    trained, changes no name. Of several that hold the same, that with the most of them."""
    place = {id(p): i for i, p in enumerate(parameters)}
    candidates = []
    for root in root_modules(torch):
        places = {place[id(p)] for p in root.parameters() if id(p) in place}
        if places:
            candidates.append((min(places), -len(places), type(root).__name__, len(candidates), places, root))
    chosen, covered = [], set()
    for *_, places, root in sorted(candidates, key=lambda c: c[:4]):
        if not places <= covered:
            covered |= places
            chosen.append(root)
    return chosen


def module_names(torch, parameters):
    """id of each parameter -> name, and the buffers, of the modules that hold these parameters. Where an optimizer has copies
    of its own (master weights), the buffers of the only module there is."""
    roots = roots_of(torch, parameters)
    if not roots:
        roots = [m for m in root_modules(torch) if any(True for _ in m.parameters())]
        roots = roots if len(roots) == 1 else []
    names, buffers = {}, []
    for number, root in enumerate(roots):
        prefix = "" if len(roots) == 1 else "%s%d." % (type(root).__name__.lower(), number)
        for name, parameter in root.named_parameters():
            names.setdefault(id(parameter), prefix + name)
        buffers += [(prefix + name, buffer) for name, buffer in root.named_buffers()]
    return names, buffers
