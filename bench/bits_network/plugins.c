/* SPDX-License-Identifier: Apache-2.0 */
/* The tree's plugins, linked in: each was compiled with another name for the one symbol that it exports (CMakeLists.txt). */
#include "bench/bits_network/data.h"
#include "bench/bits_network/host.h"

extern const tctl_plugin bits_plugin_native, bits_plugin_normalize, bits_plugin_random_crop, bits_plugin_flip,
    bits_plugin_cutout, bits_plugin_sgd, bits_plugin_adamw, bits_plugin_constant, bits_plugin_step,
    bits_plugin_cosine, bits_plugin_onecycle, bits_plugin_clip, bits_plugin_ema;

const tctl_plugin *const bits_plugins[] = {
    &bits_plugin_pictures,    &bits_plugin_sentences, &bits_plugin_native, &bits_plugin_normalize,
    &bits_plugin_random_crop, &bits_plugin_flip,      &bits_plugin_cutout, &bits_plugin_sgd,
    &bits_plugin_adamw,       &bits_plugin_constant,  &bits_plugin_step,   &bits_plugin_cosine,
    &bits_plugin_onecycle,    &bits_plugin_clip,      &bits_plugin_ema,
};
const uint32_t bits_n_plugins = TCTL_COUNT_OF(bits_plugins);
