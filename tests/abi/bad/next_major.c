/* SPDX-License-Identifier: Apache-2.0 */
/* Built for ABI 2: another symbol. */
__attribute__((visibility("default"))) extern const int trainctl_plugin_v2;
const int trainctl_plugin_v2 = 2;
