/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin ABI: what a plugin exports, what it is given.
 *
 * A plugin is a shared object with one exported symbol, the constant `trainctl_plugin_v1`. The constant
 * and every table behind it can be read without running any code of the plugin: `trainctl check`,
 * `trainctl plugins` and the documentation do exactly that. Code runs first in `create`, after the spec
 * was accepted.
 *
 * Rules of growth. Structs begin with their size (or the descriptor carries the size of an array's
 * elements) and only ever grow at the end; a reader uses a member only if the size covers it. The major
 * version is in the symbol's name; a host loads plugins whose minor version is not above its own. What a
 * plugin can do beyond this file is an extension: a struct of function pointers found by a string such
 * as "trainctl.source/1"; a change that is not an append gets a new string.
 *
 * Rules of conduct. A plugin links nothing of trainctl's: all services come through `tctl_host`. It starts
 * no threads, installs no signal handlers, prints nothing, and does not call exit, setlocale, rand, time
 * or getenv. It is never unloaded. Strings in tables are UTF-8 and live as long as the process.
 *
 * Thread tags, after each function pointer:
 *   [main]    called from one thread while nothing else of this stage runs
 *   [step]    calls are serialised per stage, the OS thread may differ
 *   [worker]  many at once for the same stage: treat the stage as read-only
 *   [any]     any thread, any time between create and destroy
 *
 * Ownership. `const T *` is borrowed for the call unless a comment says longer; `T **ret` hands over what
 * the matching destroy frees. `ret_…` is written only on success, `err` only on failure.
 */
#ifndef TRAINCTL_PLUGIN_H
#define TRAINCTL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trainctl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_ABI_MAJOR 1
#define TCTL_ABI_MINOR 0

#if defined(__GNUC__)
#define TCTL_EXPORT            __attribute__((visibility("default")))
#define TCTL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TCTL_EXPORT
#define TCTL_PRINTF(fmt, args)
#endif

typedef struct tctl_error tctl_error;   /* the caller's; filled through the host */
typedef struct tctl_config tctl_config; /* a validated view of one mapping of the spec */
typedef struct tctl_stage tctl_stage;   /* the plugin's own type, one object per use in a spec */

/* ---- options -------------------------------------------------------------------------------------- */

/* How the text of an option is read. The schema decides the type; YAML's own guesses are never used. */
enum {
    TCTL_BOOL = 1,     /* true | false, nothing else */
    TCTL_INT = 2,      /* decimal or 0x…, int64, within int_min..int_max */
    TCTL_REAL = 3,     /* decimal, e.g. 0.1 or 1e-3, finite, within real_min..real_max */
    TCTL_TEXT = 4,     /* any scalar, taken as written */
    TCTL_ENUM = 5,     /* one of `choices` */
    TCTL_PATH = 6,     /* relative to the spec's folder; read back absolute */
    TCTL_COUNT = 7,    /* "200 steps" or "1 epoch": a count within int_min..int_max and one of `choices` */
    TCTL_PLUGIN = 8,   /* a nested mapping with `use:`, of a plugin that provides extension `choices[0]` */
    TCTL_DURATION = 9, /* "90 s", "5 min", "2 h": read back in seconds as a real */
    TCTL_SIZE = 10     /* "64 MiB", "2 GiB": read back in bytes */
};

enum {
    TCTL_OPT_REQUIRED = 1u << 0,
    TCTL_OPT_SEMANTIC = 1u << 1, /* the option may change results: it is part of the recipe */
    TCTL_OPT_HASHED = 1u << 2,   /* a path whose content is an input of the run: hashed into the manifest */
    TCTL_OPT_SECRET = 1u << 3,   /* never recorded */
    TCTL_OPT_REPEATED = 1u << 4  /* a list of values; one scalar is a list of one */
};

/*
 * One option of a plugin. Tables of these drive reading, checking, `trainctl plugins NAME`, the reference
 * documentation and the editor schema. An option without TCTL_OPT_SEMANTIC claims that it cannot change a
 * bit of the result; `trainctl plugins test` varies such options and demands equal bits.
 */
typedef struct tctl_option {
    const char *name;           /* lower-case, words joined by '_' */
    int32_t type;               /* TCTL_BOOL… */
    uint32_t flags;             /* TCTL_OPT_… */
    const char *default_yaml;   /* read by the same parser as the user's text; NULL: no default */
    int64_t int_min, int_max;   /* INT, COUNT and SIZE; both 0 means unbounded */
    double real_min, real_max;  /* REAL and DURATION; both 0 means unbounded */
    const char *const *choices; /* ENUM: the words, COUNT: the units, PLUGIN: the extension; NULL-ended */
    const char *unit;           /* shown beside the value; NULL: none */
    const char *doc;            /* one sentence, lower case, no full stop */
    const char *since;          /* plugin version that introduced it */
} tctl_option;

/* ---- the host ------------------------------------------------------------------------------------- */

/*
 * What the host offers to a plugin: one object per stage, so that the host knows who calls. Larger services
 * are found by name with `service`; their structs are in trainctl/host/. The reading functions cannot fail:
 * the spec was checked against the option table before `create`. Asking for an option that the table does not
 * declare, or as another type, is a bug of the plugin; the process stops with the option's name. Strings live
 * as long as the stage.
 */
