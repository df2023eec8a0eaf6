/* SPDX-License-Identifier: Apache-2.0 */
/* How every type of option is read, what is refused and in which words; defaults, repeated and missing keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/options.h"
#include "tests/config/fake.h"

typedef struct result {
    tctl_arena *arena;
    tctl_config *config;
    char *said;
} result;

static result read_table(const char *text, const tctl_option *options, uint32_t n, uint32_t option_size)
{
    result r = {.arena = tctl_arena_create()};
    tctl_diags diags = {0};
    tctl_yaml_node *root = NULL;
    tctl_buf out = TCTL_BUF_INIT;
    assert_int_equal(tctl_yaml_parse(r.arena, "t.yaml", text, strlen(text), &root, &diags), TCTL_OK);
    const tctl_reader_context ctx = {r.arena, &diags, "/w", &fake_finder};
    assert_int_equal(tctl_config_read(&ctx, root, options, n, option_size, NULL, "the test", "", &r.config),
                     TCTL_OK);
    tctl_diags_render(&diags, NULL, 0, false, &out);
    r.said = tctl_buf_detach(&out);
    assert_non_null(r.said);
    tctl_diags_release(&diags);
    return r;
}

static void release(result *r)
{
    free(r->said);
    tctl_arena_destroy(r->arena);
}

/* The text of the last value, which does not outlive its arena. */
static char last_text[256];

/* The one value of `x: TEXT`; given 0 if it was refused. */
static tctl_value read_one(const tctl_option *option, const char *text, const char *golden)
{
    char spec[256];
    snprintf(spec, sizeof spec, "x: %s\n", text);
    result r = read_table(spec, option, 1, sizeof *option);
    if (strcmp(r.said, golden) != 0) {
        print_error("'x: %s' gave\n%sinstead of\n%s\n", text, r.said, golden);
        fail();
    }
    tctl_value value = r.config->entries[0].n ? r.config->entries[0].values[0] : (tctl_value){0};
    snprintf(last_text, sizeof last_text, "%s", value.text ? value.text : "");
    release(&r);
    return value;
}

static void accepts_int(const tctl_option *option, const char *text, int64_t wanted)
{
    tctl_value value = read_one(option, text, "");
    assert_int_equal(value.given, 2);
    assert_true(value.i == wanted);
}

static void accepts_real(const tctl_option *option, const char *text, double wanted)
{
    tctl_value value = read_one(option, text, "");
    assert_int_equal(value.given, 2);
    assert_true(value.r == wanted);
}

static void accepts_text(const tctl_option *option, const char *text, const char *wanted)
{
    assert_int_equal(read_one(option, text, "").given, 2);
    assert_string_equal(last_text, wanted);
}

static void refuses(const tctl_option *option, const char *text, const char *golden)
{
    assert_int_equal(read_one(option, text, golden).given, 0);
}

static void bools_are_true_or_false(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_BOOL, .doc = "a switch"};
    accepts_int(&o, "true", 1);
    accepts_int(&o, "false", 0);
    refuses(&o, "yes", "t.yaml:1:4: error: 'x' must be true or false, got 'yes'\n  hint: write 'x: true'\n");
    refuses(&o, "NO", "t.yaml:1:4: error: 'x' must be true or false, got 'NO'\n  hint: write 'x: false'\n");
    refuses(&o, "True",
            "t.yaml:1:4: error: 'x' must be true or false, got 'True'\n  hint: write 'x: true'\n");
    refuses(&o, "0", "t.yaml:1:4: error: 'x' must be true or false, got '0'\n  hint: write 'x: false'\n");
    refuses(&o, "'true'",
            "t.yaml:1:4: error: 'x' must be true or false, got 'true'\n  hint: remove the quotes\n");
    refuses(&o, "maybe", "t.yaml:1:4: error: 'x' must be true or false, got 'maybe'\n  hint: x: a switch\n");
}

