/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.save before 1.6 (and with _use_new_zipfile_serialization=False): five pickles (a magic number, the protocol,
 * facts of the machine, the value, the keys of the storages), then for each key its number of elements and its bytes.
 * The keys are heap addresses. Nothing has a checksum: a cut file is found, a flipped bit in a payload is only seen by
 * comparing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "manifest/content/torch.h"

/* sys_info['little_endian'] is False. */
static bool is_big_endian(const tctl_pickled *facts)
{
    if (facts->kind != TCTL_PICKLE_DICT)
        return false;
    for (size_t i = 0; i + 1 < facts->u.items.n; i += 2) {
        const tctl_pickled *key = facts->u.items.of[i], *value = facts->u.items.of[i + 1];
        if (key->kind == TCTL_PICKLE_TEXT && strcmp(key->u.text.bytes, "little_endian") == 0)
            return value->kind == TCTL_PICKLE_BOOL && value->u.integer == 0;
    }
    return false;
}

/* Keys from the value: sorted, each once, their bytes per element in `bytes`. */
static tctl_status collect_storages(tctl_torch *t, const tctl_pickled *persistent, tctl_error *err)
{
    size_t n = 0, kept = 0;
    for (const tctl_pickled *p = persistent; p != NULL; p = p->next)
        n++;
    t->storages = tctl_arena_take_array(t->listing->walk->arena, n + 1, sizeof *t->storages);
    if (t->storages == NULL)
        return tctl_fail_memory(err, n * sizeof *t->storages);
    n = 0;
    for (const tctl_pickled *p = persistent; p != NULL; p = p->next) {
        const char *type = NULL, *key = NULL, *dtype = NULL;
        uint64_t elements = 0;
        uint32_t bytes = 0, word = 0;
        tctl_torch_id(p, &type, &key, &elements);
        if (key == NULL || !tctl_torch_type(type, &dtype, &bytes, &word))
            return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has storages of a kind that is not known",
                             t->name);
        t->storages[n++] = (tctl_storage){.key = key, .bytes = bytes};
    }
    qsort(t->storages, n, sizeof *t->storages, tctl_storage_order);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(t->storages[kept - 1].key, t->storages[i].key) != 0)
            t->storages[kept++] = t->storages[i];
        else if (t->storages[kept - 1].bytes != t->storages[i].bytes)
            return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: storage '%s' has two types", t->name,
                             t->storages[i].key);
    }
    t->n_storages = kept;
    return TCTL_OK;
}

static tctl_status place_storage(tctl_torch *t, tctl_source *s, const char *key, uint64_t *at,
                                 tctl_error *err)
{
    const tctl_storage wanted = {.key = key};
    unsigned char count[8];
    uint64_t bytes = 0;
    tctl_storage *found =
        t->n_storages == 0 ? NULL
                           : bsearch(&wanted, t->storages, t->n_storages, sizeof wanted, tctl_storage_order);
    if (found == NULL || found->source != NULL)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: storage '%s' is %s", t->name, key,
                         found == NULL ? "used by no tensor" : "there twice");
    tctl_status st = tctl_source_read(s, *at, count, sizeof count, err);
    if (st != TCTL_OK)
        return st;
    *at += sizeof count;
    if (__builtin_mul_overflow(tctl_get_u64(count), found->bytes, &bytes) || bytes > s->size - *at)
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' is cut short or damaged: storage '%s', at byte %" PRIu64 ", of %" PRIu64
                         " elements does not fit into its %" PRIu64 " bytes",
                         t->name, key, *at, tctl_get_u64(count), s->size);
    found->source = s;
    found->offset = *at;
    found->bytes = bytes;
    *at += bytes;
    return TCTL_OK;
}

static tctl_status place_storages(tctl_torch *t, tctl_source *s, const tctl_pickled *keys, uint64_t *at,
                                  tctl_error *err)
{
    tctl_status st = TCTL_OK;
    if (keys->kind != TCTL_PICKLE_LIST || keys->u.items.n != t->n_storages)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: its list of storages does not fit its tensors",
                         t->name);
    for (size_t i = 0; i < keys->u.items.n && st == TCTL_OK; i++) {
        const tctl_pickled *key = keys->u.items.of[i];
        st = key->kind == TCTL_PICKLE_TEXT
                 ? place_storage(t, s, key->u.text.bytes, at, err)
                 : tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: the key of a storage is no text", t->name);
    }
    if (st == TCTL_OK && *at != s->size)
        st = tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has something behind its storages, at byte %" PRIu64,
                       t->name, *at);
    return st;
}

tctl_status tctl_list_torch_legacy(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    enum { MAGIC, PROTOCOL, FACTS, VALUE, KEYS, N };
    tctl_torch t = {.listing = l, .name = s->name, .path = TCTL_BUF_INIT};
    tctl_pickled *read[N] = {NULL}, *persistent = NULL;
    uint64_t at = 0;
    tctl_status st = TCTL_OK;
    for (int i = 0; i < N && st == TCTL_OK; i++)
        st = tctl_pickle_read(l->walk->arena, s, &at, &read[i], i == VALUE ? &persistent : NULL, err);
    if (st == TCTL_OK && (read[PROTOCOL]->kind != TCTL_PICKLE_INT || read[PROTOCOL]->u.integer != 1001))
        st = tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' is written in another protocol of torch's", s->name);
    if (st == TCTL_OK) {
        t.big_endian = is_big_endian(read[FACTS]);
        st = collect_storages(&t, persistent, err);
    }
    if (st == TCTL_OK)
        st = place_storages(&t, s, read[KEYS], &at, err);
    if (st == TCTL_OK)
        st = tctl_torch_list_tree(&t, read[VALUE], err);
    tctl_buf_release(&t.path);
    *ret_format = "torch";
    return st;
}
