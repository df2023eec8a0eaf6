# SPDX-License-Identifier: Apache-2.0
"""The C library behind the trace: digests of tensors, and the file (manifest/trace.h has the format)."""
import ctypes  # PyTorch has imported it
import os
import sys

from . import processes, report

DIGEST, F32 = 1, 2

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "libtrainctl-trace.so"))
_library.trainctl_trace_salt.restype = ctypes.c_uint64
_library.trainctl_trace_salt.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
_library.trainctl_trace_digest.restype = None
_library.trainctl_trace_digest.argtypes = [ctypes.c_uint32] + [ctypes.c_void_p] * 5
_library.trainctl_trace_open.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p,
                                         ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]
_library.trainctl_trace_append.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p,
                                           ctypes.c_uint64]

_salts = {}


class TraceFile:
    """Made, or continued if a process of the run with the same fields made it. `last_step` is 0 for a new one."""

    def __init__(self, path: str, fields: list):
        n = len(fields)
        names = (ctypes.c_char_p * n)(*[name.encode("utf-8", "replace")[:4096] for name, _ in fields])
        kinds = (ctypes.c_int32 * n)(*[kind for _, kind in fields])
        file, last = ctypes.c_void_p(), ctypes.c_uint64()
        self._message = ctypes.create_string_buffer(512)
        if _library.trainctl_trace_open(os.fsencode(path), n, names, kinds, ctypes.byref(file), ctypes.byref(last),
                                        self._message, 512) != 0:
            raise OSError(self._message.value.decode("utf-8", "replace"))
        self._file, self.last_step, self._values = file, last.value, (ctypes.c_uint64 * (2 * n))()

    def append(self, step: int, values: list) -> None:
        self._values[:] = [word for pair in values for word in pair]
        if _library.trainctl_trace_append(self._file, step, self._values, self._message, 512) != 0:
            raise OSError(self._message.value.decode("utf-8", "replace"))


class StepCount:
    """How many steps the processes of a run have made that wrote one trace, for the next of them: with `trace: N` the file
    alone does not tell. Kept in the report's folder, which nothing hashes."""

    def __init__(self, path: str):
        folder = os.environ.get("TRAINCTL_REPORT") or os.path.dirname(path)
        self.path = os.path.join(folder, os.path.basename(path) + ".steps")
        self._fd = -1

    def read(self) -> int:
        try:
            with open(self.path, "rb") as f:
                return int(f.read(32) or b"0")
        except (OSError, ValueError):
            return 0

    def write(self, step: int) -> None:
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.pwrite(self._fd, b"%d" % step, 0)  # it only grows, so nothing of a longer number stays


def trace_path(torch) -> str:
    """Each rank of a distributed run and each forked child that trains has a file of its own; the first one's is the trace."""
    path = os.environ["TRAINCTL_TRACE"]
    rank = os.environ.get("RANK", "")
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank = str(distributed.get_rank())
    if rank.isdigit():
        return path if rank == "0" else "%s-rank%s.bin" % (path[:-4], rank)
    return "%s-process%s.bin" % (path[:-4], processes.path()) if processes.is_forked() else path


# ---- digests -------------------------------------------------------------------------------------------------------


def digest_bytes(data: bytes) -> tuple:
    result = (ctypes.c_uint64 * 2)()
    _library.trainctl_trace_digest(1, (ctypes.c_void_p * 1)(ctypes.cast(data, ctypes.c_void_p)), (ctypes.c_uint64 * 1)(len(data)),
                                   (ctypes.c_int32 * 1)(0), (ctypes.c_uint64 * 1)(0), result)
    return result[0], result[1]


def _salt(tensor) -> int:
    key = (tensor.dtype, tensor.shape)
    salt = _salts.get(key)
    if salt is None:
        text = ("%s %s" % (tensor.dtype, list(tensor.shape))).encode()
        salt = _salts[key] = _library.trainctl_trace_salt(text, len(text))
    return salt


def plain(torch, tensor):
    """The tensor's values where they can be read: dense, contiguous, in this process's memory."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):  # of a DTensor, this rank's part
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def is_fake(tensor) -> bool:
    """One of PyTorch's tensors that have a shape only, without saying so by their device."""
    return getattr(tensor, "fake_mode", None) is not None


def _readable(torch, tensor):
    """None for a tensor without storage, and for one of a subclass whose bytes can't be had, which is reported."""
    if tensor is None or tensor.device.type == "meta" or is_fake(tensor):
        return None
    try:
        tensor = plain(torch, tensor)
        tensor.data_ptr()
        return tensor
    except (RuntimeError, NotImplementedError, TypeError) as error:
        report.uncontrolled("trace", "a %s is not traced: %s" % (type(tensor).__name__, str(error).partition("\n")[0]))
        return None


def digest_tensors(torch, tensors: list) -> list:
    """[(lo, hi)] of each; (0, 0) for None and for what is not readable. All are hashed in one call."""
    n = len(tensors)
    keep = [_readable(torch, t) for t in tensors]
    kinds = _kinds(torch)
    data = (ctypes.c_void_p * n)(*[None if t is None else t.data_ptr() or None for t in keep])
    sizes = (ctypes.c_uint64 * n)(*[0 if t is None else t.numel() * t.element_size() for t in keep])
    kind = (ctypes.c_int32 * n)(*[0 if t is None else kinds.get(t.dtype, 0) for t in keep])
    salts = (ctypes.c_uint64 * n)(*[0 if t is None else _salt(t) for t in keep])
    result = (ctypes.c_uint64 * (2 * n))()
    _library.trainctl_trace_digest(n, data, sizes, kind, salts, result)
    words = result[:]
    return list(zip(words[0::2], words[1::2]))


_kind_table = {}


def _kinds(torch) -> dict:
    if not _kind_table:
        _kind_table.update({torch.bfloat16: 1, torch.float16: 2, torch.float32: 4, torch.float64: 8,
                            torch.complex64: 4, torch.complex128: 8})
    return _kind_table
