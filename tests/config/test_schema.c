/* SPDX-License-Identifier: Apache-2.0 */
/* What is made from the tables: the JSON Schema, and the reference in docs/spec.md, which must say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/config/fake.h"

static json_t *make_schema(void)
{
    const tctl_plugin *plugins[TCTL_COUNT_OF(fake_plugins)];
    for (uint32_t i = 0; i < TCTL_COUNT_OF(fake_plugins); i++)
        plugins[i] = &fake_plugins[i];
    json_t *schema = tctl_spec_schema(plugins, TCTL_COUNT_OF(fake_plugins));
    assert_non_null(schema);
    return schema;
}

/* Follows every "$ref" and counts them. */
static size_t check_references(const json_t *schema, json_t *node)
{
    size_t n = 0, i;
    const char *key;
    json_t *child;
    const char *ref = json_string_value(json_object_get(node, "$ref"));
    if (ref) {
        assert_int_equal(strncmp(ref, "#/$defs/", 8), 0);
        assert_non_null(json_object_get(json_object_get(schema, "$defs"), ref + 8));
        n++;
    }
    if (json_is_object(node)) {
        json_object_foreach(node, key, child) n += check_references(schema, child);
    }
    json_array_foreach(node, i, child) n += check_references(schema, child);
    return n;
}

static void references_lead_somewhere(void **state)
{
    (void)state;
    json_t *schema = make_schema();
    assert_string_equal(json_string_value(json_object_get(schema, "$schema")),
                        "https://json-schema.org/draft/2020-12/schema");
    assert_true(check_references(schema, schema) >= 8);
    json_decref(schema);
}

/* The alternative of a definition whose `key` is the constant `name`; borrowed. */
static json_t *alternative(const json_t *schema, const char *definition, const char *key, const char *name)
{
    size_t i;
    json_t *child;
    json_t *any = json_object_get(json_object_get(json_object_get(schema, "$defs"), definition), "anyOf");
    json_array_foreach(any, i, child)
    {
        json_t *property = json_object_get(json_object_get(child, "properties"), key);
        const char *constant = json_string_value(json_object_get(property, "const"));
        if (constant && strcmp(constant, name) == 0)
            return child;
    }
    fail_msg("%s has no %s '%s'", definition, key, name);
    return NULL;
}

static void check_json(const json_t *value, const char *golden)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    assert_non_null(text);
    assert_string_equal(text, golden);
    free(text);
}

static void options_become_properties(void **state)
{
    (void)state;
    json_t *schema = make_schema();
    json_t *conv = alternative(schema, "model", "op", "conv");
    check_json(json_object_get(json_object_get(conv, "properties"), "out"),
               "{\"description\":\"number of output "
               "channels\",\"maximum\":65536,\"minimum\":1,\"type\":\"integer\"}");
    check_json(json_object_get(conv, "required"), "[\"op\",\"out\"]");
    check_json(json_object_get(conv, "additionalProperties"), "false");
    json_t *native = alternative(schema, "use-trainctl.trainer-1", "use", "native");
    check_json(json_object_get(json_object_get(native, "properties"), "optimizer"),
               "{\"$ref\":\"#/$defs/use-trainctl.optimizer-1\",\"description\":"
               "\"what turns gradients into updates; default: sgd\"}");
    check_json(json_object_get(native, "required"), "[\"epochs\",\"use\"]");
    json_t *amp = alternative(schema, "stages", "use", "amp");
    check_json(json_object_get(json_object_get(amp, "properties"), "dtype"),
               "{\"description\":\"the small type; default: bf16\",\"enum\":[\"bf16\",\"fp16\"]}");
    json_t *checkpoint = alternative(schema, "stages", "use", "checkpoint");
    check_json(
        json_object_get(json_object_get(checkpoint, "properties"), "every"),
        "{\"description\":\"how often\",\"pattern\":\"^[0-9]+ *(steps?|epochs?)$\",\"type\":\"string\"}");
    json_decref(schema);
}

static void the_reference_is_in_the_docs(void **state)
{
    (void)state;
    const char *source = getenv("TRAINCTL_SOURCE");
    char path[4096];
    tctl_buf file = TCTL_BUF_INIT, tables = TCTL_BUF_INIT;
    if (!source) {
        print_message("TRAINCTL_SOURCE is not set\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/docs/spec.md", source);
    assert_int_equal(tctl_file_read(path, 1 << 20, &file, NULL), TCTL_OK);
    tctl_spec_reference(&tables);
    assert_non_null(tctl_buf_text(&tables));
    if (!strstr(tctl_buf_text(&file), tctl_buf_text(&tables))) {
        print_error("docs/spec.md does not hold what `trainctl check --reference` prints:\n%s",
                    tctl_buf_text(&tables));
        fail();
    }
    tctl_buf_release(&file);
    tctl_buf_release(&tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_lead_somewhere),
        cmocka_unit_test(options_become_properties),
        cmocka_unit_test(the_reference_is_in_the_docs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
