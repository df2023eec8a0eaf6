/* SPDX-License-Identifier: Apache-2.0 */
/* The services as a stage sees them: streams by stage, memory, artifacts that appear whole or not at all, metrics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "host/services.h"
#include "seed/stream.h"
#include "trainctl/host/random.h"

typedef struct fixture {
    char folder[64], out[96], partial[96], metrics[96];
    volatile sig_atomic_t cancel;
    tctl_services *services;
    tctl_caller caller;
    tctl_host host;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f)
        return 1;
    snprintf(f->folder, sizeof f->folder, "/tmp/test_services.XXXXXX");
    if (!mkdtemp(f->folder))
        return 1;
    snprintf(f->out, sizeof f->out, "%s/out", f->folder);
    snprintf(f->partial, sizeof f->partial, "%s/partial", f->folder);
    snprintf(f->metrics, sizeof f->metrics, "%s/metrics.jsonl", f->folder);
    const tctl_services_request request = {.seed = 7,
                                           .out = f->out,
                                           .partial = f->partial,
                                           .metrics = f->metrics,
                                           .log_fd = -1,
                                           .events_fd = -1,
                                           .cancel = &f->cancel};
    if (tctl_make_folders(f->out, 0777, NULL) || tctl_services_create(&request, &f->services, NULL))
        return 1;
    f->caller = (tctl_caller){.services = f->services, .name = "cutout", .streams = "cutout"};
    f->host = (tctl_host){.struct_size = sizeof f->host, .impl = &f->caller, .service = tctl_services_find};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tctl_services_destroy(f->services);
    tctl_remove_tree(f->folder, NULL);
    free(f);
    return 0;
}

static char *path_of(fixture *f, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", f->out, name);
    return path;
}

static void streams_carry_the_stage_s_name(void **state)
{
    fixture *f = *state;
    const tctl_random *random = f->host.service(&f->host, TCTL_RANDOM_ID);
    tctl_random_address mine = random->address(&f->host, "where", 3, 9),
                        want = tctl_stream(7, "cutout.where", 3, 9);
    assert_memory_equal(&mine, &want, sizeof want);
    f->caller.streams = "";
    mine = random->address(&f->host, "where", 3, 9);
    want = tctl_stream(7, "where", 3, 9);
    assert_memory_equal(&mine, &want, sizeof want);
}

static void memory_is_zeroed_aligned_and_counted(void **state)
{
    fixture *f = *state;
    const tctl_memory *memory = f->host.service(&f->host, TCTL_MEMORY_ID);
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1000003};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *data = memory->allocate(&f->host, sizes[i]);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(data[k], 0);
        memset(data, 0xff, sizes[i]);
        assert_int_equal(tctl_services_memory(f->services).bytes, sizes[i]);
        memory->release(&f->host, data);
    }
    memory->release(&f->host, NULL);
    assert_int_equal(tctl_services_memory(f->services).n_blocks, 0);
    assert_int_equal(tctl_services_memory(f->services).peak_bytes, 1000003);
    assert_null(memory->allocate(&f->host, SIZE_MAX));
}

static void an_allocation_fails_when_told_to(void **state)
{
    fixture *f = *state;
    const tctl_memory *memory = f->host.service(&f->host, TCTL_MEMORY_ID);
    tctl_services_fail_allocation(f->services, 2);
    void *first = memory->allocate(&f->host, 8), *second = memory->allocate(&f->host, 8);
    void *third = memory->allocate(&f->host, 8);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    memory->release(&f->host, first);
    memory->release(&f->host, third);
}

static void artifacts_appear_whole_on_commit(void **state)
{
    fixture *f = *state;
    const tctl_artifacts *artifacts = f->host.service(&f->host, TCTL_ARTIFACT_ID);
    tctl_artifact *a = NULL;
    assert_int_equal(artifacts->begin(&f->host, "best/model.bin", &a, NULL), TCTL_OK);
    assert_int_equal(artifacts->write(a, "abc", 3, NULL), TCTL_OK);
    assert_int_equal(artifacts->write(a, "def", 3, NULL), TCTL_OK);
    assert_false(tctl_path_exists(path_of(f, "best")));
    assert_int_equal(artifacts->commit(a, NULL), TCTL_OK);
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(path_of(f, "best/model.bin"), 100, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text), "abcdef");
    tctl_buf_release(&text);
}

static void an_abandoned_artifact_leaves_nothing_and_its_name_is_free(void **state)
{
    fixture *f = *state;
    const tctl_artifacts *artifacts = f->host.service(&f->host, TCTL_ARTIFACT_ID);
    tctl_artifact *a = NULL;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(artifacts->begin(&f->host, "x", &a, NULL), TCTL_OK);
        assert_int_equal(artifacts->write(a, "abc", 3, NULL), TCTL_OK);
        artifacts->abandon(a);
    }
    artifacts->abandon(NULL);
    assert_false(tctl_path_exists(path_of(f, "x")));
    assert_int_equal(rmdir(f->partial), 0); /* empty */
}

