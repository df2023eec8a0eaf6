/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: the same bytes whatever the resources, errors at their own batch, any start, any end.
 *
 * The source's sample i is a text that only i decides; transforms mix their address in. So a wrong index, epoch,
 * stream or order shows in the bytes.
 */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/loader.h"
#include "seed/permutation.h"
#include "seed/stream.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/transform.h"

enum { COUNT = 1003, BATCH = 64, HEIGHT = 5, WIDTH = 7, PIXELS = HEIGHT * WIDTH };

struct tctl_stage {
    uint64_t count;
    uint64_t slow_every;            /* sleeps at samples that it divides; 0: never */
    _Atomic(uint64_t) fails[4];     /* samples whose read fails; UINT64_MAX: none */
    bool silent;                    /* fails without a message */
    _Atomic(bool) changes_rounding; /* breaks the rules at sample 200 */
    _Atomic(uint64_t) *reads;       /* counts them */
};

static uint64_t source_count(tctl_stage *stage)
{
    return stage->count;
}

static uint32_t source_describe(tctl_stage *stage, tctl_field *fields, uint32_t cap)
{
    (void)stage;
    assert_true(cap >= 2);
    fields[0] = (tctl_field){.name = "image", .dtype = TCTL_U8, .rank = 3, .dims = {HEIGHT, WIDTH, 1}};
    fields[1] = (tctl_field){.name = "label", .dtype = TCTL_I64, .rank = 0};
    return 2;
}

static void sleep_a_little(uint64_t sample)
{
    struct timespec pause = {.tv_nsec = (long)(sample % 5) * 100000};
    nanosleep(&pause, NULL);
}

static tctl_status source_read(tctl_stage *stage, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    if (stage->reads)
        atomic_fetch_add(stage->reads, 1);
    if (stage->slow_every && sample % stage->slow_every == 0)
        sleep_a_little(sample);
    for (int i = 0; i < 4; i++) {
        if (stage->fails[i] == sample)
            return stage->silent ? TCTL_EIO
                                 : tctl_fail(err, TCTL_EFORMAT, "'data' at offset %u: bad", (unsigned)sample);
    }
    if (stage->changes_rounding && sample == 200)
        fesetround(FE_TOWARDZERO);
    for (uint64_t i = 0; i < PIXELS; i++)
        ((unsigned char *)out[0].data)[i] = (unsigned char)((sample * 2654435761u + i * 40503u) >> 7);
    *(int64_t *)out[1].data = (int64_t)(sample * 3);
    return TCTL_OK;
}

/* u8 to u8: adds random bytes of its address. */
static tctl_status noise_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                  tctl_error *err)
{
    (void)stage;
    (void)err;
    uint32_t image = tctl_pass_fields(in, n, out, "image");
    out[image].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    return TCTL_OK;
}

static tctl_status noise_apply(tctl_stage *stage, const tctl_random_address *address, const tctl_tensor *in,
                               const tctl_tensor *out, tctl_error *err)
{
    (void)stage;
    (void)err;
    TCTL_BUG_IF(in[1].data != out[1].data); /* unchanged: shared. No assert: that is for the test's thread */
    for (uint64_t i = 0; i < PIXELS; i++)
        ((unsigned char *)out[0].data)[i] =
            (unsigned char)(((unsigned char *)in[0].data)[i] + tctl_draw_bits(address, i));
    return TCTL_OK;
}

/* u8 to f32, and the label from i64 to i32: shapes and dtypes change on the way. */
static tctl_status convert_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                    tctl_error *err)
{
    (void)stage;
    if (in[0].dtype != TCTL_U8)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "needs bytes");
    tctl_pass_fields(in, n, out, "image");
    out[0].dtype = TCTL_F32;
    out[1].dtype = TCTL_I32;
    out[0].flags = out[1].flags = 0;
    return TCTL_OK;
}