static void integers_are_decimal_or_hexadecimal(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_INT, .int_min = 1, .int_max = 65536, .doc = "a width"};
    const tctl_option any = {.name = "x", .type = TCTL_INT};
    accepts_int(&o, "65536", 65536);
    accepts_int(&o, "0x1F", 31);
    accepts_int(&o, "+7", 7);
    accepts_int(&any, "-9223372036854775808", INT64_MIN);
    refuses(&o, "70000",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '70000'\n  hint: x: a width\n");
    refuses(&o, "017",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '017'\n"
            "  hint: write 17: some readers take a leading zero for octal\n");
    refuses(&o, "1_000",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '1_000'\n"
            "  hint: write 1000: digits are not grouped\n");
    refuses(&o, "0o17",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '0o17'\n"
            "  hint: write it in decimal, or in hexadecimal as 0x1f\n");
    refuses(&o, "1e3",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '1e3'\n  hint: write 1000\n");
    refuses(&o, "1.5",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '1.5'\n  hint: x: a width\n");
    refuses(&o, "\"3\"",
            "t.yaml:1:4: error: 'x' must be an integer from 1 to 65536, got '3'\n"
            "  hint: remove the quotes\n");
    refuses(&any, "9223372036854775808",
            "t.yaml:1:4: error: 'x' must be an integer, got '9223372036854775808'\n");
    refuses(&any, "12:30:45", "t.yaml:1:4: error: 'x' must be an integer, got '12:30:45'\n");
    refuses(&any, "",
            "t.yaml:1:3: error: 'x' has no value\n  hint: write an integer, or leave the key out\n");
    refuses(&any, "[1]", "t.yaml:1:4: error: 'x' must be an integer, got a list\n");
    refuses(&any, "{a: 1}", "t.yaml:1:4: error: 'x' must be an integer, got a mapping\n");
}

static void reals_take_every_decimal_form(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_REAL, .real_max = 1, .doc = "a rate"};
    const tctl_option any = {.name = "x", .type = TCTL_REAL};
    accepts_real(&o, "1e-3", 1e-3); /* a text for PyYAML */
    accepts_real(&o, "1E-3", 1e-3);
    accepts_real(&o, ".5", .5);
    accepts_real(&o, "1.", 1);
    accepts_real(&o, "1", 1);
    accepts_real(&o, "0.10", 0.1);
    accepts_real(&any, "-1e+10", -1e10);
    refuses(&o, "fast",
            "t.yaml:1:4: error: 'x' must be a number from 0 to 1, got 'fast'\n  hint: x: a rate\n");
    refuses(&o, "1.5", "t.yaml:1:4: error: 'x' must be a number from 0 to 1, got '1.5'\n  hint: x: a rate\n");
    refuses(&o, "0,5",
            "t.yaml:1:4: error: 'x' must be a number from 0 to 1, got '0,5'\n"
            "  hint: the decimal sign is a point: 0.5\n");
    refuses(&o, "20%", "t.yaml:1:4: error: 'x' must be a number from 0 to 1, got '20%'\n  hint: write 0.2\n");
    refuses(&any, ".inf",
            "t.yaml:1:4: error: 'x' must be a number, got '.inf'\n  hint: the number must be finite\n");
    refuses(&any, "1e999", "t.yaml:1:4: error: 'x' must be a number, got '1e999'\n");
    refuses(&any, "'0.1'", "t.yaml:1:4: error: 'x' must be a number, got '0.1'\n  hint: remove the quotes\n");
}

static void texts_are_taken_as_written(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_TEXT};
    accepts_text(&o, "NO", "NO");
    accepts_text(&o, "1.10", "1.10");
    accepts_text(&o, "null", "null");
    accepts_text(&o, "017", "017");
    accepts_text(&o, "''", "");
    accepts_text(&o, "2024-01-01", "2024-01-01");
    refuses(&o, "", "t.yaml:1:3: error: 'x' has no value\n  hint: write a text, or leave the key out\n");
}

static void enums_suggest(void **state)
{
    (void)state;
    static const char *const choices[] = {"exact", "machine", "off", NULL};
    const tctl_option o = {.name = "x", .type = TCTL_ENUM, .choices = choices, .doc = "a promise"};
    accepts_text(&o, "off", "off"); /* false for YAML 1.1 */
    accepts_text(&o, "'exact'", "exact");
    refuses(&o, "exat",
            "t.yaml:1:4: error: 'x' must be one of exact, machine, off, got 'exat'\n"
            "  hint: did you mean 'exact'?\n");
    refuses(&o, "EXACT",
            "t.yaml:1:4: error: 'x' must be one of exact, machine, off, got 'EXACT'\n"
            "  hint: did you mean 'exact'?\n");
    refuses(&o, "whatever",
            "t.yaml:1:4: error: 'x' must be one of exact, machine, off, got 'whatever'\n"
            "  hint: x: a promise\n");
}

static void paths_are_relative_to_the_spec(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_PATH, .doc = "a file"};
    accepts_text(&o, "a/b.gz", "/w/a/b.gz");
    accepts_text(&o, "/a/b.gz", "/a/b.gz");
    refuses(&o, "~/a",
            "t.yaml:1:4: error: 'x' must be a path, got '~/a'\n"
            "  hint: '~' is not expanded: write the whole path, or one relative to the spec\n");
    refuses(&o, "''", "t.yaml:1:4: error: 'x' must be a path, got ''\n  hint: x: a file\n");
}

