/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: what is written is what is read, damage is found and named, the first difference is the first. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "manifest/digest.h"
#include "manifest/trace.h"

static char folder[] = "/tmp/tctl-trace-XXXXXX";
static char path[64];

static const tctl_trace_field fields[] = {{"loss", TCTL_TRACE_F32, 0},
                                          {"gradient/conv1.weight", TCTL_TRACE_DIGEST, 0}};

enum { N_FIELDS = 2, HEADER = 64, RECORD = 48 }; /* 16 + 2 * 8 + 4 + 21 = 57, padded to 64 */

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/trace.bin", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return tctl_remove_tree(folder, NULL);
}

static void values_of(uint64_t step, tctl_trace_value out[N_FIELDS])
{
    out[0] = (tctl_trace_value){0x3f800000 + step, 0};
    out[1] = tctl_xxh128(&step, sizeof step);
}

static void write_trace(uint64_t n)
{
    tctl_trace_file *file = NULL;
    unlink(path);
    assert_int_equal(tctl_trace_create(path, fields, N_FIELDS, &file, NULL), TCTL_OK);
    for (uint64_t step = 1; step <= n; step++) {
        tctl_trace_value values[N_FIELDS];
        values_of(step, values);
        assert_int_equal(tctl_trace_append(file, step, values, NULL), TCTL_OK);
    }
    assert_int_equal(tctl_trace_close(file, NULL), TCTL_OK);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 7,
                                      5000}; /* 5000 records fill the writer's buffer several times */
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        write_trace(counts[c]);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, HEADER + RECORD * counts[c]);
        tctl_arena *arena = tctl_arena_create();
        tctl_trace_data *data = NULL;
        assert_int_equal(tctl_trace_read(arena, path, &data, NULL), TCTL_OK);
        assert_int_equal(data->n_fields, N_FIELDS);
        assert_string_equal(data->fields[1].name, "gradient/conv1.weight");
        assert_int_equal(data->fields[0].kind, TCTL_TRACE_F32);
        assert_int_equal(data->n_records, counts[c]);
        assert_int_equal(data->torn_bytes, 0);
        for (uint64_t i = 0; i < data->n_records; i++) {
            tctl_trace_value expected[N_FIELDS];
            values_of(i + 1, expected);
            assert_int_equal(data->steps[i], i + 1);
            assert_memory_equal(data->values + i * N_FIELDS, expected, sizeof expected);
        }
        tctl_arena_destroy(arena);
    }
}

/* docs/hashing.md promises these bytes. */
static void the_bytes_are_the_documented_ones(void **state)
{
    (void)state;
    write_trace(1);
    tctl_buf buf = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(path, 1 << 20, &buf, NULL), TCTL_OK);
    static const char header[HEADER + 1] = "TCTLTRC1"
                                           "\2\0\0\0\0\0\0\0"
                                           "\2\0\0\0\4\0\0\0loss"
                                           "\1\0\0\0\25\0\0\0gradient/conv1.weight";
    assert_memory_equal(buf.data, header, HEADER);
    assert_memory_equal(buf.data + HEADER, "\1\0\0\0\0\0\0\0", 8);
    assert_memory_equal(buf.data + HEADER + 16, "\1\0\x80\x3f\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    tctl_buf_release(&buf);
}

static void only_an_incomplete_last_record_is_dropped(void **state)
{
    (void)state;
    write_trace(3);
    for (off_t cut = 1; cut <= RECORD; cut++) {
        assert_int_equal(truncate(path, HEADER + 3 * RECORD - cut), 0);
        tctl_arena *arena = tctl_arena_create();
        tctl_trace_data *data = NULL;
        assert_int_equal(tctl_trace_read(arena, path, &data, NULL), TCTL_OK);
        assert_int_equal(data->n_records, 2);
        assert_int_equal(data->torn_bytes, RECORD - cut);
        tctl_arena_destroy(arena);
    }
}