static tctl_status convert_apply(tctl_stage *stage, const tctl_random_address *address, const tctl_tensor *in,
                                 const tctl_tensor *out, tctl_error *err)
{
    (void)stage;
    (void)address;
    (void)err;
    for (uint64_t i = 0; i < PIXELS; i++)
        ((float *)out[0].data)[i] = (float)((unsigned char *)in[0].data)[i] / 3.0f;
    *(int32_t *)out[1].data = (int32_t)(*(int64_t *)in[1].data + 1);
    return TCTL_OK;
}

static const tctl_source source = {sizeof source, 0, source_count, source_describe, source_read};
static const tctl_transform noise = {sizeof noise, 0, noise_describe, noise_apply};
static const tctl_transform convert = {sizeof convert, 0, convert_describe, convert_apply};
static const tctl_extension source_extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_extension noise_extensions[] = {{TCTL_TRANSFORM_ID, &noise}};
static const tctl_extension convert_extensions[] = {{TCTL_TRANSFORM_ID, &convert}};
static const tctl_plugin source_plugin = {
    .n_extensions = 1, .extensions = source_extensions, .name = "memory"};
static const tctl_plugin noise_plugin = {.n_extensions = 1, .extensions = noise_extensions, .name = "noise"};
static const tctl_plugin convert_plugin = {
    .n_extensions = 1, .extensions = convert_extensions, .name = "convert"};

static tctl_stage healthy(void)
{
    return (tctl_stage){.count = COUNT, .fails = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
}

/* A data set of the source and `n` of noise, noise, convert. */
typedef struct fixture {
    tctl_part parts[3];
    tctl_dataset dataset;
    tctl_resources resources;
    tctl_loader_request request;
} fixture;

static void set_up(fixture *f, tctl_stage *stage, uint32_t n_transforms)
{
    *f = (fixture){
        .parts = {{&noise_plugin, NULL, "noise"},
                  {&noise_plugin, NULL, "noise-2"},
                  {&convert_plugin, NULL, "convert"}},
        .dataset = {.name = "train",
                    .source = {&source_plugin, stage, "memory"},
                    .n_transforms = n_transforms},
        .resources = {.struct_size = sizeof(tctl_resources), .threads = 1, .prefetch = 2},
        .request = {.seed = 1029, .shuffle = true, .batch = BATCH},
    };
    f->dataset.transforms = f->parts;
    f->request.dataset = &f->dataset;
    f->request.resources = &f->resources;
}

static uint64_t mix(uint64_t digest, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return digest;
}

static uint64_t digest_of(const tctl_loaded_batch *b)
{
    uint64_t digest = mix(0xcbf29ce484222325u, b->indices, b->n * sizeof b->indices[0]);
    digest = mix(digest, &b->number, sizeof b->number);
    for (uint32_t f = 0; f < b->n_fields; f++) {
        assert_int_equal(b->tensors[f].dims[0], b->n);
        digest = mix(digest, b->tensors[f].data, b->tensors[f].size_bytes);
    }
    return digest;
}

/* Digest of the epochs, each from batch `first` on. */
static uint64_t load_epochs(const fixture *f, uint32_t epoch, uint32_t n_epochs, uint64_t first)
{
    tctl_error err;
    tctl_loader *loader = NULL;
    assert_int_equal(tctl_loader_create(&f->request, &loader, &err), TCTL_OK);
    uint64_t digest = 0xcbf29ce484222325u;
    for (uint32_t e = epoch; e < epoch + n_epochs; e++) {
        assert_int_equal(tctl_loader_start(loader, e, first, &err), TCTL_OK);
        uint64_t number = first;
        for (;; number++) {
            const tctl_loaded_batch *batch = NULL;
            assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
            if (!batch)
                break;
            assert_int_equal(batch->number, number);
            uint64_t d = digest_of(batch);
            digest = mix(digest, &d, sizeof d);
        }
        assert_int_equal(number, tctl_loader_batches(loader));
    }
    tctl_loader_destroy(loader);
    return digest;
}

static void workers_prefetch_and_cache_never_show_in_the_bytes(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 1, 2, 4}, prefetch[] = {0, 1, 8};
    static const uint64_t caches[] = {0, 20000, 1 << 20}; /* none, part, all */
    for (uint32_t n_transforms = 0; n_transforms <= 3; n_transforms++) {
        uint64_t want = 0;
        for (size_t w = 0; w < 4; w++) {
            for (size_t p = 0; p < 3; p++) {
                for (size_t c = 0; c < 3; c++) {
                    tctl_stage stage = healthy();
                    fixture f;
                    set_up(&f, &stage, n_transforms);
                    f.resources.workers = workers[w];
                    f.resources.prefetch = prefetch[p];
                    f.resources.cache_bytes = caches[c];
                    uint64_t got = load_epochs(&f, 0, 2, 0);
                    want = want ? want : got;
                    assert_true(got == want);
                }
            }
        }
    }
}

