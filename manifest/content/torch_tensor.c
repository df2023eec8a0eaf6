/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that torch's pickles rebuild tensors from: torch._utils._rebuild_tensor and its successors. An object that
 * has the name and not the arguments is listed like any other object.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/content/torch_tree.h"

static bool is_global(const tctl_pickled *value, const char *name)
{
    return value != NULL && value->kind == TCTL_PICKLE_GLOBAL && strcmp(value->u.text.bytes, name) == 0;
}

static const tctl_pickled *argument(const tctl_pickled *object, size_t i, int kind)
{
    const tctl_pickled *args = object->args;
    if (i >= args->u.items.n || args->u.items.of[i]->kind != kind)
        return NULL;
    return args->u.items.of[i];
}

static bool is_true(const tctl_pickled *object, size_t i)
{
    const tctl_pickled *flag = argument(object, i, TCTL_PICKLE_BOOL);
    return flag != NULL && flag->u.integer != 0;
}

/* A tuple of counts, or torch.Size of one. */
static bool read_counts(const tctl_pickled *object, size_t i, uint64_t out[TCTL_ARRAY_RANK], uint32_t *ret_n)
{
    const tctl_pickled *tuple = argument(object, i, TCTL_PICKLE_TUPLE);
    const tctl_pickled *size = tuple == NULL ? argument(object, i, TCTL_PICKLE_OBJECT) : NULL;
    if (size != NULL && is_global(size->callable, "torch Size"))
        tuple = argument(size, 0, TCTL_PICKLE_TUPLE);
    if (tuple == NULL || tuple->u.items.n > TCTL_ARRAY_RANK)
        return false;
    for (size_t k = 0; k < tuple->u.items.n; k++) {
        const tctl_pickled *count = tuple->u.items.of[k];
        if (count->kind != TCTL_PICKLE_INT || count->u.integer < 0)
            return false;
        out[k] = (uint64_t)count->u.integer;
    }
    *ret_n = (uint32_t)tuple->u.items.n;
    return true;
}

tctl_status tctl_torch_storage(tctl_torch *t, const tctl_pickled *persistent, tctl_storage **ret,
                               const char **ret_type, uint64_t *ret_n, tctl_error *err)
{
    tctl_storage key = {0};
    tctl_torch_id(persistent, ret_type, &key.key, ret_n);
    *ret = NULL;
    if (key.key == NULL)
        return TCTL_OK;
    if (t->n_storages > 0)
        *ret = bsearch(&key, t->storages, t->n_storages, sizeof key, tctl_storage_order);
    if (*ret == NULL)
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' is damaged: '%s' lies in a storage '%s' that is not in the file", t->name,
                         tctl_buf_text(&t->path), key.key);
    if (!(*ret)->seen) {
        (*ret)->seen = true;
        (*ret)->number = t->n_seen++;
    }
    return TCTL_OK;
}

/* All of a storage as it lies there: the digest that checking its CRC gave is the payload's. */
static bool is_whole(const tctl_storage *s, const tctl_array *t)
{
    return s->has_digest && t->strides == NULL && t->swap_bytes <= 1 && t->offset == s->offset &&
           t->n_elements * t->element_bytes == s->bytes;
}

static tctl_status list_view(tctl_torch *t, tctl_array *tensor, const tctl_storage *s, const char *flags,
                             tctl_error *err)
{
    char what[256], more[96];
    snprintf(what, sizeof what, "tensor '%.200s'", tctl_buf_text(&t->path));
    snprintf(more, sizeof more, " storage %" PRIu32 "%s", s->number, flags);
    tctl_status st = tctl_array_check(tensor, s->offset + s->bytes, what, err);
    if (st != TCTL_OK) {
        tctl_note(err, "'%s' is damaged", t->name);
        return st;
    }
    return tctl_list_tensor(t->listing, tctl_buf_text(&t->path), tensor,
                            is_whole(s, tensor) ? &s->sha256 : NULL, more, err);
}

static bool set_type(const tctl_torch *t, const char *global, tctl_array *tensor)
{
    uint32_t word = 1;
    if (!tctl_torch_type(global, &tensor->dtype, &tensor->element_bytes, &word))
        return false;
    tensor->swap_bytes = t->big_endian ? word : 0;
    return true;
}

