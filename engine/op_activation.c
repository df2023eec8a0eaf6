/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu, silu, sigmoid, tanh: functions of each element (base/fmath.h). The gradient is dy times the slope: y (1 - y) for
 * sigmoid and 1 - y y for tanh; gelu and silu compute it beside y, where most of the work is the same, and save it in the
 * place of x.
 */
#include "engine/math/math.h"
#include "engine/op.h"

typedef struct plan {
    tctl_map map;
    bool from_y; /* the slope is; else it is saved */
} plan;

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    static const tctl_map maps[] = {[TCTL_OP_GELU] = TCTL_MAP_GELU,
                                    [TCTL_OP_SILU] = TCTL_MAP_SILU,
                                    [TCTL_OP_SIGMOID] = TCTL_MAP_SIGMOID,
                                    [TCTL_OP_TANH] = TCTL_MAP_TANH};
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    p->map = maps[self->op->schema - tctl_network_op_table];
    p->from_y = p->map == TCTL_MAP_SIGMOID || p->map == TCTL_MAP_TANH;
    self->plan = p;
    self->out = self->in[0];
    if (!p->from_y)
        self->saved_bytes = (size_t)tctl_shape_count(&self->out) * site->max_batch * sizeof(float);
    return TCTL_OK;
}

static tctl_status infer_gelu(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    uint32_t form = 0;
    tctl_status st = infer(site, self, err);
    if (!st)
        st = tctl_op_choice(self, "form", &form, err);
    if (!st && form == 1)
        ((plan *)self->plan)->map = TCTL_MAP_GELU_TANH;
    return st;
}

static void evaluate_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const plan *p = call->self->plan;
    tctl_math_of(call->simd)->map[p->map](last - first, call->self->x[0] + first, call->self->y + first);
}

static void evaluate(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, evaluate_range);
}

static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const plan *p = call->self->plan;
    float *slope = call->self->saved;
    tctl_math_of(call->simd)
        ->both[p->map](last - first, call->self->x[0] + first, call->self->y + first, slope + first);
}

static void forward(const tctl_op_call *call)
{
    const bool from_y = ((const plan *)call->self->plan)->from_y;
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN,
                   from_y ? evaluate_range : forward_range);
}

static void multiply(int64_t n, const float *slope, const float *dy, float *dx, bool add)
{
    if (add) {
        for (int64_t i = 0; i < n; i++)
            dx[i] += dy[i] * slope[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * slope[i];
    }
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const float *dy = self->dy + first, *saved = self->saved;
    float *dx = self->dx[0] + first; /* may be dy */
    if (p->from_y)
        tctl_math_of(call->simd)
            ->slope_from_y[p->map](last - first, self->y + first, dy, dx, self->add_dx[0]);
    else
        multiply(last - first, saved + first, dy, dx, self->add_dx[0]);
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_gelu = {
    .schema = &tctl_network_op_table[TCTL_OP_GELU],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer_gelu,
    .forward = forward,
    .backward = backward,
    .evaluate = evaluate,
};

const tctl_op tctl_op_silu = {
    .schema = &tctl_network_op_table[TCTL_OP_SILU],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .evaluate = evaluate,
};

const tctl_op tctl_op_sigmoid = {
    .schema = &tctl_network_op_table[TCTL_OP_SIGMOID],
    .flags = TCTL_OP_KEEPS_OUTPUT | TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

const tctl_op tctl_op_tanh = {
    .schema = &tctl_network_op_table[TCTL_OP_TANH],
    .flags = TCTL_OP_KEEPS_OUTPUT | TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
