/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of the naive reference, part of reference_body.h: sequences, activations, and the other pools. */

static bool NAME(is_activation)(const toy_op *o)
{
    return strcmp(o->op, "gelu") == 0 || strcmp(o->op, "silu") == 0 || strcmp(o->op, "sigmoid") == 0 ||
           strcmp(o->op, "tanh") == 0;
}

static bool NAME(is_more)(const toy_op *o)
{
    static const char *const names[] = {"scale",     "avgpool",  "concat",    "layernorm",
                                        "embedding", "position", "attention", "convtranspose"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(o->op, names[i]) == 0)
            return true;
    }
    return NAME(is_activation)(o);
}

/* 16 chains, then neighbours. */
static REAL NAME(row_sum)(const REAL *terms, int64_t n)
{
    REAL lanes[16] = {0};
    for (int64_t j = 0; j < n; j++)
        lanes[j % 16] += terms[j];
    return NAME(join)(lanes, 16);
}

/* ---- layer normalization ------------------------------------------------------------------------------- */

static void NAME(ln_forward)(int64_t rows, const NAME(value) * in, NAME(value) * out, const REAL *scale,
                             const REAL *shift)
{
    const int64_t n = in->c;
    REAL *terms = NAME(array)(n);
    for (int64_t r = 0; r < rows; r++) {
        const REAL *x = in->y + r * n, mean = NAME(row_sum)(x, n) / (REAL)n;
        for (int64_t j = 0; j < n; j++)
            terms[j] = (x[j] - mean) * (x[j] - mean);
        const REAL inv = 1 / SQRT(NAME(row_sum)(terms, n) / (REAL)n + (REAL)1e-5);
        for (int64_t j = 0; j < n; j++) {
            REAL u = (x[j] - mean) * inv;
            out->y[r * n + j] = scale ? u * scale[j] + shift[j] : u;
        }
        out->mean[r] = mean;
        out->inv[r] = inv;
    }
    free(terms);
}

static void NAME(ln_backward)(NAME(net) * net, NAME(value) * in, const NAME(value) * out, const REAL *scale,
                              REAL *dscale, REAL *dshift)
{
    const int64_t n = in->c, rows = net->n * in->h * in->w;
    REAL *g = NAME(array)(n), *gu = NAME(array)(n), *products = NAME(array)(rows * n);
    for (int64_t r = 0; r < rows; r++) {
        const REAL *x = in->y + r * n, *dy = out->dy + r * n, mean = out->mean[r], inv = out->inv[r];
        for (int64_t j = 0; j < n; j++) {
            g[j] = scale ? dy[j] * scale[j] : dy[j];
            gu[j] = g[j] * ((x[j] - mean) * inv);
            products[r * n + j] = dy[j] * ((x[j] - mean) * inv);
        }
        const REAL a = NAME(row_sum)(g, n) / (REAL)n, b = NAME(row_sum)(gu, n) / (REAL)n;
        for (int64_t j = 0; j < n; j++)
            NAME(add_gradient)(in, r * n + j, inv * ((g[j] - a) - ((x[j] - mean) * inv) * b));
    }
    for (int64_t j = 0; scale && j < n; j++) {
        NAME(column)
        plain = {.a = out->dy, .c = j, .channels = n}, product = {.a = products, .c = j, .channels = n};
        dshift[j] = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_plain), &plain);
        dscale[j] = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_plain), &product);
    }
    free(g);
    free(gu);
    free(products);
}

/* ---- embedding ----------------------------------------------------------------------------------------- */

typedef struct NAME(lookup) {
    const int64_t *tokens;
    const REAL *dy;
    int64_t row, c, channels;
} NAME(lookup);

static REAL NAME(chain_lookup)(const void *arg, int64_t first, int64_t last)
{
    const NAME(lookup) *k = arg;
    REAL sum = 0;
    for (int64_t r = first; r < last; r++)
        sum += k->tokens[r] == k->row ? k->dy[r * k->channels + k->c] : 0;
    return sum;
}

/* ---- attention ----------------------------------------------------------------------------------------- */

/* q, k or v of one element: number `which` of one input, or an input of its own. */
static int64_t NAME(part)(const toy_op *o, int64_t features, int which, int64_t position, int64_t c)
{
    return o->from3 ? position * features + c : position * 3 * features + which * features + c;
}

typedef struct NAME(heads) {
    const toy_op *o;
    NAME(value) * in[3];
    int64_t t, features, depth;
    REAL *p, *g; /* [t][t] */
} NAME(heads);

static REAL NAME(of)(const NAME(heads) * h, int which, int64_t s, int64_t i, int64_t c)
{
    return h->in[which]->y[NAME(part)(h->o, h->features, which, s * h->t + i, c)];
}

