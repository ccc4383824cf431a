/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The assembler takes the object files in; cca/bpf/objects.inc is written by bpf/build.sh. */
#include "cca/objects.h"

#include <errno.h>

#define PEP_EMBED(id, file)                        \
	__asm__(".section .rodata\n"               \
		".balign 8\n"                      \
		".hidden pep_object_" #id "\n"     \
		".hidden pep_object_end_" #id "\n" \
		".global pep_object_" #id "\n"     \
		".global pep_object_end_" #id "\n" \
		"pep_object_" #id ":\n"            \
		".incbin \"" file "\"\n"           \
		"pep_object_end_" #id ":\n"        \
		".byte 0\n"                        \
		".previous\n");                    \
	extern const char pep_object_##id[], pep_object_end_##id[];

#define PEP_OBJECT(kind, variant, id, file) PEP_EMBED(id, file)
#define PEP_FLOWS_OBJECT(file)              PEP_EMBED(flows, file)
#include "cca/bpf/objects.inc"
#undef PEP_OBJECT
#undef PEP_FLOWS_OBJECT

#define PEP_OBJECT(kind, variant, id, file) \
	[kind][variant] = {pep_object_##id, pep_object_end_##id},
#define PEP_FLOWS_OBJECT(file)

static const struct {
	const char *start, *end;
} objects[PEP_CCA_KIND_COUNT_][PEP_CCA_VARIANT_COUNT_] = {
#include "cca/bpf/objects.inc"
};

bool pep_cca_objects_built(void)
{
	return true;
}

int pep_cca_object_get(enum pep_cca_kind kind, enum pep_cca_variant variant,
		       struct pep_cca_object *ret)
{
	if (kind >= PEP_CCA_KIND_COUNT_ || variant >= PEP_CCA_VARIANT_COUNT_ ||
	    !objects[kind][variant].start)
		return -ENOENT;
	ret->elf = objects[kind][variant].start;
	ret->size = (size_t)(objects[kind][variant].end - objects[kind][variant].start);
	return 0;
}

int pep_cca_object_flows(struct pep_cca_object *ret)
{
	ret->elf = pep_object_flows;
	ret->size = (size_t)(pep_object_end_flows - pep_object_flows);
	return 0;
}
