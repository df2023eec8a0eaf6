/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposer: a library that LD_PRELOAD puts between a program and libc, so that what differs from one run to
 * the next without anybody's wish does not. docs/determinism.md, "The interposer", says what it does for whom.
 *
 * It lives in processes that know nothing of it, so it holds to these rules:
 *  - no call of the program's changes its meaning, its errno, or which signals and cancellations may hit it;
 *  - whatever fails here (memory, descriptors, a report that cannot be written) is left out, and the program goes on;
 *  - what runs in a constructor, in a fork's child, before exec or at the end allocates by mmap and takes no lock
 *    that it could wait for; pages, descriptors and signals of the program stay its own;
 *  - it links nothing but libc. libc's own calls between its functions do not pass through here: where that
 *    matters (scandir, glob, fts, system, popen, posix_spawn), the outer function has a wrapper.
 *
 * Mutable globals are the nature of the thing: what is wrapped is global. Each file has its own, and says which lock.
 */
#ifndef TCTL_SEED_INTERPOSE_INTERPOSE_H
#define TCTL_SEED_INTERPOSE_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

_Static_assert(sizeof(long) == 8,
               "the interposer knows 64-bit systems: struct dirent and dirent64 are one layout");

#define TCTL_EXPORT __attribute__((visibility("default")))

/* ---- the function behind a wrapper ---------------------------------------------------------------------- */

/* One for each wrapped function, in a section of their own: all are looked up at the start, because dlsym takes locks
 * that a fork's child may find held for ever. */
typedef struct tctl_real {
    void *_Atomic function;
    const char *name;
} tctl_real;

/* Looks one up; NULL if this libc has none. */
void *tctl_real_find(tctl_real *);
void tctl_real_find_all(void);

