/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's look at the processor, the process and the operating system. */
#include <errno.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "launcher/doctor.h"

static const char *text_at(const json_t *object, const char *outer, const char *inner)
{
    const json_t *value = json_object_get(object, outer);
    const char *text = json_string_value(inner ? json_object_get(value, inner) : value);
    return text ? text : "unknown";
}

static void check_cpu(tctl_doctor *d)
{
    bool fma = json_is_true(json_object_get(json_object_get(d->environment, "cpu"), "fma"));
    tctl_doctor_add(
        d, "cpu", fma ? TCTL_CONTRACT_EXACT : TCTL_CONTRACT_MACHINE, false,
        fma ? NULL
            : "use a processor with fused multiply-add (x86-64-v3 or AArch64); in a virtual machine, let "
              "the guest see the host's processor",
        "%s, %s, %s", text_at(d->environment, "cpu", "model"), text_at(d->environment, "cpu", "isa"),
        fma ? "fused multiply-add" : "no fused multiply-add");
}

/* A subnormal that survives an addition: neither flush-to-zero nor denormals-are-zero is on. */
static bool keeps_subnormals(void)
{
    volatile float tiny = 1e-40f;
    volatile float sum = tiny + tiny;
    return sum > 0 && sum != tiny;
}

static void check_floating_point(tctl_doctor *d)
{
    bool nearest = fegetround() == FE_TONEAREST, subnormals = keeps_subnormals();
    const char *fix = "a library that was loaded into this program changed it: look at LD_PRELOAD";
    if (nearest && subnormals)
        tctl_doctor_add(d, "floating point", TCTL_CONTRACT_EXACT, false, NULL,
                        "rounds to nearest, keeps subnormals");
    else
        tctl_doctor_add(d, "floating point", TCTL_CONTRACT_OFF, false, fix, "%s",
                        nearest ? "flushes subnormals to zero" : "does not round to nearest");
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static void check_preloads(tctl_doctor *d)
{
    static const char *const names[] = {"LD_PRELOAD", "LD_AUDIT"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!is_set(names[i]))
            continue;
        any = true;
        tctl_doctor_add(
            d, "preloads", TCTL_CONTRACT_MACHINE, false, "unset it, unless the experiment needs it",
            "%s=%s may replace any function, also those of this program", names[i], getenv(names[i]));
    }
    if (!any)
        tctl_doctor_add(d, "preloads", TCTL_CONTRACT_EXACT, false, NULL, "none");
}

