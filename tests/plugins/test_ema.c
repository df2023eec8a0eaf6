/* SPDX-License-Identifier: Apache-2.0 */
/* The moving average: its values, what it replaces, and that saving and loading in the middle changes nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/state.h"

enum { N = 70000, M = 48 };

typedef struct run {
    const tctl_hooks *hooks;
    const tctl_state *state;
    const tctl_plugin *plugin;
    tctl_stage *stage;
    tctl_training training;
    float w[N], b[M];
} run;

static void begin(run *r, const fake_option *options)
{
    r->plugin = fake_plugin("ema");
    r->hooks = fake_extension(r->plugin, TCTL_HOOKS_ID);
    r->state = fake_extension(r->plugin, TCTL_STATE_ID);
    r->stage = fake_stage(r->plugin, options);
    r->training = (tctl_training){.struct_size = sizeof r->training,
                                  .n_elements = N,
                                  .n_buffer_elements = M,
                                  .param = r->w,
                                  .buffer = r->b,
                                  .loss_scale = 1};
}

/* Moves the weights and reports a step. */
static void step(run *r, uint64_t number, int32_t action)
{
    for (int i = 0; i < N; i++)
        r->w[i] = (float)number + (float)i * 0x1p-17f;
    for (int i = 0; i < M; i++)
        r->b[i] = -(float)number;
    r->training.action = action;
    assert_int_equal(r->hooks->step_done(r->stage, &r->training, NULL), TCTL_OK);
}

static void end(run *r)
{
    assert_int_equal(r->hooks->run_end(r->stage, &r->training, NULL), TCTL_OK);
    r->plugin->destroy(r->stage);
    assert_int_equal(fake.allocated, 0);
}

static void weights_become_their_average(void **state)
{
    (void)state;
    static run r;
    memset(&r, 0, sizeof r);
    begin(&r, (fake_option[]){{"decay", "0.9"}, {"warmup", "false"}, {NULL, NULL}});
    assert_int_equal(r.hooks->run_begin(r.stage, &r.training, NULL), TCTL_OK);
    double expected = 0;
    for (uint64_t t = 1; t <= 10; t++) {
        step(&r, t, TCTL_STEP_TAKE);
        expected = 0.9 * expected + 0.1 * (double)t;
        step(&r, 1000, t % 2 ? TCTL_STEP_HOLD : TCTL_STEP_SKIP); /* no update, no average */
    }
    end(&r);
    assert_true(fabs((double)r.w[0] - expected) < 1e-5);
    assert_true(fabs((double)(r.w[N - 1] - r.w[0]) - (N - 1) * 0x1p-17 * (1 - pow(0.9, 10))) < 1e-5);
    assert_true(fabs((double)r.b[M - 1] + expected) < 1e-5);
}

static void warm_up_forgets_the_start(void **state)
{
    (void)state;
    static run r;
    memset(&r, 0, sizeof r);
    begin(&r, NULL);
    r.w[0] = 100;
    assert_int_equal(r.hooks->run_begin(r.stage, &r.training, NULL), TCTL_OK);
    step(&r, 1, TCTL_STEP_TAKE);
    end(&r);
    assert_true(fabs((double)r.w[0] - (100 * 2. / 11 + 9. / 11)) < 1e-4);
}

/* ---- state ------------------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *data;
    size_t size, at;
} bytes;

static tctl_status write_bytes(const tctl_writer *w, const void *data, size_t size, tctl_error *err)
{
    (void)err;
    bytes *b = w->impl;
    b->data = realloc(b->data, b->size + size);
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return TCTL_OK;
}

static tctl_status read_bytes(const tctl_reader *r, void *data, size_t size, tctl_error *err)
{
    bytes *b = r->impl;
    if (b->size - b->at < size)
        return tctl_fail(err, TCTL_EFORMAT, "state ends early");
    memcpy(data, b->data + b->at, size);
    b->at += size;
    return TCTL_OK;
}

static void stopping_in_the_middle_does_not_show(void **state)
{
    (void)state;
    static run a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    begin(&a, NULL);
    assert_int_equal(a.hooks->run_begin(a.stage, &a.training, NULL), TCTL_OK);
    bytes saved = {0};
    for (uint64_t t = 1; t <= 8; t++) {
        step(&a, t, TCTL_STEP_TAKE);
        const tctl_writer writer = {&saved, write_bytes};
        if (t == 5)
            assert_int_equal(a.state->save(a.stage, &writer, NULL), TCTL_OK);
    }
    begin(&b, NULL);
    fake.backwards = true;
    const tctl_reader reader = {&saved, read_bytes};
    assert_int_equal(b.state->load(b.stage, &reader, NULL), TCTL_OK);
    assert_int_equal(saved.at, saved.size);
    assert_int_equal(b.hooks->run_begin(b.stage, &b.training, NULL), TCTL_OK);
    for (uint64_t t = 6; t <= 8; t++)
        step(&b, t, TCTL_STEP_TAKE);
    fake.backwards = false;
    assert_int_equal(a.hooks->run_end(a.stage, &a.training, NULL), TCTL_OK);
    a.plugin->destroy(a.stage);
    end(&b);
    assert_memory_equal(a.w, b.w, sizeof a.w);
    assert_memory_equal(a.b, b.b, sizeof a.b);
    free(saved.data);
}

static void foreign_state_is_refused(void **state)
{
    (void)state;
    static run r;
    memset(&r, 0, sizeof r);
    begin(&r, NULL);
    tctl_error err;
    unsigned char data[40] = "EMA0";
    bytes b = {data, sizeof data, 0};
    const tctl_reader reader = {&b, read_bytes};
    assert_int_equal(r.state->load(r.stage, &reader, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "the saved state is not one of 'ema': wrong magic");
    b.at = 0;
    data[3] = '1';
    data[16] = 3; /* three weights, of which two are there */
    assert_int_equal(r.state->load(r.stage, &reader, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "state ends early");
    b.at = 0;
    data[16] = 2; /* complete, but of another model */
    assert_int_equal(r.state->load(r.stage, &reader, &err), TCTL_OK);
    assert_int_equal(r.hooks->run_begin(r.stage, &r.training, &err), TCTL_EFORMAT);
    assert_string_equal(err.message,
                        "the saved averages are of 2 weights and 0 statistics, the model has 70000 and 48");
    r.plugin->destroy(r.stage);
    assert_int_equal(fake.allocated, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_become_their_average),
        cmocka_unit_test(warm_up_forgets_the_start),
        cmocka_unit_test(stopping_in_the_middle_does_not_show),
        cmocka_unit_test(foreign_state_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
