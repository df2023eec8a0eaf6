/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms normalize, random-crop, flip and cutout against their definitions, and what they refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "seed/stream.h"
#include "trainctl/ext/transform.h"

enum { H = 6, W = 5, MAX = H * W * 3, IMAGES = 400 };

/* One transform at work on images of one shape. */
typedef struct bench {
    const tctl_plugin *plugin;
    const tctl_transform *transform;
    tctl_stage *stage;
    tctl_field in[2], out[2];
    tctl_error err;
} bench;

/* Makes the stage and describes images of that dtype and number of channels behind a label field. */
static tctl_status try_describe(bench *b, const char *name, const fake_option *options, int32_t dtype,
                                int64_t channels)
{
    memset(b, 0, sizeof *b);
    b->plugin = fake_plugin(name);
    b->transform = fake_extension(b->plugin, TCTL_TRANSFORM_ID);
    b->in[0] = (tctl_field){.name = "label", .dtype = TCTL_I64};
    b->in[1] = (tctl_field){.name = "image", .dtype = dtype, .rank = 3, .dims = {H, W, channels}};
    tctl_status status = fake_create(b->plugin, options, &b->stage, &b->err);
    if (status != TCTL_OK)
        return status;
    return b->transform->describe(b->stage, b->in, 2, b->out, &b->err);
}

static void set_up(bench *b, const char *name, const fake_option *options, int32_t dtype, int64_t channels)
{
    assert_int_equal(try_describe(b, name, options, dtype, channels), TCTL_OK);
    assert_int_equal(b->out[0].flags, TCTL_FIELD_UNCHANGED);
    assert_int_equal(b->out[1].flags, 0);
    assert_memory_equal(b->out[1].dims, b->in[1].dims, sizeof b->in[1].dims);
}

static void tear_down(bench *b)
{
    b->plugin->destroy(b->stage);
    b->plugin->destroy(NULL);
    assert_int_equal(fake.allocated, 0);
}

static void apply(bench *b, uint64_t index, void *in, void *out, tctl_random_address *ret)
{
    int64_t label = 3;
    tctl_tensor from[2] = {{.data = &label}, {.data = in}}, to[2] = {{.data = &label}, {.data = out}};
    *ret = tctl_stream(1029, "train.0.x", 2, index);
    assert_int_equal(b->transform->apply(b->stage, ret, from, to, &b->err), TCTL_OK);
    assert_true(label == 3);
}

static void make_bytes(unsigned char *image, size_t n)
{
    for (size_t i = 0; i < n; i++)
        image[i] = (unsigned char)(i * 7 + 11);
}

/* ---- normalize ---- */

static void normalize_is_the_formula_rounded_once(void **state)
{
    (void)state;
    static const fake_option options[] = {{"mean", "0.2860"}, {"std", "0.3530"}, {NULL, NULL}};
    bench b;
    unsigned char bytes[MAX];
    float floats[MAX], out[MAX], again[MAX];
    tctl_random_address at;
    make_bytes(bytes, MAX);
    for (int i = 0; i < MAX; i++)
        floats[i] = bytes[i];
    set_up(&b, "normalize", options, TCTL_U8, 3);
    assert_int_equal(b.out[1].dtype, TCTL_F32);
    apply(&b, 0, bytes, out, &at);
    tear_down(&b);
    for (int i = 0; i < MAX; i++)
        assert_true(out[i] == (float)((bytes[i] * (1.0 / 255) - 0.2860) / 0.3530));
    for (int64_t channels = 1; channels <= 3; channels += 2) { /* the loop for one channel is another */
        set_up(&b, "normalize", options, TCTL_F32, channels);
        memset(again, 0, sizeof again);
        apply(&b, 0, floats, again, &at);
        assert_memory_equal(again, out, (size_t)(H * W * channels) * sizeof out[0]);
        tear_down(&b);
    }
}

static void normalize_knows_its_channels(void **state)
{
    (void)state;
    static const fake_option three[] = {
        {"mean", "0,128,255"}, {"std", "1,2,4"}, {"scale", "1"}, {NULL, NULL}};
    bench b;
    unsigned char bytes[MAX];
    float out[MAX];
    tctl_random_address at;
    make_bytes(bytes, MAX);
    set_up(&b, "normalize", three, TCTL_U8, 3);
    apply(&b, 0, bytes, out, &at);
    for (int i = 0; i < MAX; i += 3) {
        assert_true(out[i] == (float)bytes[i]);
        assert_true(out[i + 1] == ((float)bytes[i + 1] - 128) / 2);
        assert_true(out[i + 2] == ((float)bytes[i + 2] - 255) / 4);
    }
    tear_down(&b);
    assert_int_equal(try_describe(&b, "normalize", three, TCTL_U8, 1), TCTL_ESPEC);
    assert_string_equal(b.err.message, "3 values for images with 1 channels");
    tear_down(&b);
    static const fake_option none[] = {{"mean", ""}, {"std", "1"}, {NULL, NULL}};
    assert_int_equal(try_describe(&b, "normalize", none, TCTL_U8, 1), TCTL_ESPEC);
    assert_string_equal(b.err.message, "has 0 values; one per channel, from 1 to 64, are possible");
    tear_down(&b);
}