/* Whether a child may switch address space randomisation off; containers forbid it now and then. */
static bool can_pin_addresses(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(personality(ADDR_NO_RANDOMIZE) == -1 ? 1 : 0);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_addresses(tctl_doctor *d)
{
    if (can_pin_addresses())
        tctl_doctor_add(d, "addresses", TCTL_CONTRACT_EXACT, false, NULL,
                        "randomisation can be switched off for runs");
    else
        tctl_doctor_add(
            d, "addresses", TCTL_CONTRACT_EXACT, true,
            "allow personality(2) in the container's seccomp profile",
            "randomisation can't be switched off: a command whose order depends on addresses may differ");
}

/* One number from a file of /proc; -1 if there is none. */
static int64_t number_in(const char *path)
{
    tctl_buf text = TCTL_BUF_INIT;
    int64_t value = -1;
    if (tctl_file_read(path, 4096, &text, NULL) == TCTL_OK && text.size > 0 &&
        !tctl_parse_int(text.data, strcspn(text.data, "\n"), &value))
        value = -1;
    tctl_buf_release(&text);
    return value;
}

static void check_memory(tctl_doctor *d)
{
    int64_t mode = number_in("/proc/sys/vm/overcommit_memory");
    const char *hugepages = text_at(d->environment, "transparent_hugepage", NULL);
    double bytes = 0;
    const char *text = text_at(d->environment, "memory_bytes", NULL);
    tctl_parse_real(text, strlen(text), &bytes);
    tctl_doctor_add(d, "memory", TCTL_CONTRACT_EXACT, mode == 1,
                    mode == 1
                        ? "vm.overcommit_memory=0 or 2 turns some kills into errors that name the allocation"
                        : NULL,
                    "%.1f GB, overcommit %s, huge pages %s", bytes / 1e9,
                    mode == 0   ? "heuristic"
                    : mode == 1 ? "always: a run that needs too much is killed without an error"
                    : mode == 2 ? "never"
                                : "unknown",
                    hugepages);
}

static void check_gpu(tctl_doctor *d)
{
    const json_t *gpus = json_object_get(d->environment, "gpus");
    size_t n = json_array_size(gpus);
    const char *driver = json_string_value(json_object_get(d->environment, "nvidia_driver"));
    if (n == 0)
        tctl_doctor_add(d, "gpu", TCTL_CONTRACT_EXACT, false, NULL,
                        driver ? "driver %s, but no GPU" : "none%s", driver ? driver : "");
    else
        tctl_doctor_add(d, "gpu", TCTL_CONTRACT_EXACT, false, NULL, "%zu x %s, driver %s", n,
                        text_at(json_array_get(gpus, 0), "model", NULL), driver ? driver : "unknown");
}

/* The toolkit's version from version.json, {"cuda": {"version": "13.0.1"}}, or from cuda.h, CUDA_VERSION 13000. */
static const char *toolkit_version(tctl_arena *arena, const char *home)
{
    const char *path = tctl_path_join(arena, home, "version.json");
    json_t *json = path ? json_load_file(path, 0, NULL) : NULL;
    const char *version = json_string_value(json_object_get(json_object_get(json, "cuda"), "version"));
    const char *copy = version ? tctl_arena_copy(arena, version, strlen(version)) : NULL;
    json_decref(json);
    if (copy)
        return copy;
    static const char define[] = "#define CUDA_VERSION ";
    tctl_buf header = TCTL_BUF_INIT;
    uint64_t number = 0;
    path = tctl_path_join(arena, home, "include/cuda.h");
    if (path && tctl_file_read(path, (size_t)8 << 20, &header, NULL) == TCTL_OK && tctl_buf_text(&header)) {
        const char *at = strstr(tctl_buf_text(&header), define);
        if (at &&
            tctl_parse_uint(at + sizeof define - 1, strspn(at + sizeof define - 1, "0123456789"), &number))
            copy =
                tctl_arena_format(arena, "%u.%u", (unsigned)(number / 1000), (unsigned)(number % 1000 / 10));
    }
    tctl_buf_release(&header);
    return copy;
}

static void check_cuda(tctl_doctor *d)
{
    const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr"};
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        const char *version = homes[i] && *homes[i] ? toolkit_version(d->arena, homes[i]) : NULL;
        if (version) {
            tctl_doctor_add(d, "cuda toolkit", TCTL_CONTRACT_EXACT, false, NULL, "%s in %s", version,
                            homes[i]);
            return;
        }
    }
    tctl_doctor_add(d, "cuda toolkit", TCTL_CONTRACT_EXACT, false, NULL,
                    "none found (not needed without a GPU)");
}

static void check_clock(tctl_doctor *d)
{
    static const time_t year_2024 = 1704067200;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    clock_gettime(CLOCK_MONOTONIC, &b);
    bool backwards = b.tv_sec < a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec < a.tv_nsec);
    bool early = time(NULL) < year_2024;
    if (backwards || early)
        tctl_doctor_add(d, "clock", TCTL_CONTRACT_EXACT, true, "set the system's clock",
                        backwards ? "the monotonic clock goes backwards" : "the date lies before 2024");
    else
        tctl_doctor_add(d, "clock", TCTL_CONTRACT_EXACT, false, NULL, "plausible");
}

void tctl_doctor_machine(tctl_doctor *d)
{
    check_cpu(d);
    check_floating_point(d);
    check_preloads(d);
    check_addresses(d);
    check_memory(d);
    check_gpu(d);
    check_cuda(d);
    check_clock(d);
}
