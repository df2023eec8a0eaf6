/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convolution without gathered patches: the matrix product reads the image where it lies.
 *
 * In a channels-last image with a border of zeros, what one output position reads through a row of taps is one run of
 * floats, and the next position's run begins stride pixels later. So the chains over (tap_y, tap_x, channel) are
 * chains over segments of the image (tctl_gemm_strip). All that is copied is a band of rows, to give it its border, and
 * to have the channels of a group side by side.
 *
 * A tile's rows are neighbouring outputs of one image, or, if an image is narrow, the same output of several images.
 */
#ifndef TCTL_ENGINE_STRIPS_H
#define TCTL_ENGINE_STRIPS_H

#include "engine/math/norm.h"
#include "engine/op.h"
#include "engine/patches.h"

enum {
    TCTL_STRIPS_MIN_WIDTH = 4, /* of outputs that are neighbours; with fewer, there must be a batch */
    TCTL_STRIPS_MIN_BATCH = 4  /* of images that are computed together */
};

typedef struct tctl_strips {
    int64_t height, width, channels; /* of the image that is read; of one group */
    int64_t groups;
    int64_t pad; /* zeros around it */
    int64_t out_height, out_width, stride;
    int64_t reach;  /* rows of the image that one row of outputs reads */
    int64_t rows;   /* rows of outputs whose band fits the second-level cache */
    int64_t images; /* bands of whole images that are computed together; 0: one image at a time */
    size_t k, n_segments;
    const ptrdiff_t *segments; /* of the first output's taps in its band */
} tctl_strips;

/* The forward of a window over `groups` times `channels` channels: segments are rows of taps where those are runs, else
 * taps. False if memory is out. */
bool tctl_strips_forward(tctl_arena *, const tctl_window *, int64_t channels, int64_t groups,
                         tctl_strips *ret);
/* The input gradient of a window of stride 1 whose outputs have `groups` times `channels` channels; pad <=
 * dilation * (kernel - 1). */
bool tctl_strips_input_gradient(tctl_arena *, const tctl_window *, int64_t channels, int64_t groups,
                                tctl_strips *ret);

/* Whether they do for a batch of n: they are planned, and not narrow without a batch. */
static inline bool tctl_strips_can(const tctl_strips *s, int64_t n)
{
    return s->segments && (s->out_width >= TCTL_STRIPS_MIN_WIDTH || n >= TCTL_STRIPS_MIN_BATCH);
}

/* Floats of a band for `rows` rows of outputs; 0 if the image is read where it lies. */
size_t tctl_strips_band_floats(const tctl_strips *, int64_t rows);
/* The band of output rows row0..row0+rows-1 of one image and group: copied to `memory`, or where it lies. */
const float *tctl_strips_band(const tctl_strips *, const float *image, int64_t group, int64_t row0,
                              int64_t rows, float *memory);
/* The same of one group, of an image that is normalized while it is copied. The image needs a border. */
const float *tctl_strips_band_of(const tctl_strips *, const tctl_simd *, const tctl_normalization *,
                                 const float *image, int64_t row0, int64_t rows, float *memory);
static inline ptrdiff_t tctl_strips_band_row(const tctl_strips *s)
{
    return (ptrdiff_t)((s->width + 2 * s->pad) * s->channels);
}

/* What is computed with them: out[n, out_height, out_width, groups * columns] from x and packed panels of [segments * k],
 * group by group. */
typedef struct tctl_strips_job {
    const tctl_op_call *call; /* its scratch has tctl_strips_scratch_floats for each thread */
    const tctl_strips *strips;
    const float *x, *packed;
    const tctl_normalization *normalization; /* of x; NULL: none */
    float *out;
    int64_t columns; /* of a group */
    tctl_gemm_start start;
    const float *bias;
    /* With `finish`, a chunk is `samples` images in a row, and it is called after each of them; bands are whole images. */
    int64_t samples;
    void (*finish)(const tctl_op_call *, int64_t image, const float *out);
} tctl_strips_job;
void tctl_strips_run(const tctl_strips_job *);
/* Floats that a thread's scratch must have. */
size_t tctl_strips_scratch_floats(const tctl_strips *);
/* The same for some rows of outputs of one image and group, from their band; `out` begins with group 0. [any] */
void tctl_strips_multiply(const tctl_strips_job *, int64_t group, const float *band, float *out,
                          int64_t rows);

#endif
