# SPDX-License-Identifier: Apache-2.0
"""Same tensors, other bytes, and damaged files that readers take for whole: public reports D1 to D4.

What a program here draws from random.SystemRandom stands for what nobody controls: heap addresses, the order of an
unordered set, the clock. None of it reaches a tensor.
"""
import hashlib

from conftest import needs_numpy, needs_torch

SAME = "in other container bytes"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def what_of(said, check):
    return [c["what"] for c in said["checks"] if c["check"] == check]


def same_content(lab, python, name, output, *, script, inside="tensors"):
    """The program's bytes differ without and with trainctl; verify calls them identical and says what is the same."""
    lab.write(name, script)
    lab.plain("%s %s" % (python, name))
    first = sha256(lab.plain_out / output)
    lab.plain("%s %s" % (python, name))
    assert sha256(lab.plain_out / output) != first, "the fault does not show"
    lab.spec("%s %s" % (python, name), outputs=[output])
    run = lab.run()
    said = lab.verify(run.id, "--keep")
    assert said["verdict"] == "identical"
    assert what_of(said, "repeated outputs") == ["1, output '%s' has the same %s %s" % (output, inside, SAME)]
    again = next(run.path.glob("verify-*/out/" + output))
    assert sha256(again) != sha256(run.path / "out" / output)
    return run


# ---- D1 --------------------------------------------------------------------------------------------------------------

@needs_torch
def test_d1_heap_addresses_as_storage_keys(lab, python):
    run = same_content(lab, python, "old.py", "model.pt", script="""
        import os, random, torch
        torch.manual_seed(0)
        holes = [torch.empty(random.SystemRandom().randrange(1, 4000)) for _ in range(200)]
        net = torch.nn.Linear(4, 3)
        adam = torch.optim.Adam(net.parameters())
        net(torch.ones(2, 4)).sum().backward()
        adam.step()
        torch.save({"net": net.state_dict(), "adam": adam.state_dict()}, os.environ["TRAINCTL_OUT"] + "/model.pt",
                   _use_new_zipfile_serialization=False)
        """)
    output = run.manifest["outputs"][0]
    assert output["content"]["format"] == "torch"
    assert int(output["content"]["tensors"]) >= 6
    assert output["sha256"] == sha256(run.path / "out" / "model.pt")


@needs_torch
def test_d1_both_containers_of_torch_have_one_digest(lab, python):
    lab.write("both.py", """
        import os, torch
        out = os.environ["TRAINCTL_OUT"]
        base = torch.arange(24.).reshape(4, 6)
        state = {"whole": base, "view": base[1:3], "column": base.t(), "half": base.half(), "bf16": base.bfloat16(),
                 "parameter": torch.nn.Parameter(base.clone()), "one": torch.tensor(7), "empty": torch.empty(0, 3),
                 "expanded": torch.ones(1).expand(3, 2), "bool": torch.tensor([True, False]), 3: [1, 2.5, None, "x", b"y"],
                 "size": torch.Size([1, 2]), "type": torch.float32, "big": 2 ** 80}
        torch.save(state, out + "/new.pt")
        torch.save(state, out + "/old.pt", _use_new_zipfile_serialization=False)
        """)
    lab.spec("%s both.py" % python, outputs=["new.pt", "old.pt"])
    new, old = [output["content"] for output in lab.run().manifest["outputs"]]
    assert new == old
    assert new["tensors"] == "10"


# ---- D2 --------------------------------------------------------------------------------------------------------------

@needs_torch
def test_d2_a_serialization_id_from_an_unordered_set(lab, python):
    same_content(lab, python, "id.py", "model.pt", script="""
        import io, os, random, torch, zipfile
        torch.manual_seed(0)
        saved = io.BytesIO()
        torch.save(torch.nn.Linear(4, 3).state_dict(), saved)
        with zipfile.ZipFile(saved) as was, zipfile.ZipFile(os.environ["TRAINCTL_OUT"] + "/model.pt", "w") as archive:
            for name in was.namelist():
                if not name.endswith("serialization_id"):
                    archive.writestr(name, was.read(name))
            stem = was.namelist()[0].split("/")[0]
            archive.writestr(stem + "/.data/serialization_id", "%040d" % random.SystemRandom().randrange(10 ** 39))
        """)


# ---- D3 --------------------------------------------------------------------------------------------------------------

SAFETENSORS = """
    import json, os, random, struct, sys
    keys = ["lr=%d" % i for i in range(40)]
    random.SystemRandom().shuffle(keys)
    header = {"__metadata__": {key: "x" for key in keys},
              "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
              "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    values = [0.1 * i for i in range(6)]
    values[3] += CHANGE
    with open(os.environ["TRAINCTL_OUT"] + "/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + struct.pack("<6f", *values))
    """


