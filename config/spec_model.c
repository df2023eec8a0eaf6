/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `model:`: a list of operators, each checked against the trainer's table of operators.
 *
 * An operator reads the one before it unless `from` says otherwise, and only earlier ones: the list is in
 * topological order by construction.
 */
#include <inttypes.h>
#include <string.h>

#include "config/spec_read.h"

typedef struct model_reader {
    tctl_spec_reader *r;
    const tctl_plugin *plugin; /* of the trainer */
    tctl_op_schema *schemas;   /* copied to this program's size */
    const char **names;        /* of the operators, for suggestions */
    uint32_t n_schemas;
    tctl_loc *locs; /* of the operators read so far */
} model_reader;

static tctl_status copy_schemas(model_reader *m, const tctl_trainer *trainer)
{
    if (!trainer || !TCTL_HAS(tctl_trainer, trainer->struct_size, ops))
        return TCTL_OK;
    uint32_t n = trainer->n_ops;
    size_t size = trainer->op_schema_size < sizeof *m->schemas ? trainer->op_schema_size : sizeof *m->schemas;
    tctl_arena *arena = m->r->ctx.arena;
    m->schemas = tctl_arena_take_array(arena, n ? n : 1, sizeof *m->schemas);
    m->names = tctl_arena_take_array(arena, n ? n : 1, sizeof *m->names);
    if (!m->schemas || !m->names)
        return tctl_reader_no_memory(&m->r->ctx, n * sizeof *m->schemas);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&m->schemas[i], (const char *)trainer->ops + (size_t)i * trainer->op_schema_size, size);
        m->names[i] = m->schemas[i].op;
    }
    m->n_schemas = n;
    return TCTL_OK;
}

static const tctl_op_schema *find_schema(const model_reader *m, const char *op)
{
    for (uint32_t i = 0; i < m->n_schemas; i++) {
        if (strcmp(m->schemas[i].op, op) == 0)
            return &m->schemas[i];
    }
    return NULL;
}

/* The scalar that names the operator: the item itself or the value of `op`. NULL after an error. */
static const tctl_yaml_node *op_node(const model_reader *m, const tctl_yaml_node *item, const char *where)
{
    const tctl_yaml_node *op = item->kind == TCTL_YAML_MAPPING ? tctl_yaml_get(item, "op") : item;
    if (item->broken || (op && op->broken))
        return NULL;
    if (op && op->kind == TCTL_YAML_SCALAR && op->length > 0)
        return op;
    tctl_error *err = tctl_reader_error(&m->r->ctx);
    if (op)
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(op->loc), "%s must be {op: NAME, ...}, got %s", where,
                     op->kind == TCTL_YAML_SCALAR ? "nothing" : tctl_yaml_kind(op));
    else
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(item->loc), "%s needs the key 'op'", where);
    tctl_hint_words(err, "operators are", m->names, m->n_schemas);
    return NULL;
}

/* Returns the operator that was probably meant, or NULL. */
static const char *refuse_op(const model_reader *m, const tctl_yaml_node *op, const char *where)
{
    tctl_error *err = tctl_reader_error(&m->r->ctx);
    const char *shown = tctl_yaml_show(m->r->ctx.arena, op->text, op->length);
    const char *near = tctl_suggest(op->text, m->names, m->n_schemas);
    tctl_fail_at(err, TCTL_ESPEC, op->loc, "unknown operator '%s'", shown ? shown : "");
    tctl_note(err, "in %s; the trainer is plugin '%s'", where, m->plugin->name);
    if (near)
        tctl_hint(err, "did you mean '%s'?", near);
    else
        tctl_hint_words(err, "operators are", m->names, m->n_schemas);
    return near;
}