/* Positions that i's chains go to: masked ones have weight 0. */
static int64_t NAME(end)(const NAME(heads) * h, int64_t i)
{
    int64_t end = (i / 16 + 1) * 16;
    return h->o->causal && end < h->t ? end : h->t;
}

static void NAME(probabilities)(const NAME(heads) * h, int64_t s, int64_t c0)
{
    const REAL scale = (REAL)(1 / sqrt((double)h->depth));
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t live = h->o->causal ? i + 1 : h->t;
        REAL *p = h->p + i * h->t, max = 0;
        for (int64_t j = 0; j < h->t; j++) {
            REAL sum = 0;
            for (int64_t c = c0; c < c0 + h->depth; c++)
                sum = FMA(NAME(of)(h, 0, s, i, c), NAME(of)(h, 1, s, j, c), sum);
            p[j] = sum * scale;
            if (j == 0 || (j < live && p[j] > max))
                max = p[j];
        }
        for (int64_t j = 0; j < h->t; j++)
            p[j] = j < live ? EXP(p[j] - max) : 0;
        const REAL inv = 1 / NAME(row_sum)(p, live);
        for (int64_t j = 0; j < live; j++)
            p[j] *= inv;
    }
}

static NAME(heads) NAME(heads_of)(NAME(net) * net, int i)
{
    const toy_op *o = &net->t->ops[i];
    NAME(heads) h = {.o = o, .features = net->values[i].c, .t = net->values[i].h};
    h.in[0] = NAME(source)(net, o->from, i);
    h.in[1] = o->from3 ? NAME(source)(net, o->from2, i) : h.in[0];
    h.in[2] = o->from3 ? NAME(source)(net, o->from3, i) : h.in[0];
    h.depth = h.features / (o->heads ? o->heads : 1);
    h.p = NAME(array)(h.t * h.t);
    h.g = NAME(array)(h.t * h.t);
    return h;
}

static void NAME(attention_forward)(NAME(net) * net, int number)
{
    NAME(heads) h = NAME(heads_of)(net, number);
    for (int64_t s = 0; s < net->n; s++) {
        for (int64_t c0 = 0; c0 < h.features; c0 += h.depth) {
            NAME(probabilities)(&h, s, c0);
            for (int64_t k = 0; k < h.t * h.depth; k++) {
                const int64_t i = k / h.depth, c = c0 + k % h.depth;
                REAL sum = 0;
                for (int64_t j = 0; j < NAME(end)(&h, i); j++)
                    sum = FMA(h.p[i * h.t + j], NAME(of)(&h, 2, s, j, c), sum);
                net->values[number].y[(s * h.t + i) * h.features + c] = sum;
            }
        }
    }
    free(h.p);
    free(h.g);
}

static void NAME(score_gradients)(const NAME(heads) * h, const REAL *dy, int64_t s, int64_t c0)
{
    const REAL scale = (REAL)(1 / sqrt((double)h->depth));
    REAL *terms = NAME(array)(h->t);
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t live = h->o->causal ? i + 1 : h->t;
        const REAL *p = h->p + i * h->t;
        REAL *g = h->g + i * h->t;
        for (int64_t j = 0; j < h->t; j++) {
            g[j] = 0;
            for (int64_t c = c0; c < c0 + h->depth; c++)
                g[j] = FMA(dy[(s * h->t + i) * h->features + c], NAME(of)(h, 2, s, j, c), g[j]);
            terms[j] = p[j] * g[j];
        }
        const REAL mean = NAME(row_sum)(terms, live);
        for (int64_t j = 0; j < h->t; j++)
            g[j] = j < live ? (p[j] * (g[j] - mean)) * scale : 0;
    }
    free(terms);
}

/* which: 0 dq, 1 dk, 2 dv. The three are formed one after the other, so a tensor that is read twice gets its sums in
 * that order. */
static void NAME(attention_part)(const NAME(heads) * h, int which, const REAL *dy, int64_t s, int64_t c0)
{
    for (int64_t k = 0; k < h->t * h->depth; k++) {
        const int64_t at = k / h->depth, c = c0 + k % h->depth;
        REAL sum = 0;
        for (int64_t j = 0; which == 0 && j < NAME(end)(h, at); j++)
            sum = FMA(h->g[at * h->t + j], NAME(of)(h, 1, s, j, c), sum);
        for (int64_t i = h->o->causal ? at / 16 * 16 : 0; which > 0 && i < h->t; i++)
            sum = FMA((which == 1 ? h->g : h->p)[i * h->t + at],
                      which == 1 ? NAME(of)(h, 0, s, i, c) : dy[(s * h->t + i) * h->features + c], sum);
        NAME(add_gradient)(h->in[which], NAME(part)(h->o, h->features, which, s * h->t + at, c), sum);
    }
}

