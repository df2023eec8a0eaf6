/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the model's graph to operations with shapes and parameters. Everything that a user's model can have wrong is
 * found here, and named with the operator that is to blame.
 */
#include "engine/build.h"

#include "base/buf.h"

/* Elements of one tensor over the largest batch: what 32-bit indices of any backend can address. */
enum { MAX_ELEMENTS = INT32_MAX };

/* ---- the input ----------------------------------------------------------------------------------------- */

static bool is_tokens(const tctl_field *f)
{
    return f->rank == 1 && (f->dtype == TCTL_U8 || f->dtype == TCTL_I32 || f->dtype == TCTL_I64);
}

static tctl_status shape_of_field(const tctl_field *f, tctl_shape *ret, tctl_error *err)
{
    if (is_tokens(f)) {
        *ret = (tctl_shape){2, f->dims[0], 1, 1};
        return TCTL_OK;
    }
    if (f->dtype != TCTL_F32)
        return tctl_fail(err, TCTL_EINVAL,
                         "the network's input '%s' must be f32, or token numbers [positions]", f->name);
    switch (f->rank) {
    case 1:
        *ret = (tctl_shape){1, 1, 1, f->dims[0]};
        return TCTL_OK;
    case 2: /* an image of one channel */
        *ret = (tctl_shape){3, f->dims[0], f->dims[1], 1};
        return TCTL_OK;
    case 3:
        *ret = (tctl_shape){3, f->dims[0], f->dims[1], f->dims[2]};
        return TCTL_OK;
    default:
        return tctl_fail(
            err, TCTL_EINVAL,
            "the network's input '%s' has rank %d; it must be [height, width, channels] or [features]",
            f->name, f->rank);
    }
}

/* Dimensions are positive, and their product with the batch is at most MAX_ELEMENTS. */
static bool fits(const tctl_shape *s, uint32_t batch)
{
    int64_t left = MAX_ELEMENTS / batch;
    const int64_t dims[] = {s->height, s->width, s->channels};
    for (int i = 0; i < 3; i++) {
        if (dims[i] < 1 || dims[i] > left)
            return false;
        left /= dims[i];
    }
    return true;
}

/* ---- one operation ------------------------------------------------------------------------------------- */

static tctl_status fail_unknown(const tctl_node *node, tctl_error *err)
{
    tctl_buf names = TCTL_BUF_INIT;
    for (uint32_t i = 0; i < TCTL_NETWORK_OPS; i++)
        tctl_buf_add_format(&names, i ? ", %s" : "%s", tctl_network_op_table[i].op);
    const char *text = tctl_buf_text(&names);
    tctl_status st = tctl_fail(err, TCTL_ESPEC, "operator '%s': there is no operator '%s'; there are: %s",
                               node->name, node->op, text ? text : "");
    tctl_buf_release(&names);
    return st;
}

/* Inputs are operations that compute: an alias stands for what it shows, under its own shape. */
static tctl_status connect(tctl_network *net, const tctl_shape *input, tctl_operation *self, uint32_t index,
                           tctl_error *err)
{
    const tctl_node *node = self->node;
    const tctl_op_schema *schema = self->op->schema;
    if (node->n_inputs < schema->min_inputs || node->n_inputs > schema->max_inputs)
        return tctl_op_fail(self, err, "has %u inputs; it takes %u to %u", node->n_inputs, schema->min_inputs,
                            schema->max_inputs);
    self->n_inputs = node->n_inputs;
    for (uint32_t j = 0; j < node->n_inputs; j++) {
        int32_t from = node->inputs[j];
        if (from < TCTL_MODEL_INPUT || from >= (int32_t)index)
            return tctl_op_fail(self, err, "input %d does not stand before it", from);
        self->in[j] = from < 0 ? *input : net->operations[from].out;
        if ((from < 0 && net->token_dtype) != ((self->flags & TCTL_OP_TAKES_TOKENS) != 0))
            return tctl_op_fail(self, err,
                                self->flags & TCTL_OP_TAKES_TOKENS
                                    ? "needs token numbers: integers of the data, one per position"
                                    : "its input is token numbers; an 'embedding' turns them into features");
        while (from >= 0 && (net->operations[from].flags & TCTL_OP_ALIAS))
            from = net->operations[from].sources[0];
        self->sources[j] = from;
    }
    return TCTL_OK;
}