static void counts_have_a_unit(void **state)
{
    (void)state;
    static const char *const units[] = {"steps", "epochs", NULL};
    const tctl_option o = {.name = "x", .type = TCTL_COUNT, .choices = units, .int_min = 1, .int_max = 1000};
    accepts_int(&o, "200 steps", 200);
    accepts_int(&o, "1 step", 1);
    accepts_text(&o, "1 epoch", "epochs");
    accepts_text(&o, "\"2 epochs\"", "epochs");
    accepts_int(&o, "3epochs", 3);
    refuses(&o, "200",
            "t.yaml:1:4: error: 'x' must be a count from 1 to 1000 in steps or epochs, got '200'\n"
            "  hint: the unit is missing: write '200 steps'\n");
    refuses(&o, "2 stepps",
            "t.yaml:1:4: error: 'x' must be a count from 1 to 1000 in steps or epochs, got "
            "'2 stepps'\n  hint: did you mean '2 steps'?\n");
    refuses(&o, "0 steps",
            "t.yaml:1:4: error: 'x' must be a count from 1 to 1000 in steps or epochs, got '0 steps'\n");
    refuses(&o, "many steps",
            "t.yaml:1:4: error: 'x' must be a count from 1 to 1000 in steps or epochs, got 'many steps'\n");
}

static void durations_and_sizes_have_units(void **state)
{
    (void)state;
    const tctl_option d = {.name = "x", .type = TCTL_DURATION, .real_min = 0.001, .real_max = 86400};
    const tctl_option s = {.name = "x", .type = TCTL_SIZE};
    accepts_real(&d, "90 s", 90);
    accepts_real(&d, "5 min", 300);
    accepts_real(&d, "1.5 hours", 5400);
    accepts_real(&d, "90 ms", 0.09);
    accepts_real(&d, "1 d", 86400);
    refuses(&d, "90",
            "t.yaml:1:4: error: 'x' must be a duration like '90 s' from 0.001 s to 86400 s, got '90'\n"
            "  hint: the unit is missing: write '90 s'; units are ms, s, min, h, d\n");
    refuses(&d, "9 m",
            "t.yaml:1:4: error: 'x' must be a duration like '90 s' from 0.001 s to 86400 s, got '9 m'\n"
            "  hint: units are ms, s, min, h, d\n");
    refuses(&d, "2 d",
            "t.yaml:1:4: error: 'x' must be a duration like '90 s' from 0.001 s to 86400 s, got "
            "'2 d'\n");
    accepts_int(&s, "64 MiB", 64 << 20);
    accepts_int(&s, "64MB", 64000000);
    accepts_int(&s, "1.5 GiB", (int64_t)3 << 29);
    accepts_int(&s, "0", 0);
    refuses(&s, "64",
            "t.yaml:1:4: error: 'x' must be a size like '64 MiB', got '64'\n"
            "  hint: the unit is missing: write '64 MiB' or '64 B'\n");
    refuses(
        &s, "64 mb",
        "t.yaml:1:4: error: 'x' must be a size like '64 MiB', got '64 mb'\n  hint: did you mean '64 MB'?\n");
    refuses(
        &s, "2 G",
        "t.yaml:1:4: error: 'x' must be a size like '64 MiB', got '2 G'\n  hint: did you mean '2 GiB'?\n");
    refuses(&s, "0.3 B",
            "t.yaml:1:4: error: 'x' must be a size like '64 MiB', got '0.3 B'\n"
            "  hint: units are B, KiB, MiB, GiB, TiB and kB, MB, GB, TB\n");
    refuses(&s, "-1 MiB", "t.yaml:1:4: error: 'x' must be a size like '64 MiB', got '-1 MiB'\n");
}

static const tctl_option table[] = {
    {.name = "images", .type = TCTL_PATH, .flags = TCTL_OPT_REQUIRED, .doc = "the images"},
    {.name = "size", .type = TCTL_INT, .flags = TCTL_OPT_REPEATED, .int_min = 1, .int_max = 9},
    {.name = "rate", .type = TCTL_REAL, .default_yaml = "1e-3"},
    {.name = "key", .type = TCTL_TEXT, .flags = TCTL_OPT_SECRET},
};

static result read_all(const char *text)
{
    return read_table(text, table, TCTL_COUNT_OF(table), sizeof table[0]);
}

static void one_mistake_is_one_message(void **state)
{
    (void)state;
    result r = read_all("imges: a\n");
    assert_string_equal(r.said, "t.yaml:1:1: error: unknown key 'imges' in the test\n"
                                "  hint: did you mean 'images'?\n");
    release(&r);
    r = read_all("foo: a\n");
    assert_string_equal(r.said, "t.yaml:1:1: error: unknown key 'foo' in the test\n"
                                "  hint: the keys are images, size, rate, key\n"
                                "t.yaml:1:1: error: the test needs the key 'images'\n"
                                "  hint: images: the images\n"
                                "2 errors\n");
    release(&r);
    r = read_all("images:\n");
    assert_string_equal(r.said, "t.yaml:1:8: error: 'images' has no value\n  hint: write a path\n");
    release(&r);
}

