/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See probe.h. Knobs of the spec's envelope are turned on in a copy of the spec; what the envelope has no knob for is
 * libtrainctl-probe.so's (seed/probe/), glibc's MALLOC_PERTURB_, or the processor mask.
 */
#include "launcher/probe.h"

#include <string.h>

static const tctl_probe probes[TCTL_N_PROBES] = {
    {TCTL_PROBE_MEMORY, "memory", "with fresh memory filled with one value",
     "memory that nobody has initialised",
     "build with -fsanitize=memory, or run under valgrind, to find the read"},
    {TCTL_PROBE_HASH, "hash", "with Python's string hashes seeded",
     "the order of Python's sets and string hashes",
     "leave PYTHONHASHSEED pinned ('determinism: {unpin: …}'), or sort before the order matters"},
    {TCTL_PROBE_DIRECTORIES, "directories", "with sorted directories", "the order of files in a directory",
     "sort the list, or set 'determinism: {sort_directories: true}'"},
    {TCTL_PROBE_DENORMALS, "denormals", "with denormals kept whatever libraries do",
     "a library that changes the floating-point environment (flush-to-zero) for the whole process",
     "link that library without -ffast-math, or set 'determinism: {denormals: keep}'"},
    {TCTL_PROBE_ADDRESSES, "addresses", "without address randomisation",
     "memory addresses, used as keys, as hashes or as an order",
     "order by something that is in the data, or set 'determinism: {addresses: fixed}'"},
    {TCTL_PROBE_SEEDS, "seeds", "with the generators of libc and Python seeded",
     "a random generator that was not seeded from the run's seed",
     "seed it from TRAINCTL_SEED, or set 'determinism: {libc_seeds: true, python_seeds: true}'"},
    {TCTL_PROBE_FILE_TIMES, "file times", "with all files of one age", "the times of files",
     "decide by name or content"},
    {TCTL_PROBE_CLOCK, "clock", "with a clock that tells every run the same", "the clock",
     "seed from TRAINCTL_SEED, and keep times out of results"},
    {TCTL_PROBE_ENTROPY, "entropy", "with the system's entropy answered from the run's seed",
     "random numbers of the system (getrandom, /dev/urandom)",
     "seed from TRAINCTL_SEED, or set 'determinism: {entropy: seeded}'"},
    {TCTL_PROBE_THREADS, "threads", "with one thread at a time", "the order in which threads run",
     "sum in a fixed order: one partial result per thread, added up in the threads' order"},
};

const tctl_probe *tctl_probe_at(uint32_t i)
{
    return &probes[i];
}

const tctl_probe *tctl_probe_of(uint32_t bit)
{
    for (size_t i = 0; i < TCTL_N_PROBES; i++) {
        if (probes[i].bit == bit)
            return &probes[i];
    }
    return NULL;
}

static bool unpins(const tctl_determinism *d, const char *name)
{
    for (const char *const *n = d->unpinned; n != NULL && *n != NULL; n++) {
        if (strcmp(*n, name) == 0)
            return true;
    }
    return false;
}

uint32_t tctl_probes_open(const tctl_spec *spec)
{
    const tctl_determinism *d = &spec->determinism;
    uint32_t open = TCTL_PROBE_MEMORY | TCTL_PROBE_FILE_TIMES | TCTL_PROBE_CLOCK | TCTL_PROBE_THREADS;
    open |= unpins(d, "PYTHONHASHSEED") ? TCTL_PROBE_HASH : 0;
    open |= d->interposer && d->keep_denormals ? 0 : TCTL_PROBE_DENORMALS;
    open |= d->fixed_addresses ? 0 : TCTL_PROBE_ADDRESSES;
    open |= d->interposer && d->sort_directories ? 0 : TCTL_PROBE_DIRECTORIES;
    open |= d->interposer && d->libc_seeds && d->python && d->python_seeds ? 0 : TCTL_PROBE_SEEDS;
    open |= d->interposer && d->seeded_entropy ? 0 : TCTL_PROBE_ENTROPY;
    return open;
}

/* The names that stay unpinned without PYTHONHASHSEED. */
static const char *const *without_hash(tctl_arena *arena, const char *const *names)
{
    size_t n = 0, kept = 0;
    while (names != NULL && names[n] != NULL)
        n++;
    const char **list = tctl_arena_take_array(arena, n + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < n; i++) {
        if (strcmp(names[i], "PYTHONHASHSEED") != 0)
            list[kept++] = names[i];
    }
    return list;
}