typedef struct tctl_host {
    uint32_t struct_size, abi_minor;
    void *impl;
    /* The service of that id, or NULL if this host has none. [any] */
    const void *(*service)(const struct tctl_host *, const char *id);
    /* Fills *err with a printf-style message; returns `code`. Lower case, the error first. [any] */
    tctl_status (*fail)(tctl_error *err, tctl_status code, const char *fmt, ...) TCTL_PRINTF(3, 4);
    /* The same with TCTL_ESPEC and the position of `option` in the user's file. [any] */
    tctl_status (*fail_option)(tctl_error *err, const tctl_config *, const char *option, const char *fmt, ...)
        TCTL_PRINTF(4, 5);
    /* [main], inside create only; the pointers returned stay valid for the stage's life. An option without a
     * value (not given, no default) reads as 0 or NULL. */
    int (*cfg_given)(const tctl_config *, const char *option); /* 1 if it has a value, written or default */
    int (*cfg_bool)(const tctl_config *, const char *option);
    int64_t (*cfg_int)(const tctl_config *, const char *option); /* INT, SIZE, and the count of a COUNT */
    double (*cfg_real)(const tctl_config *, const char *option); /* REAL, DURATION (seconds) */
    const char *(*cfg_text)(const tctl_config *, const char *option); /* TEXT, ENUM, PATH; unit of a COUNT */
    uint32_t (*cfg_length)(const tctl_config *, const char *option);  /* values of a REPEATED option */
    int64_t (*cfg_int_at)(const tctl_config *, const char *option, uint32_t i);
    double (*cfg_real_at)(const tctl_config *, const char *option, uint32_t i);
    const char *(*cfg_text_at)(const tctl_config *, const char *option, uint32_t i);
    /* The stage that a PLUGIN option names, already created; NULL if not given. Lives as long as the
     * stage that asks. */
    const struct tctl_part *(*cfg_part)(const tctl_config *, const char *option);
} tctl_host;

/* ---- the plugin ----------------------------------------------------------------------------------- */

/* One thing that a plugin can do: an id such as "trainctl.source/1" and its struct of functions. */
typedef struct tctl_extension {
    const char *id;
    const void *vtable;
} tctl_extension;

/* Effect on bits. A plugin that is `SAME` may be added to or left out of a spec without changing a bit. */
enum { TCTL_BITS_SAME = 1, TCTL_BITS_RECIPE = 2 };

/* What the plugin claims its results do not depend on; each claim is tested by `trainctl plugins test`. */
enum {
    TCTL_SAME_RUNS = 1u << 0,    /* another run on this machine */
    TCTL_SAME_THREADS = 1u << 1, /* number of threads, workers, order of calls */
    TCTL_SAME_CPUS = 1u << 2,    /* SIMD width, CPU model, compiler */
    TCTL_SAME_RESUME = 1u << 3,  /* stopping and going on; needs trainctl.state/1 if it remembers anything */
    TCTL_SAME_DEVICES = 1u << 4  /* CPU or GPU */
};

typedef struct tctl_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    uint32_t option_size; /* sizeof(tctl_option) when the plugin was built */
    uint32_t n_options, n_extensions;
    uint32_t bits;   /* TCTL_BITS_… */
    uint32_t claims; /* TCTL_SAME_… */
    uint32_t flags;  /* TCTL_PLUGIN_… */
    uint32_t reserved;
    const char *name, *version, *license, *summary;
    const tctl_option *options;
    const tctl_extension *extensions;
    /*
     * Makes one stage from its validated options. `host` and `config` belong to this stage and live as long
     * as it does; keep `host` to reach services later. Errors: whatever fits, with words; use fail_option if
     * an option is to blame. [main]
     */
    tctl_status (*create)(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                          tctl_error *err);
    /* Frees a stage; NULL is fine. [main] */
    void (*destroy)(tctl_stage *);
} tctl_plugin;

enum {
    /* The stage changes while it works (counters, averages). Without trainctl.state/1 such a plugin cannot
     * be composed with checkpointing, and the spec is refused. */
    TCTL_PLUGIN_REMEMBERS = 1u << 0
};

/* A plugin at work: the stage made from it and the name it has in the spec. */
typedef struct tctl_part {
    const tctl_plugin *plugin;
    tctl_stage *stage;
    const char *name;
} tctl_part;

/* The struct of functions for `id`, or NULL if the plugin does not have it. */
static inline const void *tctl_plugin_extension(const tctl_plugin *plugin, const char *id)
{
    for (uint32_t i = 0; i < plugin->n_extensions; i++) {
        if (strcmp(plugin->extensions[i].id, id) == 0)
            return plugin->extensions[i].vtable;
    }
    return NULL;
}

/* True if a struct of `size` bytes reaches past member `m` of type T: the test before using a later member. */
#define TCTL_HAS(T, size, m) ((size) >= offsetof(T, m) + sizeof(((T *)0)->m))

#define TCTL_COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* The first members of a descriptor, from struct_size to option_size. */
#define TCTL_PLUGIN_HEADER                                                                                   \
    (uint32_t)sizeof(tctl_plugin), TCTL_ABI_MAJOR, TCTL_ABI_MINOR, (uint32_t)sizeof(tctl_option)

/* The only symbol a plugin exports. */
TCTL_EXPORT extern const tctl_plugin trainctl_plugin_v1;

#ifdef __cplusplus
}
#endif

#endif
