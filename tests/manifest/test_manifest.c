/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: the result digest, what is refused, and what is said to differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "manifest/compare.h"
#include "manifest/manifest.h"
#include "manifest/trace.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char whole[] =
    "{'format':'trainctl-manifest/1','trainctl':'0.1.0','contract':'exact','seed':'1029','recipe':{'a':1},"
    "'run':{'id':'x','name':'x','started':'1','seconds':1.5,'peak_bytes':'1'},"
    "'recipe_digest':'" HEX "','experiment_digest':'" HEX "','result_digest':'" HEX "','exit_code':0,"
    "'request':{'spec':'e.yaml','folder':'/f','spec_sha256':'" HEX
    "','set':['a=b'],'without':[],'seed':null},"
    "'resources':{},'child':'worker','command':null,'code':{},"
    "'data':[{'name':'data.train','path':'/"
    "d','written':'d','kind':'file','files':'1','bytes':'3','sha256':'" HEX "'}],"
    "'plugins':[{'name':'idx','version':'1','path':'/p','sha256':'" HEX
    "'}],'shared_objects':[],'environment':{},"
    "'envelope':{'variables':{'TZ':'UTC'},'names':[],'secrets':[],'replaced':[],'umask':'022','aslr':'off',"
    "'core_limit':'0'},'outputs':[{'path':'m/w','type':'file','bytes':'3','sha256':'" HEX "'}],"
    "'trace':{'sha256':'" HEX "','steps':'2','fields':3},'metrics':null}";

/* JSON written with single quotes. */
static json_t *json(const char *text)
{
    char *copy = strdup(text);
    json_t *value = NULL;
    for (char *c = copy; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_int_equal(tctl_json_parse("test", copy, strlen(copy), &value, NULL), TCTL_OK);
    free(copy);
    return value;
}

static void a_whole_manifest_is_accepted_sealed_and_loaded(void **state)
{
    (void)state;
    char folder[] = "/tmp/trainctl-manifest-XXXXXX";
    assert_non_null(mkdtemp(folder));
    json_t *m = json(whole), *back = NULL;
    assert_int_equal(tctl_manifest_seal(folder, m, NULL), TCTL_OK);
    assert_int_equal(tctl_manifest_load(folder, &back, NULL), TCTL_OK);
    assert_true(json_equal(m, back));
    json_decref(back);
    json_decref(m);
    tctl_remove_tree(folder, NULL);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *message; /* the member is replaced; value NULL: removed */
    } cases[] = {
        {"format", "'trainctl-manifest/2'", "'format' must be 'trainctl-manifest/1'"},
        {"seed", "7", "'seed' must be a decimal number in quotes"},
        {"seed", "'-7'", "'seed' must be a decimal number in quotes"},
        {"result_digest", "'ABC'", "'result_digest' must be 64 lower-case hex digits"},
        {"result_digest", NULL, "'result_digest' is missing"},
        {"run", "{'id':'x'}", "'run.name' is missing"},
        {"contract", "'maybe'", "'contract' must be one of the words of the format"},
        {"outputs", "[{'path':'../../etc/passwd','type':'file','bytes':'1','sha256':'" HEX "'}]",
         "'outputs[0].path' must be a relative path without '..'"},
        {"outputs", "[{'path':'/etc/passwd','type':'file','bytes':'1','sha256':'" HEX "'}]",
         "'outputs[0].path' must be a relative path without '..'"},
        {"outputs", "[{'path':'a//b','type':'file','bytes':'1','sha256':'" HEX "'}]",
         "'outputs[0].path' must be a relative path without '..'"},
        {"data", "[7]", "'data[0]' must be an object"},
        {"plugins", "{}", "'plugins' must be a list"},
        {"trace", "[]", "'trace' must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_error err = {0};
        json_t *m = json(whole);
        if (cases[i].value == NULL)
            json_object_del(m, cases[i].path);
        else
            json_object_set_new(m, cases[i].path, json(cases[i].value));
        assert_int_equal(tctl_manifest_check(m, "m", &err), TCTL_EFORMAT);
        assert_string_equal(strchr(err.message, ' ') + 1, cases[i].message);
        json_decref(m);
    }
}

static void a_run_that_was_not_sealed_has_no_manifest(void **state)
{
    (void)state;
    json_t *m = NULL;
    assert_int_equal(tctl_manifest_load("/nowhere", &m, NULL), TCTL_ENOENT);
}

/* Independent of this program: printf '%s' TEXT | sha256sum. */
static void the_result_digest_is_that_of_the_documented_text(void **state)
{
    (void)state;
    json_t *outputs =
        json("[{'path':'b','type':'file','sha256':'" HEX "'},{'path':'a','type':'link','sha256':'" HEX
             "'},{'path':'c','type':'folder','sha256':null}]");
    static const char text[] = "{\"exit_code\":0,\"outputs\":{\"a\":\"link:" HEX "\",\"b\":\"" HEX
                               "\",\"c\":\"folder\"},\"trace\":null}";
    tctl_sha256 digest, expected = tctl_sha256_of(text, sizeof text - 1);
    assert_int_equal(tctl_result_digest(outputs, NULL, 0, &digest, NULL), TCTL_OK);
    assert_true(tctl_sha256_equal(&digest, &expected));
    assert_int_equal(tctl_result_digest(outputs, NULL, 1, &digest, NULL), TCTL_OK);
    assert_false(tctl_sha256_equal(&digest, &expected));
    json_decref(outputs);
}

static void outputs_that_changed_are_missing_or_new_are_told_apart(void **state)
{
    (void)state;
    json_t *was =
        json("[{'path':'same','sha256':'1'},{'path':'other','sha256':'1'},{'path':'gone','sha256':'1'}]");
    json_t *is =
        json("[{'path':'same','sha256':'1'},{'path':'other','sha256':'2'},{'path':'extra','sha256':'1'}]");
    json_t *list = tctl_compare_outputs(was, is);
    static const char *const expected[][2] = {{"other", "changed"}, {"gone", "missing"}, {"extra", "new"}};
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(list, i);
        assert_string_equal(json_string_value(json_object_get(one, "path")), expected[i][0]);
        assert_string_equal(json_string_value(json_object_get(one, "change")), expected[i][1]);
    }
    json_decref(list);
    json_decref(was);
    json_decref(is);
}

