# SPDX-License-Identifier: Apache-2.0
"""What the shim tells the launcher: one JSON object a line, appended with one write each, so lines never mix.

The encoder is our own because importing `json` in every process would cost more than the rest of the shim.
"""
import os
import sys

from . import processes

_said = set()
_LIMIT = 1000  # lines of one process; a script that turns a flag in a loop must not fill the disk


def _text(value: str) -> str:
    out = []
    for c in value[:2000]:
        if c in '"\\':
            out.append("\\" + c)
        elif " " <= c <= "~":
            out.append(c)
        else:
            raw = c.encode("utf-16-be", "surrogatepass")
            out.extend("\\u%02x%02x" % (raw[i], raw[i + 1]) for i in range(0, len(raw), 2))
    return '"' + "".join(out) + '"'


def _encode(members: dict) -> str:
    """Numbers (of lines) and texts."""
    return "{" + ",".join(_text(key) + ":" + (str(value) if isinstance(value, int) else _text(value))
                          for key, value in members.items()) + "}"


def write(event: str, **members) -> None:
    """Appends one object. A report that can't be written must not stop a script, so errors end here."""
    folder = os.environ.get("TRAINCTL_REPORT")
    if not folder or len(_said) > _LIMIT:
        return
    line = _encode({"process": processes.path(), "event": event, **members}) + "\n"
    if line in _said:
        return
    _said.add(line)
    try:
        fd = os.open(os.path.join(folder, "python.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
    except OSError:
        pass


def start() -> None:
    """Says that there is such a process: a Python that never says so ran without the shim."""
    write("start", python="%d.%d.%d" % sys.version_info[:3])


def setting(what: str, value) -> None:
    """Something was set, and to what: ("torch.backends.cudnn.benchmark", False)."""
    write("set", what=what, value=str(value))


def uncontrolled(what: str, why: str) -> None:
    """Something may decide bits and could not be controlled."""
    write("uncontrolled", what=what, why=why)


def note(what: str, detail: str, file: str = "", line: int = 0) -> None:
    """Something that whoever looks for a difference should know; `file` and `line` of the script, if it is a place there."""
    write("note", what=what, detail=detail, file=file, line=line)