static void slow_reads_do_not_change_the_order(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    set_up(&f, &stage, 2);
    uint64_t want = load_epochs(&f, 5, 1, 0);
    static const uint64_t every[] = {2, 3, 64};
    for (size_t i = 0; i < 3; i++) {
        stage.slow_every = every[i];
        f.resources.workers = 4;
        f.resources.prefetch = 3;
        assert_true(load_epochs(&f, 5, 1, 0) == want);
    }
}

static void every_sample_comes_once_with_its_documented_bytes(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    set_up(&f, &stage, 3);
    f.resources.workers = 2;
    tctl_error err;
    tctl_loader *loader = NULL;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
    assert_int_equal(tctl_loader_samples(loader), COUNT);
    assert_int_equal(tctl_loader_batches(loader), 16);
    uint32_t n_fields = 0;
    const tctl_field *fields = tctl_loader_fields(loader, &n_fields);
    assert_int_equal(n_fields, 2);
    assert_string_equal(fields[0].name, "image");
    assert_int_equal(fields[0].dtype, TCTL_F32);
    assert_int_equal(fields[1].dtype, TCTL_I32);

    unsigned char seen[COUNT] = {0};
    tctl_permutation order = tctl_permutation_of(1029, "train.shuffle", 4, COUNT);
    tctl_random_address first = tctl_stream(1029, "train.transform.noise", 4, 0),
                        second = tctl_stream(1029, "train.transform.noise-2", 4, 0);
    const tctl_loaded_batch *batch = NULL;
    assert_int_equal(tctl_loader_start(loader, 4, 0, &err), TCTL_OK);
    for (uint64_t position = 0; position < COUNT;) {
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
        assert_non_null(batch);
        assert_int_equal(batch->n, position + BATCH <= COUNT ? BATCH : COUNT - position);
        assert_int_equal((uintptr_t)batch->tensors[0].data % 64, 0);
        assert_int_equal(batch->tensors[0].rank, 4);
        assert_int_equal(batch->tensors[0].dims[2], WIDTH);
        for (uint64_t i = 0; i < batch->n; i++, position++) {
            uint64_t index = batch->indices[i];
            assert_int_equal(index, tctl_permute(&order, position));
            assert_int_equal(seen[index]++, 0);
            assert_int_equal(((int32_t *)batch->tensors[1].data)[i], index * 3 + 1);
            first.index = second.index = index;
            for (uint64_t k = 0; k < PIXELS; k++) {
                unsigned char byte = (unsigned char)((index * 2654435761u + k * 40503u) >> 7);
                byte = (unsigned char)(byte + tctl_draw_bits(&first, k) + tctl_draw_bits(&second, k));
                assert_true(((float *)batch->tensors[0].data)[i * PIXELS + k] == (float)byte / 3.0f);
            }
        }
    }
    assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
    assert_null(batch);
    tctl_loader_destroy(loader);
}