static void bad_artifact_names_are_refused_with_the_reason(void **state)
{
    fixture *f = *state;
    const tctl_artifacts *artifacts = f->host.service(&f->host, TCTL_ARTIFACT_ID);
    static const struct {
        const char *name, *why;
    } cases[] = {{"", "it is empty"},
                 {"/etc/passwd", "not relative to the output folder"},
                 {"../x", "'.' or '..'"},
                 {"a/../../x", "'.' or '..'"},
                 {"a//b", "an empty part"},
                 {"a/", "an empty part"},
                 {"a\nb", "a control character"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_error err;
        tctl_artifact *a = NULL;
        assert_int_equal(artifacts->begin(&f->host, cases[i].name, &a, &err), TCTL_EINVAL);
        assert_non_null(strstr(err.message, cases[i].why));
        assert_null(a);
    }
}

static void an_artifact_is_written_once(void **state)
{
    fixture *f = *state;
    const tctl_artifacts *artifacts = f->host.service(&f->host, TCTL_ARTIFACT_ID);
    tctl_artifact *a = NULL, *b = NULL;
    tctl_error err;
    assert_int_equal(artifacts->begin(&f->host, "x", &a, NULL), TCTL_OK);
    assert_int_equal(artifacts->begin(&f->host, "x", &b, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "artifact 'x' was written already in this run");
    assert_int_equal(artifacts->commit(a, NULL), TCTL_OK);
    assert_int_equal(artifacts->begin(&f->host, "x", &b, &err), TCTL_EINVAL);
}

/* A file size limit stands in for a full disk: write(2) stops short and then fails. */
static void a_write_that_fails_cannot_be_committed(void **state)
{
    fixture *f = *state;
    const tctl_artifacts *artifacts = f->host.service(&f->host, TCTL_ARTIFACT_ID);
    const tctl_metrics *metrics = f->host.service(&f->host, TCTL_METRICS_ID);
    static char block[8192];
    tctl_artifact *a = NULL;
    tctl_error err;
    struct rlimit before, limit;
    assert_int_equal(artifacts->begin(&f->host, "x", &a, NULL), TCTL_OK);
    const tctl_metric loss = {"loss", 0.5};
    assert_int_equal(metrics->emit(&f->host, 1, 1, &loss, 1, NULL, 0, NULL), TCTL_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit = before;
    limit.rlim_cur = 60; /* the first line is 49 bytes: the second one fits in part */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    tctl_status write = artifacts->write(a, block, sizeof block, &err);
    tctl_status emit = metrics->emit(&f->host, 2, 2, &loss, 1, NULL, 0, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(write, TCTL_EIO);
    assert_int_equal(emit, TCTL_EIO);
    assert_int_equal(artifacts->commit(a, &err), TCTL_EIO);
    assert_string_equal(err.message, "artifact 'x' was not written whole");
    assert_false(tctl_path_exists(path_of(f, "x")));
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->metrics, 1000, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text),
                        "{\"epoch\":1,\"step\":1,\"timings\":{},\"values\":{\"loss\":0.5}}\n");
    tctl_buf_release(&text);
}

static void metrics_that_are_not_finite_are_words(void **state)
{
    fixture *f = *state;
    const tctl_metrics *metrics = f->host.service(&f->host, TCTL_METRICS_ID);
    const tctl_metric values[] = {
        {"a", (double)NAN}, {"b", (double)INFINITY}, {"c", -(double)INFINITY}, {"d", 0.1}};
    const tctl_metric timing = {"seconds", 1.5};
    assert_int_equal(metrics->emit(&f->host, 1, 469, values, 4, &timing, 1, NULL), TCTL_OK);
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->metrics, 1000, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text),
                        "{\"epoch\":1,\"step\":469,\"timings\":{\"seconds\":1.5},\"values\":{\"a\":\"NaN\","
                        "\"b\":\"Infinity\",\"c\":\"-Infinity\",\"d\":0.1}}\n");
    tctl_buf_release(&text);
}

static void add_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    *(uint64_t *)arg += chunk;
}

static void small_services_do_what_they_say(void **state)
{
    fixture *f = *state;
    const tctl_cancel *cancel = f->host.service(&f->host, TCTL_CANCEL_ID);
    assert_int_equal(cancel->requested(&f->host), 0);
    f->cancel = SIGTERM;
    assert_int_equal(cancel->requested(&f->host), 1);
    const tctl_parallel *parallel = f->host.service(&f->host, TCTL_PARALLEL_ID);
    uint64_t sum = 0;
    parallel->run(&f->host, 10, add_chunk, &sum);
    assert_int_equal(sum, 45);
    assert_int_equal(parallel->n_threads, 1);
    assert_null(f->host.service(&f->host, TCTL_TRACE_ID)); /* was not asked for */
    assert_null(f->host.service(&f->host, "trainctl.unknown/1"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(streams_carry_the_stage_s_name),
        TEST(memory_is_zeroed_aligned_and_counted),
        TEST(an_allocation_fails_when_told_to),
        TEST(artifacts_appear_whole_on_commit),
        TEST(an_abandoned_artifact_leaves_nothing_and_its_name_is_free),
        TEST(bad_artifact_names_are_refused_with_the_reason),
        TEST(an_artifact_is_written_once),
        TEST(a_write_that_fails_cannot_be_committed),
        TEST(metrics_that_are_not_finite_are_words),
        TEST(small_services_do_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
