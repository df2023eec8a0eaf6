/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source `idx`: what it reads, plain and gzip, and the words for every way in which a file can be damaged. Files are
 * made here, in a folder of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/source.h"

enum { N = 7, H = 3, W = 4, IMAGES_SIZE = 16 + N * H * W, LABELS_SIZE = 8 + N, ROOM = 512 };

static char folder[] = "/tmp/trainctl-test-idx-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"images", "labels"};
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void put_big_endian(unsigned char *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void good_images(unsigned char *out)
{
    static const uint32_t header[4] = {0x803, N, H, W};
    for (int i = 0; i < 4; i++)
        put_big_endian(out + 4 * i, header[i]);
    for (int i = 0; i < N * H * W; i++)
        out[16 + i] = (unsigned char)(3 * i + 1);
}

static void good_labels(unsigned char *out)
{
    put_big_endian(out, 0x801);
    put_big_endian(out + 4, N);
    for (int i = 0; i < N; i++)
        out[8 + i] = (unsigned char)(i * 40);
}

/* Appends one gzip member to out[at..]; returns the new size. */
static size_t gzip(const unsigned char *bytes, size_t size, unsigned char *out, size_t at)
{
    z_stream z;
    memset(&z, 0, sizeof z);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    unsigned char copy[ROOM];
    memcpy(copy, bytes, size);
    z.next_in = copy;
    z.avail_in = (uInt)size;
    z.next_out = out + at;
    z.avail_out = (uInt)(2 * ROOM - at);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    at += z.total_out;
    deflateEnd(&z);
    return at;
}

static const char *write_file(const char *name, const unsigned char *bytes, size_t size)
{
    static char paths[2][128];
    char *path = paths[name[0] == 'l'];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    FILE *f = fopen(path, "wbe");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

typedef struct opened {
    const tctl_plugin *plugin;
    const tctl_source *source;
    fake_option options[4];
    tctl_stage *stage;
    tctl_error err;
} opened;

static tctl_status open_idx(opened *o, const char *images, const char *labels)
{
    memset(o, 0, sizeof *o);
    o->plugin = fake_plugin("idx");
    o->source = fake_extension(o->plugin, TCTL_SOURCE_ID);
    o->options[0] = (fake_option){"images", images};
    if (labels)
        o->options[1] = (fake_option){"labels", labels};
    return fake_create(o->plugin, o->options, &o->stage, &o->err);
}

static void close_idx(opened *o)
{
    o->plugin->destroy(o->stage);
    assert_int_equal(fake.allocated, 0);
}

static void check_content(opened *o, bool with_labels)
{
    tctl_field fields[2];
    assert_int_equal(o->source->count(o->stage), N);
    assert_int_equal(o->source->describe(o->stage, fields, 0), with_labels ? 2 : 1);
    assert_int_equal(o->source->describe(o->stage, fields, 2), with_labels ? 2 : 1);
    assert_string_equal(fields[0].name, "image");
    assert_int_equal(fields[0].dtype, TCTL_U8);
    assert_int_equal(fields[0].rank, 3);
    assert_true(fields[0].dims[0] == H && fields[0].dims[1] == W && fields[0].dims[2] == 1);
    for (int i = N - 1; i >= 0; i--) {
        unsigned char image[H * W];
        int64_t label = -1;
        tctl_tensor out[2] = {{.data = image}, {.data = &label}};
        assert_int_equal(o->source->read(o->stage, (uint64_t)i, out, &o->err), TCTL_OK);
        for (int k = 0; k < H * W; k++)
            assert_int_equal(image[k], (unsigned char)(3 * (i * H * W + k) + 1));
        assert_true(label == (with_labels ? i * 40 : -1));
    }
    if (with_labels) {
        assert_string_equal(fields[1].name, "label");
        assert_int_equal(fields[1].dtype, TCTL_I64);
        assert_int_equal(fields[1].rank, 0);
    }
}

static void plain_and_gzip_files_give_the_same_samples(void **state)
{
    (void)state;
    unsigned char images[ROOM], labels[ROOM], packed[2 * ROOM];
    opened o;
    good_images(images);
    good_labels(labels);
    const char *i = write_file("images", images, IMAGES_SIZE), *l = write_file("labels", labels, LABELS_SIZE);
    assert_int_equal(open_idx(&o, i, l), TCTL_OK);
    check_content(&o, true);
    close_idx(&o);
    assert_int_equal(open_idx(&o, i, NULL), TCTL_OK);
    check_content(&o, false);
    close_idx(&o);

    write_file("images", packed, gzip(images, IMAGES_SIZE, packed, 0));
    assert_int_equal(open_idx(&o, i, l), TCTL_OK);
    check_content(&o, true);
    close_idx(&o);

    /* Two members, cut in the middle of the header, and an empty third: one stream, as gzip(1) reads it. */
    size_t size = gzip(images, 10, packed, 0);
    size = gzip(images + 10, IMAGES_SIZE - 10, packed, size);
    write_file("images", packed, gzip(images, 0, packed, size));
    write_file("labels", packed, gzip(labels, LABELS_SIZE, packed, 0));
    size = gzip(images, 10, packed, 0);
    size = gzip(images + 10, IMAGES_SIZE - 10, packed, size);
    write_file("images", packed, gzip(images, 0, packed, size));
    assert_int_equal(open_idx(&o, i, l), TCTL_OK);
    check_content(&o, true);
    close_idx(&o);
}

/* Opens a damaged file of images and compares code and words; "%s" in `want` is the path. */
static void expect_images(const unsigned char *bytes, size_t size, const char *want)
{
    char message[400];
    opened o;
    const char *path = write_file("images", bytes, size);
    snprintf(message, sizeof message, "'%s' is damaged at %s", path, want);
    assert_int_equal(open_idx(&o, path, NULL), TCTL_EFORMAT);
    assert_string_equal(o.err.message, message);
    assert_null(o.stage);
    assert_int_equal(fake.allocated, 0);
}

static void damaged_headers_are_named_with_offset_and_reason(void **state)
{
    (void)state;
    unsigned char bytes[ROOM];
    good_images(bytes);
    expect_images(bytes, 0, "offset 0: ends inside the header, which has 16 bytes");
    expect_images(bytes, 15, "offset 15: ends inside the header, which has 16 bytes");
    put_big_endian(bytes, 0x12345678);
    expect_images(bytes, IMAGES_SIZE,
                  "offset 0: not an IDX file of images: the magic is 0x12345678 instead of 0x00000803");
    good_labels(bytes);
    expect_images(bytes, LABELS_SIZE,
                  "offset 0: these are labels, not images (magic 0x00000801 instead of 0x00000803)");
    good_images(bytes);
    put_big_endian(bytes + 4, 0);
    expect_images(bytes, IMAGES_SIZE, "offset 4: has no images");
    good_images(bytes);
    put_big_endian(bytes + 8, 0);
    expect_images(bytes, IMAGES_SIZE, "offset 8: the height 0 is not in 1 to 65536");
    good_images(bytes);
    put_big_endian(bytes + 12, 65537);
    expect_images(bytes, IMAGES_SIZE, "offset 12: the width 65537 is not in 1 to 65536");
    good_images(bytes);
    put_big_endian(bytes + 4, UINT32_MAX);
    put_big_endian(bytes + 8, 65536);
    put_big_endian(bytes + 12, 65536);
    expect_images(bytes, IMAGES_SIZE, "offset 4: the header promises more values than memory can address");
}

static void sizes_that_do_not_fit_are_named(void **state)
{
    (void)state;
    unsigned char bytes[ROOM] = {0};
    good_images(bytes);
    expect_images(bytes, IMAGES_SIZE - 1,
                  "offset 99: ends after 83 of the 84 bytes of values that the header promises");
    expect_images(bytes, IMAGES_SIZE + 2, "offset 100: 2 bytes too many follow the last value");
}

static void damaged_gzip_is_named(void **state)
{
    (void)state;
    unsigned char bytes[ROOM] = {0}, packed[2 * ROOM];
    char want[200];
    good_images(bytes);
    size_t size = gzip(bytes, IMAGES_SIZE - 1, packed, 0);
    expect_images(packed, size,
                  "decompressed offset 99: ends after 83 of the 84 bytes of values that the header promises");
    size = gzip(bytes, IMAGES_SIZE + 1, packed, 0);
    expect_images(packed, size, "decompressed offset 100: more bytes follow the last value");
    size = gzip(bytes, 15, packed, 0);
    expect_images(packed, size, "decompressed offset 15: ends inside the header, which has 16 bytes");

    size = gzip(bytes, IMAGES_SIZE, packed, 0);
    for (size_t cut = 2; cut < size; cut += 7) { /* wherever it ends */
        snprintf(want, sizeof want, "offset %zu: gzip: ends inside the compressed data", cut);
        expect_images(packed, cut, want);
    }
    memset(packed + size, 'x', 3);
    snprintf(want, sizeof want, "offset %zu: 3 bytes that are not gzip follow the end of the gzip data",
             size);
    expect_images(packed, size + 3, want);
    packed[size - 5] ^= 1; /* in the CRC */
    snprintf(want, sizeof want, "offset %zu: gzip: incorrect data check", size - 4);
    expect_images(packed, size, want);
    packed[size - 5] ^= 1;
    packed[2] = 9;
    expect_images(packed, size, "offset 4: gzip: unknown compression method");
}

static void a_small_gzip_cannot_ask_for_much_memory(void **state)
{
    (void)state;
    unsigned char bytes[ROOM] = {0}, packed[2 * ROOM];
    char want[200];
    good_images(bytes);
    put_big_endian(bytes + 4, 1u << 24);
    put_big_endian(bytes + 8, 1u << 10);
    put_big_endian(bytes + 12, 1u << 10);
    size_t size = gzip(bytes, IMAGES_SIZE, packed, 0);
    snprintf(
        want, sizeof want,
        "decompressed offset 4: the header promises 17592186044416 bytes of values, more than %zu compressed "
        "bytes can hold",
        size);
    expect_images(packed, size, want);
}

static void numbers_of_images_and_labels_must_agree(void **state)
{
    (void)state;
    unsigned char images[ROOM], labels[ROOM];
    char want[400];
    opened o;
    good_images(images);
    good_labels(labels);
    put_big_endian(labels + 4, N - 1);
    const char *i = write_file("images", images, IMAGES_SIZE),
               *l = write_file("labels", labels, LABELS_SIZE - 1);
    assert_int_equal(open_idx(&o, i, l), TCTL_EFORMAT);
    snprintf(want, sizeof want, "'%s' at offset 4: 6 labels, but '%s' has 7 images", l, i);
    assert_string_equal(o.err.message, want);
    assert_int_equal(fake.allocated, 0);
}

static void limit_takes_the_first_samples(void **state)
{
    (void)state;
    unsigned char images[ROOM];
    opened o;
    good_images(images);
    const char *i = write_file("images", images, IMAGES_SIZE);
    memset(&o, 0, sizeof o);
    o.plugin = fake_plugin("idx");
    o.source = fake_extension(o.plugin, TCTL_SOURCE_ID);
    o.options[0] = (fake_option){"images", i};
    o.options[1] = (fake_option){"limit", "3"};
    assert_int_equal(fake_create(o.plugin, o.options, &o.stage, &o.err), TCTL_OK);
    assert_int_equal(o.source->count(o.stage), 3);
    close_idx(&o);
    o.options[1].text = "8";
    assert_int_equal(fake_create(o.plugin, o.options, &o.stage, &o.err), TCTL_ESPEC);
    assert_string_equal(o.err.message, "'limit' is 8, but there are only 7 samples");
    assert_int_equal(fake.allocated, 0);
}

static void files_that_are_not_there_or_no_files_are_the_options_fault(void **state)
{
    (void)state;
    opened o;
    assert_int_equal(open_idx(&o, "/nowhere/at/all", NULL), TCTL_ESPEC);
    assert_string_equal(o.err.message, "there is no file '/nowhere/at/all'");
    assert_int_equal(open_idx(&o, "/", NULL), TCTL_ESPEC);
    assert_string_equal(o.err.message, "'/' is not a regular file");
    assert_int_equal(open_idx(&o, "/dev/zero", NULL), TCTL_ESPEC);
    assert_string_equal(o.err.message, "'/dev/zero' is not a regular file");
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    unsigned char images[ROOM], labels[ROOM], packed[2 * ROOM];
    opened o;
    good_images(images);
    good_labels(labels);
    const char *i = write_file("images", packed, gzip(images, IMAGES_SIZE, packed, 0));
    const char *l = write_file("labels", packed, gzip(labels, LABELS_SIZE, packed, 0));
    tctl_status status = TCTL_ENOMEM;
    int64_t n = 0;
    for (; status == TCTL_ENOMEM; n++) {
        fake.fail_allocation = n;
        status = open_idx(&o, i, l);
        fake.fail_allocation = -1;
        assert_true(status == TCTL_OK || fake.allocated == 0);
    }
    assert_int_equal(status, TCTL_OK);
    assert_int_equal(n, 6); /* the stage, two files, two decompressed: five that can fail */
    check_content(&o, true);
    close_idx(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_gzip_files_give_the_same_samples),
        cmocka_unit_test(damaged_headers_are_named_with_offset_and_reason),
        cmocka_unit_test(sizes_that_do_not_fit_are_named),
        cmocka_unit_test(damaged_gzip_is_named),
        cmocka_unit_test(a_small_gzip_cannot_ask_for_much_memory),
        cmocka_unit_test(numbers_of_images_and_labels_must_agree),
        cmocka_unit_test(limit_takes_the_first_samples),
        cmocka_unit_test(files_that_are_not_there_or_no_files_are_the_options_fault),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