/* ---- random-crop ---- */

/* The pixel of the padded image, by the definition. */
static int64_t source_of(int64_t i, int64_t n, bool reflect)
{
    if (!reflect)
        return i >= 0 && i < n ? i : -1;
    return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

static void check_crop(const char *pad_text, int64_t pad, bool reflect, int32_t dtype, int64_t channels)
{
    const fake_option options[] = {{"pad", pad_text}, {"mode", reflect ? "reflect" : "zero"}, {NULL, NULL}};
    bench b;
    unsigned char in[MAX * 4], out[MAX * 4 + 1];
    uint32_t seen[64] = {0};
    size_t pixel = (size_t)channels * tctl_dtype_size(dtype);
    make_bytes(in, sizeof in);
    set_up(&b, "random-crop", options, dtype, channels);
    assert_int_equal(b.out[1].dtype, dtype);
    for (uint64_t index = 0; index < IMAGES; index++) {
        tctl_random_address at;
        memset(out, 0xee, sizeof out);
        apply(&b, index, in, out, &at);
        int64_t dy = (int64_t)tctl_draw_bounded(&at, 0, (uint32_t)(2 * pad + 1)) - pad;
        int64_t dx = (int64_t)tctl_draw_bounded(&at, 2, (uint32_t)(2 * pad + 1)) - pad;
        seen[(dy + pad) % 8 * 8 + (dx + pad) % 8]++;
        for (int64_t y = 0; y < H; y++) {
            for (int64_t x = 0; x < W; x++) {
                int64_t sy = source_of(y + dy, H, reflect), sx = source_of(x + dx, W, reflect);
                unsigned char zero[12] = {0};
                const unsigned char *want = sy < 0 || sx < 0 ? zero : in + (size_t)(sy * W + sx) * pixel;
                assert_memory_equal(out + (size_t)(y * W + x) * pixel, want, pixel);
            }
        }
        assert_int_equal(out[H * W * pixel], 0xee);
    }
    uint32_t places = 0;
    for (int i = 0; i < 64; i++)
        places += seen[i] > 0;
    assert_int_equal(places, pad > 3 ? 64 : (2 * pad + 1) * (2 * pad + 1)); /* all of them occur */
    tear_down(&b);
}

static void random_crop_cuts_from_the_padded_image(void **state)
{
    (void)state;
    check_crop("0", 0, false, TCTL_U8, 1);
    check_crop("2", 2, false, TCTL_U8, 1);
    check_crop("2", 2, true, TCTL_U8, 3);
    check_crop("3", 3, false, TCTL_F32, 3);
    check_crop("3", 3, true, TCTL_F32, 1);
    check_crop("20", 20, false, TCTL_U8, 1); /* more padding than image */
}

static void random_crop_reflects_less_than_the_image(void **state)
{
    (void)state;
    static const fake_option options[] = {{"pad", "5"}, {"mode", "reflect"}, {NULL, NULL}};
    bench b;
    assert_int_equal(try_describe(&b, "random-crop", options, TCTL_U8, 1), TCTL_ESPEC);
    assert_string_equal(b.err.message,
                        "an image of 6 x 5 pixels can be reflected by less than its height and width");
    tear_down(&b);
}

/* ---- flip ---- */

static void check_flip(const char *text, double probability, int32_t dtype, int64_t channels)
{
    const fake_option options[] = {{"probability", text}, {NULL, NULL}};
    bench b;
    unsigned char in[MAX * 4], out[MAX * 4 + 1];
    size_t pixel = (size_t)channels * tctl_dtype_size(dtype);
    uint32_t flipped = 0;
    make_bytes(in, sizeof in);
    set_up(&b, "flip", options, dtype, channels);
    for (uint64_t index = 0; index < IMAGES; index++) {
        tctl_random_address at;
        apply(&b, index, in, out, &at);
        bool mirrored = (double)tctl_draw_uniform(&at, 0) < probability;
        flipped += mirrored;
        for (size_t y = 0; y < H; y++) {
            for (size_t x = 0; x < W; x++)
                assert_memory_equal(out + (y * W + x) * pixel,
                                    in + (y * W + (mirrored ? W - 1 - x : x)) * pixel, pixel);
        }
    }
    double sigma = sqrt(IMAGES * probability * (1 - probability));
    assert_true(fabs(flipped - IMAGES * probability) <= 4 * sigma);
    tear_down(&b);
}

static void flip_mirrors_with_its_probability(void **state)
{
    (void)state;
    check_flip("0", 0, TCTL_U8, 1);
    check_flip("1", 1, TCTL_U8, 1);
    check_flip("0.5", 0.5, TCTL_U8, 3);
    check_flip("0.25", 0.25, TCTL_F32, 1);
    check_flip("0.5", 0.5, TCTL_F32, 3);
    check_flip("0.5", 0.5, TCTL_U8, 2);
}

/* ---- cutout ---- */

static void check_cutout(const char *size_text, int64_t size, const char *fill_text, float fill,
                         int32_t dtype, int64_t channels)
{
    const fake_option options[] = {{"size", size_text}, {"fill", fill_text}, {NULL, NULL}};
    bench b;
    unsigned char in[MAX * 4], out[MAX * 4 + 1];
    size_t bytes = tctl_dtype_size(dtype);
    make_bytes(in, sizeof in);
    set_up(&b, "cutout", options, dtype, channels);
    for (uint64_t index = 0; index < IMAGES; index++) {
        tctl_random_address at;
        apply(&b, index, in, out, &at);
        int64_t y0 = (int64_t)tctl_draw_bounded(&at, 0, H) - size / 2;
        int64_t x0 = (int64_t)tctl_draw_bounded(&at, 2, W) - size / 2;
        for (int64_t i = 0; i < H * W * channels; i++) {
            int64_t y = i / channels / W, x = i / channels % W;
            bool inside = y >= y0 && y < y0 + size && x >= x0 && x < x0 + size;
            unsigned char byte = (unsigned char)fill;
            const void *want = !inside      ? (const void *)(in + (size_t)i * bytes)
                               : bytes == 1 ? (void *)&byte
                                            : &fill;
            assert_memory_equal(out + (size_t)i * bytes, want, bytes);
        }
    }
    tear_down(&b);
}

static void cutout_overwrites_a_clipped_square(void **state)
{
    (void)state;
    check_cutout("1", 1, "0", 0, TCTL_U8, 1);
    check_cutout("3", 3, "0", 0, TCTL_U8, 3);
    check_cutout("4", 4, "77", 77, TCTL_U8, 1);
    check_cutout("4", 4, "-0.5", -0.5f, TCTL_F32, 3);
    check_cutout("50", 50, "1", 1, TCTL_F32, 1); /* the whole image */
}

static void cutout_fills_bytes_with_bytes(void **state)
{
    (void)state;
    static const char *const wrong[] = {"-1", "256", "0.5"};
    for (int i = 0; i < 3; i++) {
        const fake_option options[] = {{"size", "2"}, {"fill", wrong[i]}, {NULL, NULL}};
        bench b;
        assert_int_equal(try_describe(&b, "cutout", options, TCTL_U8, 1), TCTL_ESPEC);
        assert_string_equal(b.err.message, "images of bytes need a whole number from 0 to 255 here");
        tear_down(&b);
    }
}

/* ---- all ---- */

static const fake_option minimal[] = {{"mean", "0"}, {"std", "1"}, {"size", "2"}, {NULL, NULL}};
static const char *const names[] = {"normalize", "random-crop", "flip", "cutout"};

static void what_is_no_image_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char want[200];
        bench b;
        assert_int_equal(try_describe(&b, names[i], minimal, TCTL_I64, 1), TCTL_EUNSUPPORTED);
        snprintf(want, sizeof want,
                 "%s needs field 'image' as u8 or f32 [height, width, channels]; it has dtype 3 and rank 3",
                 names[i]);
        assert_string_equal(b.err.message, want);
        b.in[1].name = "sound";
        assert_int_equal(b.transform->describe(b.stage, b.in, 2, b.out, &b.err), TCTL_EUNSUPPORTED);
        snprintf(want, sizeof want, "%s needs a field 'image', which the source does not have", names[i]);
        assert_string_equal(b.err.message, want);
        tear_down(&b);
    }
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bench b;
        fake.fail_allocation = 0;
        assert_int_equal(try_describe(&b, names[i], minimal, TCTL_U8, 1), TCTL_ENOMEM);
        fake.fail_allocation = -1;
        assert_int_equal(fake.allocated, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalize_is_the_formula_rounded_once),
        cmocka_unit_test(normalize_knows_its_channels),
        cmocka_unit_test(random_crop_cuts_from_the_padded_image),
        cmocka_unit_test(random_crop_reflects_less_than_the_image),
        cmocka_unit_test(flip_mirrors_with_its_probability),
        cmocka_unit_test(cutout_overwrites_a_clipped_square),
        cmocka_unit_test(cutout_fills_bytes_with_bytes),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(memory_that_runs_out_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
