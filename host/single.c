/* SPDX-License-Identifier: Apache-2.0 */
/* See single.h. */
#include "host/single.h"

#include <string.h>

#include "base/buf.h"
#include "config/yaml.h"

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

static bool is_last(const tctl_single_request *request, const char *const *setting)
{
    if (request->override && same_name(request->override, *setting))
        return false;
    for (const char *const *later = setting + 1; *later; later++) {
        if (same_name(*later, *setting))
            return false;
    }
    return true;
}

static tctl_status add_setting(tctl_buf *text, const char *setting, tctl_error *err)
{
    size_t n = strcspn(setting, "=");
    if (n == 0 || setting[n] != '=' || strpbrk(setting, "\n\r"))
        return tctl_fail(err, TCTL_EINVAL, "'%s' is not of the form option=value", setting);
    tctl_buf_add(text, setting, n);
    tctl_buf_add_format(text, ": %s\n", setting + n + 1);
    return TCTL_OK;
}

/* "use: 'NAME'", then a line per option. */
static tctl_status write_mapping(const tctl_single_request *request, tctl_buf *text, tctl_error *err)
{
    tctl_status status = TCTL_OK;
    tctl_buf_add_text(text, "use: '");
    for (const char *c = request->use; *c; c++) {
        tctl_buf_add_char(text, *c);
        if (*c == '\'')
            tctl_buf_add_char(text, *c);
    }
    tctl_buf_add_text(text, "'\n");
    for (const char *const *s = request->set; s && *s && !status; s++) {
        if (is_last(request, s))
            status = add_setting(text, *s, err);
    }
    if (request->override && !status)
        status = add_setting(text, request->override, err);
    return status || !text->broken ? status : tctl_fail_memory(err, text->size);
}

static tctl_status read_options(const tctl_single_request *request, tctl_single *s, const tctl_plugin *plugin,
                                tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_yaml_node *root = NULL;
    const tctl_plugin_finder finder = tctl_plugins_finder(request->plugins);
    const tctl_reader_context context = {
        .arena = s->arena, .diags = &s->diags, .folder = request->folder, .finder = &finder};
    tctl_status status = write_mapping(request, &text, err);
    const char *copy = status ? NULL : tctl_arena_copy(s->arena, tctl_buf_text(&text), text.size);
    if (!status && !copy)
        status = tctl_fail_memory(err, text.size);
    if (!status)
        status = tctl_yaml_parse(s->arena, "options", copy, text.size, &root, &s->diags);
    if (!status && root)
        status = tctl_use_read(&context, root, plugin->extensions[0].id, NULL, plugin->name, &s->use);
    tctl_buf_release(&text);
    if (s->diags.n) {
        if (err)
            *err = s->diags.errors[0];
        return TCTL_ESPEC;
    }
    if (!status && (!s->use || !s->use->config))
        status = tctl_fail(err, TCTL_ESPEC, "the options of '%s' cannot be read", request->use);
    return status;
}

tctl_status tctl_single_read(const tctl_single_request *request, tctl_single *ret, tctl_error *err)
{
    const tctl_loaded *loaded = NULL;
    memset(ret, 0, sizeof *ret);
    ret->arena = tctl_arena_create();
    if (!ret->arena)
        return tctl_fail_memory(err, 0);
    tctl_status status = tctl_plugins_load(request->plugins, request->use, request->folder, &loaded, err);
    return status ? status : read_options(request, ret, loaded->plugin, err);
}

tctl_status tctl_single_open(const tctl_single_request *request, tctl_single *ret, tctl_error *err)
{
    tctl_status status = tctl_single_read(request, ret, err);
    if (!status && request->threads > 1)
        status = tctl_pool_create(request->threads, &ret->pool, err);
    const tctl_services_request services = {
        .seed = request->seed, .pool = ret->pool, .log_fd = -1, .events_fd = -1};
    if (!status)
        status = tctl_services_create(&services, &ret->services, err);
    const tctl_stages_request stages = {.services = ret->services};
    if (!status)
        status = tctl_stages_begin(&stages, &ret->stages, err);
    if (!status) {
        tctl_services_fail_allocation(ret->services, request->fail_allocation);
        status = tctl_stages_add(ret->stages, ret->use, NULL, err);
    }
    return status;
}

void tctl_single_close(tctl_single *s)
{
    tctl_stages_destroy(s->stages);
    tctl_services_destroy(s->services);
    tctl_pool_destroy(s->pool);
    tctl_diags_release(&s->diags);
    tctl_arena_destroy(s->arena);
    memset(s, 0, sizeof *s);
}