static void without_shuffle_the_order_is_the_sources(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    set_up(&f, &stage, 0);
    f.request.shuffle = false;
    tctl_error err;
    tctl_loader *loader = NULL;
    const tctl_loaded_batch *batch = NULL;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
    assert_int_equal(tctl_loader_start(loader, 0, 3, &err), TCTL_OK);
    assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
    assert_int_equal(batch->indices[0], 3 * BATCH);
    assert_int_equal(batch->indices[BATCH - 1], 4 * BATCH - 1);
    tctl_loader_destroy(loader);
}

static void an_epoch_can_begin_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t workers = 0; workers <= 2; workers += 2) {
        tctl_stage stage = healthy();
        fixture f;
        set_up(&f, &stage, 2);
        f.resources.workers = workers;
        tctl_error err;
        tctl_loader *whole = NULL, *part = NULL;
        assert_int_equal(tctl_loader_create(&f.request, &whole, &err), TCTL_OK);
        assert_int_equal(tctl_loader_create(&f.request, &part, &err), TCTL_OK);
        assert_int_equal(tctl_loader_start(whole, 2, 0, &err), TCTL_OK);
        assert_int_equal(tctl_loader_start(part, 1, 0, &err), TCTL_OK); /* then thrown away half-way */
        const tctl_loaded_batch *a = NULL, *b = NULL;
        for (int i = 0; i < 5; i++) {
            assert_int_equal(tctl_loader_next(whole, &a, &err), TCTL_OK);
            assert_int_equal(tctl_loader_next(part, &b, &err), TCTL_OK);
        }
        assert_int_equal(tctl_loader_start(part, 2, 5, &err), TCTL_OK);
        for (int i = 5; i < 16; i++) {
            assert_int_equal(tctl_loader_next(whole, &a, &err), TCTL_OK);
            assert_int_equal(tctl_loader_next(part, &b, &err), TCTL_OK);
            assert_true(digest_of(a) == digest_of(b));
        }
        assert_int_equal(tctl_loader_start(part, 2, 16, &err), TCTL_OK); /* at the very end: nothing comes */
        assert_int_equal(tctl_loader_next(part, &b, &err), TCTL_OK);
        assert_null(b);
        assert_int_equal(tctl_loader_start(part, 2, 17, &err), TCTL_EINVAL);
        assert_string_equal(err.message, "cannot begin at batch 17 of 'train': an epoch has 16");
        tctl_loader_destroy(whole);
        tctl_loader_destroy(part);
    }
}

static void epochs_seeds_and_data_set_names_give_other_orders(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    set_up(&f, &stage, 0);
    uint64_t want = load_epochs(&f, 0, 1, 0);
    assert_true(load_epochs(&f, 1, 1, 0) != want);
    f.request.seed++;
    assert_true(load_epochs(&f, 0, 1, 0) != want);
    f.request.seed--;
    f.dataset.name = "test";
    assert_true(load_epochs(&f, 0, 1, 0) != want);
}