def test_d3_the_order_of_safetensors_metadata(lab, python):
    run = same_content(lab, python, "save.py", "model.safetensors", script=SAFETENSORS.replace("CHANGE", "0"))
    assert run.manifest["outputs"][0]["content"]["format"] == "safetensors"


def test_d3_another_tensor_is_named_with_element_bits_and_distance(lab, python):
    lab.write("save.py", SAFETENSORS.replace("CHANGE", "random.SystemRandom().randrange(1, 1000) * 2e-6"))
    lab.spec("%s save.py" % python, outputs=["model.safetensors"])
    said = lab.verify(lab.run().id, expect=1)
    assert said["verdict"] == "differs"
    assert "tensor 'w' [1, 1]: 0.3" in said["reason"]
    assert "ULPs apart; 1 of 4 elements differ" in said["reason"]


# ---- D4 --------------------------------------------------------------------------------------------------------------

@needs_numpy
def test_d4_framing_of_an_npz(lab, python):
    run = same_content(lab, python, "npz.py", "arrays.npz", script="""
        import io, os, random, zipfile
        import numpy as np
        rng = np.random.default_rng(0)
        chance = random.SystemRandom()
        arrays = {"w": rng.random((3, 4)), "b": rng.random(4).astype(np.float32), "n": np.int64(7)}
        names = list(arrays)
        chance.shuffle(names)
        with zipfile.ZipFile(os.environ["TRAINCTL_OUT"] + "/arrays.npz", "w") as archive:
            for name in names:
                info = zipfile.ZipInfo(name + ".npy", (1980 + chance.randrange(100), 1, 1, 0, 0, 0))
                info.create_system = chance.choice([0, 3])
                info.compress_type = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
                bytes_ = io.BytesIO()
                np.save(bytes_, np.array(arrays[name], order=chance.choice("CF")))
                archive.writestr(info, bytes_.getvalue())
        """)
    assert run.manifest["outputs"][0]["content"] == {
        "format": "npz", "tensors": "3", "sha256": run.manifest["outputs"][0]["content"]["sha256"]}


def test_d4_the_time_in_a_gzip(lab, python):
    same_content(lab, python, "gz.py", "log.gz", inside="content", script="""
        import gzip, os, random
        with open(os.environ["TRAINCTL_OUT"] + "/log.gz", "wb") as f:
            with gzip.GzipFile("", "wb", random.SystemRandom().randrange(1, 10), f, random.SystemRandom().randrange(2 ** 31)) as g:
                g.write(b"loss 0.5\\n" * 1000)
        """)


# ---- damaged files ---------------------------------------------------------------------------------------------------

CHECKPOINT = """
    import os, sys, torch
    torch.manual_seed(0)
    path = os.environ["TRAINCTL_OUT"] + "/model.pt"
    net = torch.nn.Linear(8, 8)
    torch.save(net.state_dict(), path)
    data = bytearray(open(path, "rb").read())
    if sys.argv[1] == "flip":
        at = data.index(net.weight.detach().numpy().tobytes())
        data[at + 6] ^= 8
    else:
        del data[-int(sys.argv[1]):]
    open(path, "wb").write(data)
    if sys.argv[1] == "flip":
        loaded = torch.load(path)
        assert not torch.equal(loaded["weight"], net.weight), "torch saw nothing"
    """


@needs_torch
def test_a_flipped_bit_that_torch_loads_silently_fails_the_run(lab, python):
    lab.write("train.py", CHECKPOINT)
    lab.plain("%s train.py flip" % python)
    lab.spec("%s train.py flip" % python, outputs=["model.pt"])
    lab.trainctl("run", "exp.yaml", expect=1)
    assert "output 'model.pt' is no result: " in lab.stderr
    assert "is damaged: member '" in lab.stderr
    assert "do not have the CRC-32 that was written" in lab.stderr
    assert "compare: bytes" in lab.stderr
    lab.spec("%s train.py flip" % python, outputs=[{"path": "model.pt", "compare": "bytes"}])
    assert "content" not in lab.run().manifest["outputs"][0]


@needs_torch
def test_a_cut_tail_fails_the_run(lab, python):
    lab.write("train.py", CHECKPOINT)
    for n in (1, 1000):
        lab.spec("%s train.py %d" % (python, n), outputs=["model.pt"])
        lab.trainctl("run", "exp.yaml", expect=1)
        assert "is cut short or damaged: it begins as a zip archive and has no directory at its end" in lab.stderr


def test_a_damaged_output_needs_no_torch_to_be_found(lab, python):
    lab.write("cut.py", SAFETENSORS.replace("CHANGE", "0") + """
    with open(os.environ["TRAINCTL_OUT"] + "/model.safetensors", "r+b") as f:
        f.truncate(os.path.getsize(f.name) - 1)
    """)
    lab.spec("%s cut.py" % python)
    lab.trainctl("run", "exp.yaml", expect=1)
    assert "is cut short: it has " in lab.stderr and "tensor 'b' would end at byte " in lab.stderr


