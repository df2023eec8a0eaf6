/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What torch.save writes, in both of its containers, made here opcode by opcode, so that no torch is needed; the
 * cases of tests/cases use real ones.
 */
#include "tests/manifest/content_fixture.h"

#include "manifest/content/pickle.h"

static const float values[] = {1, 2, 3, 4, 5, 6};

/* ---- pickles ------------------------------------------------------------------------------------------ */

static void op_text(tctl_buf *p, const char *text)
{
    uint8_t n[4];
    tctl_put_u32(n, (uint32_t)strlen(text));
    tctl_buf_add_char(p, 'X');
    tctl_buf_add(p, n, sizeof n);
    tctl_buf_add_text(p, text);
}

static void op_int(tctl_buf *p, int value)
{
    tctl_buf_add_char(p, 'K');
    tctl_buf_add_char(p, (char)value);
}

static void op_tuple(tctl_buf *p, const int *items, int n)
{
    tctl_buf_add_char(p, '(');
    for (int i = 0; i < n; i++)
        op_int(p, items[i]);
    tctl_buf_add_char(p, 't');
}

/* What a tensor of f32 is made of. */
typedef struct view {
    const char *key;
    int n, offset, rank;
    int shape[3], strides[3];
} view;

/* _rebuild_tensor_v2(('storage', torch.FloatStorage, key, 'cpu', n), offset, size, stride, False, OrderedDict()) */
static void op_tensor(tctl_buf *p, const view *v)
{
    tctl_buf_add_text(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    op_text(p, "storage");
    tctl_buf_add_text(p, "ctorch\nFloatStorage\n");
    op_text(p, v->key);
    op_text(p, "cpu");
    op_int(p, v->n);
    tctl_buf_add_text(p, "tQ");
    op_int(p, v->offset);
    op_tuple(p, v->shape, v->rank);
    op_tuple(p, v->strides, v->rank);
    tctl_buf_add_text(p, "\x89"
                         "ccollections\nOrderedDict\n)RtR");
}

static void op_begin(tctl_buf *p)
{
    tctl_buf_add(p, "\x80\2", 2);
}

/* {'w': the tensor, 'epoch': 3} */
static tctl_buf state_pickle(const view *v)
{
    tctl_buf p = TCTL_BUF_INIT;
    op_begin(&p);
    tctl_buf_add_text(&p, "}(");
    op_text(&p, "w");
    op_tensor(&p, v);
    op_text(&p, "epoch");
    op_int(&p, 3);
    tctl_buf_add_text(&p, "u.");
    return p;
}

/* ---- archives ----------------------------------------------------------------------------------------- */

static const char *write_torch(const char *name, const char *stem, tctl_buf *pickle, const char *key,
                               const void *data, size_t size, const char *id)
{
    const part parts[] = {
        {tctl_arena_format(arena, "%s/data.pkl", stem), pickle->data, pickle->size},
        {tctl_arena_format(arena, "%s/byteorder", stem), "little", 6},
        {tctl_arena_format(arena, "%s/data/%s", stem, key), data, size},
        {tctl_arena_format(arena, "%s/version", stem), "3\n", 2},
        {tctl_arena_format(arena, "%s/.data/serialization_id", stem), id, strlen(id)},
    };
    const char *path = write_zip(name, parts, 5, false, 1000000000);
    tctl_buf_release(pickle);
    return path;
}

static const view whole = {"0", 6, 0, 2, {2, 3}, {3, 1}};

static const char *write_state(const char *name, const char *stem, const view *v, const void *data,
                               size_t size)
{
    tctl_buf p = state_pickle(v);
    return write_torch(name, stem, &p, v->key, data, size, "1");
}

/* The container before 1.6. */
static const char *write_legacy(const char *name, const view *v, const void *data, size_t size)
{
    tctl_buf p = TCTL_BUF_INIT, state = state_pickle(v);
    tctl_buf_add(&p, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);
    tctl_buf_add(&p, "\x80\2M\xe9\3.", 6);
    tctl_buf_add(&p, "\x80\2}(", 4);
    op_text(&p, "little_endian");
    tctl_buf_add_text(&p, "\x88u.");
    tctl_buf_add(&p, state.data, state.size);
    tctl_buf_add(&p, "\x80\2]", 3);
    op_text(&p, v->key);
    tctl_buf_add_text(&p, "a.");
    add_u64(&p, size / 4);
    tctl_buf_add(&p, data, size);
    tctl_buf_release(&state);
    return write_buf(name, &p);
}

/* ---- tests -------------------------------------------------------------------------------------------- */

static void names_ids_and_containers_do_not_count(void **state)
{
    view heap = whole;
    (void)state;
    tctl_content a = content_of(write_state("a", "model", &whole, values, sizeof values), "torch");
    assert_int_equal(a.n_tensors, 1);
    assert_same(a, content_of(write_state("b", "checkpoint-7", &whole, values, sizeof values), "torch"));
    tctl_buf p = state_pickle(&whole);
    assert_same(a,
                content_of(write_torch("c", "model", &p, "0", values, sizeof values, "another id"), "torch"));
    heap.key = "94276117583168"; /* a heap address, as the old container has it */
    assert_same(a, content_of(write_legacy("d", &heap, values, sizeof values), "torch"));
    assert_string_equal(difference(tctl_path_join(arena, folder, "a"), tctl_path_join(arena, folder, "d")),
                        "");
}

static void values_and_shapes_count(void **state)
{
    static const float others[] = {1, 2, 3, 4, 5, 7};
    const view flat = {"0", 6, 0, 1, {6}, {1}};
    (void)state;
    const char *path = write_state("a", "m", &whole, values, sizeof values);
    tctl_content a = content_of(path, "torch");
    const char *other = write_state("b", "m", &whole, others, sizeof others);
    assert_other(a, content_of(other, "torch"));
    assert_other(a, content_of(write_state("c", "m", &flat, values, sizeof values), "torch"));
    assert_string_equal(difference(path, other),
                        "tensor 'w' [1, 2]: 6 (40c00000) became 7 (40e00000), 2097152 ULPs "
                        "apart; 1 of 6 elements differ");
    assert_string_equal(difference(path, tctl_path_join(arena, folder, "c")),
                        "'w': tensor f32 [2, 3] storage 0 became tensor f32 [6] storage 0");
}

static void how_a_tensor_is_strided_does_not_count(void **state)
{
    static const float transposed[] = {1, 4, 2, 5, 3, 6};
    static const float padded[] = {0, 0, 1, 2, 3, 4, 5, 6, 0};
    const view columns = {"0", 6, 0, 2, {2, 3}, {1, 2}}, inside = {"0", 9, 2, 2, {2, 3}, {3, 1}};
    (void)state;
    tctl_content a = content_of(write_state("a", "m", &whole, values, sizeof values), "torch");
    assert_same(a, content_of(write_state("b", "m", &columns, transposed, sizeof transposed), "torch"));
    assert_same(a, content_of(write_state("c", "m", &inside, padded, sizeof padded), "torch"));
    assert_same(a, content_of(write_legacy("d", &inside, padded, sizeof padded), "torch"));
}

static void a_tensor_outside_of_its_storage_is_found(void **state)
{
    const view reach = {"0", 6, 1, 2, {2, 3}, {3, 1}}, stride = {"0", 6, 0, 2, {2, 3}, {4, 1}},
               offset = {"0", 6, 200, 2, {2, 3}, {3, 1}};
    const view other = {"1", 6, 0, 1, {6}, {1}};
    (void)state;
    assert_damaged(write_state("a", "m", &reach, values, sizeof values),
                   "tensor 'w' reaches outside of its data");
    assert_damaged(write_state("b", "m", &stride, values, sizeof values),
                   "tensor 'w' reaches outside of its data");
    assert_damaged(write_state("c", "m", &offset, values, sizeof values), "reaches outside of its storage");
    tctl_buf p = state_pickle(&other);
    assert_damaged(write_torch("d", "m", &p, "0", values, sizeof values, "1"),
                   "lies in a storage '1' that is not in the file");
    assert_damaged(write_legacy("e", &reach, values, sizeof values),
                   "tensor 'w' reaches outside of its data");
}

static void every_flipped_bit_of_a_payload_and_every_cut_is_found(void **state)
{
    (void)state;
    tctl_buf bytes = read_whole(write_state("a", "m", &whole, values, sizeof values));
    size_t at = 0;
    while (memcmp(bytes.data + at, values, sizeof values) != 0)
        at++;
    for (size_t bit = 0; bit < 8 * sizeof values; bit++) {
        bytes.data[at + bit / 8] = (char)(bytes.data[at + bit / 8] ^ (1 << bit % 8));
        assert_damaged(write_file("flip", bytes.data, bytes.size), "its bytes do not have the CRC-32");
        bytes.data[at + bit / 8] = (char)(bytes.data[at + bit / 8] ^ (1 << bit % 8));
    }
    assert_non_null(strstr(error.message, "member 'm/data/0', at byte "));
    for (size_t n = 4; n < bytes.size; n++)
        assert_damaged(write_file("cut", bytes.data, n), "cut short or damaged");
    tctl_buf_release(&bytes);
    bytes = read_whole(write_legacy("old", &whole, values, sizeof values));
    for (size_t n = 15; n < bytes.size; n++) {
        tctl_content c;
        assert_int_equal(look(write_file("cut", bytes.data, n), &c), TCTL_EFORMAT);
    }
    tctl_buf_release(&bytes);
}

static void what_a_pickle_would_call_is_listed_and_not_called(void **state)
{
    static const char evil[] = "\x80\2cposix\nsystem\nX\x12\0\0\0touch /tmp/content-x\x85R.";
    tctl_buf p = TCTL_BUF_INIT;
    (void)state;
    unlink("/tmp/content-x");
    tctl_buf_add(&p, evil, sizeof evil - 1);
    p.data[17] = 20; /* the length of the command */
    const char *path = write_torch("a", "m", &p, "0", values, sizeof values, "1");
    content_of(path, "torch");
    assert_int_not_equal(access("/tmp/content-x", F_OK), 0);
    tctl_buf_add(&p, evil, sizeof evil - 1);
    p.data[17] = 20;
    p.data[p.size - 4] = 'y';
    assert_string_equal(difference(path, write_torch("b", "m", &p, "0", values, sizeof values, "1")),
                        "'(0)': touch /tmp/content-x became touch /tmp/content-y");
}

static void which_tensors_share_a_storage_counts(void **state)
{
    const view first = {"0", 6, 0, 1, {3}, {1}}, second = {"0", 6, 3, 1, {3}, {1}};
    const view alone = {"1", 3, 0, 1, {3}, {1}};
    const char *paths[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        tctl_buf p = TCTL_BUF_INIT;
        op_begin(&p);
        op_tensor(&p, &first);
        op_tensor(&p, i == 0 ? &second : &alone);
        tctl_buf_add_text(&p, "\x86.");
        const part parts[] = {{"m/data.pkl", p.data, p.size},
                              {"m/data/0", values, sizeof values},
                              {"m/data/1", values + 3, 12},
                              {"m/version", "3\n", 2}};
        paths[i] = write_zip(i == 0 ? "a" : "b", parts, 4, false, 1000000000);
        tctl_buf_release(&p);
    }
    assert_other(content_of(paths[0], "torch"), content_of(paths[1], "torch"));
    assert_string_equal(difference(paths[0], paths[1]),
                        "'1': tensor f32 [3] storage 0 became tensor f32 [3] storage 1");
}

static void what_else_is_in_the_archive_counts(void **state)
{
    (void)state;
    const char *paths[2];
    for (int i = 0; i < 2; i++) {
        tctl_buf p = state_pickle(&whole);
        const part parts[] = {{"m/data.pkl", p.data, p.size},
                              {"m/data/0", values, sizeof values},
                              {"m/code/net.py", i == 0 ? "x = 1" : "x = 2", 5},
                              {"m/version", "3\n", 2}};
        paths[i] = write_zip(i == 0 ? "a" : "b", parts, 4, false, 1000000000);
        tctl_buf_release(&p);
    }
    assert_string_equal(difference(paths[0], paths[1]),
                        "member 'archive:code/net.py', byte 4: 31 became 32; 1 byte differs");
}

/* ---- the machine -------------------------------------------------------------------------------------- */

static tctl_status unpickle(const void *bytes, size_t size, tctl_pickled **ret)
{
    tctl_source *s = NULL;
    uint64_t at = 0;
    assert_int_equal(tctl_source_of(arena, "pickle", bytes, size, &s, &error), TCTL_OK);
    tctl_error_clear(&error);
    return tctl_pickle_read(arena, s, &at, ret, NULL, &error);
}

#define UNPICKLE(text, ret) unpickle(text, sizeof(text) - 1, ret)

static void protocols_2_to_5_are_read(void **state)
{
    tctl_pickled *v = NULL;
    (void)state;
    assert_int_equal(UNPICKLE("\x80\2}q\0X\1\0\0\0aq\1J\xff\xff\xff\xffs.", &v), TCTL_OK);
    assert_int_equal(v->kind, TCTL_PICKLE_DICT);
    assert_int_equal(v->u.items.of[1]->u.integer, -1);
    assert_int_equal(UNPICKLE("\x80\4\x95\x0d\0\0\0\0\0\0\0]\x94(\x8c\1a\x94h\1h\1e.", &v), TCTL_OK);
    assert_int_equal(v->u.items.n, 3);
    assert_string_equal(v->u.items.of[2]->u.text.bytes, "a");
    assert_int_equal(UNPICKLE("\x80\5\x8c\5torch\x8c\4Size\x93K\2K\3\x86\x85R.", &v), TCTL_OK);
    assert_int_equal(v->kind, TCTL_PICKLE_OBJECT);
    assert_string_equal(v->callable->u.text.bytes, "torch Size");
    assert_int_equal(UNPICKLE("\x80\2\x8a\1\xffG?\xf0\0\0\0\0\0\0N\x87.", &v), TCTL_OK);
    assert_int_equal(v->u.items.of[0]->u.integer, -1);
    assert_true(v->u.items.of[1]->u.real == 1.0);
    assert_int_equal(v->u.items.of[2]->kind, TCTL_PICKLE_NONE);
}

static void what_no_pickler_writes_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *bytes, *words;
        size_t n;
    } bad[] = {
        {"\x80\2", "it ends early", 2},
        {"\x80\2.", "it does not end in one value", 3},
        {"\x80\2NN.", "it does not end in one value", 5},
        {"\x80\2t.", "there is no mark", 4},
        {"\x80\2NR.", "a call without arguments", 5},
        {"\x80\2Ns.", "too few values", 5},
        {"\x80\2NNNs.", "set in what is no dict", 7},
        {"\x80\2NNa.", "appended to what is no list", 6},
        {"\x80\2(Nd.", "a key without a value", 6},
        {"\x80\2h\7.", "something is used that was not remembered", 5},
        {"\x80\2X\xff\xff\xff\xff.", "a text is longer than what is left", 8},
        {"\x80\2\x93.", "a global without a name", 4},
    };
    tctl_pickled *v = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(unpickle(bad[i].bytes, bad[i].n, &v), TCTL_EFORMAT);
        if (strstr(error.message, bad[i].words) == NULL)
            fail_msg("'%s' is not in '%s'", bad[i].words, error.message);
        assert_non_null(strstr(error.message, "the pickle at byte 0, near byte "));
    }
    assert_int_equal(UNPICKLE("\x80\2I01\n.", &v), TCTL_EUNSUPPORTED);
    assert_int_equal(UNPICKLE("\x80\2\x82\1.", &v), TCTL_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "opcode 0x82"));
}