static void leaving_out_a_transform_leaves_the_streams_of_the_others(void **state)
{
    (void)state;
    unsigned char bytes[2];
    for (uint32_t last = 0; last < 2; last++) {
        tctl_stage stage = healthy();
        fixture f;
        set_up(&f, &stage, 2);
        if (last == 0) { /* only noise-2 is left */
            f.parts[0] = f.parts[1];
            f.dataset.n_transforms = 1;
        }
        tctl_error err;
        tctl_loader *loader = NULL;
        const tctl_loaded_batch *batch = NULL;
        assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
        assert_int_equal(tctl_loader_start(loader, 0, 0, &err), TCTL_OK);
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
        bytes[last] = ((unsigned char *)batch->tensors[0].data)[0];
        if (last == 1) { /* take away what "noise" added */
            tctl_random_address at = tctl_stream(1029, "train.transform.noise", 0, batch->indices[0]);
            bytes[1] = (unsigned char)(bytes[1] - tctl_draw_bits(&at, 0));
        }
        tctl_loader_destroy(loader);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

static void drop_last_leaves_out_the_incomplete_batch(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    set_up(&f, &stage, 1);
    f.request.drop_last = true;
    tctl_error err;
    tctl_loader *loader = NULL;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
    assert_int_equal(tctl_loader_batches(loader), 15);
    tctl_loader_destroy(loader);
    f.request.batch = COUNT + 1;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EINVAL);
    assert_string_equal(
        err.message,
        "'train' has 1003 samples, fewer than a batch of 1004, and an incomplete batch is left out");
    f.request.drop_last = false;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
    assert_int_equal(tctl_loader_batches(loader), 1);
    tctl_loader_destroy(loader);
}

static void the_earliest_failing_sample_is_reported_at_its_batch_every_time(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 1, 2, 4};
    tctl_permutation order = tctl_permutation_of(1029, "train.shuffle", 0, COUNT);
    uint64_t first = tctl_permute(&order, 5 * BATCH + 20);
    for (size_t w = 0; w < 4; w++) {
        tctl_stage stage = healthy();
        stage.slow_every = 1;
        stage.fails[0] = tctl_permute(&order, 5 * BATCH + 50);
        stage.fails[1] = first;
        stage.fails[2] = tctl_permute(&order, 5 * BATCH + 21);
        stage.fails[3] = tctl_permute(&order, 6 * BATCH);
        fixture f;
        set_up(&f, &stage, 1);
        f.resources.workers = workers[w];
        f.resources.prefetch = 4;
        tctl_error err;
        tctl_loader *loader = NULL;
        const tctl_loaded_batch *batch = NULL;
        assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
        assert_int_equal(tctl_loader_start(loader, 0, 0, &err), TCTL_OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
        for (int again = 0; again < 2; again++) {
            char message[128], note[128];
            snprintf(message, sizeof message, "'data' at offset %u: bad", (unsigned)first);
            snprintf(note, sizeof note, "at sample %u of 'train'", (unsigned)first);
            assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_EFORMAT);
            assert_string_equal(err.message, message);
            assert_int_equal(err.n_notes, 1);
            assert_string_equal(err.notes[0], note);
        }
        for (int i = 0; i < 4; i++)
            stage.fails[i] = UINT64_MAX;
        assert_int_equal(tctl_loader_start(loader, 0, 5, &err), TCTL_OK); /* a new start forgets it */
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
        tctl_loader_destroy(loader);
    }
}

static void silent_failures_and_changed_rounding_get_words(void **state)
{
    (void)state;
    for (uint32_t workers = 0; workers <= 2; workers += 2) {
        tctl_stage stage = healthy();
        stage.silent = true;
        stage.fails[0] = 0;
        fixture f;
        set_up(&f, &stage, 1);
        f.request.shuffle = false;
        f.resources.workers = workers;
        tctl_error err;
        tctl_loader *loader = NULL;
        const tctl_loaded_batch *batch = NULL;
        assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_EINVAL);
        assert_string_equal(err.message, "no epoch of 'train' was started");
        assert_int_equal(tctl_loader_start(loader, 0, 0, &err), TCTL_OK);
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_EIO);
        assert_string_equal(err.message, "'memory' failed without a message: input or output failed");
        stage.fails[0] = UINT64_MAX;
        stage.changes_rounding = true;
        assert_int_equal(tctl_loader_start(loader, 0, 3, &err), TCTL_OK);
        assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_EPLUGIN);
        assert_string_equal(err.message, "'memory' changed the floating-point environment");
        assert_string_equal(err.notes[0], "at sample 200 of 'train'");
        assert_int_equal(fegetround(), FE_TONEAREST);
        tctl_loader_destroy(loader);
    }
}

