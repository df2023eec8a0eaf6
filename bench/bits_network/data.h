/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of made-up data, as plugins. */
#ifndef TCTL_BENCH_BITS_DATA_H
#define TCTL_BENCH_BITS_DATA_H

#include "trainctl/plugin.h"

extern const tctl_plugin bits_plugin_pictures, bits_plugin_sentences;

#endif
