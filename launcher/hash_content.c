/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl hash --content FILE...: digests of what is in files (docs/outputs.md), and whether they are damaged.
 *
 * A line is FORMAT:DIGEST, two blanks and the path; a file in no known format has its bytes' SHA-256 as "bytes". A file
 * that is damaged is told, and the others are looked at all the same.
 */
#include "launcher/hash_content.h"

#include <stdio.h>

#include "manifest/content/content.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

static tctl_status look(const tctl_command_line *line, const char *path, tctl_content *ret, tctl_error *err)
{
    tctl_content content = {0};
    tctl_status st = tctl_content_of(line->arena, path, NULL, &content, err);
    if (st == TCTL_OK && content.format == NULL) {
        if (content.why_not != NULL)
            tctl_cli_warn(line, "'%s' is not looked into: %s", path, content.why_not);
        st = tctl_sha256_file(path, &content.sha256, NULL, err);
    }
    if (st == TCTL_OK)
        *ret = content;
    return st;
}

static json_t *content_json(const char *path, const tctl_content *content)
{
    bool known = content->format != NULL;
    return json_pack("{s:o, s:s?, s:o, s:o}", "path", tctl_path_to_json(path), "format", content->format,
                     "sha256", tctl_json_sha256(&content->sha256), "tensors",
                     known ? tctl_json_count(content->n_tensors) : json_null());
}

/* Prints a file, or adds it to `results`. */
static tctl_status show(const char *path, const tctl_content *content, json_t *results, tctl_error *err)
{
    char hex[TCTL_SHA256_HEX];
    if (results != NULL)
        return json_array_append_new(results, content_json(path, content)) == 0 ? TCTL_OK
                                                                                : tctl_fail_memory(err, 0);
    tctl_buf shown = TCTL_BUF_INIT;
    tctl_path_escape(path, &shown);
    tctl_sha256_hex(&content->sha256, hex);
    tctl_status st = tctl_buf_text(&shown) == NULL ? tctl_fail_memory(err, shown.size) : TCTL_OK;
    if (st == TCTL_OK)
        printf("%s:%s  %s\n", content->format == NULL ? "bytes" : content->format, hex,
               tctl_buf_text(&shown));
    tctl_buf_release(&shown);
    return st;
}

int tctl_hash_contents(tctl_command_line *line)
{
    json_t *results = tctl_cli_has(line, "--json") ? json_array() : NULL;
    int code = TCTL_EXIT_OK;
    for (uint32_t i = 0; i < line->n_args; i++) {
        tctl_content content;
        tctl_error err = {0};
        tctl_status st = look(line, line->args[i], &content, &err);
        if (st == TCTL_OK)
            st = show(line->args[i], &content, results, &err);
        if (st == TCTL_OK)
            continue;
        int this_code = tctl_cli_fail(line, &err);
        code = code == TCTL_EXIT_OK ? this_code : code;
    }
    return tctl_cli_has(line, "--json") ? tctl_cli_print_json(line, results, code) : code;
}
