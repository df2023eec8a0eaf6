/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the child's environment. The pinned values are those that the vendors and frameworks document for repeatable
 * results; each line names what differs without it.
 */
#include "launcher/envelope.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "seed/stream.h"

#define CHILD_UMASK     022
#define MAX_VARIABLES   512
#define PADDED_LENGTH   16384 /* paths: of folders, a trace, our libraries, the user's */
#define CURRENT_PERSONA 0xffffffffu

/* Pinned in every contract. */
static const char *const pinned[][2] = {
    {"LC_ALL", "C"},                    /* sorting, number formats */
    {"TZ", "UTC"},                      /* local time */
    {"SOURCE_DATE_EPOCH", "315532800"}, /* time stamps in archives: 1980, zip's first year */
    {"PYTHONDONTWRITEBYTECODE", "1"},   /* a run leaves nothing in the code's folder */
    {"OMP_DYNAMIC", "FALSE"},           /* the thread count decides summation order */
    {"MKL_DYNAMIC", "FALSE"},
    {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}, /* which card is number 0 */
};

/* Pinned unless nothing was promised. */
static const char *const knobs[][2] = {
    {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}, /* cuBLAS chooses kernels by free workspace */
    {"NVIDIA_TF32_OVERRIDE", "0"},          /* 10-bit mantissas */
    {"NCCL_ALGO", "Ring"},                  /* reduction order by size and topology */
    {"NCCL_PROTO", "Simple"},
    {"NCCL_NVLS_ENABLE", "0"},                 /* differs between calls */
    {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"}, /* atomics in attention */
    {"FLASH_ATTENTION_DETERMINISTIC", "1"},
    {"MAMBA_DETERMINISTIC", "1"}, /* atomics in convolution gradients */
    {"CAUSAL_CONV1D_DETERMINISTIC", "1"},
    {"HOROVOD_FUSION_THRESHOLD", "0"},        /* fused buffers change summation order */
    {"ONEDNN_DEFAULT_FPMATH_MODE", "STRICT"}, /* bf16 in float kernels */
    {"TF_DETERMINISTIC_OPS", "1"},
    {"TF_CUDNN_DETERMINISTIC", "1"},
    {"XLA_FLAGS", "--xla_gpu_deterministic_ops=true"}, /* scatter, autotuning */
};

/* How a variable that passes is recorded. */
enum { BY_VALUE, BY_NAME };

/* Passes as the user has it; a trailing '*' stands for any rest. What identifies a user or machine is recorded by
 * name only. */
static const struct {
    const char *pattern;
    int how;
} passing[] = {
    {"PATH", BY_VALUE},
    {"LD_LIBRARY_PATH", BY_VALUE},
    {"LD_PRELOAD", BY_VALUE},
    {"PYTHONPATH", BY_VALUE},
    {"VIRTUAL_ENV", BY_NAME},
    {"CONDA_PREFIX", BY_NAME},
    {"CUDA_HOME", BY_VALUE},
    {"CUDA_PATH", BY_VALUE},
    {"CUDA_VISIBLE_DEVICES", BY_VALUE},
    {"NVIDIA_VISIBLE_DEVICES", BY_VALUE},
    {"TRAINCTL_PLUGIN_PATH", BY_VALUE},
    {"TRAINCTL_SIMD", BY_VALUE}, /* the engine's kernels: the same bits from all of them */
    {"RANK", BY_VALUE},
    {"WORLD_SIZE", BY_VALUE},
    {"LOCAL_RANK", BY_VALUE},
    {"LOCAL_WORLD_SIZE", BY_VALUE},
    {"MASTER_ADDR", BY_NAME},
    {"MASTER_PORT", BY_NAME},
    {"SLURM_*", BY_NAME},
    {"OMPI_*", BY_NAME},
    {"PMI_*", BY_NAME},
    {"PMIX_*", BY_NAME},
    {"HOME", BY_NAME},
    {"USER", BY_NAME},
    {"LOGNAME", BY_NAME},
    {"SHELL", BY_NAME},
    {"TMPDIR", BY_NAME},
    {"XDG_CACHE_HOME", BY_NAME},
    {"HF_HOME", BY_NAME},
    {"TORCH_HOME", BY_NAME},
    {"SSL_CERT_FILE", BY_NAME},
    {"ASAN_OPTIONS", BY_VALUE},
    {"LSAN_OPTIONS", BY_VALUE},
    {"TSAN_OPTIONS", BY_VALUE},
    {"UBSAN_OPTIONS", BY_VALUE},
};

typedef struct builder {
    tctl_arena *arena;
    const char *const *from;
    const char **variables;
    size_t n;
    size_t path_bytes; /* of variables whose length differs between a run and its verification */
    json_t *values, *names, *secrets, *replaced;
    bool failed;
} builder;

/* The value of `name` in an environment, or NULL. */
static const char *lookup(const char *const *from, const char *name, size_t length)
{
    for (; from != NULL && *from != NULL; from++) {
        if (strncmp(*from, name, length) == 0 && (*from)[length] == '=')
            return *from + length + 1;
    }
    return NULL;
}

static void add(builder *b, const char *name, const char *value)
{
    const char *entry = tctl_arena_format(b->arena, "%s=%s", name, value);
    if (entry == NULL || b->n >= MAX_VARIABLES)
        b->failed = true;
    else
        b->variables[b->n++] = entry;
}

/* json_string refuses bytes that are not UTF-8; such a value is recorded by name. */
static void record_value(builder *b, const char *name, const char *value)
{
    json_t *text = json_string(value);
    if (text != NULL)
        json_object_set_new(b->values, name, text);
    else
        json_array_append_new(b->names, json_string(name));
}

static void pin(builder *b, const char *name, const char *value)
{
    const char *was = lookup(b->from, name, strlen(name));
    if (was != NULL && strcmp(was, value) != 0)
        json_array_append_new(b->replaced, json_string(name));
    add(b, name, value);
    record_value(b, name, value);
}

static void pin_number(builder *b, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    pin(b, name, text);
}

/* Ours in front of the user's. What is recorded is the user's part: where we are installed changes no bit. */
static void prepend(builder *b, const char *name, const char *ours)
{
    const char *theirs = lookup(b->from, name, strlen(name));
    bool alone = theirs == NULL || *theirs == '\0';
    if (ours == NULL)
        return;
    const char *value = alone ? ours : tctl_arena_format(b->arena, "%s:%s", ours, theirs);
    if (value == NULL) {
        b->failed = true;
        return;
    }
    add(b, name, value);
    if (!alone)
        record_value(b, name, theirs);
    b->path_bytes += strlen(ours) + (alone ? 0 : 1) + (alone ? strlen(name) + 2 : 0);
}

/* A variable whose value is a place of this attempt: not recorded, and its length is padded. */
static void add_place(builder *b, const char *name, const char *value)
{
    if (value == NULL)
        return;
    add(b, name, value);
    b->path_bytes += strlen(name) + strlen(value) + 2;
}

/* The environment lies above the stack, so its size decides the stack's addresses: with this, the same addresses
 * whatever the run directory is called. */
static void add_padding(builder *b)
{
    size_t n = b->path_bytes < PADDED_LENGTH ? PADDED_LENGTH - b->path_bytes : 0;
    char *padding = tctl_arena_take(b->arena, n + 1);
    if (padding == NULL) {
        b->failed = true;
        return;
    }
    memset(padding, '-', n);
    add(b, "TRAINCTL_PAD", padding);
}

static bool has(const builder *b, const char *name, size_t length)
{
    for (size_t i = 0; i < b->n; i++) {
        if (strncmp(b->variables[i], name, length) == 0 && b->variables[i][length] == '=')
            return true;
    }
    return false;
}

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*')
        return length >= n - 1 && memcmp(pattern, name, n - 1) == 0;
    return n == length && memcmp(pattern, name, n) == 0;
}

