/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for the launcher: one JSON object each, written with one write(2) to a file that all processes of the run
 * append to. launcher/report_interposer.c reads them.
 *
 *   {"begin":ID,"program":PATH}
 *   {"event":WHAT,"program":PATH,"subject":TEXT,"detail":TEXT}
 *   {"end":ID,"how":WORD,"program":PATH,"counts":{NAME:N,…},"objects":[[PATH,BUILD-ID,device,inode,size,s,ns],…]}
 *
 * Strings hold bytes: what is not printable ASCII is \\u00XX, one byte each. The file is opened for each line, because
 * a descriptor that stays open would be seen by the program. System calls by number: those of libc are wrapped, may be
 * cancelled, and count. A report that can't be written is not written; none is longer than what the program's own
 * file-size limit allows, since going over that is a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

enum { EVENTS_OF_A_PROCESS = 32, LINE = 8192 };
#define FILE_LIMIT ((uint64_t)16 << 20) /* of all processes together; the first one may add as much again */

_Atomic uint64_t tctl_counts[TCTL_N_COUNTS];

static _Atomic unsigned n_events;
static atomic_flag is_reporting = ATOMIC_FLAG_INIT;

static const char *const count_names[TCTL_N_COUNTS] = {
    [TCTL_COUNT_GETRANDOM] = "getrandom",
    [TCTL_COUNT_GETENTROPY] = "getentropy",
    [TCTL_COUNT_ARC4RANDOM] = "arc4random",
    [TCTL_COUNT_URANDOM] = "urandom",
    [TCTL_COUNT_RANDOM] = "random",
    [TCTL_COUNT_RANDOM_DEVICE] = "random_device",
    [TCTL_COUNT_SEEDS] = "seeds",
    [TCTL_COUNT_TIME_SEEDS] = "time_seeds",
    [TCTL_COUNT_DIRECTORIES] = "directories",
    [TCTL_COUNT_UNSORTED] = "unsorted",
};

/* ---- writing -------------------------------------------------------------------------------------------- */

/* A line that is being made; one that does not fit is not written. */
typedef struct line {
    char *at, *end;
    bool broken;
} line;

static void put_byte(line *l, char c)
{
    if (l->at == l->end)
        l->broken = true;
    else
        *l->at++ = c;
}

static void put(line *l, const char *text)
{
    for (; *text != '\0'; text++)
        put_byte(l, *text);
}

static void put_text(line *l, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    put_byte(l, '"');
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
            put_byte(l, *p);
            continue;
        }
        put(l, "\\u00");
        put_byte(l, hex[c >> 4]);
        put_byte(l, hex[c & 15]);
    }
    put_byte(l, '"');
}

static void put_number(line *l, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    put(l, digits);
}

static void put_id(line *l)
{
    char digits[TCTL_PROCESS_DIGITS + 1];
    tctl_process_print_id(tctl_this.id, digits);
    put_text(l, digits);
}

static void append(const char *data, size_t size)
{
    struct rlimit most;
    struct stat st;
    uint64_t allowed = tctl_this.id == 0 ? 2 * FILE_LIMIT : FILE_LIMIT;
    long fd = syscall(SYS_openat, AT_FDCWD, tctl_this.report,
                      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0)
        return;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < allowed)
        allowed = most.rlim_cur;
    if (fstat((int)fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size < allowed &&
        size <= allowed - (uint64_t)st.st_size)
        syscall(SYS_write, fd, data, size);
    syscall(SYS_close, fd);
}

/* Begins and ends with a line's end: a torn line of somebody else's does not take ours with it. */
static void write_line(line *l, char *begin)
{
    put(l, "}\n");
    if (!l->broken)
        append(begin, (size_t)(l->at - begin));
}

/* ---- what is said --------------------------------------------------------------------------------------- */

void tctl_report_begin(void)
{
    char text[LINE];
    line l = {text, text + sizeof text, false};
    if (tctl_this.report[0] == '\0')
        return;
    int saved = errno;
    put(&l, "\n{\"begin\":");
    put_id(&l);
    put(&l, ",\"program\":");
    put_text(&l, tctl_this.program);
    write_line(&l, text);
    errno = saved;
}

void tctl_report_event(const char *what, const char *subject, const char *detail)
{
    char text[LINE];
    line l = {text, text + sizeof text, false};
    if (tctl_this.report[0] == '\0' || atomic_fetch_add(&n_events, 1) >= EVENTS_OF_A_PROCESS)
        return;
    int saved = errno;
    put(&l, "\n{\"event\":");
    put_text(&l, what);
    put(&l, ",\"program\":");
    put_text(&l, tctl_this.program);
    put(&l, ",\"subject\":");
    put_text(&l, subject);
    put(&l, ",\"detail\":");
    put_text(&l, detail);
    write_line(&l, text);
    errno = saved;
}

static void put_object(line *l, const tctl_object *o)
{
    const uint64_t numbers[] = {o->device, o->inode, o->size, (uint64_t)o->seconds, (uint64_t)o->nanoseconds};
    put(l, "[");
    put_text(l, o->path);
    put(l, ",");
    put_text(l, o->build_id);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(l, ",");
        put_number(l, numbers[i]);
    }
    put(l, "]");
}

static void put_end(line *l, const char *how, const uint64_t counts[TCTL_N_COUNTS], size_t n_objects)
{
    const char *comma = "";
    put(l, "\n{\"end\":");
    put_id(l);
    put(l, ",\"how\":");
    put_text(l, how);
    put(l, ",\"program\":");
    put_text(l, tctl_this.program);
    put(l, ",\"counts\":{");
    for (size_t i = 0; i < TCTL_N_COUNTS; i++) {
        if (counts[i] == 0)
            continue;
        put(l, comma);
        put_text(l, count_names[i]);
        put(l, ":");
        put_number(l, counts[i]);
        comma = ",";
    }
    put(l, "},\"objects\":[");
    comma = "";
    for (size_t i = 0; i < n_objects; i++) {
        if (tctl_objects_at(i)->told)
            continue;
        put(l, comma);
        put_object(l, tctl_objects_at(i));
        comma = ",";
    }
    put(l, "]");
}

void tctl_report_end(const char *how)
{
    uint64_t counts[TCTL_N_COUNTS];
    if (tctl_this.report[0] == '\0' || atomic_flag_test_and_set(&is_reporting))
        return;
    int saved = errno;
    tctl_objects_update_at_end();
    size_t n = tctl_objects_number(), room = LINE;
    for (size_t i = 0; i < n; i++) /* six for a byte that is escaped */
        room += tctl_objects_at(i)->told ? 0 : 6 * strlen(tctl_objects_at(i)->path) + 256;
    for (size_t i = 0; i < TCTL_N_COUNTS; i++)
        counts[i] = atomic_exchange(&tctl_counts[i], 0);
    char *text = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text != MAP_FAILED) {
        line l = {text, text + room, false};
        put_end(&l, how, counts, n);
        write_line(&l, text);
        munmap(text, room);
        for (size_t i = 0; i < n; i++)
            tctl_objects_at(i)->told = true;
    }
    errno = saved;
    atomic_flag_clear(&is_reporting);
}

void tctl_report_reset(void)
{
    for (size_t i = 0; i < TCTL_N_COUNTS; i++)
        atomic_store(&tctl_counts[i], 0);
    atomic_store(&n_events, 0);
    atomic_flag_clear(&is_reporting);
}