static void a_header_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    for (off_t size = 0; size < HEADER; size++) {
        write_trace(0);
        assert_int_equal(truncate(path, size), 0);
        tctl_arena *arena = tctl_arena_create();
        tctl_trace_data *data = NULL;
        tctl_error err = {0};
        assert_int_equal(tctl_trace_read(arena, path, &data, &err), TCTL_EFORMAT);
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, "damaged at offset"));
        assert_null(data);
        tctl_arena_destroy(arena);
    }
}

static void assert_damage_found(size_t offset, unsigned char byte, const char *reason)
{
    write_trace(3);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
    tctl_arena *arena = tctl_arena_create();
    tctl_trace_data *data = NULL;
    tctl_error err = {0};
    assert_int_equal(tctl_trace_read(arena, path, &data, &err), TCTL_EFORMAT);
    if (!strstr(err.message, reason))
        fail_msg("damage at %zu: '%s' lacks '%s'", offset, err.message, reason);
    tctl_arena_destroy(arena);
}

static void damage_is_named_with_its_offset(void **state)
{
    (void)state;
    assert_damage_found(0, 'X', "offset 0: it does not begin with 'TCTLTRC1'");
    assert_damage_found(7, '2', "offset 0: it does not begin with 'TCTLTRC1'");
    assert_damage_found(8, 0, "offset 8: impossible number of fields");
    assert_damage_found(11, 0xff, "offset 8: impossible number of fields");
    assert_damage_found(12, 1, "offset 12: a reserved word is not zero");
    assert_damage_found(16, 9, "offset 16: unknown kind of field");
    assert_damage_found(20, 0, "offset 20: impossible length of a field's name");
    assert_damage_found(23, 0x7f, "offset 20: impossible length of a field's name");
    assert_damage_found(24, 0, "offset 24: a field's name holds a zero byte");
    assert_damage_found(HEADER - 1, 1, "offset 63: padding is not zero");
    for (size_t i = 0; i < RECORD; i++)
        assert_damage_found(HEADER + RECORD + i, 0xa5, "offset 112: a record does not match its checksum");
}

