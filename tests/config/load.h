/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a spec from a text with the fake plugins. Include <cmocka.h> and fake.h first. */
#ifndef TESTS_CONFIG_LOAD_H
#define TESTS_CONFIG_LOAD_H

typedef struct loaded {
    tctl_spec *spec;
    tctl_status status;
    char *said; /* the rendered diagnostics */
    size_t n_errors;
} loaded;

/* The spec "exp.yaml" in the folder /w. */
static inline loaded load(const char *text, const char *const *set, const char *const *without,
                          const char *seed)
{
    const tctl_spec_request request = {.path = "exp.yaml",
                                       .folder = "/w",
                                       .text = text,
                                       .text_size = strlen(text),
                                       .set = set,
                                       .without = without,
                                       .seed = seed};
    tctl_diags diags = {0};
    tctl_buf out = TCTL_BUF_INIT;
    loaded l = {0};
    l.status = tctl_spec_load(&request, &fake_finder, &l.spec, &diags);
    l.n_errors = tctl_diags_count(&diags);
    assert_int_equal(l.status == TCTL_OK, l.n_errors == 0);
    tctl_diags_render(&diags, text, strlen(text), false, &out);
    l.said = tctl_buf_detach(&out);
    assert_non_null(l.said);
    assert_int_equal(l.status == TCTL_OK, l.spec->recipe != NULL);
    tctl_diags_release(&diags);
    return l;
}

static inline void unload(loaded *l)
{
    tctl_spec_destroy(l->spec);
    free(l->said);
}

#define assert_said(l, golden) assert_string_equal((l)->said, golden)

#endif
