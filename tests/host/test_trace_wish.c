/* SPDX-License-Identifier: Apache-2.0 */
/* The trace for somebody who looks for a difference: which steps are wanted, and tensors in files that others can read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "host/npy.h"
#include "host/services.h"

typedef struct fixture {
    char folder[64], trace[96];
    tctl_services *services;
    tctl_caller caller;
    tctl_host host;
    const tctl_trace *service;
} fixture;

static void set_up(fixture *f, tctl_trace_wish wish)
{
    *f = (fixture){.folder = "/tmp/test_trace_wish.XXXXXX"};
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->trace, sizeof f->trace, "%s/trace.bin", f->folder);
    wish.folder = wish.dumps ? f->folder : NULL;
    const tctl_services_request request = {.trace = f->trace, .wish = wish, .log_fd = -1, .events_fd = -1};
    assert_int_equal(tctl_services_create(&request, &f->services, NULL), TCTL_OK);
    f->caller = (tctl_caller){.services = f->services, .name = "train", .streams = ""};
    f->host = (tctl_host){.struct_size = sizeof f->host, .impl = &f->caller, .service = tctl_services_find};
    f->service = f->host.service(&f->host, TCTL_TRACE_ID);
}

static void tear_down(fixture *f)
{
    tctl_services_destroy(f->services);
    tctl_remove_tree(f->folder, NULL);
}

static void a_plain_run_wants_nothing(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, (tctl_trace_wish){0});
    for (uint64_t step = 0; step < 4; step++)
        assert_int_equal(f.service->wanted(&f.host, step), 0);
    tear_down(&f);
}

static void records_tensors_and_the_end_are_wanted_where_they_are(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, (tctl_trace_wish){.every = 2, .stops = true, .stop = 5, .dumps = true, .dump = 3});
    const int32_t record = TCTL_TRACE_WANT_RECORD, tensors = TCTL_TRACE_WANT_TENSORS,
                  end = TCTL_TRACE_WANT_END;
    const int32_t wanted[] = {record, 0, record, record | tensors, record, record | end, record | end};
    for (uint64_t step = 0; step < sizeof wanted / sizeof wanted[0]; step++)
        assert_int_equal(f.service->wanted(&f.host, step), wanted[step]);
    tear_down(&f);
}

static void assert_header(const char *path, const char *said, size_t data_bytes)
{
    tctl_buf file = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(path, 4096, &file, NULL), TCTL_OK);
    assert_memory_equal(file.data, "\x93NUMPY\x01\x00", 8);
    size_t length = (unsigned char)file.data[8] + 256u * (unsigned char)file.data[9];
    assert_int_equal((10 + length) % 64, 0);
    assert_int_equal(file.size, 10 + length + data_bytes);
    assert_memory_equal(file.data + 10, said, strlen(said));
    assert_int_equal(file.data[9 + length], '\n');
    tctl_buf_release(&file);
}

static void a_tensor_lies_under_its_field_s_name(void **state)
{
    (void)state;
    fixture f;
    char path[160];
    float values[6] = {1, 2, 3, 4, 5, 6};
    const tctl_tensor matrix = {
        .data = values, .size_bytes = sizeof values, .dtype = TCTL_F32, .rank = 2, .dims = {2, 3}};
    const tctl_tensor scalar = {.data = values, .size_bytes = 4, .dtype = TCTL_F32};
    set_up(&f, (tctl_trace_wish){.dumps = true, .dump = 3});
    assert_int_equal(f.service->tensor(&f.host, 3, "gradient/conv1.weight", &matrix, NULL), TCTL_OK);
    assert_int_equal(f.service->tensor(&f.host, 3, "loss", &scalar, NULL), TCTL_OK);
    snprintf(path, sizeof path, "%s/dump-3/gradient/conv1.weight.npy", f.folder);
    assert_header(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), } ", sizeof values);
    snprintf(path, sizeof path, "%s/dump-3/loss.npy", f.folder);
    assert_header(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (), } ", 4);
    tear_down(&f);
}

static void what_is_no_field_or_not_wanted_is_refused(void **state)
{
    (void)state;
    fixture f;
    tctl_error err = {0};
    float value = 0;
    const tctl_tensor scalar = {.data = &value, .size_bytes = 4, .dtype = TCTL_F32};
    set_up(&f, (tctl_trace_wish){.dumps = true, .dump = 3});
    assert_int_equal(f.service->tensor(&f.host, 3, "../up", &scalar, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "bad name of a field '../up'"));
    const tctl_tensor half = {.data = &value, .size_bytes = 4, .dtype = TCTL_BF16, .rank = 1, .dims = {2}};
    assert_int_equal(f.service->tensor(&f.host, 3, "x", &half, &err), TCTL_EUNSUPPORTED);
    tear_down(&f);
    set_up(&f, (tctl_trace_wish){.stops = true, .stop = 3});
    tctl_error_clear(&err);
    assert_int_equal(f.service->tensor(&f.host, 3, "x", &scalar, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "nobody wants the tensor 'x'"));
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_run_wants_nothing),
        cmocka_unit_test(records_tensors_and_the_end_are_wanted_where_they_are),
        cmocka_unit_test(a_tensor_lies_under_its_field_s_name),
        cmocka_unit_test(what_is_no_field_or_not_wanted_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
