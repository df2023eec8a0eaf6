/* SPDX-License-Identifier: Apache-2.0 */
/* See strips.h. Blocks of segments, then panels, then outputs: a panel stays in the first-level cache while a band is
 * read. Blocks decide the time only. */
#include "engine/strips.h"

enum {
    BAND_FLOATS = 1 << 16, /* half of a second-level cache */
    K_BLOCK = 320,         /* terms whose panel fits a first-level cache */
    MIN_SEGMENT = 64,      /* no shorter pieces of a tap */
    NARROW = 8,            /* outputs of a row that make no good tiles */
    SLICE_FLOATS = 76800,  /* of several images, read by a block of terms: half of a second-level cache */
    IMAGES_FLOATS = 1 << 19,
    CHUNKS_PER_THREAD = 2 /* at least, where a batch is small */
};

static int64_t min_int(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static void choose_rows(tctl_strips *s)
{
    const int64_t row = tctl_strips_band_row(s);
    int64_t most = (BAND_FLOATS / row - s->reach) / s->stride + 1;
    most = most < 1 ? 1 : min_int(most, s->out_height);
    s->rows = divide_up(s->out_height, divide_up(s->out_height, most));
    if (s->out_width >= NARROW)
        return;
    const int64_t slice = s->out_height * s->out_width * (int64_t)s->k;
    const int64_t image = (s->height + 2 * s->pad) * row;
    s->images = min_int(SLICE_FLOATS / slice, IMAGES_FLOATS / image);
    if (s->images < TCTL_STRIPS_MIN_BATCH)
        s->images = s->out_width < TCTL_STRIPS_MIN_WIDTH ? TCTL_STRIPS_MIN_BATCH : 0;
}

/* The pieces of a tap of many channels: equal, so that each has its panel in the first-level cache. */
static int64_t pieces_of(int64_t channels)
{
    int64_t pieces = divide_up(channels, K_BLOCK);
    while (channels % pieces != 0)
        pieces++;
    return channels / pieces < MIN_SEGMENT ? 1 : pieces;
}

bool tctl_strips_forward(tctl_arena *arena, const tctl_window *w, int64_t channels, int64_t groups,
                         tctl_strips *ret)
{
    tctl_strips s = {.height = w->height,
                     .width = w->width,
                     .channels = channels,
                     .groups = groups,
                     .pad = w->pad,
                     .out_height = w->out_height,
                     .out_width = w->out_width,
                     .stride = w->stride,
                     .reach = w->dilation * (w->kernel - 1) + 1};
    const bool runs = w->dilation == 1 && w->kernel * channels <= K_BLOCK;
    const int64_t pieces = runs ? 1 : pieces_of(channels), per_row = runs ? 1 : w->kernel * pieces;
    s.k = (size_t)(runs ? w->kernel * channels : channels / pieces);
    s.n_segments = (size_t)(w->kernel * per_row);
    ptrdiff_t *segments = tctl_arena_take_array(arena, s.n_segments, sizeof *segments);
    if (!segments)
        return false;
    for (int64_t i = 0; i < w->kernel * per_row; i++)
        segments[i] =
            (ptrdiff_t)(i / per_row * w->dilation) * tctl_strips_band_row(&s) +
            (ptrdiff_t)(i % per_row / pieces * w->dilation * channels + i % pieces * (channels / pieces));
    s.segments = segments;
    choose_rows(&s);
    *ret = s;
    return true;
}

bool tctl_strips_input_gradient(tctl_arena *arena, const tctl_window *w, int64_t channels, int64_t groups,
                                tctl_strips *ret)
{
    const int64_t reach = w->dilation * (w->kernel - 1), pieces = pieces_of(channels);
    tctl_strips s = {.height = w->out_height,
                     .width = w->out_width,
                     .channels = channels,
                     .groups = groups,
                     .pad = reach - w->pad,
                     .out_height = w->height,
                     .out_width = w->width,
                     .stride = 1,
                     .reach = reach + 1,
                     .k = (size_t)(channels / pieces),
                     .n_segments = (size_t)(w->kernel * w->kernel * pieces)};
    ptrdiff_t *segments = tctl_arena_take_array(arena, s.n_segments, sizeof *segments);
    if (!segments)
        return false;
    for (int64_t i = 0; i < (int64_t)s.n_segments; i++) { /* later taps read earlier outputs */
        const int64_t tap = i / pieces;
        segments[i] = (ptrdiff_t)(reach - tap / w->kernel * w->dilation) * tctl_strips_band_row(&s) +
                      (ptrdiff_t)((reach - tap % w->kernel * w->dilation) * channels +
                                  i % pieces * (channels / pieces));
    }
    s.segments = segments;
    choose_rows(&s);
    *ret = s;
    return true;
}

/* ---- bands --------------------------------------------------------------------------------------------- */

static bool lies_there(const tctl_strips *s)
{
    return s->pad == 0 && s->groups == 1;
}

size_t tctl_strips_band_floats(const tctl_strips *s, int64_t rows)
{
    return lies_there(s) ? 0 : (size_t)(((rows - 1) * s->stride + s->reach) * tctl_strips_band_row(s));
}

/* One whole image. */
static int64_t image_floats(const tctl_strips *s)
{
    return (s->height + 2 * s->pad) * tctl_strips_band_row(s);
}

size_t tctl_strips_scratch_floats(const tctl_strips *s)
{
    const size_t rows = tctl_strips_band_floats(s, s->rows);
    const size_t images = lies_there(s) ? 0 : (size_t)(s->images * image_floats(s));
    return rows > images ? rows : images;
}

const float *tctl_strips_band(const tctl_strips *s, const float *image, int64_t group, int64_t row0,
                              int64_t rows, float *memory)
{
    const int64_t first = row0 * s->stride - s->pad;
    if (lies_there(s))
        return image + first * tctl_strips_band_row(s);
    const tctl_channels channels = {s->groups * s->channels, group * s->channels, s->channels};
    tctl_patches_band(image, s->height, s->width, &channels, s->pad, first, (rows - 1) * s->stride + s->reach,
                      memory);
    return memory;
}

const float *tctl_strips_band_of(const tctl_strips *s, const tctl_simd *simd, const tctl_normalization *a,
                                 const float *image, int64_t row0, int64_t rows, float *memory)
{
    const int64_t first = row0 * s->stride - s->pad, size = s->width * s->channels,
                  border = s->pad * s->channels;
    const int64_t end = first + (rows - 1) * s->stride + s->reach;
    float *dst = memory;
    for (int64_t y = first; y < end; y++, dst += size + 2 * border) {
        if (y < 0 || y >= s->height) {
            memset(dst, 0, (size_t)(size + 2 * border) * sizeof *dst);
            continue;
        }
        memset(dst, 0, (size_t)border * sizeof *dst);
        tctl_norm_of(simd)->apply(a, s->width, image + y * size, dst + border);
        memset(dst + border + size, 0, (size_t)border * sizeof *dst);
    }
    return memory;
}

/* ---- the product --------------------------------------------------------------------------------------- */

typedef struct bands {
    const tctl_strips_job *job;
    int64_t rows, parts; /* of an image */
    int64_t images;      /* or so many images */
} bands;

/* Where a block of segments of one panel of a group is multiplied. */
typedef struct block {
    int64_t group;
    size_t segment0, n_segments, panel;
} block;

/* What is multiplied: from one band, some rows of outputs; or, from the bands of `images` images, `image` floats apart,
 * all their outputs. */
typedef struct area {
    const float *band;
    float *out; /* of group 0 */
    int64_t rows, images, image;
} area;

static tctl_gemm_strip_call strip_of(const tctl_strips_job *job, const block *at, const area *a)
{
    const tctl_strips *s = job->strips;
    const tctl_simd *simd = job->call->simd;
    const size_t n = (size_t)job->columns, columns = tctl_gemm_panel_columns(simd), j = at->panel * columns;
    const size_t first = (size_t)at->group * n + j, row = (size_t)s->groups * n;
    const size_t terms = s->n_segments * s->k;
    tctl_gemm_strip_call strip = {
        .simd = simd,
        .m = (size_t)s->out_width,
        .n = n - j < columns ? n - j : columns,
        .k = s->k,
        .segments = s->segments + at->segment0,
        .n_segments = at->n_segments,
        .a = {a->band, (ptrdiff_t)(s->stride * s->channels), 1},
        .b_row = tctl_gemm_panel_stride(simd, n, at->panel),
        .c = a->out + first,
        .c_row = row,
        .start = at->segment0 ? TCTL_GEMM_C : job->start,
        .bias = job->bias ? job->bias + first : NULL,
    };
    strip.b = job->packed + (size_t)at->group * tctl_gemm_packed_floats(simd, terms, n) + j * terms +
              at->segment0 * s->k * strip.b_row;
    return strip;
}

static void multiply_rows(const tctl_strips_job *job, const block *at, const area *a)
{
    const tctl_strips *s = job->strips;
    tctl_gemm_strip_call strip = strip_of(job, at, a);
    for (int64_t y = 0; y < a->rows; y++) {
        tctl_gemm_strip(&strip);
        strip.a.data += s->stride * tctl_strips_band_row(s);
        strip.c += (size_t)s->out_width * strip.c_row;
    }
}

static void multiply_images(const tctl_strips_job *job, const block *at, const area *a)
{
    const tctl_strips *s = job->strips;
    tctl_gemm_strip_call strip = strip_of(job, at, a);
    const size_t position = strip.c_row;
    strip.m = (size_t)a->images;
    strip.a.row = (ptrdiff_t)a->image;
    strip.c_row = (size_t)(s->out_height * s->out_width) * position;
    for (int64_t y = 0; y < s->out_height; y++) {
        strip.a.data = a->band + y * s->stride * tctl_strips_band_row(s);
        for (int64_t x = 0; x < s->out_width; x++) {
            tctl_gemm_strip(&strip);
            strip.a.data += s->stride * s->channels;
            strip.c += position;
        }
    }
}

static void multiply_group(const tctl_strips_job *job, int64_t group, const area *a)
{
    const tctl_strips *s = job->strips;
    const size_t most = s->k < K_BLOCK ? K_BLOCK / s->k : 1;
    for (size_t segment = 0; segment < s->n_segments; segment += most) {
        const size_t n = s->n_segments - segment < most ? s->n_segments - segment : most;
        for (size_t panel = 0; panel < tctl_gemm_panels(job->call->simd, (size_t)job->columns); panel++)
            (a->images ? multiply_images : multiply_rows)(job, &(block){group, segment, n, panel}, a);
    }
}

void tctl_strips_multiply(const tctl_strips_job *job, int64_t group, const float *band, float *out,
                          int64_t rows)
{
    multiply_group(job, group, &(area){.band = band, .out = out, .rows = rows});
}

/* Some rows of outputs of one image; returns the first of them. */
static const float *compute_rows(const tctl_strips_job *job, int64_t image, int64_t row0, int64_t rows,
                                 uint32_t thread)
{
    const tctl_strips *s = job->strips;
    const float *x = job->x + image * s->height * s->width * s->groups * s->channels;
    float *out = job->out + (image * s->out_height + row0) * s->out_width * s->groups * job->columns;
    for (int64_t g = 0; g < s->groups; g++) {
        float *memory = tctl_op_scratch(job->call, thread);
        const float *band = job->normalization ? tctl_strips_band_of(s, job->call->simd, job->normalization,
                                                                     x, row0, rows, memory)
                                               : tctl_strips_band(s, x, g, row0, rows, memory);
        tctl_strips_multiply(job, g, band, out, rows);
    }
    return out;
}

/* Chunk: some rows of outputs of one image. */
static void compute_band(void *arg, uint64_t chunk, uint32_t thread)
{
    const bands *b = arg;
    const int64_t row0 = (int64_t)chunk % b->parts * b->rows;
    compute_rows(b->job, (int64_t)chunk / b->parts, row0, min_int(b->rows, b->job->strips->out_height - row0),
                 thread);
}

/* Chunk: some images, one after the other. */
static void compute_samples(void *arg, uint64_t chunk, uint32_t thread)
{
    const tctl_strips_job *job = arg;
    const int64_t first = (int64_t)chunk * job->samples, last = min_int(first + job->samples, job->call->n);
    for (int64_t i = first; i < last; i++)
        job->finish(job->call, i, compute_rows(job, i, 0, job->strips->out_height, thread));
}

/* Chunk: some images together. */
static void compute_images(void *arg, uint64_t chunk, uint32_t thread)
{
    const bands *b = arg;
    const tctl_strips_job *job = b->job;
    const tctl_strips *s = job->strips;
    const int64_t first = (int64_t)chunk * b->images, image = image_floats(s);
    const int64_t in = s->height * s->width * s->groups * s->channels;
    float *memory = tctl_op_scratch(job->call, thread);
    area a = {.out = job->out + first * s->out_height * s->out_width * s->groups * job->columns,
              .images = min_int(b->images, job->call->n - first),
              .image = image};
    for (int64_t g = 0; g < s->groups; g++) {
        a.band = tctl_strips_band(s, job->x + first * in, g, 0, s->out_height, memory);
        for (int64_t i = 1; !lies_there(s) && i < a.images; i++)
            tctl_strips_band(s, job->x + (first + i) * in, g, 0, s->out_height, memory + i * image);
        multiply_group(job, g, &a);
    }
}

static void run_images(const tctl_strips_job *job, int64_t wanted)
{
    const int64_t n = job->call->n, most = min_int(job->strips->images, divide_up(n, wanted));
    bands b = {.job = job, .images = most < TCTL_STRIPS_MIN_BATCH ? TCTL_STRIPS_MIN_BATCH : most};
    b.images = divide_up(n, divide_up(n, b.images)); /* equal parts */
    tctl_pool_run(job->call->pool, (uint64_t)divide_up(n, b.images), compute_images, &b);
}

void tctl_strips_run(const tctl_strips_job *job)
{
    if (job->finish) {
        tctl_strips_job copy = *job;
        tctl_pool_run(job->call->pool, (uint64_t)divide_up(job->call->n, job->samples), compute_samples,
                      &copy);
        return;
    }
    const tctl_strips *s = job->strips;
    const int64_t wanted = (int64_t)tctl_pool_threads(job->call->pool) * CHUNKS_PER_THREAD;
    if (s->images && job->call->n >= TCTL_STRIPS_MIN_BATCH) {
        run_images(job, wanted);
        return;
    }
    bands b = {.job = job, .rows = s->rows};
    int64_t parts = min_int(divide_up(wanted, job->call->n), s->out_height);
    if (parts > divide_up(s->out_height, b.rows))
        b.rows = divide_up(s->out_height, parts);
    b.parts = divide_up(s->out_height, b.rows);
    tctl_pool_run(job->call->pool, (uint64_t)(job->call->n * b.parts), compute_band, &b);
}
