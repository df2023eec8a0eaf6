/* SPDX-License-Identifier: Apache-2.0 */
/* From made-up evidence to a stage: causes before places, the first field before the others, and what is left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "launcher/classify.h"

static json_t *parse(const char *text)
{
    json_error_t e;
    if (text == NULL)
        return NULL;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    if (value == NULL)
        fail_msg("%s: %s", text, e.text);
    return value;
}

/* The verdict on evidence written as JSON with ' for ". */
static json_t *verdict_on(const char *was, const char *is, const char *data, const char *divergence,
                          const char *content)
{
    const char *const texts[] = {was, is, data, divergence, content};
    json_t *values[5] = {NULL};
    for (size_t i = 0; i < 5; i++) {
        char block[2048];
        snprintf(block, sizeof block, "%s", texts[i] == NULL ? "" : texts[i]);
        for (char *c = block; *c != '\0'; c++)
            *c = *c == '\'' ? '"' : *c;
        values[i] = parse(texts[i] == NULL ? NULL : block);
    }
    json_t *verdict = tctl_classify(&(tctl_evidence){
        .was = values[0], .is = values[1], .data = values[2], .divergence = values[3], .content = values[4]});
    for (size_t i = 0; i < 5; i++)
        json_decref(values[i]);
    return verdict;
}

static void assert_verdict(json_t *verdict, const char *stage, const char *confidence, const char *in_why)
{
    assert_non_null(verdict);
    assert_string_equal(json_string_value(json_object_get(verdict, "stage")), stage);
    assert_string_equal(json_string_value(json_object_get(verdict, "confidence")), confidence);
    const char *why = json_string_value(json_object_get(verdict, "why"));
    if (strstr(why, in_why) == NULL)
        fail_msg("'%s' is not in '%s'", in_why, why);
    json_decref(verdict);
}

#define VALUE(step, after, field)                                                                            \
    "{'kind':'value','step':'" step "','after':" after ",'field':'" field                                    \
    "','a':'3e800000','b':'3f000000','ulps':8388608,'fields_differ':3}"

static void nothing_that_differs_has_no_verdict(void **state)
{
    (void)state;
    const char *side = "{'envelope':{'variables':{'A':'1'}},'outputs':[],'shared_objects':[]}";
    assert_null(verdict_on(side, side, NULL, NULL, NULL));
    assert_null(verdict_on("{}", "{}", NULL, NULL, NULL));
}

static void a_member_that_one_side_lacks_says_nothing(void **state)
{
    (void)state;
    assert_null(verdict_on("{'shared_objects':[{'path':'/l.so','sha256':'a'}]}", "{}", NULL, NULL, NULL));
    assert_null(verdict_on("{}", "{'environment':{'cpu':{'model':'x'}}}", NULL, NULL, NULL));
}

static void the_machine_comes_before_libraries_and_data(void **state)
{
    (void)state;
    json_t *v =
        verdict_on("{'environment':{'cpu':{'model':'One'}},'shared_objects':[{'path':'/l.so','sha256':'a'}],"
                   "'data':[{'name':'train','files':'2','sha256':'a'}]}",
                   "{'environment':{'cpu':{'model':'Two'}},'shared_objects':[{'path':'/l.so','sha256':'b'}],"
                   "'data':[{'name':'train','files':'2','sha256':'b'}]}",
                   NULL, VALUE("1", "null", "loss"), NULL);
    assert_int_equal(json_array_size(json_object_get(v, "causes")), 3);
    assert_string_equal(json_string_value(json_object_get(v, "step")), "1");
    assert_verdict(v, "environment", "likely",
                   "'cpu.model' was 'One', is 'Two'; first seen: step 1, field 'loss'");
}

static void thread_counts_are_one_cause(void **state)
{
    (void)state;
    json_t *v =
        verdict_on("{'envelope':{'variables':{'MKL_NUM_THREADS':'4','OMP_NUM_THREADS':'4'}},'outputs':[]}",
                   "{'envelope':{'variables':{'MKL_NUM_THREADS':'3','OMP_NUM_THREADS':'3'}},"
                   "'outputs':[{'path':'sum.txt','sha256':'b'}]}",
                   NULL, NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(v, "causes")), 1);
    assert_verdict(v, "environment", "likely",
                   "thread counts: MKL_NUM_THREADS was '4', is '3', and so are others; first seen: output "
                   "'sum.txt' was not there before");
}

static void a_variable_is_named_with_both_values(void **state)
{
    (void)state;
    assert_verdict(verdict_on("{'envelope':{'variables':{'MKL_CBWR':'AVX2'}}}",
                              "{'envelope':{'variables':{}}}", NULL, VALUE("3", "'2'", "loss"), NULL),
                   "environment", "likely", "variable 'MKL_CBWR' was 'AVX2', is absent");
}

