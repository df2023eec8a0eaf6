/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the variables of the user's, and the refusal of those with which results may not repeat.
 *
 * What a shell has for people (locale, time zone) is replaced. A thread count or a seed is replaced too, because the
 * spec says both, and the user is told. A value by which a library chooses its kernels is neither replaced nor passed
 * unseen: somebody set it for a reason, and it would change results.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/envelope.h"
#include "manifest/environment.h"

#define MAX_REFUSED  64
#define LONGEST_NAME 256

static bool is_among(const char *name, size_t length, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        if (strlen(*list) == length && memcmp(name, *list, length) == 0)
            return true;
    }
    return false;
}

int tctl_envelope_fate(const tctl_envelope_request *request, const char *name, size_t length,
                       const char *value, const tctl_variable **ret)
{
    const tctl_variable *v = tctl_variable_find(name, length);
    const tctl_determinism *d = request->determinism;
    *ret = v;
    if (is_among(name, length, request->allow) || is_among(name, length, d->unpinned))
        return TCTL_FATE_PASSED;
    if (v == NULL || is_among(name, length, request->secrets)) /* secrets have a way of their own */
        return TCTL_FATE_OUTSIDE;
    switch (v->kind) {
    case TCTL_VARIABLE_FIXED:
    case TCTL_VARIABLE_THREADS:
    case TCTL_VARIABLE_SEED:
        return TCTL_FATE_REPLACED;
    case TCTL_VARIABLE_LIBRARY:
    case TCTL_VARIABLE_CHOICE:
        if (!d->variables)
            return TCTL_FATE_PASSED;
        return tctl_variable_allows(v, value) ? TCTL_FATE_KEPT : TCTL_FATE_REFUSED;
    case TCTL_VARIABLE_FAMILY:
        return d->variables ? TCTL_FATE_REFUSED : TCTL_FATE_PASSED;
    case TCTL_VARIABLE_DROPPED:
        return TCTL_FATE_OUTSIDE;
    default:
        return TCTL_FATE_PASSED;
    }
}

/* "'NAME=value' is none of the values that are known to repeat: WHY". */
static void refuse(const tctl_variable *v, const char *name, int length, const char *value, tctl_error *err)
{
    tctl_buf words = TCTL_BUF_INIT, shown = TCTL_BUF_INIT;
    tctl_buf_add_format(&shown, "%.*s", length, name);
    if (tctl_buf_text(&shown) != NULL && tctl_environment_looks_secret(tctl_buf_text(&shown)))
        tctl_buf_add_text(&shown, "=...");
    else
        tctl_buf_add_format(&shown, "=%.60s", value);
    if (v->kind == TCTL_VARIABLE_FAMILY)
        tctl_buf_add_format(&words, "it may change results (%s), and nobody has looked", v->why);
    else
        tctl_buf_add_format(&words, "%s", v->why);
    if (v->allowed != NULL || tctl_variable_value(v) != NULL) {
        tctl_buf_add_text(&words, "; results are known to repeat with ");
        tctl_variable_say_allowed(v, &words);
    }
    const char *what = tctl_buf_text(&shown), *why = tctl_buf_text(&words);
    if (what == NULL || why == NULL)
        tctl_fail_memory(err, words.size);
    else if (err->code == TCTL_OK)
        tctl_fail(err, TCTL_EDETERMINISM, "the environment has '%s': %s", what, why);
    else
        tctl_note(err, "and '%s': %s", what, why);
    tctl_buf_release(&words);
    tctl_buf_release(&shown);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

tctl_status tctl_envelope_check(const tctl_envelope_request *request, tctl_error *err)
{
    const char *refused[MAX_REFUSED];
    size_t n = 0;
    const tctl_variable *v;
    tctl_error refusal = {0};
    for (const char *const *e = request->from; e != NULL && *e != NULL && n < MAX_REFUSED; e++) {
        size_t length = strcspn(*e, "=");
        if (length > 0 && length <= LONGEST_NAME && (*e)[length] == '=' &&
            tctl_envelope_fate(request, *e, length, *e + length + 1, &v) == TCTL_FATE_REFUSED)
            refused[n++] = *e;
    }
    if (n == 0)
        return TCTL_OK;
    qsort(refused, n, sizeof *refused, by_text); /* a shell's order means nothing */
    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(refused[i], "=");
        tctl_envelope_fate(request, refused[i], length, refused[i] + length + 1, &v);
        refuse(v, refused[i], (int)length, refused[i] + length + 1, &refusal);
    }
    int length = (int)strcspn(refused[0], "=");
    tctl_hint(&refusal, "unset it ('env -u %.*s trainctl ...'), or let it pass with --allow-env %.*s", length,
              refused[0], length, refused[0]);
    if (err != NULL)
        *err = refusal;
    return refusal.code;
}

tctl_status tctl_envelope_check_unpinned(const tctl_determinism *d, tctl_error *err)
{
    const tctl_config_entry *entry = tctl_config_find(d->config, "unpin");
    for (uint32_t i = 0; entry != NULL && i < entry->n; i++) {
        const char *name = entry->values[i].text, *names[256];
        size_t n, n_names = 0;
        const tctl_variable *table = tctl_variables(&n);
        const tctl_variable *v = tctl_variable_find(name, strlen(name));
        if (v != NULL && v->kind <= TCTL_VARIABLE_LIBRARY)
            continue;
        for (size_t k = 0; k < n && n_names < 256; k++) {
            if (table[k].kind <= TCTL_VARIABLE_LIBRARY)
                names[n_names++] = table[k].name;
        }
        const char *near = tctl_suggest(name, names, n_names);
        tctl_status st = tctl_fail_at(err, TCTL_ESPEC, entry->values[i].loc,
                                      "'unpin' must name variables that are pinned, got '%.100s'", name);
        if (near != NULL)
            tctl_hint(err, "did you mean '%s'?", near);
        else
            tctl_hint(err, "docs/determinism.md lists them; others pass with --allow-env");
        return st;
    }
    return TCTL_OK;
}
