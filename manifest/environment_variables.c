/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables are recorded by value.
 *
 * An allow-list of what is known to change results. Anything else may hold a secret, so of it only the name is kept;
 * and of what looks like a secret too, even if it is on the list.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "manifest/environment.h"
#include "manifest/environment_internal.h"
#include "manifest/path_json.h"

static const char *const prefixes[] = {
    "ATEN_",        "BLIS_",     "CAUSAL_CONV1D_",
    "CUBLAS_",      "CUDA_",     "CUDNN_",
    "CUSOLVER_",    "DNNL_",     "FLASH_ATTENTION_",
    "GOMP_",        "GOTO_",     "HCCL_",
    "HOROVOD_",     "JAX_",      "KMP_",
    "LC_",          "MALLOC_",   "MAMBA_",
    "MKL_",         "NCCL_",     "NUMEXPR_",
    "NVIDIA_TF32_", "NVTE_",     "OMP_",
    "ONEDNN_",      "OPENBLAS_", "PYTORCH_",
    "TF_",          "TORCH_",    "TORCHINDUCTOR_",
    "TRAINCTL_",    "VECLIB_",   "XLA_",
    NULL,
};
static const char *const exact[] = {
    "GLIBC_TUNABLES",
    "LANG",
    "LANGUAGE",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "PL_GLOBAL_SEED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "PYTHONSTARTUP",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "SOURCE_DATE_EPOCH",
    "TZ",
    "WDS_SEED",
    NULL,
};
static const char *const secret_words[] = {
    "KEY",     "TOKEN",  "SECRET", "PASSW",   "PASSPHRASE", "CREDENTIAL", "CREDS", "AUTH",
    "PRIVATE", "COOKIE", "_PWD",   "SESSION", "SIGNATURE",  "CERT",       NULL,
};

bool tctl_environment_by_value(const char *name)
{
    for (const char *const *p = prefixes; *p; p++) {
        if (strncmp(name, *p, strlen(*p)) == 0)
            return true;
    }
    for (const char *const *e = exact; *e; e++) {
        if (strcmp(name, *e) == 0)
            return true;
    }
    return false;
}

bool tctl_environment_looks_secret(const char *name)
{
    for (const char *const *w = secret_words; *w; w++) {
        if (strcasestr(name, *w))
            return true;
    }
    return false;
}

/* A URL with a user in it, or a token by its usual beginning: whoever wrote it there did not mean it to be kept. */
static bool value_looks_secret(const char *value)
{
    static const char *const beginnings[] = {"ghp_", "gho_", "github_pat_", "glpat-", "hf_",
                                             "sk-",  "AKIA", "xoxb-",       NULL};
    const char *scheme = strstr(value, "://");
    if (scheme && memchr(scheme, '@', strcspn(scheme + 3, "/") + 3))
        return true;
    for (const char *const *b = beginnings; *b; b++) {
        if (strncmp(value, *b, strlen(*b)) == 0)
            return true;
    }
    return false;
}

static bool is_among(const char *name, const char *const *list)
{
    for (; list && *list; list++) {
        if (strcmp(name, *list) == 0)
            return true;
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static json_t *sorted_names(char **names, size_t n)
{
    json_t *list = json_array();
    if (n > 1)
        qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; list && i < n; i++) {
        if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
            continue;
        if (json_array_append_new(list, tctl_path_to_json(names[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

/* Records by value where that is right; sets *ret_named if only the name is to be kept. False: out of memory. */
static bool record(json_t *values, const char *name, const char *value, const char *const *secrets,
                   bool *ret_named)
{
    json_t *key = tctl_path_to_json(name);
    const char *text = json_string_value(key);
    bool good = text != NULL;
    *ret_named = false;
    if (good && json_object_get(values, text))
        good = true; /* the first one counts, as for getenv */
    else if (tctl_environment_by_value(name) && !tctl_environment_looks_secret(name) &&
             !is_among(name, secrets) && !value_looks_secret(value))
        good = good && json_object_set_new(values, text, tctl_path_to_json(value)) == 0;
    else
        *ret_named = true;
    json_decref(key);
    return good;
}

bool tctl_environment_variables(const char *const *env, const char *const *secrets, json_t **ret_values,
                                json_t **ret_names)
{
    size_t n = 0, count = 0;
    while (env && env[n])
        n++;
    json_t *values = json_object(), *list = NULL;
    char **names = calloc(n + 1, sizeof *names);
    bool good = values && names;
    for (size_t i = 0; good && i < n; i++) {
        const char *equals = strchr(env[i], '=');
        if (!equals || equals == env[i])
            continue;
        bool named = false;
        char *name = strndup(env[i], (size_t)(equals - env[i]));
        good = name && record(values, name, equals + 1, secrets, &named);
        if (good && named)
            names[count++] = name;
        else
            free(name);
    }
    if (good)
        list = sorted_names(names, count);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    if (!list) {
        json_decref(values);
        return false;
    }
    *ret_values = values;
    *ret_names = list;
    return true;
}