static void a_record_out_of_contract_is_refused_when_written(void **state)
{
    (void)state;
    unlink(path);
    tctl_trace_file *file = NULL;
    tctl_error err = {0};
    assert_int_equal(tctl_trace_create(path, fields, N_FIELDS, &file, &err), TCTL_OK);
    tctl_trace_value values[N_FIELDS];
    values_of(2, values);
    assert_int_equal(tctl_trace_append(file, 2, values, &err), TCTL_OK);
    assert_int_equal(tctl_trace_append(file, 2, values, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "trace of step 2 after step 2; steps grow");
    values[0].hi = 1;
    assert_int_equal(tctl_trace_append(file, 3, values, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "more than 32 bits"));
    values[0].hi = 0;
    assert_int_equal(tctl_trace_append(file, 4, values, &err), TCTL_OK);
    assert_int_equal(tctl_trace_close(file, &err), TCTL_OK);
    tctl_arena *arena = tctl_arena_create();
    tctl_trace_data *data = NULL;
    assert_int_equal(tctl_trace_read(arena, path, &data, &err), TCTL_OK);
    assert_int_equal(data->n_records, 2);
    assert_int_equal(data->steps[1], 4);
    tctl_arena_destroy(arena);
}

static void bad_fields_and_an_existing_file_are_refused(void **state)
{
    (void)state;
    write_trace(1);
    tctl_trace_file *file = NULL;
    tctl_error err = {0};
    assert_int_equal(tctl_trace_create(path, fields, N_FIELDS, &file, &err), TCTL_EIO);
    assert_non_null(strstr(err.message, "File exists"));
    unlink(path);
    assert_int_equal(tctl_trace_create(path, fields, 0, &file, &err), TCTL_EINVAL);
    const tctl_trace_field no_name = {"", TCTL_TRACE_F32, 0}, no_kind = {"x", 7, 0};
    assert_int_equal(tctl_trace_create(path, &no_name, 1, &file, &err), TCTL_EINVAL);
    assert_int_equal(tctl_trace_create(path, &no_kind, 1, &file, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "trace field 'x' has the unknown kind 7");
    assert_null(file);
    assert_false(tctl_path_exists(path));
    assert_int_equal(tctl_trace_close(NULL, &err), TCTL_OK);
}

static void a_full_disk_is_told_and_never_forgotten(void **state)
{
    (void)state;
    tctl_trace_file *file = NULL;
    tctl_error err = {0};
    unlink(path);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = HEADER + 100; /* the file can't grow beyond: write(2) fails with EFBIG */
    assert_int_equal(tctl_trace_create(path, fields, N_FIELDS, &file, &err), TCTL_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tctl_status first = TCTL_OK;
    uint64_t step = 0;
    while (first == TCTL_OK && step < 10000) {
        tctl_trace_value values[N_FIELDS];
        values_of(++step, values);
        first = tctl_trace_append(file, step, values, &err);
    }
    assert_int_equal(first, TCTL_EIO);
    assert_non_null(strstr(err.message, "File too large"));
    tctl_trace_value values[N_FIELDS] = {{0, 0}, {0, 0}};
    assert_int_equal(tctl_trace_append(file, step + 1, values, &err), TCTL_EIO);
    assert_int_equal(tctl_trace_close(file, &err), TCTL_EIO);
    assert_non_null(strstr(err.message, "not complete"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

/* Two traces in memory, differing where the test says. */
typedef struct pair {
    uint64_t steps[2][3];
    tctl_trace_value values[2][6];
    tctl_trace_field fields[2][2];
    tctl_trace_data a, b;
} pair;

static void make_pair(pair *p)
{
    memset(p, 0, sizeof *p);
    for (int k = 0; k < 2; k++) {
        memcpy(p->fields[k], fields, sizeof fields);
        for (uint64_t i = 0; i < 3; i++) {
            p->steps[k][i] = i + 1;
            values_of(i + 1, p->values[k] + 2 * i);
        }
    }
    p->a = (tctl_trace_data){2, p->fields[0], 3, p->steps[0], p->values[0], 0};
    p->b = (tctl_trace_data){2, p->fields[1], 3, p->steps[1], p->values[1], 0};
}

static void the_first_difference_is_named(void **state)
{
    (void)state;
    pair p;
    make_pair(&p);
    assert_int_equal(tctl_trace_compare(&p.a, &p.b).kind, TCTL_DIVERGE_NONE);

    p.values[1][2].lo += 3; /* step 2, loss */
    p.values[1][3].hi ^= 1; /* step 2, gradient */
    p.values[1][4].lo += 1; /* step 3 */
    tctl_divergence d = tctl_trace_compare(&p.a, &p.b);
    assert_int_equal(d.kind, TCTL_DIVERGE_VALUE);
    assert_int_equal(d.step, 2);
    assert_string_equal(d.field, "loss");
    assert_int_equal(d.field_kind, TCTL_TRACE_F32);
    assert_int_equal(d.ulps, 3);
    assert_int_equal(d.n_fields_differ, 2);
    assert_true(d.a.lo + 3 == d.b.lo);

    make_pair(&p);
    p.values[1][5].hi ^= 1; /* the last field of the last record, the high word only */
    d = tctl_trace_compare(&p.a, &p.b);
    assert_int_equal(d.kind, TCTL_DIVERGE_VALUE);
    assert_int_equal(d.step, 3);
    assert_string_equal(d.field, "gradient/conv1.weight");
    assert_int_equal(d.n_fields_differ, 1);
}

static void a_later_process_goes_on_where_one_ended(void **state)
{
    (void)state;
    unlink(path);
    tctl_arena *arena = tctl_arena_create();
    tctl_trace_file *file = NULL, *other = NULL;
    tctl_trace_data *data = NULL;
    tctl_trace_value values[N_FIELDS] = {{0, 0}};
    uint64_t last = 0;
    tctl_error err = {0};
    assert_int_equal(tctl_trace_create(path, fields, N_FIELDS, &file, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_append(file, 0, values, NULL),
                     TCTL_OK); /* what there was before the first step */
    assert_int_equal(tctl_trace_append(file, 3, values, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_continue(path, fields, N_FIELDS, &other, &last, &err), TCTL_EBUSY);
    assert_int_equal(tctl_trace_close(file, NULL), TCTL_OK);

    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "torn", 4), 4);
    close(fd);
    assert_int_equal(tctl_trace_continue(path, fields, N_FIELDS - 1, &file, &last, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "has other fields"));
    assert_int_equal(tctl_trace_continue(path, fields, N_FIELDS, &file, &last, NULL), TCTL_OK);
    assert_int_equal(last, 3);
    assert_int_equal(tctl_trace_append(file, 3, values, NULL), TCTL_EINVAL);
    assert_int_equal(tctl_trace_append(file, 4, values, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_flush(file, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_read(arena, path, &data, NULL), TCTL_OK); /* before it is closed */
    assert_int_equal(data->n_records, 3);
    assert_int_equal(data->steps[0], 0);
    assert_int_equal(data->steps[2], 4);
    assert_int_equal(data->torn_bytes, 0);
    assert_int_equal(tctl_trace_close(file, NULL), TCTL_OK);
    tctl_arena_destroy(arena);
}

static void lengths_steps_and_fields_are_told_apart(void **state)
{
    (void)state;
    pair p;
    make_pair(&p);
    p.b.n_records = 2;
    tctl_divergence d = tctl_trace_compare(&p.a, &p.b);
    assert_int_equal(d.kind, TCTL_DIVERGE_LENGTH);
    assert_int_equal(d.step, 2);
    p.b.n_records = 0;
    d = tctl_trace_compare(&p.a, &p.b);
    assert_int_equal(d.kind, TCTL_DIVERGE_LENGTH);
    assert_int_equal(d.step, 0);

    make_pair(&p);
    p.steps[0][2] = 4;
    d = tctl_trace_compare(&p.a, &p.b);
    assert_int_equal(d.kind, TCTL_DIVERGE_STEPS);
    assert_int_equal(d.step, 3);

    make_pair(&p);
    p.fields[1][0].name = "lost";
    assert_int_equal(tctl_trace_compare(&p.a, &p.b).kind, TCTL_DIVERGE_FIELDS);
    make_pair(&p);
    p.fields[1][1].kind = TCTL_TRACE_F32;
    assert_int_equal(tctl_trace_compare(&p.a, &p.b).kind, TCTL_DIVERGE_FIELDS);
    make_pair(&p);
    p.b.n_fields = 1;
    assert_int_equal(tctl_trace_compare(&p.a, &p.b).kind, TCTL_DIVERGE_FIELDS);
}

static void distances_are_in_units_of_the_last_place(void **state)
{
    (void)state;
    static const struct {
        uint32_t a, b, ulps;
    } cases[] = {
        {0x3f800000, 0x3f800001, 1},          {0x00000000, 0x80000000, 0},
        {0x00000001, 0x80000001, 2},          {0x7f800000, 0xff800000, 2u * 0x7f800000u},
        {0x7fc00000, 0x3f800000, UINT32_MAX}, {0x3f800000, 0xffc00001, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pair p;
        make_pair(&p);
        p.values[0][0].lo = cases[i].a;
        p.values[1][0].lo = cases[i].b;
        assert_int_equal(tctl_trace_compare(&p.a, &p.b).ulps, cases[i].ulps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(the_bytes_are_the_documented_ones),
        cmocka_unit_test(only_an_incomplete_last_record_is_dropped),
        cmocka_unit_test(a_header_cut_anywhere_is_an_error),
        cmocka_unit_test(damage_is_named_with_its_offset),
        cmocka_unit_test(a_record_out_of_contract_is_refused_when_written),
        cmocka_unit_test(bad_fields_and_an_existing_file_are_refused),
        cmocka_unit_test(a_full_disk_is_told_and_never_forgotten),
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(a_later_process_goes_on_where_one_ended),
        cmocka_unit_test(lengths_steps_and_fields_are_told_apart),
        cmocka_unit_test(distances_are_in_units_of_the_last_place),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
