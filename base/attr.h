/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes, spelled once. */
#ifndef TCTL_BASE_ATTR_H
#define TCTL_BASE_ATTR_H

#if defined(__GNUC__)
#define TCTL_NORETURN   __attribute__((noreturn))
#define TCTL_COLD       __attribute__((cold))
#define TCTL_MUST_CHECK __attribute__((warn_unused_result))
#define TCTL_UNUSED     __attribute__((unused))
#else
#define TCTL_NORETURN
#define TCTL_COLD
#define TCTL_MUST_CHECK
#define TCTL_UNUSED
#endif

#endif