/* `name:`, or the operator and how many of its kind there were: "conv2". */
static tctl_status read_name(model_reader *m, const tctl_yaml_node *item, tctl_op_spec *op, tctl_loc loc)
{
    tctl_spec *spec = m->r->spec;
    const tctl_yaml_node *name = tctl_yaml_get(item, "name");
    if (name && tctl_name_check(&m->r->ctx, name, "'name'")) {
        op->name = name->text;
        loc = name->loc;
    } else {
        uint32_t number = 1;
        for (uint32_t i = 0; i < spec->n_ops; i++)
            number += strcmp(spec->ops[i].op, op->op) == 0;
        op->name = tctl_arena_format(m->r->ctx.arena, "%.64s%" PRIu32, op->op, number);
        if (!op->name)
            return tctl_reader_no_memory(&m->r->ctx, strlen(op->op));
    }
    m->locs[spec->n_ops] = loc;
    bool is_input = strcmp(op->name, "input") == 0;
    for (uint32_t i = 0; i < spec->n_ops || is_input; i++) {
        if (!is_input && strcmp(spec->ops[i].name, op->name) != 0)
            continue;
        tctl_error *err = tctl_reader_error(&m->r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, loc, "the name '%s' is taken", op->name);
        if (is_input)
            tctl_note(err, "'input' is the batch itself");
        else
            tctl_note_at(err, m->locs[i], "by this operator");
        tctl_hint(err, "give one of them another name");
        break;
    }
    return TCTL_OK;
}

/* The position of an earlier operator, TCTL_MODEL_INPUT, or -2 after an error. */
static int32_t find_input(const model_reader *m, const tctl_yaml_node *node, const char *where)
{
    enum { NOT_FOUND = -2, MAX_NAMES = 64 };
    const tctl_spec *spec = m->r->spec;
    const char *names[MAX_NAMES] = {"input"};
    size_t n = 1;
    if (node->broken)
        return NOT_FOUND;
    if (node->kind != TCTL_YAML_SCALAR) {
        tctl_fail_at(tctl_reader_error(&m->r->ctx), TCTL_ESPEC, tctl_loc_start(node->loc),
                     "'from' must be a name or a list of names, got %s", tctl_yaml_kind(node));
        return NOT_FOUND;
    }
    if (strcmp(node->text, "input") == 0)
        return TCTL_MODEL_INPUT;
    for (uint32_t i = spec->n_ops; i-- > 0;) {
        if (strcmp(spec->ops[i].name, node->text) == 0)
            return (int32_t)i;
        if (n < MAX_NAMES)
            names[n++] = spec->ops[i].name;
    }
    tctl_error *err = tctl_reader_error(&m->r->ctx);
    const char *shown = tctl_yaml_show(m->r->ctx.arena, node->text, node->length);
    const char *near = tctl_suggest(node->text, names, n);
    tctl_fail_at(err, TCTL_ESPEC, node->loc,
                 "'from' names '%s', but no operator before this one is called so", shown ? shown : "");
    tctl_note(err, "in %s", where);
    if (near)
        tctl_hint(err, "did you mean '%s'?", near);
    else
        tctl_hint_words(err, "the nearest before it are", names + 1, n - 1 < 8 ? n - 1 : 8);
    return NOT_FOUND;
}