static void NAME(attention_backward)(NAME(net) * net, int number)
{
    NAME(heads) h = NAME(heads_of)(net, number);
    const REAL *dy = net->values[number].dy;
    for (int which = 0; which < 3; which++) {
        for (int64_t s = 0; s < net->n; s++) {
            for (int64_t c0 = 0; c0 < h.features; c0 += h.depth) {
                NAME(probabilities)(&h, s, c0);
                NAME(score_gradients)(&h, dy, s, c0);
                NAME(attention_part)(&h, which, dy, s, c0);
            }
        }
        if (h.o->from3)
            h.in[which]->written = true;
    }
    h.in[0]->written = true;
    free(h.p);
    free(h.g);
}

/* ---- transposed convolution ---------------------------------------------------------------------------- */

static void NAME(transpose_forward)(const toy_op *o, int64_t n, const NAME(value) * in, NAME(value) * out,
                                    const REAL *w, const REAL *bias)
{
    const int64_t stride = o->stride ? o->stride : 1;
    for (int64_t p = 0; p < n * NAME(count)(out); p++) {
        int64_t ch = p % out->c, x = p / out->c % out->w, y = p / out->c / out->w % out->h;
        REAL sum = bias ? bias[ch] : 0;
        for (int64_t tap = 0; tap < o->kernel * o->kernel; tap++) {
            int64_t iy = y + o->pad - tap / o->kernel, ix = x + o->pad - tap % o->kernel;
            if (iy % stride != 0 || ix % stride != 0)
                continue;
            for (int64_t k = 0; k < in->c; k++)
                sum = FMA(NAME(pixel)(in, in->y, p / NAME(count)(out), iy / stride, ix / stride, k),
                          w[(tap * out->c + ch) * in->c + k], sum);
        }
        out->y[p] = sum;
    }
}

static void NAME(transpose_backward)(const toy_op *o, int64_t n, NAME(value) * in, NAME(value) * out,
                                     const REAL *w, REAL *dw, REAL *db)
{
    /* The convolution from y to x. */
    NAME(value) from = *out, to = *in;
    from.y = out->dy;
    to.dy = in->y;
    NAME(conv) c = NAME(conv_of)(o, &from, &to);
    NAME(conv_dw)(c, n, dw, NULL);
    for (int64_t k = 0; db && k < out->c; k++) {
        NAME(column) column = {.a = out->dy, .c = k, .channels = out->c};
        db[k] = NAME(tree_sum)(n, out->h, out->w, NAME(chain_plain), &column);
    }
    to.y = NAME(array)(n * NAME(count)(in));
    NAME(conv_forward)(&c, n, w, NULL);
    for (int64_t p = 0; p < n * NAME(count)(in); p++)
        NAME(add_gradient)(in, p, to.y[p]);
    free(to.y);
}

/* ---- average of windows -------------------------------------------------------------------------------- */

static int64_t NAME(tap_pixel)(const toy_op *o, const NAME(value) * in, const NAME(value) * out, int64_t p,
                               int64_t tap)
{
    const int64_t stride = o->stride ? o->stride : o->kernel;
    const int64_t s = p / NAME(count)(out), oy = p / out->c / out->w % out->h, ox = p / out->c % out->w;
    return ((s * in->h + oy * stride + tap / o->kernel) * in->w + ox * stride + tap % o->kernel) * in->c +
           p % out->c;
}

static void NAME(avgpool_forward)(const toy_op *o, int64_t n, const NAME(value) * in, NAME(value) * out)
{
    for (int64_t p = 0; p < n * NAME(count)(out); p++) {
        REAL sum = 0;
        for (int64_t tap = 0; tap < o->kernel * o->kernel; tap++)
            sum += in->y[NAME(tap_pixel)(o, in, out, p, tap)];
        out->y[p] = sum / (REAL)(o->kernel * o->kernel);
    }
}