static void json_values_are_compared_leaf_by_leaf(void **state)
{
    (void)state;
    json_t *a = json("{'x':{'y':1,'z':[1,2]},'l':[{'name':'p','v':1},{'name':'q','v':1}],'only':true}");
    json_t *b = json("{'x':{'y':1,'z':[1,3]},'l':[{'name':'q','v':2},{'name':'p','v':1}]}");
    json_t *list = tctl_compare_json(a, b, 100);
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_canonical(list, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text),
                        "[{\"a\":2,\"b\":3,\"path\":\"x.z[1]\"},{\"a\":1,\"b\":2,\"path\":\"l.q.v\"},"
                        "{\"a\":true,\"b\":null,\"path\":\"only\"}]");
    tctl_buf_release(&text);
    json_decref(list);
    list = tctl_compare_json(a, b, 1);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    json_decref(a);
    json_decref(b);
}

static void write_trace(const char *path, float loss_of_step_2)
{
    static const tctl_trace_field fields[] = {{"batch", TCTL_TRACE_DIGEST, 0}, {"loss", TCTL_TRACE_F32, 0}};
    tctl_trace_file *file = NULL;
    uint32_t bits;
    memcpy(&bits, &loss_of_step_2, sizeof bits);
    assert_int_equal(tctl_trace_create(path, fields, 2, &file, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_append(file, 1, (tctl_trace_value[]){{1, 2}, {0x3e800000, 0}}, NULL),
                     TCTL_OK);
    assert_int_equal(tctl_trace_append(file, 2, (tctl_trace_value[]){{3, 4}, {bits, 0}}, NULL), TCTL_OK);
    assert_int_equal(tctl_trace_close(file, NULL), TCTL_OK);
}

static void the_first_step_that_differs_is_put_into_words(void **state)
{
    (void)state;
    char folder[] = "/tmp/trainctl-compare-XXXXXX", a[64], b[64], c[64];
    assert_non_null(mkdtemp(folder));
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(b, sizeof b, "%s/b", folder);
    snprintf(c, sizeof c, "%s/c", folder);
    write_trace(a, 0.5f);
    write_trace(b, 0.5f);
    write_trace(c, 0.25f);
    tctl_arena *arena = tctl_arena_create();
    json_t *d = NULL;
    assert_int_equal(tctl_compare_traces(arena, a, b, &d, NULL), TCTL_OK);
    assert_null(d);
    assert_int_equal(tctl_compare_traces(arena, a, c, &d, NULL), TCTL_OK);
    tctl_buf words = TCTL_BUF_INIT;
    tctl_divergence_explain(d, &words);
    assert_string_equal(tctl_buf_text(&words),
                        "step 2, field 'loss': 0.5 (3f000000) became 0.25 (3e800000), 8388608 ULPs apart");
    tctl_buf_release(&words);
    json_decref(d);
    tctl_arena_destroy(arena);
    tctl_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_manifest_is_accepted_sealed_and_loaded),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_run_that_was_not_sealed_has_no_manifest),
        cmocka_unit_test(the_result_digest_is_that_of_the_documented_text),
        cmocka_unit_test(outputs_that_changed_are_missing_or_new_are_told_apart),
        cmocka_unit_test(json_values_are_compared_leaf_by_leaf),
        cmocka_unit_test(the_first_step_that_differs_is_put_into_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
