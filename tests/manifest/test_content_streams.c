/* SPDX-License-Identifier: Apache-2.0 */
/* zip, gzip, records, JSON: what counts, what does not, what is damaged, what costs too much. */
#include "tests/manifest/content_fixture.h"

#include "manifest/content/element.h"
#include "manifest/content/tfrecord.h"
#include "manifest/content/walk.h"

/* ---- gzip --------------------------------------------------------------------------------------------- */

static void how_a_gzip_is_packed_does_not_count(void **state)
{
    tctl_buf a = TCTL_BUF_INIT, b = TCTL_BUF_INIT, c = TCTL_BUF_INIT;
    (void)state;
    add_gzip(&a, "hello, world", 12, 1);
    add_gzip(&b, "hello, ", 7, 9);
    add_gzip(&b, "world", 5, 9);
    b.data[4] = 77; /* the time */
    tctl_buf_add(&b, "\0\0\0\0", 4);
    add_gzip(&c, "hello, World", 12, 1);
    const char *x = write_buf("a", &a), *y = write_buf("b", &b), *z = write_buf("c", &c);
    assert_same(content_of(x, "gzip"), content_of(y, "gzip"));
    assert_string_equal(difference(x, y), "");
    assert_string_equal(difference(x, z), "member 'inside', byte 7: 77 became 57; 1 byte differs");
}

static void a_damaged_gzip_is_found(void **state)
{
    tctl_buf a = TCTL_BUF_INIT;
    (void)state;
    add_gzip(&a, "hello, world", 12, 9);
    assert_damaged(write_file("cut", a.data, a.size - 1), "it ends early");
    assert_damaged(write_file("cut2", a.data, 11), "it ends early");
    a.data[a.size - 6] ^= 1;
    assert_damaged(write_file("crc", a.data, a.size), "incorrect data check");
    a.data[a.size - 6] ^= 1;
    tctl_buf_add_text(&a, "more");
    assert_damaged(write_file("more", a.data, a.size), "there is something else behind the end");
    tctl_buf_release(&a);
}

