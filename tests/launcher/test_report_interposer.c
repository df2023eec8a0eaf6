/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher makes of the interposer's report: merged, sorted, and nothing believed that is not understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "launcher/report_interposer.h"

static tctl_interposer_report parse(const char *text)
{
    tctl_interposer_report report = {0};
    assert_int_equal(tctl_interposer_report_parse(text, strlen(text), &report, NULL), TCTL_OK);
    return report;
}

static void assert_json(const json_t *value, const char *expected)
{
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_canonical(value, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text), expected);
    tctl_buf_release(&text);
}

static void processes_are_merged_by_program_whatever_their_order(void **state)
{
    (void)state;
    const char *first = "{\"begin\":\"0\",\"program\":\"/b\"}\n{\"begin\":\"1\",\"program\":\"/a\"}\n";
    const char *one =
        "{\"end\":\"0\",\"how\":\"exit\",\"program\":\"/b\",\"counts\":{\"getrandom\":2},\"objects\":[]}\n";
    const char *two = "{\"end\":\"1\",\"how\":\"exec\",\"program\":\"/a\",\"counts\":{},\"objects\":[]}\n";
    char text[1024];
    for (int turn = 0; turn < 2; turn++) {
        snprintf(text, sizeof text, "%s%s%s", first, turn == 0 ? one : two, turn == 0 ? two : one);
        tctl_interposer_report report = parse(text);
        assert_json(report.interposer,
                    "{\"events\":[],\"malformed\":0,\"processes\":2,\"programs\":["
                    "{\"counts\":{},\"path\":\"/a\",\"processes\":1},"
                    "{\"counts\":{\"getrandom\":2},\"path\":\"/b\",\"processes\":1}],\"unreported\":0}");
        assert_json(report.uncontrolled, "[]");
        tctl_interposer_report_release(&report);
    }
}

static void events_of_one_kind_are_counted(void **state)
{
    (void)state;
    const char *event =
        "{\"event\":\"time-seeded\",\"program\":\"/a\",\"subject\":\"srand\",\"detail\":\"d\"}\n";
    char text[512];
    snprintf(text, sizeof text, "%s\n%s", event, event);
    tctl_interposer_report report = parse(text);
    assert_json(
        json_object_get(report.interposer, "events"),
        "[{\"count\":2,\"detail\":\"d\",\"program\":\"/a\",\"subject\":\"srand\",\"what\":\"time-seeded\"}]");
    tctl_interposer_report_release(&report);
}

static void what_ran_outside_is_uncontrolled(void **state)
{
    (void)state;
    tctl_interposer_report report =
        parse("{\"event\":\"static-program\",\"program\":\"/a\",\"subject\":\"/s\",\"detail\":\"why\"}\n"
              "{\"event\":\"static-program\",\"program\":\"/b\",\"subject\":\"/s\",\"detail\":\"why\"}\n"
              "{\"event\":\"unsorted\",\"program\":\"/b\",\"subject\":\"nftw\",\"detail\":\"how\"}\n");
    assert_json(report.uncontrolled, "[{\"what\":\"order of directories in 'nftw'\",\"why\":\"how\"},"
                                     "{\"what\":\"static program '/s'\",\"why\":\"why\"}]");
    tctl_interposer_report_release(&report);
}

static void a_process_without_an_end_is_uncontrolled(void **state)
{
    (void)state;
    tctl_interposer_report report =
        parse("{\"begin\":\"0\",\"program\":\"/a\"}\n{\"begin\":\"2\",\"program\":\"/a\"}\n");
    assert_int_equal(json_integer_value(json_object_get(report.interposer, "unreported")), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(report.uncontrolled, 0), "what")),
                        "2 processes of '/a'");
    tctl_interposer_report_release(&report);
}