static void pass_user_variables(builder *b)
{
    for (const char *const *e = b->from; e != NULL && *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        size_t length = equals == NULL ? 0 : (size_t)(equals - *e);
        if (length == 0 || has(b, *e, length))
            continue;
        for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
            if (!matches(passing[i].pattern, *e, length))
                continue;
            char *name = tctl_arena_copy(b->arena, *e, length);
            if (name == NULL) {
                b->failed = true;
                return;
            }
            add(b, name, equals + 1);
            if (passing[i].how == BY_VALUE)
                record_value(b, name, equals + 1);
            else
                json_array_append_new(b->names, json_string(name));
            break;
        }
    }
}

static void pass_secrets(builder *b, const char *const *secrets)
{
    for (; secrets != NULL && *secrets != NULL; secrets++) {
        const char *value = lookup(b->from, *secrets, strlen(*secrets));
        if (value != NULL && !has(b, *secrets, strlen(*secrets)))
            add(b, *secrets, value);
        json_array_append_new(b->secrets, json_string(*secrets));
        json_object_del(b->values, *secrets);
    }
}

static void pin_all(builder *b, const tctl_envelope_request *request)
{
    static const char *const thread_counts[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                                "NUMEXPR_NUM_THREADS"};
    static const char *const seeds[][2] = {
        {"PYTHONHASHSEED", "python.hash"}, {"PL_GLOBAL_SEED", "lightning"}, {"WDS_SEED", "webdataset"}};
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
        pin(b, pinned[i][0], pinned[i][1]);
    bool library_variables = request->determinism->variables;
    for (size_t i = 0; library_variables && i < sizeof knobs / sizeof knobs[0]; i++)
        pin(b, knobs[i][0], knobs[i][1]);
    if (library_variables) /* vendor's rule: the code path must be named, and exist */
        pin(b, "MKL_CBWR", __builtin_cpu_supports("avx2") ? "AVX2,STRICT" : "COMPATIBLE");
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++)
        pin_number(b, thread_counts[i], request->threads);
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) /* all of them take 32 bits */
        pin_number(b, seeds[i][0], tctl_foreign_seed(request->seed, seeds[i][1]) & 0xffffffffu);
    pin(b, "PL_SEED_WORKERS", "1");
    pin_number(b, "TRAINCTL_SEED", request->seed);
    const char *knob_text = tctl_envelope_knobs(b->arena, request->determinism);
    if (knob_text == NULL) {
        b->failed = true;
        return;
    }
    pin(b, "TRAINCTL_KNOBS", knob_text);
    add_place(b, "TRAINCTL_OUT", request->out);
    add_place(b, "TRAINCTL_RUN", request->run);
    add_place(b, "TRAINCTL_REPORT", request->report);
    add_place(b, "TRAINCTL_TRACE", request->trace);
    add_place(b, "TRAINCTL_TRACE_FINE", request->trace_fine);
    add_place(b, "TRAINCTL_TRACE_DUMP", request->trace_dump);
    add_place(b, "TRAINCTL_TRACE_STOP", request->trace_stop);
    prepend(b, "LD_PRELOAD", request->interposer);
    prepend(b, "PYTHONPATH", request->python);
    add_padding(b);
}

