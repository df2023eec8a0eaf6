# SPDX-License-Identifier: Apache-2.0
"""What `trainctl verify --deep` and `run --twice` ask of a trace beyond its records.

    TRAINCTL_TRACE_FINE=A-B   in steps A to B every module's outputs and their gradients, into trace-fine.bin
    TRAINCTL_TRACE_DUMP=N     the tensors of step N, into dump-N/FIELD.npy; of step 0 the initial weights
    TRAINCTL_TRACE_STOP=N     the process ends with status 0 when step N is recorded; N counts from 1
"""
import os
import struct


def _number(name: str) -> int:
    """-1, which is no step, without a number."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else -1


class Wishes:
    def __init__(self, torch):
        self.torch = torch
        self.folder = os.path.dirname(os.environ["TRAINCTL_TRACE"])
        self.dump_step, self.stop_step = _number("TRAINCTL_TRACE_DUMP"), _number("TRAINCTL_TRACE_STOP")
        first, _, last = os.environ.get("TRAINCTL_TRACE_FINE", "").partition("-")
        self.fine = range(int(first), int(last) + 1) if first.isdigit() and last.isdigit() else range(0)
        self.step, self.file, self.names = 1, None, {}
        self.seen, self.counts, self.is_watching = [], {}, False

    def wants(self, step: int) -> bool:
        return step in (self.dump_step, self.stop_step) or step in self.fine

    def dumps(self, step: int) -> bool:
        return step == self.dump_step

    def end_step(self, step: int) -> None:
        if step in self.fine:
            self._record_fine(step)
        self.step, self.seen, self.counts = step + 1, [], {}
        if step == self.stop_step:
            import sys
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    # ---- tensors as files ------------------------------------------------------------------------------------------

    def dump(self, field: str, tensor) -> None:
        """NumPy's format 1.0 (numpy.lib.format); bfloat16, which it lacks, as its 16 bits."""
        if tensor is None:
            return
        from .trace_file import plain
        t = plain(self.torch, tensor)
        path = os.path.join(self.folder, "dump-%d" % self.dump_step, field + ".npy")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        kind = "f" if t.is_floating_point() else "c" if t.is_complex() else "b" if t.dtype == self.torch.bool else "i"
        if t.dtype == self.torch.bfloat16:
            t, kind = t.view(self.torch.int16), "u"
        if t.dtype == self.torch.uint8:
            kind = "u"
        shape = "(%s)" % "".join("%d, " % d for d in t.shape)
        size = t.element_size()
        header = "{'descr': '%s%s%d', 'fortran_order': False, 'shape': %s, }" % ("<" if size > 1 else "|", kind, size, shape)
        header += " " * ((-len(header) - 11) % 64) + "\n"
        import ctypes
        data = ctypes.string_at(t.data_ptr(), t.numel() * size) if t.numel() else b""
        with open(path, "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + data)

    # ---- outputs of modules ----------------------------------------------------------------------------------------

    def watch_modules(self) -> None:
        """Called when an optimizer was made: its modules are there, and their first pass is still to come."""
        if len(self.fine) == 0:
            return
        from .trace_record import root_modules
        torch = self.torch
        for module in root_modules(torch):
            for name, child in module.named_modules():
                self.names.setdefault(id(child), name or type(child).__name__)
        if not self.is_watching:
            self.is_watching = True
            torch.nn.modules.module.register_module_forward_hook(self._see_output)

    def _see_output(self, module, inputs, output) -> None:
        if self.step not in self.fine:
            return
        from .trace_record import tensors_of
        name = self.names.get(id(module), type(module).__name__)
        for number, tensor in enumerate(tensors_of(self.torch, output)):
            field = name if number == 0 else "%s.%d" % (name, number)
            self._see("forward/" + field, tensor)
            if tensor.requires_grad:
                tensor.register_hook(lambda grad, field=field: self._see_gradient(field, grad))

    def _see_gradient(self, field: str, grad) -> None:
        self._see("gradient-of/" + field, grad)

    def _see(self, name: str, tensor) -> None:
        """A module that is called again in a step has a number behind its name."""
        from .trace_file import digest_tensors
        count = self.counts[name] = self.counts.get(name, 0) + 1
        full = name if count == 1 else "%s#%d" % (name, count)
        self.seen.append((full, digest_tensors(self.torch, [tensor])[0]))
        if self.dumps(self.step):
            self.dump(full, tensor)

    def _record_fine(self, step: int) -> None:
        """One file has one list of fields: that of the first of its steps; a step that called other modules is left out."""
        from .trace_file import DIGEST, TraceFile
        fields = [name for name, _ in self.seen]
        if not fields:
            return
        if self.file is None:
            self.file = TraceFile(os.path.join(self.folder, "trace-fine.bin"), [(name, DIGEST) for name in fields])
            self.fine_fields = fields
        if fields == self.fine_fields:
            self.file.append(step, [digest for _, digest in self.seen])