static void containers_in_containers_are_looked_into(void **state)
{
    static const float one[] = {1};
    tctl_buf npy = TCTL_BUF_INIT, fast = TCTL_BUF_INIT, best = TCTL_BUF_INIT;
    (void)state;
    add_npy(&npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", one, 4);
    add_gzip(&fast, npy.data, npy.size, 1);
    add_gzip(&best, npy.data, npy.size, 9);
    fast.data[4] = 7;
    const part a[] = {{"w.npy.gz", fast.data, fast.size}, PART("notes", "x")};
    const part b[] = {PART("notes", "x"), {"w.npy.gz", best.data, best.size}};
    tctl_content x = content_of(write_zip("a", a, 2, false, 1000000000), "zip");
    assert_int_equal(x.n_tensors, 1);
    assert_same(x, content_of(write_zip("b", b, 2, true, 1700000000), "zip"));
    tctl_buf_release(&npy);
    tctl_buf_release(&fast);
    tctl_buf_release(&best);
}

static void what_is_damaged_inside_counts_as_bytes(void **state)
{
    const part a[] = {PART("x.gz", "\x1f\x8b\x08 cut")}, b[] = {PART("x.gz", "\x1f\x8b\x08 cuT")};
    (void)state;
    const char *x = write_zip("a", a, 1, false, 1000000000), *y = write_zip("b", b, 1, true, 1700000000);
    content_of(x, "zip");
    assert_string_equal(difference(x, y), "member 'x.gz', byte 6: 74 became 54; 1 byte differs");
}

/* The limit by itself: reaching the one of a whole file takes seconds. */
static void what_a_file_may_cost_is_limited(void **state)
{
    char *zeros = calloc(1, 1u << 22);
    tctl_buf bomb = TCTL_BUF_INIT;
    (void)state;
    assert_non_null(zeros);
    add_gzip(&bomb, zeros, 1u << 22, 9);
    const part parts[] = {{"zeros", zeros, 1u << 22}};
    const char *files[] = {write_zip("zip", parts, 1, true, 1000000000), write_buf("gzip", &bomb)};
    for (int i = 0; i < 4; i++) {
        tctl_walk w = {.rules = NULL};
        tctl_source *s = NULL;
        tctl_looked looked;
        assert_int_equal(tctl_source_open(arena, files[i / 2], &s, &error), TCTL_OK);
        assert_int_equal(tctl_walk_begin(&w, s->size, &error), TCTL_OK);
        assert_true(w.bytes_left == ((uint64_t)1 << 30) + 16 * s->size);
        w.bytes_left = i % 2 == 0 ? 1u << 20 : 1u << 26;
        assert_int_equal(tctl_walk_look(&w, s, &looked, &error), i % 2 == 0 ? TCTL_EUNSUPPORTED : TCTL_OK);
        if (i % 2 == 0)
            assert_non_null(strstr(error.message, "would cost too much"));
        tctl_walk_end(&w);
        tctl_source_close(s);
    }
    free(zeros);
}

/* ---- zip ---------------------------------------------------------------------------------------------- */

static void every_flipped_bit_of_a_members_data_is_found(void **state)
{
    const part a[] = {PART("notes", "hello"), PART("more", "world")};
    (void)state;
    tctl_buf bytes = read_whole(write_zip("a", a, 2, false, 1000000000));
    size_t at = 0;
    while (memcmp(bytes.data + at, "world", 5) != 0)
        at++;
    for (size_t bit = 0; bit < 40; bit++) {
        bytes.data[at + bit / 8] = (char)(bytes.data[at + bit / 8] ^ (1 << bit % 8));
        assert_damaged(write_file("flip", bytes.data, bytes.size), "member 'more', at byte ");
        bytes.data[at + bit / 8] = (char)(bytes.data[at + bit / 8] ^ (1 << bit % 8));
    }
    tctl_buf_release(&bytes);
}

static void an_empty_zip_and_folders_are_read(void **state)
{
    static const part folder_part[] = {{"a/", "", 0}};
    (void)state;
    tctl_content none =
        content_of(write_file("none", "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22), "zip");
    assert_other(none, content_of(write_zip("folder", folder_part, 1, false, 1000000000), "zip"));
}

/* ---- records ------------------------------------------------------------------------------------------ */

static void add_record(tctl_buf *ret, const void *data, size_t size)
{
    uint8_t header[12], crc[4];
    tctl_put_u64(header, size);
    tctl_put_u32(header + 8, tctl_crc32c_masked(header, 8));
    tctl_put_u32(crc, tctl_crc32c_masked(data, size));
    tctl_buf_add(ret, header, sizeof header);
    tctl_buf_add(ret, data, size);
    tctl_buf_add(ret, crc, sizeof crc);
}

/* RFC 3720, B.4: 32 zeros, 32 ones, 0 to 31; and the check value of "123456789". */
static void crc32c_gives_the_published_values(void **state)
{
    unsigned char bytes[32] = {0};
    (void)state;
    assert_int_equal(tctl_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tctl_crc32c(0, bytes, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(tctl_crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(tctl_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tctl_crc32c(tctl_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

#define VERSION                                                                                              \
    "\x1a\x0d"                                                                                               \
    "brain.Event:2"
/* step 3, summary {value {tag: "loss", simple_value: 0.5}} */
#define SCALAR "\x10\3\x2a\x0d\x0a\x0b\x0a\4loss\x15\0\0\0"

static const char *write_events(const char *name, double time, char last)
{
    tctl_buf all = TCTL_BUF_INIT, one = TCTL_BUF_INIT;
    for (int i = 0; i < 2; i++) {
        tctl_buf_clear(&one);
        tctl_buf_add_char(&one, 9);
        tctl_buf_add(&one, &time, sizeof time);
        if (i == 0)
            tctl_buf_add(&one, VERSION, sizeof VERSION - 1);
        else
            tctl_buf_add(&one, SCALAR, sizeof SCALAR - 1);
        if (i == 1)
            tctl_buf_add_char(&one, last);
        add_record(&all, one.data, one.size);
    }
    tctl_buf_release(&one);
    return write_buf(name, &all);
}

static void times_of_events_do_not_count_and_values_do(void **state)
{
    (void)state;
    const char *a = write_events("a", 1.5, 0x3f), *b = write_events("b", 2.5e9, 0x3f),
               *c = write_events("c", 1.5, 0x40);
    assert_same(content_of(a, "tensorboard"), content_of(b, "tensorboard"));
    assert_string_equal(difference(a, c),
                        "'[1]/loss': 0.5 (3f000000) became 2 (40000000), 16777216 ULPs apart");
}

static void both_crcs_of_a_record_are_checked(void **state)
{
    (void)state;
    tctl_buf bytes = read_whole(write_events("a", 1.5, 0x3f));
    for (size_t n = bytes.size - 1; n > 40; n--)
        assert_damaged(write_file("cut", bytes.data, n), "is cut short or damaged: record 1, at byte 40: ");
    for (size_t i = 0; i < bytes.size; i++) {
        if (i < 12) /* the first length says that these are records */
            continue;
        bytes.data[i] ^= 16;
        assert_damaged(write_file("flip", bytes.data, bytes.size), "is cut short or damaged: record ");
        bytes.data[i] ^= 16;
    }
    tctl_buf_release(&bytes);
    add_record(&bytes, "a data set", 10);
    content_of(write_buf("data", &bytes), "tfrecord");
}

/* ---- JSON --------------------------------------------------------------------------------------------- */

static const char *const paths[] = {"time", "epochs/*/seconds", "**/pid", NULL};

static tctl_status look_json(const char *text, tctl_content *ret)
{
    const tctl_content_rules rules = {.volatile_paths = paths};
    const char *path = write_file("m.json", text, strlen(text));
    *ret = (tctl_content){0};
    tctl_error_clear(&error);
    return tctl_content_of(arena, path, &rules, ret, &error);
}

static tctl_content json_of(const char *text)
{
    tctl_content c;
    if (look_json(text, &c) != TCTL_OK)
        fail_msg("%s", error.message);
    assert_string_equal(c.format, "json");
    return c;
}

static void volatile_members_and_the_form_of_json_do_not_count(void **state)
{
    (void)state;
    tctl_content a =
        json_of("{\"time\": 1, \"epochs\": [{\"loss\": 0.5, \"seconds\": 2}], \"host\": {\"pid\": 3}}");
    assert_same(a, json_of("{\"host\":{},\"epochs\":[\n{\"loss\":5e-1}]}\n\n"));
    assert_other(a, json_of("{\"epochs\":[{\"loss\":0.5,\"more\":{\"seconds\":1}}],\"host\":{}}"));
    assert_other(a, json_of("{\"epochs\":[{\"loss\":0.25}],\"host\":{}}"));
    assert_other(json_of("1"), json_of("1.0"));
    assert_other(json_of("[1]"), json_of("[1] [1]"));
    assert_same(json_of("{\"a\":1}\n{\"time\":1}\n"), json_of(" {\"a\": 1} {\"time\": 2}"));
}

static void numbers_that_python_writes_and_json_does_not_have_are_read(void **state)
{
    (void)state;
    tctl_content nan = json_of("[NaN, -Infinity, Infinity, 9007199254740993, 18446744073709551616]");
    assert_same(nan, json_of("[NaN,-Infinity,Infinity,9007199254740993,18446744073709551616]"));
    assert_other(nan, json_of("[\"NaN\", -Infinity, Infinity, 9007199254740993, 18446744073709551616]"));
    assert_other(json_of("[NaN]"), json_of("[Infinity]"));
    assert_other(json_of("[9007199254740993]"), json_of("[9007199254740992]"));
    json_of("{\"a NaN, \\\"quoted\\\"\": \"-Infinity\"}");
}

static void json_that_is_none_is_refused_with_line_and_column(void **state)
{
    tctl_content c;
    (void)state;
    assert_int_equal(look_json("{\"a\": 1}\n{\"a\": }", &c), TCTL_EFORMAT);
    assert_non_null(strstr(error.message, "is not JSON, line 2, column 7"));
    assert_int_equal(look_json("{\"a\": 1, \"a\": 2}", &c), TCTL_EFORMAT);
    assert_non_null(strstr(error.message, "duplicate object key"));
    assert_int_equal(look_json("", &c), TCTL_EFORMAT);
}

/* ---- elements ----------------------------------------------------------------------------------------- */

static void elements_are_shown_by_type(void **state)
{
    static const struct {
        const char *dtype, *text;
        uint64_t bits;
        size_t size;
    } all[] = {
        {"f32", "0.5", 0x3f000000, 4},
        {"f32", "NaN", 0xffc00000, 4},
        {"f32", "-0", 0x80000000, 4},
        {"f16", "1", 0x3c00, 2},
        {"f16", "5.960464477539063e-8", 1, 2},
        {"f16", "-Infinity", 0xfc00, 2},
        {"bf16", "-2", 0xc000, 2},
        {"f64", "0.1", UINT64_C(0x3fb999999999999a), 8},
        {"i8", "-1", 0xff, 1},
        {"u8", "255", 0xff, 1},
        {"i64", "-2", UINT64_MAX - 1, 8},
        {"bool", "true", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uint8_t bytes[8];
        tctl_buf text = TCTL_BUF_INIT;
        tctl_put_u64(bytes, all[i].bits);
        assert_true(tctl_element_value(all[i].dtype, bytes, all[i].size, &text));
        assert_string_equal(tctl_buf_text(&text), all[i].text);
        tctl_buf_release(&text);
    }
}

static void distances_are_counted_in_steps(void **state)
{
    uint64_t ulps = 0;
    (void)state;
    assert_true(tctl_element_ulps("f32", "\0\0\x80\x3f", "\1\0\x80\x3f", 4, &ulps));
    assert_true(ulps == 1);
    assert_true(tctl_element_ulps("f32", "\1\0\0\x80", "\1\0\0\0", 4,
                                  &ulps)); /* the smallest, on both sides of zero */
    assert_true(ulps == 2);
    assert_true(tctl_element_ulps("bf16", "\0\0", "\0\x80", 2, &ulps)); /* zeros */
    assert_true(ulps == 0);
    assert_false(tctl_element_ulps("f32", "\0\0\xc0\x7f", "\0\0\x80\x3f", 4, &ulps));
    assert_false(tctl_element_ulps("i32", "\0\0\0\0", "\1\0\0\0", 4, &ulps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(how_a_gzip_is_packed_does_not_count),
        IN_FOLDER(a_damaged_gzip_is_found),
        IN_FOLDER(containers_in_containers_are_looked_into),
        IN_FOLDER(what_is_damaged_inside_counts_as_bytes),
        IN_FOLDER(what_a_file_may_cost_is_limited),
        IN_FOLDER(every_flipped_bit_of_a_members_data_is_found),
        IN_FOLDER(an_empty_zip_and_folders_are_read),
        IN_FOLDER(crc32c_gives_the_published_values),
        IN_FOLDER(times_of_events_do_not_count_and_values_do),
        IN_FOLDER(both_crcs_of_a_record_are_checked),
        IN_FOLDER(volatile_members_and_the_form_of_json_do_not_count),
        IN_FOLDER(numbers_that_python_writes_and_json_does_not_have_are_read),
        IN_FOLDER(json_that_is_none_is_refused_with_line_and_column),
        cmocka_unit_test(elements_are_shown_by_type),
        cmocka_unit_test(distances_are_counted_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
