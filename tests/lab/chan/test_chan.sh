#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# chan: averages as published, the same trace from the same seed, clear refusals.
set -eu
chan=tests/lab/chan/chan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$chan" --check

for kind in "lte --profile=eva --speed=120" "lte --profile=hst" "mmwave --scale=0.02 --people=0.5"; do
	# shellcheck disable=SC2086
	"$chan" $kind --time=3 --seed=7 >"$dir/a"
	# shellcheck disable=SC2086
	"$chan" $kind --time=3 --seed=7 --output="$dir/b"
	cmp "$dir/a" "$dir/b"
	sort -n -c "$dir/a"
	[ "$(tail -n 1 "$dir/a")" = 3000 ]
done
"$chan" lte --profile=eva --time=3 --seed=8 >"$dir/b"
"$chan" lte --profile=eva --time=3 --seed=7 >"$dir/a"
if cmp -s "$dir/a" "$dir/b"; then
	echo "two seeds give one trace" >&2
	exit 1
fi

# 2 s of 3 behind metal that leaves a fifth: 1 + 0.4 seconds' worth of lines.
"$chan" mmwave --los=12 --time=3 --block=0:2:metal >"$dir/a"
[ "$(wc -l <"$dir/a")" -eq 1400 ]

for bad in "" "radio" "lte mmwave" "lte --sinr=warm" "lte --seed=-1" "mmwave --block=7" \
	"mmwave --block=7:3:wood" "--check lte" "lte --time=1e9" "lte --scale=nan"; do
	code=0
	# shellcheck disable=SC2086
	"$chan" $bad >/dev/null 2>"$dir/err" || code=$?
	if [ "$code" -ne 2 ] || [ "$(wc -l <"$dir/err")" -ne 1 ]; then
		echo "chan $bad: exit code $code: $(cat "$dir/err")" >&2
		exit 1
	fi
done
