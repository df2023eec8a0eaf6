/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine: read from /proc, /sys and the C library, nothing guessed.
 *
 * Links no CUDA: a driver is seen by what its kernel module says in /proc/driver/nvidia.
 */
#include "manifest/environment.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "base/pool.h"
#include "manifest/environment_internal.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* Files of /proc are short; one of many processors is not. */
static const size_t proc_limit = (size_t)8 << 20;

/* The text of a small file, "" if it can't be read. From the arena. */
static const char *read_text(tctl_arena *arena, const char *path)
{
    tctl_buf text = TCTL_BUF_INIT;
    const char *copy = "";
    if (tctl_file_read(path, proc_limit, &text, NULL) == TCTL_OK && text.size > 0)
        copy = tctl_arena_copy(arena, text.data, text.size);
    tctl_buf_release(&text);
    return copy ? copy : "";
}

/* The value of the first line "key<blanks><separator> value"; NULL if there is none. From the arena. */
static char *field(tctl_arena *arena, const char *text, const char *key, char separator)
{
    size_t k = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, k) != 0)
            continue;
        const char *p = line + k;
        p += strspn(p, " \t");
        if (*p != separator)
            continue;
        p++;
        p += strspn(p, " \t");
        return tctl_arena_copy(arena, p, strcspn(p, "\n"));
    }
    return NULL;
}

/* Text that may not be UTF-8, or null. */
static json_t *text_or_null(const char *text)
{
    return text ? tctl_path_to_json(text) : json_null();
}

/* ---- CPU --------------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The words of `text`, sorted, each once. */
static json_t *sorted_words(tctl_arena *arena, char *text)
{
    size_t n = 0, room = strlen(text) / 2 + 1;
    const char **words = tctl_arena_take_array(arena, room, sizeof *words);
    json_t *list = json_array();
    if (!words || !list) {
        json_decref(list);
        return NULL;
    }
    for (char *p = text + strspn(text, " \t"); *p; p += strspn(p, " \t")) {
        words[n++] = p;
        p += strcspn(p, " \t");
        if (*p)
            *p++ = '\0';
    }
    qsort(words, n, sizeof *words, by_text);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(words[i - 1], words[i]) != 0)
            json_array_append_new(list, tctl_path_to_json(words[i]));
    }
    return list;
}

bool tctl_cpu_has(const json_t *flags, const char *const *names)
{
    for (; *names; names++) {
        bool found = false;
        size_t i;
        const json_t *flag;
        json_array_foreach(flags, i, flag)
        {
            found = found || strcmp(json_string_value(flag), *names) == 0;
        }
        if (!found)
            return false;
    }
    return true;
}

/* The levels of the x86-64 psABI, by the kernel's names for the features ("abm" is lzcnt, "pni" sse3). */
const char *tctl_isa_level(const char *arch, const json_t *flags)
{
    static const char *const v2[] = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3", NULL};
    static const char *const v3[] = {"avx", "avx2", "bmi1",  "bmi2",  "f16c",
                                     "fma", "abm",  "movbe", "xsave", NULL};
    static const char *const v4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", NULL};
    if (strcmp(arch, "x86_64") != 0)
        return strcmp(arch, "aarch64") == 0 ? "aarch64" : NULL;
    if (!tctl_cpu_has(flags, v2))
        return "x86-64-v1";
    if (!tctl_cpu_has(flags, v3))
        return "x86-64-v2";
    return tctl_cpu_has(flags, v4) ? "x86-64-v4" : "x86-64-v3";
}

static json_t *describe_cpu(tctl_arena *arena, const char *arch)
{
    static const char *const fma[] = {"fma", NULL};
    const char *info = read_text(arena, "/proc/cpuinfo");
    char *flag_text = field(arena, info, "flags", ':');
    if (!flag_text)
        flag_text = field(arena, info, "Features", ':'); /* AArch64 */
    char *none = tctl_arena_copy(arena, "", 0);
    json_t *flags = none ? sorted_words(arena, flag_text ? flag_text : none) : NULL;
    if (!flags)
        return NULL;
    const char *model = field(arena, info, "model name", ':');
    if (!model)
        model = field(arena, info, "CPU part", ':');
    const char *vendor = field(arena, info, "vendor_id", ':');
    if (!vendor)
        vendor = field(arena, info, "CPU implementer", ':');
    /* Every AArch64 CPU has a fused multiply-add. */
    bool fused = strcmp(arch, "aarch64") == 0 || tctl_cpu_has(flags, fma);
    const char *isa = tctl_isa_level(arch, flags);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:b, s:o}", "arch", arch, "vendor", text_or_null(vendor),
        "model", text_or_null(model), "family", text_or_null(field(arena, info, "cpu family", ':')),
        "model_number", text_or_null(field(arena, info, "model\t", ':')), "stepping",
        text_or_null(field(arena, info, "stepping", ':')), "microcode",
        text_or_null(field(arena, info, "microcode", ':')), "isa", isa, "fma", fused, "flags", flags);
}

