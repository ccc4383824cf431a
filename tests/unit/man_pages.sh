#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every manual page is correct mdoc. Skipped where there is no mandoc.
command -v mandoc >/dev/null || exit 77
folder=${srcdir:-.}/doc
bad=0
for page in "$folder"/*.[1-8]; do
	mandoc -Tlint -Wwarning "$page" || bad=1
done
exit $bad