static void a_library_is_named_by_what_happened_to_it(void **state)
{
    (void)state;
    const char *one = "{'shared_objects':[{'path':'/a.so','sha256':'1'},{'path':'/b.so','sha256':'1'}]}",
               *two = "{'shared_objects':[{'path':'/b.so','sha256':'2'},{'path':'/c.so','sha256':'1'}]}";
    json_t *v = verdict_on(one, two, NULL, NULL, NULL), *causes = json_object_get(v, "causes");
    assert_int_equal(json_array_size(causes), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(causes, 1), "what")),
                        "library '/a.so' was loaded, and is not now");
    assert_string_equal(json_string_value(json_object_get(json_array_get(causes, 2), "what")),
                        "library '/c.so' is loaded, and was not before");
    assert_verdict(v, "shared objects", "certain", "library '/b.so' has other bytes");
}

static void files_that_come_and_go_come_before_their_bytes(void **state)
{
    (void)state;
    assert_verdict(verdict_on("{}", "{}",
                              "[{'name':'b','change':'bytes','what':'b changed'},"
                              "{'name':'l','change':'list','what':'l lacks a file'}]",
                              NULL, NULL),
                   "data list", "certain", "l lacks a file");
    assert_verdict(verdict_on("{'data':[{'name':'t','files':'2','sha256':'a'}]}",
                              "{'data':[{'name':'t','files':'2','sha256':'b'}]}", NULL, NULL, NULL),
                   "data bytes", "certain", "input 't' has other content");
    assert_verdict(verdict_on("{'data':[{'name':'t','files':'2','sha256':'a'}]}",
                              "{'data':[{'name':'t','files':'3','sha256':'b'}]}", NULL, NULL, NULL),
                   "data list", "certain", "had 2 files, has 3");
}

static void the_first_field_names_the_stage(void **state)
{
    (void)state;
    const struct {
        const char *divergence, *stage, *confidence;
    } cases[] = {
        {VALUE("1", "null", "indices"), "first batch", "certain"},
        {VALUE("1", "'0'", "batch"), "first batch", "certain"},
        {VALUE("7", "'6'", "labels"), "batch", "certain"},
        {VALUE("0", "null", "parameter/conv1.weight"), "initial weights", "certain"},
        {VALUE("1", "'0'", "loss"), "forward", "certain"},
        {VALUE("1", "null", "loss"), "forward", "likely"},
        {VALUE("5", "'4'", "buffer/norm.mean"), "forward", "certain"},
        {VALUE("5", "'4'", "gradient/conv1.weight"), "gradient", "certain"},
        {VALUE("5", "'4'", "optimizer/conv1.weight.momentum"), "optimizer", "certain"},
        {VALUE("5", "'4'", "parameter/conv1.weight"), "optimizer", "certain"},
        {VALUE("5", "'4'", "something"), "training", "certain"},
        {VALUE("20", "'10'", "gradient/conv1.weight"), "training", "unknown"},
        {"{'kind':'length','step':'5','after':'5'}", "training", "unknown"},
        {"{'kind':'fields'}", "training", "unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_verdict(verdict_on("{}", "{}", NULL, cases[i].divergence, NULL), cases[i].stage,
                       cases[i].confidence, "");
}

static void what_a_coarse_trace_leaves_open_is_said(void **state)
{
    (void)state;
    assert_verdict(verdict_on("{}", "{}", NULL, VALUE("20", "'10'", "loss"), NULL), "training", "unknown",
                   "coarser than a step");
    assert_verdict(verdict_on("{}", "{}", NULL, VALUE("1", "null", "loss"), NULL), "forward", "likely",
                   "if not in the initial weights");
}

/* Two doubles can lie further apart than a number that every reader of JSON takes. */
static void a_distance_beyond_2_to_the_53_is_a_text(void **state)
{
    (void)state;
    json_t *v = verdict_on(
        "{'outputs':[{'path':'m.json','sha256':'a'}]}", "{'outputs':[{'path':'m.json','sha256':'b'}]}", NULL,
        NULL,
        "{'path':'m.json','kind':'tensor','format':'json','name':'loss','dtype':'f64','element':[],"
        "'a':'3fe0000000000000','b':'3f9791d3c36fea00','value_a':'0.5','value_b':'0.023',"
        "'ulps':'20221550352641245','n_differ':'1','n_elements':'1','others':0}");
    assert_string_equal(json_string_value(json_object_get(v, "ulps")), "20221550352641245");
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_pretty(v, &text, NULL), TCTL_OK);
    tctl_buf_release(&text);
    assert_verdict(v, "output", "certain", "output 'm.json'");
}

static void an_element_of_an_output_is_named_with_its_bits(void **state)
{
    (void)state;
    json_t *v = verdict_on(
        "{'outputs':[{'path':'m.npy','sha256':'a'}]}", "{'outputs':[{'path':'m.npy','sha256':'b'}]}", NULL,
        NULL,
        "{'path':'m.npy','kind':'tensor','format':'npy','name':'conv1','dtype':'f32','element':[2,0],"
        "'a':'3e800000','b':'3e800001','value_a':'0.25','value_b':'0.25','ulps':'1','n_differ':'1',"
        "'n_elements':'6','others':0}");
    assert_string_equal(json_string_value(json_object_get(v, "tensor")), "conv1");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(v, "element"), 0)), 2);
    assert_string_equal(json_string_value(json_object_get(v, "b")), "3e800001");
    assert_int_equal(json_integer_value(json_object_get(v, "ulps")), 1);
    assert_true(json_is_null(json_object_get(v, "step")));
    assert_verdict(v, "output", "certain", "output 'm.npy' has other bytes: tensor 'conv1' [2, 0]");
}

