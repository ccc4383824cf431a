/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_UNITS_H
#define PEP_LINKEMU_UNITS_H

/* Numbers with units as linkemu's command line takes them. All return 0, or -EINVAL untouched. */

#include <stdint.h>

/** "500Mbit": bit, Kbit, Mbit, Gbit (a second, decimal), up to 100 Gbit; result in bit/s. */
int pep_units_rate(const char *text, uint64_t *ret);

/** "1.5ms": ns, us, ms, s, up to 24 hours; result in ns. A bare 0 is fine. */
int pep_units_time(const char *text, uint64_t *ret);

/** "64KiB": B, KB, MB, GB (decimal), KiB, MiB, GiB, up to 4 GiB; result in bytes. */
int pep_units_size(const char *text, uint64_t *ret);

/** "1%" or "0.01"; result in 0..1. */
int pep_units_share(const char *text, double *ret);

/** "2" or "0.5": a plain number in 0..@max. */
int pep_units_number(const char *text, double max, double *ret);

#endif
