#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Writes, on standard output, the C table of the files that make up the dashboard.
# usage: embed.sh FILE...
set -eu

type_of() {
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "embed.sh: $1: expected .html, .css, .js or .svg" >&2; exit 1 ;;
	esac
}

echo '/* Made by embed.sh: do not edit. */'
echo '#include "mon/assets.h"'
n=0
for file in "$@"; do
	echo "static const unsigned char asset_${n}[] = {"
	od -An -v -tx1 "$file" | sed 's/[0-9a-f][0-9a-f]/0x&,/g'
	echo '};'
	n=$((n + 1))
done

echo 'const struct pep_asset pep_assets[] = {'
n=0
for file in "$@"; do
	type=$(type_of "$file")
	printf '\t{"/%s", "%s", asset_%d, sizeof(asset_%d)},\n' "${file##*/}" "$type" $n $n
	n=$((n + 1))
done
printf '\t{0},\n};\n'