/* Defines real_NAME(): the next definition of NAME behind ours. */
#define TCTL_REAL(wrapped)                                                                                   \
    __attribute__((section("tctl_real"), used)) static tctl_real slot_##wrapped = {NULL, #wrapped};          \
    static inline __typeof__(wrapped) *real_##wrapped(void)                                                  \
    {                                                                                                        \
        union {                                                                                              \
            void *object;                                                                                    \
            __typeof__(wrapped) *function;                                                                   \
        } u = {.object = atomic_load_explicit(&slot_##wrapped.function, memory_order_relaxed)};              \
        if (__builtin_expect(u.object == NULL, 0))                                                           \
            u.object = tctl_real_find(&slot_##wrapped);                                                      \
        return u.function;                                                                                   \
    }

/* ---- what a process of a run knows ---------------------------------------------------------------------- */

typedef struct tctl_process {
    bool sort, seed_libc, answer_entropy, watch_fp; /* knobs, as the launcher gave them */
    bool has_seed;
    uint64_t seed;    /* the run's root seed */
    uint64_t id;      /* by order of forks and execs, never by pid: see process.c */
    pid_t pid;        /* whose memory this is: a vfork's child has another one */
    char report[512]; /* path of the file to append to; "" for none */
    char program[512];
} tctl_process;

/* Set by the constructor and by a fork's child, read by all. Zero before: nothing is on. */
extern tctl_process tctl_this;

/* False in the child of a vfork or a raw clone, whose memory is not its own or not known. */
bool tctl_process_is_ours(void);
/* The id that the next child, or the next program of this process, is to have. */
uint64_t tctl_process_next_id(void);
/* For children that libc starts by itself (system, popen): what they inherit in their environment. */
void tctl_process_bequeath(uint64_t id);
#define TCTL_PROCESS_VARIABLE "TRAINCTL_PROCESS="
#define TCTL_PROCESS_DIGITS   16
void tctl_process_print_id(uint64_t id, char ret[TCTL_PROCESS_DIGITS + 1]);

/* ---- streams (stream.c) --------------------------------------------------------------------------------- */

/* The first 8 bytes, little-endian, of SHA-256(domain NUL, seed as 8 little-endian bytes, name): what seed/stream.c
 * computes, without libcrypto, which must not come into every process. */
uint64_t tctl_name_hash(const char *domain, uint64_t seed, const char *name);
/* tctl_foreign_seed(root seed, "libc.NAME"). */
uint64_t tctl_libc_seed(const char *name);
/* A seed of this process: "libc.NAME.<id>.<n>". */
uint64_t tctl_process_seed(const char *name, uint64_t n);

/* Bytes `at`… of the stream with this key: words of tctl_fill_bits, little-endian. */
void tctl_stream_bytes(uint64_t key, uint64_t at, void *ret, size_t size);
/* The next bytes of this process's entropy stream. Thread-safe; which thread gets which is their race. */
void tctl_entropy_bytes(void *ret, size_t size);
/* The next number for std::random_device, in the same manner. */
uint32_t tctl_device_number(void);
/* A key that no other file of this run has. */
uint64_t tctl_entropy_file_key(void);
/* Begins the streams of this process anew; for the constructor and a fork's child. */
void tctl_streams_reset(void);

/* ---- readings of clocks and the like (clock.c) ---------------------------------------------------------- */

enum { TCTL_READ_CLOCK, TCTL_READ_CPU_CLOCK, TCTL_READ_PID, TCTL_READ_ENTROPY };

/* Remembers what this thread was last told. `fraction` in units of 1/scale seconds. */
void tctl_reading_add(int kind, uint64_t whole, uint64_t fraction);
/* True if a seed of `bits` (32, 48, 64) comes from one of those readings or from the time now. *ret_offset: what was
 * added to it and may tell threads or ranks apart; 0 if that cannot be said. */
bool tctl_reading_explains(uint64_t seed, unsigned bits, uint64_t *ret_offset);

/* ---- the report (report.c) ------------------------------------------------------------------------------ */

enum {
    TCTL_COUNT_GETRANDOM,
    TCTL_COUNT_GETENTROPY,
    TCTL_COUNT_ARC4RANDOM,
    TCTL_COUNT_URANDOM,
    TCTL_COUNT_RANDOM,
    TCTL_COUNT_RANDOM_DEVICE,
    TCTL_COUNT_SEEDS,
    TCTL_COUNT_TIME_SEEDS,
    TCTL_COUNT_DIRECTORIES,
    TCTL_COUNT_UNSORTED,
    TCTL_N_COUNTS
};
extern _Atomic uint64_t tctl_counts[TCTL_N_COUNTS];

static inline void tctl_count(int what)
{
    atomic_fetch_add_explicit(&tctl_counts[what], 1, memory_order_relaxed);
}

/* A line of its own, at once: a process may be killed before its end. Each process says a thing of one kind at most 32
 * times. Async-signal-safe; keeps errno. */
void tctl_report_begin(void);
void tctl_report_event(const char *what, const char *subject, const char *detail);
/* Counts and objects since the last report of this process; then they start from nothing. */
void tctl_report_end(const char *how);
/* In a fork's child: nothing of the parent's is ours to tell. */
void tctl_report_reset(void);

/* ---- shared objects (objects.c) ------------------------------------------------------------------------- */

typedef struct tctl_object {
    const char *path;
    char build_id[65];
    uint64_t base, device, inode, size;
    int64_t seconds, nanoseconds; /* of its last change */
    bool told;
} tctl_object;

/* Looks for objects that were not there before. False if it could not be done without waiting. */
bool tctl_objects_update(void);
/* The same before the report; does nothing in the child of a fork that has loaded nothing. */
bool tctl_objects_update_at_end(void);
/* The objects known, in order of loading; stay where they are. */
size_t tctl_objects_number(void);
tctl_object *tctl_objects_at(size_t);
/* In a fork's child: the parent tells of those that it had. `prepare` true before the fork, false after it. */
void tctl_objects_fork(bool prepare, bool is_child);

/* ---- floating-point environment (fp.c) ------------------------------------------------------------------ */

typedef struct tctl_fp {
    uint64_t vector, x87; /* control bits only: modes and masks, no flags of past operations */
} tctl_fp;

tctl_fp tctl_fp_get(void);
/* What a program finds at its start, by the ABI. */
tctl_fp tctl_fp_default(void);
/* Puts `was` back if it is no longer so, and says which of the objects from number `first` on did it (or
 * `library`, if none of them shows it). */
void tctl_fp_restore(const tctl_fp *was, size_t first, const char *library);

/* ---- programs that are about to start (target.c) -------------------------------------------------------- */

typedef struct tctl_target {
    bool found;         /* it can be read: exec will probably not fail */
    bool drop_preload;  /* its loader would refuse or misuse our library */
    const char *what;   /* "static-program", …; NULL: it will load us */
    const char *detail; /* why */
} tctl_target;

/* Async-signal-safe: system calls and stack only. `path` as execve's; `depth` of scripts that run scripts: 0. */
tctl_target tctl_target_examine(const char *path, unsigned depth);

/* ---- the rest ------------------------------------------------------------------------------------------- */

/* fork's handlers of directory.c's lock. */
void tctl_directories_fork(bool prepare);
/* seeds.c: gives libc's own generators their first seeds. */
void tctl_seeds_start(void);

#endif
