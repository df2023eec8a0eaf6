/* SPDX-License-Identifier: Apache-2.0 */
/* torch's names of types and storages. See torch.h. */
#include <string.h>

#include "manifest/content/torch.h"

typedef struct type {
    const char *storage, *torch, *ours; /* FloatStorage, float32, f32 */
    uint32_t bytes, word;
} type;

static const type types[] = {
    {"DoubleStorage", "float64", "f64", 8, 8},
    {"FloatStorage", "float32", "f32", 4, 4},
    {"HalfStorage", "float16", "f16", 2, 2},
    {"BFloat16Storage", "bfloat16", "bf16", 2, 2},
    {"LongStorage", "int64", "i64", 8, 8},
    {"IntStorage", "int32", "i32", 4, 4},
    {"ShortStorage", "int16", "i16", 2, 2},
    {"CharStorage", "int8", "i8", 1, 1},
    {"ByteStorage", "uint8", "u8", 1, 1},
    {"BoolStorage", "bool", "bool", 1, 1},
    {"ComplexDoubleStorage", "complex128", "c128", 16, 8},
    {"ComplexFloatStorage", "complex64", "c64", 8, 4},
    {"QInt8Storage", "qint8", "qint8", 1, 1},
    {"QUInt8Storage", "quint8", "quint8", 1, 1},
    {"QInt32Storage", "qint32", "qint32", 4, 4},
    {"QUInt4x2Storage", "quint4x2", "quint4x2", 1, 1},
    {"QUInt2x4Storage", "quint2x4", "quint2x4", 1, 1},
    {"UntypedStorage", NULL, "u8", 1, 1},
    {NULL, "uint16", "u16", 2, 2},
    {NULL, "uint32", "u32", 4, 4},
    {NULL, "uint64", "u64", 8, 8},
    {NULL, "complex32", "c32", 4, 2},
    {NULL, "float8_e5m2", "f8_e5m2", 1, 1},
    {NULL, "float8_e4m3fn", "f8_e4m3fn", 1, 1},
    {NULL, "float8_e5m2fnuz", "f8_e5m2fnuz", 1, 1},
    {NULL, "float8_e4m3fnuz", "f8_e4m3fnuz", 1, 1},
    {NULL, "float8_e8m0fnu", "f8_e8m0fnu", 1, 1},
};

/* "torch FloatStorage", "torch.cuda FloatStorage", "torch.storage UntypedStorage". */
bool tctl_torch_type(const char *global, const char **ret_dtype, uint32_t *ret_bytes, uint32_t *ret_word)
{
    const char *name = global == NULL ? NULL : strchr(global, ' ');
    if (name == NULL || strncmp(global, "torch", 5) != 0 || (global[5] != ' ' && global[5] != '.'))
        return false;
    name++;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const type *t = &types[i];
        bool fits = (t->storage != NULL && strcmp(t->storage, name) == 0) ||
                    (t->torch != NULL && strcmp(t->torch, name) == 0);
        if (!fits)
            continue;
        *ret_dtype = t->ours;
        *ret_bytes = t->bytes;
        *ret_word = t->word;
        return true;
    }
    return false;
}

void tctl_torch_id(const tctl_pickled *persistent, const char **ret_type, const char **ret_key,
                   uint64_t *ret_n)
{
    const tctl_pickled *id = persistent->args;
    *ret_key = NULL;
    if (persistent->kind != TCTL_PICKLE_PERSISTENT || id->kind != TCTL_PICKLE_TUPLE || id->u.items.n < 5)
        return;
    tctl_pickled *const *of = id->u.items.of;
    bool fits = of[0]->kind == TCTL_PICKLE_TEXT && strcmp(of[0]->u.text.bytes, "storage") == 0 &&
                of[1]->kind == TCTL_PICKLE_GLOBAL && of[2]->kind == TCTL_PICKLE_TEXT &&
                of[4]->kind == TCTL_PICKLE_INT && of[4]->u.integer >= 0;
    if (!fits ||
        (id->u.items.n > 5 && of[5]->kind != TCTL_PICKLE_NONE)) /* a view of a storage, as before 0.4 */
        return;
    *ret_type = of[1]->u.text.bytes;
    *ret_key = of[2]->u.text.bytes;
    *ret_n = (uint64_t)of[4]->u.integer;
}

int tctl_storage_order(const void *a, const void *b)
{
    return strcmp(((const tctl_storage *)a)->key, ((const tctl_storage *)b)->key);
}
