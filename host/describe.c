/* SPDX-License-Identifier: Apache-2.0 */
/* See describe.h. */
#include "host/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/num.h"

const char *tctl_type_text(int32_t type)
{
    static const char *const names[] = {"?",    "bool",  "int",    "real",     "text", "enum",
                                        "path", "count", "plugin", "duration", "size"};
    return type >= 1 && (size_t)type < TCTL_COUNT_OF(names) ? names[type] : names[0];
}

const char *tctl_bits_text(uint32_t bits)
{
    return bits == TCTL_BITS_SAME ? "same" : "recipe";
}

json_t *tctl_claims_json(uint32_t claims)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{TCTL_SAME_RUNS, "runs"},
                 {TCTL_SAME_THREADS, "threads"},
                 {TCTL_SAME_CPUS, "cpus"},
                 {TCTL_SAME_RESUME, "resume"},
                 {TCTL_SAME_DEVICES, "devices"}};
    json_t *list = json_array();
    for (size_t i = 0; list && i < TCTL_COUNT_OF(names); i++) {
        if ((claims & names[i].bit) && json_array_append_new(list, json_string(names[i].name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *tctl_loaded_json(const tctl_loaded *loaded)
{
    const tctl_plugin *p = loaded->plugin;
    char digest[TCTL_SHA256_HEX], abi[32];
    tctl_sha256_hex(&loaded->digest, digest);
    snprintf(abi, sizeof abi, "%u.%u", p->abi_major, p->abi_minor);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:o}", "use", loaded->use, "name",
                     p->name, "version", p->version, "license", p->license, "path", loaded->path, "sha256",
                     digest, "build_id", loaded->build_id, "abi", abi, "bits", tctl_bits_text(p->bits),
                     "claims", tctl_claims_json(p->claims));
}

static void add_real(tctl_buf *buf, double value)
{
    char text[TCTL_REAL_TEXT];
    (void)tctl_format_real(value, text);
    tctl_buf_add_text(buf, text);
}

void tctl_option_range(const tctl_option *o, tctl_buf *ret)
{
    if (o->type == TCTL_BOOL)
        tctl_buf_add_text(ret, "true|false");
    bool bounded = o->int_min || o->int_max;
    if (bounded && o->int_max == INT64_MAX)
        tctl_buf_add_format(ret, ">= %" PRId64, o->int_min);
    else if (bounded)
        tctl_buf_add_format(ret, "%" PRId64 "..%" PRId64, o->int_min, o->int_max);
    if (fpclassify(o->real_min) != FP_ZERO || fpclassify(o->real_max) != FP_ZERO) {
        add_real(ret, o->real_min);
        tctl_buf_add_text(ret, "..");
        add_real(ret, o->real_max);
    }
    for (uint32_t i = 0; o->choices && o->choices[i]; i++)
        tctl_buf_add_format(ret, "%s%s", i ? "|" : ret->size ? " " : "", o->choices[i]);
}