static void NAME(avgpool_backward)(const toy_op *o, int64_t n, NAME(value) * in, const NAME(value) * out)
{
    if (!in->written)
        memset(in->dy, 0, (size_t)(n * NAME(count)(in)) * sizeof(REAL));
    for (int64_t p = 0; p < n * NAME(count)(out); p++) {
        for (int64_t tap = 0; tap < o->kernel * o->kernel; tap++)
            in->dy[NAME(tap_pixel)(o, in, out, p, tap)] += out->dy[p] / (REAL)(o->kernel * o->kernel);
    }
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static void NAME(concat)(NAME(net) * net, int i, bool backward)
{
    const toy_op *o = &net->t->ops[i];
    NAME(value) *v = &net->values[i];
    const int from[] = {o->from, o->from2, o->from3};
    int64_t at = 0;
    for (int k = 0; k < (o->from3 ? 3 : 2); k++) {
        NAME(value) *in = NAME(source)(net, from[k], i);
        for (int64_t p = 0; p < net->n * NAME(count)(in); p++) {
            const int64_t q = p / in->c * v->c + at + p % in->c;
            if (backward)
                NAME(add_gradient)(in, p, v->dy[q]);
            else
                v->y[q] = in->y[p];
        }
        at += in->c;
        in->written |= backward;
    }
}

static int NAME(n_parameters)(const toy_op *o)
{
    if (strcmp(o->op, "layernorm") == 0)
        return o->not_affine ? 0 : 2;
    if (strcmp(o->op, "convtranspose") == 0)
        return o->no_bias ? 1 : 2;
    return strcmp(o->op, "embedding") == 0 || strcmp(o->op, "position") == 0;
}

static void NAME(forward_more)(NAME(net) * net, int i, int *param)
{
    const toy_op *o = &net->t->ops[i];
    const NAME(value) *in = NAME(source)(net, o->from, i);
    NAME(value) *v = &net->values[i];
    REAL *const *w = net->param + *param;
    const int64_t total = net->n * NAME(count)(v);
    *param += NAME(n_parameters)(o);
    if (strcmp(o->op, "avgpool") == 0)
        NAME(avgpool_forward)(o, net->n, in, v);
    else if (strcmp(o->op, "concat") == 0)
        NAME(concat)(net, i, false);
    else if (strcmp(o->op, "layernorm") == 0)
        NAME(ln_forward)
    (net->n * in->h * in->w, in, v, o->not_affine ? NULL : w[0], o->not_affine ? NULL : w[1]);
    else if (strcmp(o->op, "attention") == 0) NAME(attention_forward)(net, i);
    else if (strcmp(o->op, "convtranspose") == 0)
        NAME(transpose_forward)(o, net->n, in, v, w[0], o->no_bias ? NULL : w[1]);
    for (int64_t p = 0; p < total; p++) {
        if (NAME(is_activation)(o))
            v->y[p] = NAME(activation)(o, in->y[p]);
        else if (strcmp(o->op, "scale") == 0)
            v->y[p] = in->y[p] * (REAL)o->by;
        else if (strcmp(o->op, "position") == 0)
            v->y[p] = in->y[p] + w[0][p % NAME(count)(v)];
        else if (strcmp(o->op, "embedding") == 0)
            v->y[p] = w[0][((const int64_t *)net->batch.tokens)[p / v->c] * v->c + p % v->c];
    }
}

static void NAME(table_gradient)(NAME(net) * net, const toy_op *o, const NAME(value) * v, REAL *grad)
{
    for (int64_t k = 0; strcmp(o->op, "embedding") == 0 && k < o->vocabulary * v->c; k++) {
        const NAME(lookup) lookup = {net->batch.tokens, v->dy, k / v->c, k % v->c, v->c};
        grad[k] = NAME(tree_sum)(net->n, v->h, 1, NAME(chain_lookup), &lookup);
    }
    for (int64_t k = 0; strcmp(o->op, "position") == 0 && k < NAME(count)(v); k++) {
        const NAME(column) column = {.a = v->dy, .c = k, .channels = NAME(count)(v)};
        grad[k] = NAME(tree_sum)(net->n, 1, 1, NAME(chain_plain), &column);
    }
}

static void NAME(backward_more)(NAME(net) * net, int i, int *param)
{
    const toy_op *o = &net->t->ops[i];
    NAME(value) *in = NAME(source)(net, o->from, i), *v = &net->values[i];
    *param -= NAME(n_parameters)(o);
    REAL *const *w = net->param + *param, *const *dw = net->grad + *param;
    if (NAME(n_parameters)(o) == 1)
        NAME(table_gradient)(net, o, v, dw[0]);
    if (strcmp(o->op, "avgpool") == 0)
        NAME(avgpool_backward)(o, net->n, in, v);
    else if (strcmp(o->op, "concat") == 0)
        NAME(concat)(net, i, true);
    else if (strcmp(o->op, "layernorm") == 0)
        NAME(ln_backward)
    (net, in, v, o->not_affine ? NULL : w[0], o->not_affine ? NULL : dw[0], o->not_affine ? NULL : dw[1]);
    else if (strcmp(o->op, "attention") == 0) NAME(attention_backward)(net, i);
    else if (strcmp(o->op, "convtranspose") == 0)
        NAME(transpose_backward)(o, net->n, in, v, w[0], dw[0], o->no_bias ? NULL : dw[1]);
    for (int64_t p = 0; p < net->n * NAME(count)(v); p++) {
        if (NAME(is_activation)(o))
            NAME(add_gradient)(in, p, v->dy[p] * NAME(slope)(o, in->y[p], v->y[p]));
        else if (strcmp(o->op, "scale") == 0)
            NAME(add_gradient)(in, p, v->dy[p] * (REAL)o->by);
        else if (strcmp(o->op, "position") == 0)
            NAME(add_gradient)(in, p, v->dy[p]);
    }
    in->written = true;
}