static void a_value_that_contains_itself_and_one_that_doubles_are_not_looked_into(void **state)
{
    tctl_buf p = TCTL_BUF_INIT;
    (void)state;
    tctl_buf_add(&p, "\x80\2]q\0h\0a.", 9);
    p.size = 8;
    tctl_buf_add_text(&p, ".");
    assert_not_looked_into(write_torch("self", "m", &p, "0", values, sizeof values, "1"),
                           "nested too deeply");
    op_begin(&p);
    tctl_buf_add_text(&p, "]");
    for (int i = 0; i < 40; i++) { /* [x, x] of [x, x] of ...: 2^40 values in 200 bytes */
        tctl_buf_add(&p, "q\0h\0\x86", 5);
    }
    tctl_buf_add_text(&p, ".");
    assert_not_looked_into(write_torch("double", "m", &p, "0", values, sizeof values, "1"),
                           "too many values");
}

static void a_container_that_is_filled_from_the_memo_again_and_again_has_a_limit(void **state)
{
    tctl_buf p = TCTL_BUF_INIT, many = TCTL_BUF_INIT;
    tctl_pickled *v = NULL;
    (void)state;
    for (int i = 0; i < 100000; i++)
        tctl_buf_add(&many, "h\0", 2);
    op_begin(&p);
    tctl_buf_add(&p, "]Nq\0", 4);
    tctl_buf_add_text(&p, "a");
    for (int i = 0; i < 200; i++) { /* 20 million items in 40 MB of two values */
        tctl_buf_add_text(&p, "(");
        tctl_buf_add(&p, many.data, many.size);
        tctl_buf_add_text(&p, "e");
    }
    tctl_buf_add_text(&p, ".");
    assert_int_equal(unpickle(p.data, p.size, &v), TCTL_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "too many values"));
    tctl_buf_release(&many);
    tctl_buf_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(names_ids_and_containers_do_not_count),
        IN_FOLDER(values_and_shapes_count),
        IN_FOLDER(how_a_tensor_is_strided_does_not_count),
        IN_FOLDER(a_tensor_outside_of_its_storage_is_found),
        IN_FOLDER(every_flipped_bit_of_a_payload_and_every_cut_is_found),
        IN_FOLDER(what_a_pickle_would_call_is_listed_and_not_called),
        IN_FOLDER(which_tensors_share_a_storage_counts),
        IN_FOLDER(what_else_is_in_the_archive_counts),
        IN_FOLDER(protocols_2_to_5_are_read),
        IN_FOLDER(a_container_that_is_filled_from_the_memo_again_and_again_has_a_limit),
        IN_FOLDER(what_no_pickler_writes_is_refused_with_its_place),
        IN_FOLDER(a_value_that_contains_itself_and_one_that_doubles_are_not_looked_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