/* (storage, offset, size, stride, requires_grad, hooks[, dtype | metadata]) */
static tctl_status list_rebuilt(tctl_torch *t, const tctl_pickled *object, const tctl_pickled *dtype,
                                const char *flags, bool *ret_done, tctl_error *err)
{
    uint64_t shape[TCTL_ARRAY_RANK], strides[TCTL_ARRAY_RANK], n = 0;
    uint32_t n_strides = 0;
    tctl_storage *s = NULL;
    const char *type = NULL;
    tctl_array tensor = {.shape = shape, .strides = strides};
    const tctl_pickled *id = argument(object, 0, TCTL_PICKLE_PERSISTENT),
                       *at = argument(object, 1, TCTL_PICKLE_INT);
    *ret_done = false;
    if (id == NULL || at == NULL || at->u.integer < 0 || !read_counts(object, 2, shape, &tensor.rank) ||
        !read_counts(object, 3, strides, &n_strides) || n_strides != tensor.rank)
        return TCTL_OK;
    tctl_status st = tctl_torch_storage(t, id, &s, &type, &n, err);
    if (st != TCTL_OK || s == NULL || !set_type(t, dtype == NULL ? type : dtype->u.text.bytes, &tensor))
        return st;
    if (!tctl_shape_elements(shape, tensor.rank, &tensor.n_elements) ||
        (uint64_t)at->u.integer > s->bytes / tensor.element_bytes)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: tensor '%s' reaches outside of its storage",
                         t->name, tctl_buf_text(&t->path));
    tensor.source = s->source;
    tensor.offset = s->offset + (uint64_t)at->u.integer * tensor.element_bytes;
    *ret_done = true;
    return list_view(t, &tensor, s, flags, err);
}

static tctl_status list_any_tensor(tctl_torch *t, const tctl_pickled *object, const char *parameter,
                                   bool *ret_done, tctl_error *err)
{
    static const char v1[] = "torch._utils _rebuild_tensor", v2[] = "torch._utils _rebuild_tensor_v2",
                      v3[] = "torch._utils _rebuild_tensor_v3";
    bool is_v3 = is_global(object->callable, v3);
    const tctl_pickled *dtype = is_v3 ? argument(object, 6, TCTL_PICKLE_GLOBAL) : NULL;
    const char *flags = parameter != NULL ? parameter : is_true(object, 4) ? " grad" : "";
    *ret_done = false;
    if (!is_global(object->callable, v1) && !is_global(object->callable, v2) && !(is_v3 && dtype != NULL))
        return TCTL_OK;
    if (object->state != NULL || object->u.items.n > 0 || object->n_pairs > 0)
        return TCTL_OK;
    return list_rebuilt(t, object, dtype, flags, ret_done, err);
}

tctl_status tctl_torch_list_tensor(tctl_torch *t, const tctl_pickled *object, bool *ret_done, tctl_error *err)
{
    *ret_done = false;
    if (is_global(object->callable, "torch._utils _rebuild_parameter")) {
        const tctl_pickled *data = argument(object, 0, TCTL_PICKLE_OBJECT);
        const char *flags = is_true(object, 1) ? " parameter grad" : " parameter";
        return data == NULL ? TCTL_OK : list_any_tensor(t, data, flags, ret_done, err);
    }
    return list_any_tensor(t, object, NULL, ret_done, err);
}

/* A storage by itself: its elements in a row. */
tctl_status tctl_torch_list_storage(tctl_torch *t, const tctl_pickled *persistent, bool *ret_done,
                                    tctl_error *err)
{
    tctl_storage *s = NULL;
    const char *type = NULL;
    uint64_t n = 0;
    tctl_array tensor = {.rank = 1, .shape = &n};
    *ret_done = false;
    tctl_status st = tctl_torch_storage(t, persistent, &s, &type, &n, err);
    if (st != TCTL_OK || s == NULL || !set_type(t, type, &tensor))
        return st;
    tensor.n_elements = n;
    tensor.source = s->source;
    tensor.offset = s->offset;
    *ret_done = true;
    return list_view(t, &tensor, s, " alone", err);
}