static void damaged_lines_are_counted_and_the_others_kept(void **state)
{
    (void)state;
    tctl_interposer_report report = parse(
        "{\"begin\":\"0\",\"program\":\"/a\"}\n{\"begin\":\n[]\n{\"begin\":\"1\",\"program\":\"/\\u0100\"}\n"
        "{\"end\":\"0\",\"how\":\"exit\",\"program\":\"/a\",\"counts\":{\"x\":-1},\"objects\":[]}\n"
        "{\"end\":\"0\",\"how\":\"exit\",\"program\":\"/a\",\"counts\":{},\"objects\":[[\"/"
        "l\",\"zz\",1,2,3,4,5]]}\n");
    assert_int_equal(json_integer_value(json_object_get(report.interposer, "malformed")), 5);
    assert_int_equal(json_integer_value(json_object_get(report.interposer, "processes")), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(report.uncontrolled, 0), "what")),
                        "processes whose report is damaged");
    tctl_interposer_report_release(&report);
}

static void bytes_that_are_no_text_come_through(void **state)
{
    (void)state;
    tctl_interposer_report report =
        parse("{\"begin\":\"0\",\"program\":\"/\\u00ff\\u005c\\u00c3\\u00a4\"}\n");
    const json_t *program = json_array_get(json_object_get(report.interposer, "programs"), 0);
    assert_string_equal(json_string_value(json_object_get(program, "path")), "/\\xff\\\\\xc3\xa4");
    tctl_interposer_report_release(&report);
}

static void a_missing_report_says_that_nothing_was_watched(void **state)
{
    (void)state;
    tctl_interposer_report report = {0};
    assert_int_equal(tctl_interposer_report_read("/nowhere/report", &report, NULL), TCTL_OK);
    assert_json(report.uncontrolled, "[{\"what\":\"the whole run\",\"why\":\"no process reported that the "
                                     "interposer was loaded into it\"}]");
    tctl_interposer_report_release(&report);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static json_t *objects_of(const char *path, const struct stat *st, const char *folder)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"end\":\"0\",\"how\":\"exit\",\"program\":\"/"
             "a\",\"counts\":{},\"objects\":[[\"%s\",\"\",%llu,%llu,%llu,"
             "%lld,%lld]]}\n",
             path, (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
             (unsigned long long)st->st_size, (long long)st->st_mtim.tv_sec, (long long)st->st_mtim.tv_nsec);
    tctl_interposer_report report = parse(text);
    const tctl_object_place places[] = {{folder, "$FOLDER"}, {.folder = NULL}};
    json_t *list = tctl_interposer_shared_objects(&report, places, NULL);
    tctl_interposer_report_release(&report);
    assert_int_equal(json_array_size(list), 1);
    return list;
}

static void an_object_is_hashed_unless_it_was_replaced(void **state)
{
    (void)state;
    char folder[] = "/tmp/trainctl-report-XXXXXX", path[64];
    struct stat st;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lib.so", folder);
    write_file(path, "abc");
    assert_int_equal(stat(path, &st), 0);
    json_t *list = objects_of(path, &st, folder);
    assert_json(list, "[{\"build_id\":null,\"path\":\"$FOLDER/lib.so\",\"sha256\":"
                      "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}]");
    json_decref(list);
    write_file(path, "abcd");
    list = objects_of(path, &st, "/nowhere");
    const json_t *object = json_array_get(list, 0);
    assert_true(json_is_true(json_object_get(object, "replaced")));
    assert_true(json_is_null(json_object_get(object, "sha256")));
    json_decref(list);
    tctl_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_merged_by_program_whatever_their_order),
        cmocka_unit_test(events_of_one_kind_are_counted),
        cmocka_unit_test(what_ran_outside_is_uncontrolled),
        cmocka_unit_test(a_process_without_an_end_is_uncontrolled),
        cmocka_unit_test(damaged_lines_are_counted_and_the_others_kept),
        cmocka_unit_test(bytes_that_are_no_text_come_through),
        cmocka_unit_test(a_missing_report_says_that_nothing_was_watched),
        cmocka_unit_test(an_object_is_hashed_unless_it_was_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