/* ---- operating system ------------------------------------------------------------------------------------- */

/* A value of /etc/os-release, without its quotes. */
static json_t *os_field(tctl_arena *arena, const char *text, const char *key)
{
    char *value = field(arena, text, key, '=');
    if (value && (*value == '"' || *value == '\'')) {
        char *end = strrchr(value, *value);
        if (end > value)
            *end = '\0';
        value++;
    }
    return text_or_null(value);
}

static json_t *describe_distribution(tctl_arena *arena)
{
    const char *text = read_text(arena, "/etc/os-release");
    if (!*text)
        text = read_text(arena, "/usr/lib/os-release");
    return json_pack("{s:o, s:o, s:o}", "id", os_field(arena, text, "ID"), "version",
                     os_field(arena, text, "VERSION_ID"), "name", os_field(arena, text, "PRETTY_NAME"));
}

static json_t *describe_libc(tctl_arena *arena)
{
#ifdef __GLIBC__
    return text_or_null(tctl_arena_format(arena, "glibc %s", gnu_get_libc_version()));
#else
    (void)arena;
    return json_null();
#endif
}

/* "always [madvise] never": the word in brackets. */
static json_t *describe_hugepages(tctl_arena *arena)
{
    const char *text = read_text(arena, "/sys/kernel/mm/transparent_hugepage/enabled");
    const char *open = strchr(text, '[');
    return open ? text_or_null(tctl_arena_copy(arena, open + 1, strcspn(open + 1, "]"))) : json_null();
}

static json_t *describe_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? tctl_json_count((uint64_t)pages * (uint64_t)size) : json_null();
}

/* ---- GPU ---------------------------------------------------------------------------------------------------- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …": the first word that begins with a digit. */
static json_t *nvidia_driver(tctl_arena *arena)
{
    const char *line = field(arena, read_text(arena, "/proc/driver/nvidia/version"), "NVRM version", ':');
    for (const char *p = line; p && *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (*p >= '0' && *p <= '9' && memchr(p, '.', n))
            return text_or_null(tctl_arena_copy(arena, p, n));
    }
    return json_null();
}

/* Models of the GPUs, in the order of their PCI addresses; no serial numbers. */
static json_t *describe_gpus(tctl_arena *arena)
{
    static const char top[] = "/proc/driver/nvidia/gpus";
    json_t *list = json_array();
    struct dirent **names = NULL;
    int n = list ? scandir(top, &names, NULL, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            const char *path = tctl_arena_format(arena, "%s/%s/information", top, names[i]->d_name);
            const char *model = path ? field(arena, read_text(arena, path), "Model", ':') : NULL;
            json_array_append_new(list, json_pack("{s:o}", "model", text_or_null(model)));
        }
        free(names[i]);
    }
    free(names);
    return list;
}

tctl_status tctl_environment_capture(const char *const *env, const char *const *secrets, json_t **ret,
                                     tctl_error *err)
{
    tctl_arena *arena = tctl_arena_create();
    struct utsname system;
    json_t *variables = NULL, *names = NULL, *result = NULL;
    bool good = arena && uname(&system) == 0 && tctl_environment_variables(env, secrets, &variables, &names);
    if (good)
        result = json_pack(
            "{s:o, s:{s:i, s:i}, s:o, s:{s:s, s:s}, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "cpu",
            describe_cpu(arena, system.machine), "cores", "online", (int)sysconf(_SC_NPROCESSORS_ONLN),
            "available", (int)tctl_cpus_available(), "memory_bytes", describe_memory(), "kernel", "name",
            system.sysname, "release", system.release, "libc", describe_libc(arena), "distribution",
            describe_distribution(arena), "page_size", (int)sysconf(_SC_PAGESIZE), "transparent_hugepage",
            describe_hugepages(arena), "gpus", describe_gpus(arena), "nvidia_driver", nvidia_driver(arena),
            "variables", variables, "variable_names", names);
    tctl_arena_destroy(arena);
    if (!result)
        return tctl_fail_memory(err, sizeof system);
    *ret = result;
    return TCTL_OK;
}
