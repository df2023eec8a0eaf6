/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine class: which fields of two environments must agree for the "machine" contract to be possible at all.
 *
 * What numerical code may depend on: instructions (libraries dispatch on CPU features), libc and libm, the GPU and
 * its driver, and the libraries themselves. The kernel only by its major version.
 */
#include <string.h>

#include "base/buf.h"
#include "manifest/environment.h"

static const json_t *member(const json_t *object, const char *outer, const char *inner)
{
    const json_t *value = json_object_get(object, outer);
    return inner ? json_object_get(value, inner) : value;
}

/* Takes `was` and `is` over. */
static bool compare(json_t *list, const char *field, json_t *was, json_t *is)
{
    bool good = was && is;
    if (good && !json_equal(was, is))
        good = json_array_append_new(list,
                                     json_pack("{s:s, s:O, s:O}", "field", field, "was", was, "is", is)) == 0;
    json_decref(was);
    json_decref(is);
    return good;
}

/* The value, or null where there is none. A new reference. */
static json_t *or_null(const json_t *value)
{
    return value ? json_deep_copy(value) : json_null();
}

/* The flags that compute libraries choose kernels by, as one text. */
static json_t *vector_flags(const json_t *environment)
{
    static const char *const begin[] = {"amx", "asimd", "avx", "f16c", "fma",
                                        "sse", "ssse",  "sve", "vnni", NULL};
    tctl_buf text = TCTL_BUF_INIT;
    size_t i;
    const json_t *flag;
    json_array_foreach(member(environment, "cpu", "flags"), i, flag)
    {
        const char *name = json_string_value(flag);
        for (const char *const *b = begin; name && *b; b++) {
            if (strncmp(name, *b, strlen(*b)) == 0) {
                tctl_buf_add_format(&text, "%s%s", text.size ? " " : "", name);
                break;
            }
        }
    }
    const char *joined = tctl_buf_text(&text);
    json_t *value = joined ? json_string(joined) : NULL;
    tctl_buf_release(&text);
    return value;
}

/* "6" of "6.1.0-18-amd64". */
static json_t *kernel_major(const json_t *environment)
{
    const char *release = json_string_value(member(environment, "kernel", "release"));
    return release ? json_stringn(release, strcspn(release, ".")) : json_null();
}

static const json_t *find_object(const json_t *list, const char *path)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *is = json_string_value(json_object_get(entry, "path"));
        if (is && strcmp(is, path) == 0)
            return json_object_get(entry, "sha256");
    }
    return NULL;
}

static bool compare_objects(json_t *list, const json_t *was, const json_t *is)
{
    bool good = true;
    size_t i;
    const json_t *entry;
    for (int turn = 0; turn < 2; turn++) {
        json_array_foreach(turn == 0 ? was : is, i, entry)
        {
            const char *path = json_string_value(json_object_get(entry, "path"));
            if (!path || (turn == 1 && find_object(was, path)))
                continue;
            good =
                good && compare(list, path, or_null(find_object(was, path)), or_null(find_object(is, path)));
        }
    }
    return good;
}

json_t *tctl_environment_differences(const json_t *was, const json_t *is)
{
    static const struct {
        const char *field, *outer, *inner;
    } plain[] = {
        {"cpu.arch", "cpu", "arch"},
        {"cpu.vendor", "cpu", "vendor"},
        {"cpu.model", "cpu", "model"},
        {"cpu.isa", "cpu", "isa"},
        {"libc", "libc", NULL},
        {"gpus", "gpus", NULL},
        {"nvidia_driver", "nvidia_driver", NULL},
    };
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < sizeof plain / sizeof plain[0]; i++)
        good = compare(list, plain[i].field, or_null(member(was, plain[i].outer, plain[i].inner)),
                       or_null(member(is, plain[i].outer, plain[i].inner)));
    good = good && compare(list, "cpu.vector_flags", vector_flags(was), vector_flags(is));
    good = good && compare(list, "kernel.major", kernel_major(was), kernel_major(is));
    const json_t *objects_were = json_object_get(was, "shared_objects"),
                 *objects_are = json_object_get(is, "shared_objects");
    if (good && objects_were && objects_are)
        good = compare_objects(list, objects_were, objects_are);
    if (!good) {
        json_decref(list);
        return NULL;
    }
    return list;
}