# ---- JSON and TensorBoard --------------------------------------------------------------------------------------------

METRICS = """
    import json, os, random, time
    chance = random.SystemRandom()
    epochs = [{"loss": 1 / (i + 1), "seconds": chance.random(), "lr": {"group": 1e-3}} for i in range(3)]
    out = os.environ["TRAINCTL_OUT"]
    with open(out + "/metrics.json", "w") as f:
        members = [("time", chance.random()), ("epochs", epochs), ("best", float("nan"))]
        chance.shuffle(members)
        json.dump(dict(members), f, indent=chance.choice([None, 1]))
    with open(out + "/log.jsonl", "w") as f:
        for epoch in epochs:
            f.write(json.dumps(epoch) + "\\n")
    """


def test_volatile_places_of_json_do_not_count(lab, python):
    lab.write("m.py", METRICS)
    lab.spec("%s m.py" % python, outputs=["metrics.json", "log.jsonl"])
    assert lab.verify(lab.run().id, expect=1)["verdict"] == "differs"
    lab.spec("%s m.py" % python, outputs=[{"path": "metrics.json", "volatile": ["time", "epochs/*/seconds"]},
                                          {"path": "log.jsonl", "volatile": "seconds"}])
    said = lab.verify(lab.run().id)
    assert said["verdict"] == "identical"
    assert "has the same content " + SAME in what_of(said, "repeated outputs")[0]
    lab.spec("%s m.py" % python, outputs=[{"path": "metrics.json", "volatile": ["time"]}])
    said = lab.verify(lab.run().id, expect=1)
    assert "'epochs/0/seconds': 0." in said["reason"]


def test_volatile_output_that_is_no_json_fails_the_run(lab, python):
    lab.spec("printf '{\"a\": 1,\\n \"b\" 2}' > $TRAINCTL_OUT/m.json", outputs=[{"path": "m.json", "volatile": "a"}])
    lab.trainctl("run", "exp.yaml", expect=1)
    assert "has volatile values in the spec, but is not JSON, line 2, column " in lab.stderr


EVENTS = """
    import os, random, struct, sys, time
    chance = random.SystemRandom()

    def crc(data):
        value = 0xffffffff
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ 0x82f63b78 * (value & 1)
        value ^= 0xffffffff
        return struct.pack("<I", ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff)

    def record(data):
        length = struct.pack("<Q", len(data))
        return length + crc(length) + data + crc(data)

    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def event(rest):
        return record(b"\\x09" + struct.pack("<d", chance.random() * 1e9) + rest)

    def scalar(step, tag, value):
        return event(b"\\x10" + bytes([step]) + field(5, field(1, field(1, tag) + b"\\x15" + struct.pack("<f", value))))

    folder = os.environ["TRAINCTL_OUT"] + "/logs"
    os.makedirs(folder, exist_ok=True)
    when = chance.randrange(10 ** 9, 2 * 10 ** 9)
    for k in range(2):
        name = "events.out.tfevents.%d.host%d.%d.%d" % (when + k, chance.randrange(100), chance.randrange(10 ** 5), k)
        data = event(field(3, b"brain.Event:2"))
        data += b"".join(scalar(i, b"loss", 1 / (i + 1 + k) + NOISE) for i in range(5))
        with open(folder + "/" + name, "wb") as f:
            f.write(data[:len(data) - int(sys.argv[1])])
    """


def test_event_files_of_tensorboard_are_known_by_what_is_in_them(lab, python):
    lab.write("tb.py", EVENTS.replace("NOISE", "0"))
    lab.spec("%s tb.py 0" % python, outputs=["logs"])
    run = lab.run()
    assert [(o["as"], o["content"]["format"]) for o in run.manifest["outputs"]] == [
        ("logs/events.out.tfevents#0", "tensorboard"), ("logs/events.out.tfevents#1", "tensorboard")]
    assert lab.verify(run.id)["verdict"] == "identical"
    lab.write("tb.py", EVENTS.replace("NOISE", "(i == 3) * chance.random()"))
    said = lab.verify(lab.run().id, expect=1)
    assert "'[4]/loss': " in said["reason"] and "ULPs apart" in said["reason"]
    lab.spec("%s tb.py 3" % python, outputs=["logs"])
    lab.trainctl("run", "exp.yaml", expect=1)
    assert "is cut short or damaged: record 5, at byte " in lab.stderr


def test_diff_of_two_records_says_that_only_the_container_differs(lab, python):
    lab.write("save.py", SAFETENSORS.replace("CHANGE", "0"))
    lab.spec("%s save.py" % python, outputs=["model.safetensors"])
    said = lab.trainctl("diff", lab.run().id, lab.run().id)
    assert "the results are the same content; 1 output has other container bytes\n" in said