static tctl_status build_operation(tctl_network *net, const tctl_network_request *request,
                                   const tctl_shape *input, uint32_t index, tctl_error *err)
{
    tctl_operation *self = &net->operations[index];
    char text[TCTL_OP_TEXT];
    self->node = request->models->node(request->model, index);
    self->name = tctl_arena_copy(net->arena, self->node->name, strlen(self->node->name));
    self->op = tctl_op_find(self->node->op);
    if (!self->op)
        return fail_unknown(self->node, err);
    if (!self->name)
        return tctl_op_fail_memory(self, err);
    self->flags = self->op->flags;
    const tctl_op_site site = {net->arena, net->simd, net->max_batch, net->seed};
    tctl_status st = connect(net, input, self, index, err);
    if (!st)
        st = self->op->infer(&site, self, err);
    if (self->vocabulary && (net->vocabulary == 0 || self->vocabulary < net->vocabulary))
        net->vocabulary = self->vocabulary;
    if (!st && !fits(&self->out, net->max_batch))
        st = tctl_op_fail(self, err, "output %s times batch %u has more than 2^31 elements",
                          tctl_shape_text(&self->out, text), net->max_batch);
    return st;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Every output is read, the last one by the loss. */
static tctl_status check_readers(const tctl_network *net, const tctl_network_request *request,
                                 tctl_error *err)
{
    for (uint32_t i = 0; i + 1 < net->n_operations; i++) {
        bool read = false;
        for (uint32_t k = i + 1; k < net->n_operations; k++) {
            const tctl_node *node = request->models->node(request->model, k);
            for (uint32_t j = 0; j < node->n_inputs; j++)
                read |= node->inputs[j] == (int32_t)i;
        }
        if (!read)
            return tctl_op_fail(&net->operations[i], err, "nothing reads its output");
    }
    return TCTL_OK;
}

/* A sequence has a class at each position; anything else is one class. */
static tctl_status check_classes(tctl_network *net, const tctl_network_request *request, tctl_error *err)
{
    const tctl_operation *last = &net->operations[net->n_operations - 1];
    const bool sequence = last->out.rank == 2;
    if (sequence && last->out.height != (request->n_labels ? request->n_labels : 1))
        return tctl_op_fail(
            last, err, "the last operator has outputs at %lld positions; the data has %u labels a sample%s",
            (long long)last->out.height, request->n_labels ? request->n_labels : 1,
            request->n_labels ? "" : " (globalavgpool makes one of all positions)");
    if (!sequence && request->n_labels > 1)
        return tctl_op_fail(last, err,
                            "the data has %u labels a sample; the last operator's output is no sequence",
                            request->n_labels);
    net->loss.labels = sequence ? last->out.height : 1;
    net->loss.classes = tctl_shape_count(&last->out) / net->loss.labels;
    net->loss.math = tctl_math_of(net->simd);
    net->loss.smoothing = request->label_smoothing;
    if (request->n_classes && net->loss.classes != (int64_t)request->n_classes)
        return tctl_op_fail(last, err, "the last operator has %lld outputs; the data has %u classes",
                            (long long)net->loss.classes, request->n_classes);
    return TCTL_OK;
}

static void find_gradients(tctl_network *net)
{
    for (uint32_t i = 0; i < net->n_operations; i++) {
        const tctl_operation *self = &net->operations[i];
        bool needed = self->n_parameters > 0;
        for (uint32_t j = 0; j < self->n_inputs; j++)
            needed |= self->sources[j] >= 0 && net->computes_gradient[self->sources[j]];
        net->computes_gradient[i] = needed;
    }
}

tctl_status tctl_build_operations(tctl_network *net, const tctl_network_request *request, tctl_error *err)
{
    tctl_shape input = {0};
    tctl_status st = shape_of_field(request->input, &input, err);
    if (st)
        return st;
    net->token_dtype = is_tokens(request->input) ? request->input->dtype : 0;
    net->positions = input.height;
    if (!fits(&input, net->max_batch))
        return tctl_fail(err, TCTL_EINVAL, "the input times batch %u has more than 2^31 elements",
                         net->max_batch);
    net->n_operations = request->models->n_nodes(request->model);
    if (net->n_operations == 0)
        return tctl_fail(err, TCTL_ESPEC, "the model has no operators");
    net->operations = tctl_arena_take_array(net->arena, net->n_operations, sizeof *net->operations);
    net->computes_gradient = tctl_arena_take_array(net->arena, net->n_operations, sizeof(bool));
    if (!net->operations || !net->computes_gradient)
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for %u operators", net->n_operations);
    for (uint32_t i = 0; i < net->n_operations && !st; i++)
        st = build_operation(net, request, &input, i, err);
    if (!st)
        st = check_readers(net, request, err);
    if (!st)
        st = check_classes(net, request, err);
    if (!st)
        find_gradients(net);
    return st;
}