static tctl_status turn_knobs(tctl_arena *arena, uint32_t bits, tctl_determinism *d, tctl_error *err)
{
    const uint32_t of_interposer =
        TCTL_PROBE_DIRECTORIES | TCTL_PROBE_SEEDS | TCTL_PROBE_ENTROPY | TCTL_PROBE_DENORMALS;
    d->fixed_addresses = d->fixed_addresses || (bits & TCTL_PROBE_ADDRESSES);
    d->interposer = d->interposer || (bits & of_interposer);
    d->sort_directories = d->sort_directories || (bits & TCTL_PROBE_DIRECTORIES);
    d->keep_denormals = d->keep_denormals || (bits & TCTL_PROBE_DENORMALS);
    d->seeded_entropy = d->seeded_entropy || (bits & TCTL_PROBE_ENTROPY);
    if (bits & TCTL_PROBE_SEEDS)
        d->libc_seeds = d->python = d->python_seeds = true;
    if (bits & TCTL_PROBE_HASH) {
        d->unpinned = without_hash(arena, d->unpinned);
        if (d->unpinned == NULL)
            return tctl_fail_memory(err, 0);
    }
    return TCTL_OK;
}

/* The worker reads the spec itself: it is told on its command line's behalf. */
static tctl_status ask_for_one_thread(tctl_arena *arena, tctl_spec_request *asked, tctl_error *err)
{
    size_t n = 0;
    while (asked->set != NULL && asked->set[n] != NULL)
        n++;
    const char **set = tctl_arena_take_array(arena, n + 2, sizeof *set);
    if (set == NULL)
        return tctl_fail_memory(err, (n + 2) * sizeof *set);
    for (size_t i = 0; i < n; i++)
        set[i] = asked->set[i];
    set[n] = "resources.threads=1";
    asked->set = set;
    return TCTL_OK;
}

static const char *library_words(tctl_arena *arena, uint32_t bits, unsigned fill)
{
    const char *memory = bits & TCTL_PROBE_MEMORY ? tctl_arena_format(arena, " fill=%u", fill) : "";
    return memory == NULL
               ? NULL
               : tctl_arena_format(arena, "TRAINCTL_PROBE=%s%s%s%s", bits & TCTL_PROBE_CLOCK ? " clock" : "",
                                   bits & TCTL_PROBE_FILE_TIMES ? " files" : "",
                                   bits & TCTL_PROBE_THREADS ? " threads" : "", memory);
}

tctl_status tctl_probe_apply(tctl_arena *arena, uint32_t bits, unsigned fill, const tctl_spec *spec,
                             const tctl_spec_request *asked, tctl_spec *ret, tctl_spec_request *ret_asked,
                             tctl_circumstances *ret_changed, tctl_error *err)
{
    const uint32_t of_library =
        TCTL_PROBE_CLOCK | TCTL_PROBE_FILE_TIMES | TCTL_PROBE_THREADS | TCTL_PROBE_MEMORY;
    const char **variables = tctl_arena_take_array(arena, 3, sizeof *variables);
    uint32_t n = 0;
    if (variables == NULL)
        return tctl_fail_memory(err, 3 * sizeof *variables);
    *ret = *spec;
    *ret_asked = *asked;
    *ret_changed = (tctl_circumstances){.variables = variables,
                                        .library = (bits & of_library) != 0,
                                        .one_cpu = (bits & TCTL_PROBE_THREADS) != 0};
    tctl_status st = turn_knobs(arena, bits, &ret->determinism, err);
    if (st == TCTL_OK && (bits & TCTL_PROBE_THREADS)) {
        ret->resources.threads = 1;
        st = ask_for_one_thread(arena, ret_asked, err);
    }
    if (st == TCTL_OK && ret_changed->library) {
        variables[n++] = library_words(arena, bits, fill);
        if (bits & TCTL_PROBE_MEMORY)
            variables[n++] = tctl_arena_format(arena, "MALLOC_PERTURB_=%u", fill);
        for (uint32_t i = 0; i < n; i++) {
            if (variables[i] == NULL)
                return tctl_fail_memory(err, 0);
        }
    }
    return st;
}
