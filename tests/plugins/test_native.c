/* SPDX-License-Identifier: Apache-2.0 */
/* The native trainer: it learns, resources do not show, its files are right, and what goes wrong is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/native_world.h"

/* ---- learning and files ------------------------------------------------------------------------------ */

static void it_learns(void **state)
{
    (void)state;
    must_train(&usual);
    assert_true(seen.last_loss < seen.first_loss / 2);
    assert_true(seen.test_accuracy > 0.95);
    assert_int_equal(seen.records, 3 * 9);
}

static void the_trace_has_every_tensor_in_order(void **state)
{
    (void)state;
    must_train(&usual);
    assert_string_equal(
        seen.names,
        "indices batch labels buffer/norm1.running_mean buffer/norm1.running_var loss "
        "gradient/conv1.weight gradient/conv1.bias gradient/norm1.weight gradient/norm1.bias "
        "gradient/linear1.weight "
        "gradient/linear1.bias "
        "optimizer/conv1.weight.momentum optimizer/conv1.bias.momentum optimizer/norm1.weight.momentum "
        "optimizer/norm1.bias.momentum optimizer/linear1.weight.momentum optimizer/linear1.bias.momentum "
        "parameter/conv1.weight parameter/conv1.bias parameter/norm1.weight parameter/norm1.bias "
        "parameter/linear1.weight parameter/linear1.bias");
}

static void the_model_is_written_as_pytorch_reads_it(void **state)
{
    (void)state;
    setting s = usual;
    s.norm = false;
    must_train(&s);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"conv1.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]},"
        "\"conv1.weight\":{\"dtype\":\"F32\",\"shape\":[5,1,3,3],\"data_offsets\":[20,200]},"
        "\"linear1.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[200,212]},"
        "\"linear1.weight\":{\"dtype\":\"F32\",\"shape\":[3,80],\"data_offsets\":[212,1172]}}";
    size_t length = sizeof header - 1, padded = (length + 7) / 8 * 8;
    assert_int_equal(seen.model[0] | seen.model[1] << 8, padded);
    assert_memory_equal(seen.model + 8, header, length);
    assert_int_equal(seen.n_model, 8 + padded + 1172);
}

/* ---- resources --------------------------------------------------------------------------------------- */

static void resources_do_not_show(void **state)
{
    (void)state;
    static unsigned char expected[ROOM];
    must_train(&usual);
    size_t n = seen.n;
    memcpy(expected, seen.bytes, n);
    static const setting others[] = {
        {.threads = 1, .workers = 0, .prefetch = 0, .eval_batch = "250"},
        {.threads = 3, .workers = 4, .prefetch = 8, .eval_batch = "7", .cache = 1 << 20},
        {.threads = 5, .workers = 0, .prefetch = 2, .eval_batch = "1", .cache = 4096},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        setting s = usual;
        s.threads = others[i].threads;
        s.workers = others[i].workers;
        s.prefetch = others[i].prefetch;
        s.eval_batch = others[i].eval_batch;
        s.cache = others[i].cache;
        must_train(&s);
        assert_int_equal(seen.n, n);
        assert_memory_equal(seen.bytes, expected, n);
    }
}

static void the_trace_can_be_coarser_or_off(void **state)
{
    (void)state;
    setting s = usual;
    s.trace_every = "0 steps";
    must_train(&s);
    assert_int_equal(seen.records, 0);
    assert_string_equal(seen.names, "");
}

static void max_steps_ends_the_run_within_an_epoch(void **state)
{
    (void)state;
    setting s = usual;
    s.max_steps = "11";
    must_train(&s);
    assert_int_equal(seen.records, 11);
}

/* ---- what goes wrong --------------------------------------------------------------------------------- */

static void a_loss_that_is_not_finite_names_the_step(void **state)
{
    (void)state;
    setting s = usual;
    s.lr = "100000";
    s.norm = false;
    tctl_error err;
    assert_int_equal(train(&s, &err), TCTL_EFORMAT);
    assert_true(strncmp(err.message, "the loss is ", 12) == 0);
    assert_true(strstr(err.message, "try a smaller learning rate") != NULL);
    assert_int_equal(err.n_notes, 1);
    assert_true(strncmp(err.notes[0], "in step ", 8) == 0);
    assert_int_equal(seen.n_model, 0);
}

static void a_wrong_label_fails_the_run(void **state)
{
    (void)state;
    tctl_error err;
    bad_label = true;
    tctl_status st = train(&usual, &err);
    bad_label = false;
    assert_int_equal(st, TCTL_EFORMAT);
    assert_true(strstr(err.message, "sample 5") != NULL);
}

static void a_missing_training_set_is_an_error(void **state)
{
    (void)state;
    setting s = usual;
    s.no_train = true;
    tctl_error err;
    assert_int_equal(train(&s, &err), TCTL_ESPEC);
    assert_string_equal(err.message, "the native trainer needs a data set 'train' under 'data'");
}

static void a_request_to_stop_is_heard(void **state)
{
    (void)state;
    setting s = usual;
    tctl_error err;
    for (int polls = 0; polls < 30; polls += 5) {
        s.polls = polls;
        assert_int_equal(train(&s, &err), TCTL_ECANCELED);
        assert_string_equal(err.message, "stopped as asked");
        assert_int_equal(seen.n_model, 0);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    setting s = usual;
    s.epochs = "1";
    tctl_error err;
    int64_t n = 0;
    for (tctl_status st = TCTL_ENOMEM; st; n++) {
        assert_true(n < 100);
        fake.fail_allocation = n;
        st = train(&s, &err);
        fake.fail_allocation = -1;
        assert_true(st == TCTL_OK || st == TCTL_ENOMEM);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns),
        cmocka_unit_test(the_trace_has_every_tensor_in_order),
        cmocka_unit_test(the_model_is_written_as_pytorch_reads_it),
        cmocka_unit_test(resources_do_not_show),
        cmocka_unit_test(the_trace_can_be_coarser_or_off),
        cmocka_unit_test(max_steps_ends_the_run_within_an_epoch),
        cmocka_unit_test(a_loss_that_is_not_finite_names_the_step),
        cmocka_unit_test(a_wrong_label_fails_the_run),
        cmocka_unit_test(a_missing_training_set_is_an_error),
        cmocka_unit_test(a_request_to_stop_is_heard),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
