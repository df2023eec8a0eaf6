/* SPDX-License-Identifier: Apache-2.0 */
/* A difference of content in words. See content.h. */
#include <inttypes.h>
#include <string.h>

#include "manifest/content/content.h"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void add_index(tctl_buf *ret, const json_t *element)
{
    size_t i;
    json_t *index;
    if (json_array_size(element) == 0)
        return;
    tctl_buf_add_text(ret, " [");
    json_array_foreach((json_t *)(uintptr_t)element, i, index)
        tctl_buf_add_format(ret, "%s%" JSON_INTEGER_FORMAT, i > 0 ? ", " : "", json_integer_value(index));
    tctl_buf_add_text(ret, "]");
}

static void add_bits(tctl_buf *ret, const char *bits, const char *value)
{
    if (value != NULL)
        tctl_buf_add_format(ret, "%s (%s)", value, bits);
    else
        tctl_buf_add_text(ret, bits);
}

static void explain_tensor(const json_t *d, const char *a, const char *b, tctl_buf *ret)
{
    const char *ulps = text_of(d, "ulps"), *n = text_of(d, "n_differ"), *of = text_of(d, "n_elements");
    tctl_buf_add_format(ret, text_of(d, "name")[0] == '\0' ? "the array" : "tensor '%s'", text_of(d, "name"));
    add_index(ret, json_object_get(d, "element"));
    tctl_buf_add_text(ret, ": ");
    add_bits(ret, a, text_of(d, "value_a"));
    tctl_buf_add_text(ret, " became ");
    add_bits(ret, b, text_of(d, "value_b"));
    if (ulps != NULL)
        tctl_buf_add_format(ret, ", %s %s apart", ulps, strcmp(ulps, "1") == 0 ? "ULP" : "ULPs");
    if (n != NULL && of != NULL)
        tctl_buf_add_format(ret, "; %s of %s elements differ", n, of);
}

static void explain_bytes(const json_t *d, const char *a, const char *b, tctl_buf *ret)
{
    const json_t *offset = json_array_get(json_object_get(d, "element"), 0);
    const char *n = text_of(d, "n_differ");
    if (text_of(d, "name") != NULL)
        tctl_buf_add_format(ret, "member '%s', ", text_of(d, "name"));
    tctl_buf_add_format(ret, "byte %" JSON_INTEGER_FORMAT ": ", json_integer_value(offset));
    if (a == NULL || b == NULL)
        tctl_buf_add_text(ret, a == NULL ? "the first file ends there" : "the second file ends there");
    else
        tctl_buf_add_format(ret, "%s became %s", a, b);
    if (n != NULL)
        tctl_buf_add_format(ret, "; %s %s", n, strcmp(n, "1") == 0 ? "byte differs" : "bytes differ");
}

static void explain_value(const json_t *d, const char *a, const char *b, const char *name, tctl_buf *ret)
{
    const char *ulps = text_of(d, "ulps");
    if (b == NULL)
        tctl_buf_add_format(ret, "'%s' is missing (it was %s)", name, a == NULL ? "?" : a);
    else if (a == NULL)
        tctl_buf_add_format(ret, "'%s' is new: %s", name, b);
    else
        tctl_buf_add_format(ret, "'%s': %s became %s", name, a, b);
    if (ulps != NULL)
        tctl_buf_add_format(ret, ", %s %s apart", ulps, strcmp(ulps, "1") == 0 ? "ULP" : "ULPs");
}

void tctl_content_explain(const json_t *d, tctl_buf *ret)
{
    const char *kind = text_of(d, "kind"), *a = text_of(d, "a"), *b = text_of(d, "b");
    const char *name = text_of(d, "name");
    json_int_t others = json_integer_value(json_object_get(d, "others"));
    if (kind == NULL)
        return;
    if (strcmp(kind, "bytes") == 0)
        explain_bytes(d, a, b, ret);
    else if (strcmp(kind, "format") == 0)
        tctl_buf_add_format(ret, "a file of format %s became one of format %s", a == NULL ? "none" : a,
                            b == NULL ? "none" : b);
    else if (strcmp(kind, "tensor") == 0 && a != NULL && b != NULL && name != NULL)
        explain_tensor(d, a, b, ret);
    else if (name != NULL)
        explain_value(d, a, b, name, ret);
    if (others > 0)
        tctl_buf_add_format(ret, ", and %" JSON_INTEGER_FORMAT " other %s", others,
                            others == 1 ? "tensor or value" : "tensors or values");
}
