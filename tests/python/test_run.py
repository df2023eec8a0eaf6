# SPDX-License-Identifier: Apache-2.0
"""Everything that a run leaves can be read with the standard library, and says what it should."""
import hashlib
import json
import pathlib
import struct
import subprocess


def manifest_of(run):
    return json.loads(pathlib.Path(run["path"], "manifest.json").read_text())


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size:]


def test_run_prints_one_object_with_what_a_script_needs(run):
    assert run["state"] == "done" and run["exit_code"] == 0 and run["contract"] == "exact"
    assert len(run["recipe_digest"]) == 64 and len(run["result_digest"]) == 64
    assert pathlib.Path(run["path"]).name == run["id"]


def test_outputs_have_the_digests_that_the_manifest_says(run):
    outputs = manifest_of(run)["outputs"]
    assert {output["path"] for output in outputs} == {"model.safetensors", "metrics.json"}
    for output in outputs:
        data = pathlib.Path(run["path"], "out", output["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == output["sha256"]


def test_the_model_is_a_safetensors_file_in_torch_layout(run):
    header, payload = read_safetensors(pathlib.Path(run["path"], "out/model.safetensors"))
    end = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = tensor["data_offsets"]
        count = 1
        for n in tensor["shape"]:
            count *= n
        assert tensor["dtype"] == "F32" and begin == end and stop - begin == 4 * count, name
        end = stop
    assert end == len(payload)
    out_channels, in_channels, height, width = header["conv1.weight"]["shape"]
    assert (in_channels, height, width) == (1, 3, 3) and out_channels > 1


def test_metrics_lines_are_json_and_end_where_the_model_does(run):
    lines = pathlib.Path(run["path"], "metrics.jsonl").read_text().splitlines()
    epochs = [json.loads(line) for line in lines]
    final = json.loads(pathlib.Path(run["path"], "out/metrics.json").read_text())
    assert [epoch["epoch"] for epoch in epochs] == sorted(epoch["epoch"] for epoch in epochs)
    assert epochs and final


def test_verify_says_identical_and_ls_and_show_know_the_run(trainctl, run):
    assert trainctl.json("verify", run["id"])["verdict"] == "identical"
    assert run["id"] in trainctl("ls")
    assert trainctl.json("show", run["id"]) == manifest_of(run)


def test_hash_writes_what_sha256sum_checks(trainctl, run):
    listing = trainctl("hash", run["path"] + "/out")
    done = subprocess.run(["sha256sum", "-c"], input=listing, text=True, capture_output=True, cwd=trainctl.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK") == 2
