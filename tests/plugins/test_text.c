/* SPDX-License-Identifier: Apache-2.0 */
/* Source `text`: which bytes are in which sample, and the words for texts that do not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/source.h"

static char folder[] = "/tmp/trainctl-test-text-XXXXXX";
static char path[128];

/* A file with the bytes 0, 3, 6, ..., 255, 2, ...: 1000 of them. */
enum { SIZE = 1000 };

static unsigned char byte_at(uint64_t i)
{
    return (unsigned char)(3 * i);
}

static int make_file(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *f = fopen(path, "wbe");
    for (uint64_t i = 0; f && i < SIZE; i++)
        fputc(byte_at(i), f);
    return f ? fclose(f) : -1;
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

typedef struct opened {
    const tctl_plugin *plugin;
    const tctl_source *source;
    tctl_stage *stage;
    tctl_error err;
} opened;

static tctl_status open_text(opened *o, const char *file, const char *context, const char *stride,
                             const char *skip, const char *length)
{
    memset(o, 0, sizeof *o);
    o->plugin = fake_plugin("text");
    o->source = fake_extension(o->plugin, TCTL_SOURCE_ID);
    /* The plugin keeps none of them. */
    const fake_option options[] = {{"files", file},
                                   {"context", context},
                                   {"skip", skip ? skip : "0"},
                                   {stride   ? "stride"
                                    : length ? "length"
                                             : NULL,
                                    stride ? stride : length},
                                   {stride && length ? "length" : NULL, length},
                                   {NULL, NULL}};
    return fake_create(o->plugin, options, &o->stage, &o->err);
}

static void close_text(opened *o)
{
    o->plugin->destroy(o->stage);
    assert_int_equal(fake.allocated, 0);
}

static void check_samples(opened *o, uint64_t count, uint64_t context, uint64_t first, uint64_t stride)
{
    unsigned char tokens[SIZE];
    int64_t labels[SIZE];
    tctl_field fields[2];
    assert_int_equal(o->source->count(o->stage), count);
    assert_int_equal(o->source->describe(o->stage, fields, 0), 2);
    assert_int_equal(o->source->describe(o->stage, fields, 2), 2);
    assert_string_equal(fields[0].name, "tokens");
    assert_string_equal(fields[1].name, "label");
    assert_true(fields[0].dtype == TCTL_U8 && fields[0].rank == 1 && fields[0].dims[0] == (int64_t)context);
    assert_true(fields[1].dtype == TCTL_I64 && fields[1].rank == 1 && fields[1].dims[0] == (int64_t)context);
    for (uint64_t i = count; i-- > 0;) {
        const tctl_tensor out[2] = {{.data = tokens}, {.data = labels}};
        assert_int_equal(o->source->read(o->stage, i, out, &o->err), TCTL_OK);
        for (uint64_t k = 0; k < context; k++) {
            assert_int_equal(tokens[k], byte_at(first + i * stride + k));
            assert_int_equal(labels[k], byte_at(first + i * stride + k + 1));
        }
    }
}

static void samples_follow_one_another_without_a_stride(void **state)
{
    (void)state;
    opened o;
    assert_int_equal(open_text(&o, path, "100", NULL, NULL, NULL), TCTL_OK);
    check_samples(&o, 9, 100, 0, 100); /* the tenth would have no byte behind it */
    close_text(&o);
}

static void files_are_one_text(void **state)
{
    (void)state;
    opened o;
    char twice[2 * sizeof path + 1];
    snprintf(twice, sizeof twice, "%s,%s", path, path);
    assert_int_equal(open_text(&o, twice, "4", NULL, "998", "5"), TCTL_OK);
    unsigned char tokens[4];
    int64_t labels[4];
    const tctl_tensor out[2] = {{.data = tokens}, {.data = labels}};
    assert_int_equal(o.source->read(o.stage, 0, out, &o.err), TCTL_OK);
    assert_true(tokens[0] == byte_at(998) && tokens[1] == byte_at(999));
    assert_true(tokens[2] == byte_at(0) && tokens[3] == byte_at(1) && labels[3] == byte_at(2));
    close_text(&o);
}

static void samples_overlap_with_a_smaller_stride(void **state)
{
    (void)state;
    opened o;
    assert_int_equal(open_text(&o, path, "10", "3", "500", "20"), TCTL_OK);
    check_samples(&o, 4, 10, 500, 3);
    close_text(&o);
    assert_int_equal(open_text(&o, path, "1", "1", "998", NULL), TCTL_OK);
    check_samples(&o, 1, 1, 998, 1);
    close_text(&o);
    assert_int_equal(open_text(&o, path, "999", "7", NULL, "100000"), TCTL_OK);
    check_samples(&o, 1, 999, 0, 7);
    close_text(&o);
}

static void texts_that_are_too_short_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *context, *skip, *length, *message;
    } cases[] = {
        {"1000", NULL, NULL, "a sample needs 1000 bytes and the one that follows; there are 1000"},
        {"10", "990", NULL, "a sample needs 10 bytes and the one that follows; there are 10"},
        {"10", "5000", NULL, "a sample needs 10 bytes and the one that follows; there are 0"},
        {"10", NULL, "10", "a sample needs 10 bytes and the one that follows; there are 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        opened o;
        assert_int_equal(open_text(&o, path, cases[i].context, NULL, cases[i].skip, cases[i].length),
                         TCTL_ESPEC);
        assert_non_null(strstr(o.err.message, cases[i].message));
        assert_int_equal(fake.allocated, 0);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    opened o;
    assert_int_equal(open_text(&o, "/nowhere/text", "10", NULL, NULL, NULL), TCTL_ESPEC);
    assert_non_null(strstr(o.err.message, "there is no file '/nowhere/text'"));
    assert_int_equal(open_text(&o, folder, "10", NULL, NULL, NULL), TCTL_ESPEC);
    assert_non_null(strstr(o.err.message, "is not a regular file"));
    assert_int_equal(open_text(&o, "/dev/zero", "10", NULL, NULL, NULL), TCTL_ESPEC);
    assert_int_equal(fake.allocated, 0);
}

static void memory_that_runs_out_is_said_and_given_back(void **state)
{
    (void)state;
    for (fake.fail_allocation = 0; fake.fail_allocation < 2; fake.fail_allocation++) {
        const int64_t left = fake.fail_allocation;
        opened o;
        assert_int_equal(open_text(&o, path, "10", NULL, NULL, NULL), TCTL_ENOMEM);
        assert_int_equal(fake.allocated, 0);
        fake.fail_allocation = left;
    }
    fake.fail_allocation = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_follow_one_another_without_a_stride),
        cmocka_unit_test(files_are_one_text),
        cmocka_unit_test(samples_overlap_with_a_smaller_stride),
        cmocka_unit_test(texts_that_are_too_short_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(memory_that_runs_out_is_said_and_given_back),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
