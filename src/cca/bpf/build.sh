#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds every BPF object and the list by which src/cca/objects.c takes them in.
# usage: build.sh CLANG BPFTOOL SOURCE-DIR OUT-DIR
set -eu

clang=$1 bpftool=$2 src=$3 out=$4
# A build of its own hardening or host flags must not reach the BPF target.
unset CPATH C_INCLUDE_PATH || :

# name, kind, defaults and source of each control
controls='
pep_bbr     PEP_CCA_BBR     PEP_BBR_PARAMS_BBR     bbr
pep_bbr_acd PEP_CCA_BBR_ACD PEP_BBR_PARAMS_ACD     bbr
pep_bbr_a   PEP_CCA_BBR_A   PEP_BBR_PARAMS_A       bbr
pep_bbr_d   PEP_CCA_BBR_D   PEP_BBR_PARAMS_D       bbr
pep_bwe     PEP_CCA_BWE     PEP_BWE_PARAMS_DEFAULT bwe
'
# id, what src/cca/objects.h calls it, and flags of each variant (see src/cca/bpf/kernel.h)
variants='
2  PEP_CCA_VARIANT_2  -DPEP_ARGS=2
4  PEP_CCA_VARIANT_4  -DPEP_ARGS=4
4t PEP_CCA_VARIANT_4T -DPEP_ARGS=4 -DPEP_TX_START
'

# compile SOURCE OBJECT FLAG... - gen object drops debug sections and keeps BTF
compile() {
	source=$1 object=$2
	shift 2
	"$clang" -O2 -g -target bpf -mcpu=v3 -ffreestanding -Wall -Wextra \
		-Wno-unused-parameter -I "$src/src" "$@" -c "$src/src/cca/bpf/$source.bpf.c" \
		-o "$object.raw"
	"$bpftool" gen object "$object" "$object.raw"
	rm -f "$object.raw"
}

mkdir -p "$out"
: >"$out/objects.inc.tmp"
printf '%s\n' "$controls" | while read -r name kind defaults source; do
	[ -n "$name" ] || continue
	printf '%s\n' "$variants" | {
		while read -r id variant flags; do
			[ -n "$id" ] || continue
			object=$out/$name.$id.bpf.o
			# shellcheck disable=SC2086 # several flags
			compile "$source" "$object" "-DPEP_NAME=$name" "-DPEP_KIND=$kind" \
				"-DPEP_DEFAULTS=$defaults" $flags
			echo "PEP_OBJECT($kind, $variant, ${name}_$id, \"$object\")" \
				>>"$out/objects.inc.tmp"
		done
	}
done
compile flows "$out/flows.bpf.o"
echo "PEP_FLOWS_OBJECT(\"$out/flows.bpf.o\")" >>"$out/objects.inc.tmp"
mv "$out/objects.inc.tmp" "$out/objects.inc"
