/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets at the gate: whatever comes, the parser reads inside the bytes and keeps its promises. */
#include "proxy/syn.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pep_syn syn, before;
	struct pep_tuple tuple;

	memset(&syn, 0xa5, sizeof(syn));
	before = syn;
	if (pep_syn_parse(data, size, &syn) < 0) {
		if (memcmp(&syn, &before, sizeof(syn)) != 0)
			abort();
		return 0;
	}
	if (syn.dscp > 63)
		abort();
	if (syn.is_synack)
		pep_synack_tuple(&syn, &tuple);
	else
		pep_syn_tuple(&syn, &tuple);
	return 0;
}
