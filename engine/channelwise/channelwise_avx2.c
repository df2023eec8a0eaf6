/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of channelwise.h for AVX2 with FMA. */
#include "engine/channelwise/channelwise.h"

#if defined(__x86_64__)
#include "engine/vector/avx2.h"

#define CHANNELWISE_TABLE tctl_channelwise_avx2

#include "engine/channelwise/channelwise_body.h"
#endif