static void repeated_options_take_a_list_or_one(void **state)
{
    (void)state;
    result r = read_all("images: a\nsize: [3, 4]\n");
    assert_string_equal(r.said, "");
    assert_int_equal(r.config->entries[1].n, 2);
    assert_true(r.config->entries[1].values[1].i == 4);
    release(&r);
    r = read_all("images: a\nsize: 5\n");
    assert_int_equal(r.config->entries[1].n, 1);
    release(&r);
    r = read_all("images: a\nsize: [3, 70, [1]]\n");
    assert_string_equal(r.said, "t.yaml:2:11: error: 'size' must be an integer from 1 to 9, got '70'\n"
                                "t.yaml:2:15: error: 'size' must be an integer from 1 to 9, got a list\n"
                                "2 errors\n");
    release(&r);
    r = read_all("images: [a]\n");
    assert_string_equal(
        r.said, "t.yaml:1:9: error: 'images' must be a path, got a list\n  hint: images: the images\n");
    release(&r);
}

static void json_has_defaults_and_no_secrets(void **state)
{
    (void)state;
    result r = read_all("images: ./a\nkey: hush\nsize: 4\n");
    json_t *json = tctl_config_json(r.config, false);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"images\":\"./a\",\"rate\":0.001,\"size\":[4]}");
    assert_int_equal(tctl_config_find(r.config, "rate")->values[0].given, 1);
    free(text);
    json_decref(json);
    release(&r);
}

/* A table of a plugin that was built when options had fewer members. */
static void older_tables_are_read(void **state)
{
    (void)state;
    enum { OLD = offsetof(tctl_option, unit) };
    char old[2 * OLD];
    memcpy(old, &table[0], OLD);
    memcpy(old + OLD, &table[2], OLD);
    result r = read_table("images: a\nrate: 2\n", (const tctl_option *)(const void *)old, 2, OLD);
    assert_string_equal(r.said, "");
    assert_string_equal(r.config->entries[1].option->name, "rate");
    assert_null(r.config->entries[1].option->doc);
    assert_true(r.config->entries[1].values[0].r == 2);
    release(&r);
}

static void a_wrong_default_is_the_plugins_fault(void **state)
{
    (void)state;
    const tctl_option o = {.name = "x", .type = TCTL_INT, .default_yaml = "many"};
    result r = read_table("{}", &o, 1, sizeof o);
    assert_string_equal(r.said,
                        "t.yaml:1:1: error: the test is broken: it cannot read its own default 'many' of "
                        "'x'\n  note: 'x' must be an integer, got 'many'\n");
    release(&r);
}

static void a_default_plugin_that_is_not_installed_is_named(void **state)
{
    (void)state;
    static const char *const schedule[] = {TCTL_SCHEDULE_ID, NULL};
    const tctl_option o = {.name = "x", .type = TCTL_PLUGIN, .default_yaml = "constant", .choices = schedule};
    result r = read_table("{}", &o, 1, sizeof o);
    assert_string_equal(r.said, "t.yaml:1:1: error: there is no plugin 'constant'\n"
                                "  note: in x\n"
                                "  note: 'constant' is the default of 'x' in the test\n");
    release(&r);
}

static void suggestions_are_near(void **state)
{
    (void)state;
    static const char *const words[] = {"momentum", "lr", "nesterov", "weight_decay"};
    assert_string_equal(tctl_suggest("momentun", words, 4), "momentum");
    assert_string_equal(tctl_suggest("momnetum", words, 4), "momentum");
    assert_string_equal(tctl_suggest("rl", words, 4), "lr");
    assert_string_equal(tctl_suggest("Weight-Decay", words, 4), "weight_decay");
    assert_null(tctl_suggest("epochs", words, 4));
    assert_null(tctl_suggest("", words, 4));
    char long_word[4096];
    memset(long_word, 'm', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(tctl_suggest(long_word, words, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bools_are_true_or_false),
        cmocka_unit_test(integers_are_decimal_or_hexadecimal),
        cmocka_unit_test(reals_take_every_decimal_form),
        cmocka_unit_test(texts_are_taken_as_written),
        cmocka_unit_test(enums_suggest),
        cmocka_unit_test(paths_are_relative_to_the_spec),
        cmocka_unit_test(counts_have_a_unit),
        cmocka_unit_test(durations_and_sizes_have_units),
        cmocka_unit_test(one_mistake_is_one_message),
        cmocka_unit_test(repeated_options_take_a_list_or_one),
        cmocka_unit_test(json_has_defaults_and_no_secrets),
        cmocka_unit_test(older_tables_are_read),
        cmocka_unit_test(a_wrong_default_is_the_plugins_fault),
        cmocka_unit_test(a_default_plugin_that_is_not_installed_is_named),
        cmocka_unit_test(suggestions_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
