# SPDX-License-Identifier: Apache-2.0
"""B: results that follow the thread count, the processor, or the moment at which a variable is set."""
import json
import os

import pytest

# A sum of floats, cut into as many parts as there are threads: what a BLAS does. The parts are added in order, so that one
# count always gives the same bits.
SPLIT_SUM = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <sched.h>
    #include <stdio.h>
    #include <stdlib.h>
    #define N 100000
    static float x[N];
    static int n_threads;
    static float parts[64];
    static void *part(void *arg)
    {
        long k = (long)arg;
        for (long i = N * k / n_threads; i < N * (k + 1) / n_threads; i++)
            parts[k] += x[i];
        return NULL;
    }
    static int processors(void)
    {
        cpu_set_t set;
        return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    }
    int main(int argc, char **argv)
    {
        pthread_t threads[64];
        float sum = 0;
        const char *count = getenv(argv[1]);
        n_threads = count != NULL ? atoi(count) : processors();
        for (int i = 0; i < N; i++)
            x[i] = 1.0f / (float)(i + 1) * (i % 7 == 0 ? -1e4f : 1.0f);
        for (long k = 0; k < n_threads; k++)
            pthread_create(&threads[k], NULL, part, (void *)k);
        for (long k = 0; k < n_threads; k++) {
            pthread_join(threads[k], NULL);
            sum += parts[k];
        }
        printf("%a\\n", (double)sum);
        return argc != 2;
    }
    """


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                                      "NUMEXPR_NUM_THREADS", "TBB_NUM_THREADS"])
def test_b1_the_shells_thread_count_changes_no_result(lab, variable):
    lab.compile("sum.c", SPLIT_SUM, "-pthread")
    assert lab.plain(f"./sum {variable}", env={variable: "1"}) != lab.plain(f"./sum {variable}", env={variable: "7"})
    lab.spec(f"./sum {variable} >$TRAINCTL_OUT/sum", resources={"threads": 3})
    one, seven = lab.run(env={variable: "1"}), lab.run(env={variable: "7"})
    assert one.result == seven.result
    assert f"{variable}=7 of your environment is replaced by 3" in lab.stderr
    assert variable in seven.manifest["envelope"]["replaced"]
    assert lab.verify(env={variable: "2"})["verdict"] == "identical"


def test_b1_another_thread_count_in_the_spec_is_found(lab):
    lab.compile("sum.c", SPLIT_SUM, "-pthread")
    lab.spec("./sum OMP_NUM_THREADS >$TRAINCTL_OUT/sum", resources={"threads": 3})
    lab.run()
    said = lab.verify("last", "--threads", "5", expect=1)
    assert said["verdict"] == "differs"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="it needs two processors")
def test_b2_the_number_of_processors_changes_no_result(lab):
    """A library that counts processors when it starts, and whose call for fewer threads comes too late."""
    lab.compile("sum.c", SPLIT_SUM, "-pthread")
    one_cpu = "taskset -c %d " % min(os.sched_getaffinity(0))
    assert lab.plain(one_cpu + "./sum OPENBLAS_NUM_THREADS") != lab.plain("./sum OPENBLAS_NUM_THREADS")
    lab.spec(one_cpu + "./sum OPENBLAS_NUM_THREADS >$TRAINCTL_OUT/sum", resources={"threads": 2})
    few = lab.run()
    lab.spec("./sum OPENBLAS_NUM_THREADS >$TRAINCTL_OUT/sum", resources={"threads": 2})
    assert few.out("sum") == lab.run().out("sum")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="it needs two processors")
def test_b2_verify_uses_the_recorded_number_of_threads(lab):
    """Where the spec says none, a run takes what the machine has; fewer processors later are no other recipe."""
    lab.compile("sum.c", SPLIT_SUM, "-pthread")
    lab.spec("./sum OPENBLAS_NUM_THREADS >$TRAINCTL_OUT/sum")
    lab.run()
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    try:
        assert lab.verify()["verdict"] == "identical"
    finally:
        os.sched_setaffinity(0, all_of_them)


def test_b3_a_kernel_choice_of_the_shell_is_kept_and_repeated(lab):
    lab.spec("echo ${ATEN_CPU_CAPABILITY-none} >$TRAINCTL_OUT/kernels")
    assert lab.plain("echo ${ATEN_CPU_CAPABILITY-none}", env={"ATEN_CPU_CAPABILITY": "avx2"}) == "avx2\n"
    run = lab.run(env={"ATEN_CPU_CAPABILITY": "avx2"})
    assert run.out("kernels") == "avx2\n" and run.manifest["envelope"]["kept"] == ["ATEN_CPU_CAPABILITY"]
    assert lab.verify(env={"ATEN_CPU_CAPABILITY": "default"})["verdict"] == "identical"
    lab.trainctl("run", "exp.yaml", expect=6, env={"ATEN_CPU_CAPABILITY": "fastest"})
    assert "results are known to repeat with 'default' or 'avx2' or 'avx512'" in lab.stderr


def test_b3_another_processor_is_named(lab, tmp_path_factory):
    """A second library still dispatches by processor: the bits differ, and verify says that the machine does."""
    cpu = tmp_path_factory.mktemp("machine") / "cpu"
    cpu.write_text("with AVX-512\n")
    lab.spec(f"cat {cpu} >$TRAINCTL_OUT/result")
    run = lab.run(env={"ATEN_CPU_CAPABILITY": "avx2"})
    # What a manifest from such a machine has, and this machine's kernels.
    manifest = run.path / "manifest.json"
    record = json.loads(manifest.read_text())
    record["environment"]["cpu"]["isa"] = "x86-64-v9"
    manifest.chmod(0o644)
    manifest.write_text(json.dumps(record))
    cpu.write_text("without\n")
    said = lab.verify(expect=2)
    assert said["verdict"] == "unverifiable"
    assert "another machine class: 'cpu.isa' was 'x86-64-v9'" in said["reason"]


# A library that reads its configuration when it is loaded, like cuBLAS; without it, the time decides.
WORKSPACE = """
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    static int repeats;
    __attribute__((constructor)) static void load(void)
    {
        const char *config = getenv("CUBLAS_WORKSPACE_CONFIG");
        repeats = config != NULL && strcmp(config, ":4096:8") == 0;
    }
    long kernel(void)
    {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return repeats ? 1 : t.tv_nsec;
    }
    """
TOO_LATE = """
    import ctypes, os
    library = ctypes.CDLL("./workspace.so")
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # as the documentation says; too late
    with open(os.path.join(os.environ["TRAINCTL_OUT"], "kernel"), "w") as f:
        print(library.kernel(), file=f)
    """


def test_b20_a_variable_that_the_script_sets_too_late_is_there_in_time(lab, python):
    lab.compile("workspace.c", WORKSPACE, "-shared")
    lab.write("train.py", TOO_LATE)
    outs = set()
    for _ in range(3):
        lab.plain(f"{python} train.py")
        outs.add((lab.plain_out / "kernel").read_text())
    assert len(outs) > 1
    lab.spec(f"{python} train.py", outputs=["kernel"])
    assert lab.run().result == lab.run().result
    assert lab.verify()["verdict"] == "identical"


def test_b20_without_the_pin_the_fault_is_found(lab, python):
    lab.compile("workspace.c", WORKSPACE, "-shared")
    lab.write("train.py", TOO_LATE)
    lab.spec(f"{python} train.py", outputs=["kernel"], determinism={"unpin": ["CUBLAS_WORKSPACE_CONFIG"]})
    run = lab.run()
    assert run.manifest["envelope"]["unpinned"] == ["CUBLAS_WORKSPACE_CONFIG"]
    assert lab.verify(expect=1)["verdict"] == "differs"