static void wrong_parts_are_refused_when_the_loader_is_made(void **state)
{
    (void)state;
    tctl_stage stage = healthy();
    fixture f;
    tctl_error err;
    tctl_loader *loader = NULL;
    set_up(&f, &stage, 3);
    f.parts[0] = f.parts[2]; /* convert twice: the second gets floats */
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "two transforms of 'train' are called 'convert'");
    f.parts[0].name = "early";
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EUNSUPPORTED);
    assert_string_equal(err.message, "needs bytes");
    assert_string_equal(err.notes[0], "as transform 2 of 'train'");
    set_up(&f, &stage, 1);
    f.parts[0] = f.dataset.source;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EPLUGIN);
    assert_string_equal(err.message,
                        "'memory' cannot transform: plugin 'memory' does not provide 'trainctl.transform/1'");
    set_up(&f, &stage, 0);
    stage.count = 0;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EPLUGIN);
    assert_string_equal(err.message, "'memory' says that it has 0 samples");
    stage.count = COUNT;
    f.request.batch = UINT32_MAX;
    stage.count = (uint64_t)1 << 62;
    f.resources.workers = 1;
    f.resources.prefetch = UINT32_MAX - 1;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_ENOMEM);
    assert_string_equal(err.hint, "a smaller 'prefetch' under 'resources' gives the same results");
    stage.count = COUNT;
    f.request.batch = 0;
    assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_EINVAL);
    assert_null(loader);
}

static void destroying_in_the_middle_of_an_epoch_is_fine(void **state)
{
    (void)state;
    for (int taken = 0; taken < 4; taken++) {
        tctl_stage stage = healthy();
        stage.slow_every = 3;
        fixture f;
        set_up(&f, &stage, 3);
        f.resources.workers = 3;
        tctl_error err;
        tctl_loader *loader = NULL;
        assert_int_equal(tctl_loader_create(&f.request, &loader, &err), TCTL_OK);
        if (taken > 0)
            assert_int_equal(tctl_loader_start(loader, 0, 0, &err), TCTL_OK);
        const tctl_loaded_batch *batch = NULL;
        for (int i = 1; i < taken; i++)
            assert_int_equal(tctl_loader_next(loader, &batch, &err), TCTL_OK);
        tctl_loader_destroy(loader);
    }
    tctl_loader_destroy(NULL);
}

static void cached_samples_are_read_once(void **state)
{
    (void)state;
    for (uint32_t workers = 0; workers <= 2; workers += 2) {
        _Atomic(uint64_t) reads = 0;
        tctl_stage stage = healthy();
        stage.reads = &reads;
        fixture f;
        set_up(&f, &stage, 1);
        f.resources.workers = workers;
        f.resources.cache_bytes = 1 << 20;
        load_epochs(&f, 0, 3, 0);
        assert_int_equal(atomic_load(&reads), COUNT);
        f.resources.cache_bytes = 100 * 128 + 5; /* a sample takes 128 bytes: room for 100 */
        atomic_store(&reads, 0);
        load_epochs(&f, 0, 3, 0);
        assert_int_equal(atomic_load(&reads), 100 + 3 * (COUNT - 100));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_prefetch_and_cache_never_show_in_the_bytes),
        cmocka_unit_test(slow_reads_do_not_change_the_order),
        cmocka_unit_test(every_sample_comes_once_with_its_documented_bytes),
        cmocka_unit_test(without_shuffle_the_order_is_the_sources),
        cmocka_unit_test(an_epoch_can_begin_in_the_middle),
        cmocka_unit_test(epochs_seeds_and_data_set_names_give_other_orders),
        cmocka_unit_test(leaving_out_a_transform_leaves_the_streams_of_the_others),
        cmocka_unit_test(drop_last_leaves_out_the_incomplete_batch),
        cmocka_unit_test(the_earliest_failing_sample_is_reported_at_its_batch_every_time),
        cmocka_unit_test(silent_failures_and_changed_rounding_get_words),
        cmocka_unit_test(wrong_parts_are_refused_when_the_loader_is_made),
        cmocka_unit_test(destroying_in_the_middle_of_an_epoch_is_fine),
        cmocka_unit_test(cached_samples_are_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