static tctl_status read_inputs(const model_reader *m, const tctl_yaml_node *item,
                               const tctl_op_schema *schema, const char *where, tctl_op_spec *op)
{
    const tctl_yaml_node *from = tctl_yaml_get(item, "from");
    bool list = from && from->kind == TCTL_YAML_SEQUENCE;
    size_t n = list ? from->n : 1;
    uint32_t most = schema->max_inputs < TCTL_NODE_MAX_INPUTS ? schema->max_inputs : TCTL_NODE_MAX_INPUTS;
    if (n < schema->min_inputs || n > most) {
        tctl_error *err = tctl_reader_error(&m->r->ctx);
        tctl_loc loc = tctl_loc_start(from ? from->loc : item->loc);
        if (schema->min_inputs == most)
            tctl_fail_at(err, TCTL_ESPEC, loc, "operator '%s' reads %" PRIu32 " outputs, got %zu", schema->op,
                         most, n);
        else
            tctl_fail_at(err, TCTL_ESPEC, loc,
                         "operator '%s' reads %" PRIu32 " to %" PRIu32 " outputs, got %zu", schema->op,
                         schema->min_inputs, most, n);
        tctl_note(err, "in %s", where);
        tctl_hint(err, "from: [%s] names the operators it reads", most > 1 ? "conv1, relu2" : "conv1");
        return TCTL_OK;
    }
    op->n_inputs = (uint32_t)n;
    if (!from) {
        op->inputs[0] =
            (int32_t)m->r->spec->n_ops - 1; /* the first one reads TCTL_MODEL_INPUT, which is -1 */
        return TCTL_OK;
    }
    for (size_t i = 0; i < n; i++)
        op->inputs[i] = find_input(m, list ? from->items[i] : from, where);
    return TCTL_OK;
}

static tctl_status read_op(model_reader *m, const tctl_yaml_node *item, size_t position)
{
    static const char *const extra[] = {"op", "name", "from", NULL};
    const tctl_reader_context *ctx = &m->r->ctx;
    tctl_op_spec *op = &m->r->spec->ops[m->r->spec->n_ops];
    const char *where = tctl_arena_format(ctx->arena, "model[%zu]", position);
    if (!where)
        return tctl_reader_no_memory(ctx, 16);
    const tctl_yaml_node *node = op_node(m, item, where);
    const tctl_op_schema *schema = node ? find_schema(m, node->text) : NULL;
    const char *meant = node && !schema ? refuse_op(m, node, where) : NULL;
    /* Later operators may read this one by the name that it would have: one mistake, one message. */
    op->op = meant ? meant : node ? node->text : "?";
    tctl_status status = read_name(m, item, op, node ? node->loc : item->loc);
    if (schema) {
        const tctl_yaml_node nothing = {.kind = TCTL_YAML_MAPPING, .loc = item->loc};
        const char *what = tctl_arena_format(ctx->arena, "operator '%s'", schema->op);
        if (!what)
            return tctl_reader_no_memory(ctx, strlen(schema->op));
        op->op = schema->op;
        status = status ? status : read_inputs(m, item, schema, where, op);
        if (!status)
            status =
                tctl_config_read(ctx, item->kind == TCTL_YAML_MAPPING ? item : &nothing, schema->options,
                                 schema->n_options, m->plugin->option_size, extra, what, where, &op->config);
    }
    m->r->spec->n_ops++;
    return status;
}

tctl_status tctl_spec_read_model(tctl_spec_reader *r)
{
    const tctl_yaml_node *model = tctl_yaml_get(r->root, "model");
    const tctl_use *use = r->spec->trainer;
    if (!model || model->broken || !use || !use->plugin)
        return TCTL_OK;
    if (model->kind != TCTL_YAML_SEQUENCE || model->n == 0 || model->n > TCTL_MAX_OPS) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(model->loc),
                     "'model' must be a list of 1 to %d operators", TCTL_MAX_OPS);
        tctl_hint(err, "each is a line like '- {op: conv, out: 32, kernel: 3}'");
        return TCTL_OK;
    }
    model_reader m = {.r = r, .plugin = use->plugin};
    m.locs = tctl_arena_take_array(r->ctx.arena, model->n, sizeof *m.locs);
    r->spec->ops = tctl_arena_take_array(r->ctx.arena, model->n, sizeof *r->spec->ops);
    if (!m.locs || !r->spec->ops)
        return tctl_reader_no_memory(&r->ctx, model->n * sizeof *r->spec->ops);
    tctl_status status = copy_schemas(&m, tctl_plugin_extension(use->plugin, TCTL_TRAINER_ID));
    for (size_t i = 0; !status && i < model->n; i++)
        status = read_op(&m, model->items[i], i);
    return status;
}
