/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_PIN_H
#define PEP_CCA_PIN_H

/*
 * The folder in a BPF file system where observers find the state of connections:
 *
 *	pep_cc_state	the storage map; looked up with a socket of one's own
 *	flows		a file that lists the state of all connections when read
 */

#include <sys/types.h>

#define PEP_CCA_PIN_DIR "/run/edgepep-cca"

/**
 * Makes @dir a folder in a BPF file system, mounting one there if need be. Returns 0 or a negative
 * errno.
 */
int pep_cca_pin_prepare(const char *dir);

/**
 * Puts the state map @map_fd and an iterator over it into @dir, readable for @group (-1: for root
 * alone). Nothing is done when that very map is there already. Returns 0 or a negative errno.
 */
int pep_cca_pin_state(const char *dir, int map_fd, gid_t group);

/** Removes what pep_cca_pin_state made, and a mount of ours. What is not there is no error. */
void pep_cca_pin_remove(const char *dir);

#endif