static void what_was_not_controlled_is_a_suspect(void **state)
{
    (void)state;
    json_t *v = verdict_on("{}", "{'uncontrolled':[{'what':'entropy','why':'getrandom was called 2 times'}]}",
                           NULL, VALUE("1", "'0'", "batch"), NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "suspects"), 0)),
                        "entropy: getrandom was called 2 times");
    json_decref(v);
}

static void what_the_interposer_saw_is_named(void **state)
{
    (void)state;
    json_t *v = verdict_on(
        "{'interposer':{'events':[]},'shared_objects':[{'path':'/l.so','sha256':'1'}]}",
        "{'interposer':{'events':[{'what':'fp-environment','subject':'/l.so','detail':'FTZ changed'}],"
        "'programs':[{'path':'/bin/od','counts':{'urandom':1,'getrandom':2,'directories':9}}]},"
        "'uncontrolled':[],'shared_objects':[{'path':'/l.so','sha256':'2'}]}",
        NULL, NULL, NULL);
    const json_t *suspects = json_object_get(v, "suspects");
    assert_int_equal(json_array_size(suspects), 2);
    assert_string_equal(json_string_value(json_array_get(suspects, 0)), "fp-environment, /l.so: FTZ changed");
    assert_string_equal(json_string_value(json_array_get(suspects, 1)),
                        "'/bin/od' asked the system for random numbers: getrandom 2, urandom 1");
    assert_int_equal(json_array_size(json_object_get(v, "causes")), 2);
    assert_verdict(
        v, "shared objects", "certain",
        "library '/l.so' changes the floating-point environment, and none did before: FTZ changed");
}

static void python_s_libraries_and_settings_are_environment(void **state)
{
    (void)state;
    json_t *v = verdict_on("{'python':{'versions':['numpy 1.24'],'settings':{'torch.threads':'2'}}}",
                           "{'python':{'versions':['numpy 2.0'],'settings':{'torch.threads':'4'},'notes':"
                           "[{'what':'state','detail':'cudnn.benchmark is on','file':'train.py','line':7},"
                           "{'what':'seed','detail':'respected'}]},'uncontrolled':[]}",
                           NULL, NULL, NULL);
    const json_t *suspects = json_object_get(v, "suspects"), *causes = json_object_get(v, "causes");
    assert_string_equal(json_string_value(json_array_get(suspects, 0)),
                        "state: cudnn.benchmark is on (train.py:7)");
    assert_string_equal(json_string_value(json_array_get(suspects, 1)), "seed: respected");
    assert_string_equal(json_string_value(json_object_get(json_array_get(causes, 1), "what")),
                        "Python's setting 'torch.threads' was '2', is '4'");
    assert_verdict(v, "environment", "certain",
                   "what Python imported differs: it was 'numpy 1.24', is 'numpy 2.0'");
}

static void the_code_comes_first_of_all(void **state)
{
    (void)state;
    assert_verdict(verdict_on("{'recipe':{'train':{'lr':1}},'environment':{'cpu':{'model':'One'}}}",
                              "{'recipe':{'train':{'lr':2}},'environment':{'cpu':{'model':'Two'}}}", NULL,
                              NULL, NULL),
                   "code", "certain", "'train.lr'");
    assert_verdict(verdict_on("{'code':{'digest':'a'}}", "{'code':{'digest':'b'}}", NULL, NULL, NULL), "code",
                   "certain", "the code differs");
}

static void long_values_are_cut_between_characters(void **state)
{
    (void)state;
    const char *sharp = "ßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßß";
    char was[512];
    snprintf(was, sizeof was, "{'envelope':{'variables':{'X':'%s'}}}", sharp);
    assert_verdict(verdict_on(was, "{'envelope':{'variables':{}}}", NULL, NULL, NULL), "environment",
                   "certain", "…, is absent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_differs_has_no_verdict),
        cmocka_unit_test(a_member_that_one_side_lacks_says_nothing),
        cmocka_unit_test(the_machine_comes_before_libraries_and_data),
        cmocka_unit_test(thread_counts_are_one_cause),
        cmocka_unit_test(a_variable_is_named_with_both_values),
        cmocka_unit_test(a_library_is_named_by_what_happened_to_it),
        cmocka_unit_test(files_that_come_and_go_come_before_their_bytes),
        cmocka_unit_test(the_first_field_names_the_stage),
        cmocka_unit_test(what_a_coarse_trace_leaves_open_is_said),
        cmocka_unit_test(a_distance_beyond_2_to_the_53_is_a_text),
        cmocka_unit_test(an_element_of_an_output_is_named_with_its_bits),
        cmocka_unit_test(what_was_not_controlled_is_a_suspect),
        cmocka_unit_test(what_the_interposer_saw_is_named),
        cmocka_unit_test(python_s_libraries_and_settings_are_environment),
        cmocka_unit_test(the_code_comes_first_of_all),
        cmocka_unit_test(long_values_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
