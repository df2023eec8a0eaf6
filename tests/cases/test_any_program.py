# SPDX-License-Identifier: Apache-2.0
"""Any program runs: in C, linked statically, as a pipeline, with workers; what it starts ends with it."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

WORKERS = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void)
    {
        char path[4096];
        for (int i = 0; i < 4; i++) {
            if (fork() == 0) {
                snprintf(path, sizeof path, "%s/worker-%d", getenv("TRAINCTL_OUT"), i);
                FILE *f = fopen(path, "w");
                fprintf(f, "%d of 4, seed %s\\n", i, getenv("TRAINCTL_SEED"));
                return fclose(f);
            }
        }
        while (wait(NULL) > 0)
            continue;
        puts("all workers ended");
        return 0;
    }
    """
# Forks twice, leaves session, group and descriptors, ignores what can be ignored, and writes down who it is.
DAEMON = """
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <string.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        int ready[2];
        char byte;
        if (pipe(ready) != 0)
            return 1;
        if (fork() == 0) {
            setsid();
            if (fork() != 0)
                _exit(0);
            for (int s = 1; s < 32; s++)
                signal(s, SIG_IGN);
            FILE *f = fopen("daemon.pid", "w");
            fprintf(f, "%d", (int)getpid());
            fclose(f);
            byte = write(ready[1], "x", 1) == 1;
            for (int fd = 0; fd < 64; fd++)
                close(fd);
            for (;;)
                pause();
        }
        close(ready[1]);
        byte = read(ready[0], &byte, 1) == 1;
        if (argc > 1 && strcmp(argv[1], "stay") == 0)
            for (;;)
                pause();
        return !byte;
    }
    """


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_c_program_that_forks_workers(lab):
    lab.compile("workers.c", WORKERS)
    lab.spec("./workers", outputs=[f"worker-{i}" for i in range(4)])
    run = lab.run()
    assert run.out("worker-3") == "3 of 4, seed 1029\n"
    assert run.log == "all workers ended\n" and run.manifest["run"]["left"] == []
    assert lab.verify()["verdict"] == "identical"


def test_a_statically_linked_program(lab):
    try:
        lab.compile("workers.c", WORKERS, "-static")
    except subprocess.CalledProcessError:
        pytest.skip("there is no static C library")
    lab.spec("./workers")
    run = lab.run()
    assert run.out("worker-0") == "0 of 4, seed 1029\n"
    assert lab.verify()["verdict"] == "identical"


def test_a_pipeline_of_programs(lab):
    lab.spec("seq 1 1000 | awk '{s += $1} END {print s}' | tee $TRAINCTL_OUT/sum | cat >&2", outputs=["sum"])
    run = lab.run()
    assert run.out("sum") == "500500\n" and run.log == "500500\n"
    assert lab.verify()["verdict"] == "identical"


@pytest.mark.parametrize("command,code,reason", [
    ("exit 3", 3, "exit status 3"),
    ("kill -TERM $$", 128 + signal.SIGTERM, "killed by SIGTERM"),
    ("kill -ABRT $$", 128 + signal.SIGABRT, "killed by SIGABRT"),
    ("/no/such/program", 127, "exit status 127"),
])
def test_how_a_program_ends_is_said(lab, command, code, reason):
    lab.spec(command)
    run = lab.run(expect=1)
    assert run.said["exit_code"] == code and run.said["reason"] == reason and run.state == "failed"


def test_a_daemon_is_found_ended_and_named(lab):
    lab.compile("daemon.c", DAEMON)
    lab.spec("./daemon")
    run = lab.run()
    assert not is_alive((lab.folder / "daemon.pid").read_text())
    assert run.manifest["run"]["left"] == ["daemon"]
    assert "1 process that the child left running was ended: 'daemon'" in lab.stderr


def test_killing_trainctl_leaves_no_daemon(lab):
    from conftest import BUILD
    lab.compile("daemon.c", DAEMON)
    lab.spec("./daemon stay")
    pid_file = lab.folder / "daemon.pid"
    with subprocess.Popen([BUILD / "bin/trainctl", "run", "exp.yaml"], cwd=lab.folder, env=lab.env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as trainctl:
        assert wait_until(lambda: pid_file.exists() and pid_file.read_text())
        trainctl.kill()
    pid = pid_file.read_text()
    gone = wait_until(lambda: not is_alive(pid))
    if not gone:
        os.kill(int(pid), signal.SIGKILL)
    assert gone
    assert wait_until(lambda: " died " in lab.trainctl("ls"))  # once its guardian has let go of the lock