const char *tctl_envelope_knobs(tctl_arena *arena, const tctl_determinism *d)
{
    static const char *const on[] = {"off", "on"};
    char trace[16] = "off";
    if (d->trace > 0)
        snprintf(trace, sizeof trace, "%" PRIu32, d->trace);
    return tctl_arena_format(
        arena,
        "denormals=%s entropy=%s libc_seeds=%s python=%s python_seeds=%s seed_scope=%s sort_directories=%s "
        "state_check=%s torch=%s trace=%s",
        d->keep_denormals ? "keep" : "off", d->seeded_entropy ? "seeded" : "count", on[d->libc_seeds],
        on[d->python], on[d->python_seeds], d->sample_seeds ? "sample" : "worker", on[d->sort_directories],
        on[d->state_check], on[d->torch], trace);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Tries it on this process, and undoes it. */
static bool can_drop_aslr(void)
{
    int now = personality(CURRENT_PERSONA);
    if (now < 0 || personality((unsigned long)(unsigned)now | ADDR_NO_RANDOMIZE) < 0)
        return false;
    int then = personality(CURRENT_PERSONA);
    personality((unsigned long)(unsigned)now);
    return then >= 0 && ((unsigned)then & ADDR_NO_RANDOMIZE) != 0;
}

tctl_status tctl_envelope_make(tctl_arena *arena, const tctl_envelope_request *request, tctl_envelope *ret,
                               tctl_error *err)
{
    builder b = {.arena = arena, .from = request->from};
    b.variables = tctl_arena_take_array(arena, MAX_VARIABLES + 1, sizeof *b.variables);
    b.values = json_object();
    b.names = json_array();
    b.secrets = json_array();
    b.replaced = json_array();
    tctl_envelope made = {.no_aslr = request->determinism->fixed_addresses && can_drop_aslr()};
    if (b.variables != NULL) {
        pin_all(&b, request);
        pass_user_variables(&b);
        pass_secrets(&b, request->secrets);
        qsort(b.variables, b.n, sizeof *b.variables, by_text);
        made.variables = b.variables;
    }
    made.record = json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "variables", b.values, "names", b.names,
                            "secrets", b.secrets, "replaced", b.replaced, "umask", "022", "aslr",
                            made.no_aslr                            ? "off"
                            : request->determinism->fixed_addresses ? "on: not permitted to switch it off"
                                                                    : "on: the spec says so",
                            "core_limit", "0");
    if (made.record == NULL || b.variables == NULL || b.failed) {
        json_decref(made.record);
        return tctl_fail_memory(err, MAX_VARIABLES * sizeof *b.variables);
    }
    *ret = made;
    return TCTL_OK;
}

void tctl_envelope_release(tctl_envelope *envelope)
{
    json_decref(envelope->record);
    envelope->record = NULL;
}

void tctl_envelope_enter(const tctl_envelope *envelope)
{
    static const int defaults[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL);
    umask(CHILD_UMASK);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (envelope->no_aslr)
        personality((unsigned long)(unsigned)personality(CURRENT_PERSONA) | ADDR_NO_RANDOMIZE);
}
