/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a spec, from the scan of raw bytes to the recipe, with plugins that are tables only.
 *
 * The first line, if it begins with "#set ", is an override; so --set is reached as well. What must hold whatever the
 * bytes: no crash, no leak, positions that the renderer can show, an error if and only if there is no recipe, and
 * a recipe that has a canonical form.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/config/fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of a first line "#set KEY=VALUE", from malloc; NULL if there is none. */
static char *first_override(const char *text, size_t size)
{
    if (size < 5 || memcmp(text, "#set ", 5) != 0)
        return NULL;
    const char *newline = memchr(text, '\n', size);
    size_t length = (newline ? (size_t)(newline - text) : size) - 5;
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text + 5, length);
        copy[length] = '\0';
    }
    return copy;
}

static void show(tctl_diags *diags, const tctl_spec *spec)
{
    tctl_buf out = TCTL_BUF_INIT;
    tctl_diags_render(diags, spec->text, spec->text_size, true, &out);
    TCTL_BUG_IF(!tctl_buf_text(&out));
    json_t *json = tctl_diags_json(diags);
    TCTL_BUG_IF(!json);
    json_decref(json);
    tctl_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    char *override = first_override(text, size);
    const char *const set[] = {override, NULL};
    const tctl_spec_request request = {
        .path = "fuzz.yaml", .folder = "/w", .text = text, .text_size = size, .set = set};
    tctl_diags diags = {0};
    tctl_spec *spec = NULL;
    tctl_status status = tctl_spec_load(&request, &fake_finder, &spec, &diags);
    TCTL_BUG_IF((status == TCTL_OK) != (tctl_diags_count(&diags) == 0));
    TCTL_BUG_IF((status == TCTL_OK) != (spec->recipe != NULL));
    show(&diags, spec);
    if (spec->recipe) {
        tctl_buf canonical = TCTL_BUF_INIT;
        TCTL_BUG_IF(tctl_json_canonical(spec->recipe, &canonical, NULL) != TCTL_OK);
        tctl_buf_release(&canonical);
    }
    tctl_diags_release(&diags);
    tctl_spec_destroy(spec);
    free(override);
    return 0;
}
