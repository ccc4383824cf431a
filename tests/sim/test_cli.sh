#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line of edgepep-sim: the same seed gives the same bytes; bad input is one line and 2.
set -u

sim=${EDGEPEP_SIM:-tests/sim/edgepep-sim}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "FAIL $*"
	failed=1
}

for format in --json --csv ''; do
	for run in 1 2; do
		# shellcheck disable=SC2086 # no format is no option
		"$sim" --preset mixed-rtt --time 12s --loss 0.5% --jitter 3ms --seeds 2 $format \
			>"$tmp/$run" || fail "run with '$format'"
	done
	cmp -s "$tmp/1" "$tmp/2" || fail "two runs of one seed differ with '$format'"
done
"$sim" --time 12s --loss 0.5% --cca pep_bbr --seed 1 >"$tmp/1"
"$sim" --time 12s --loss 0.5% --cca pep_bbr --seed 2 >"$tmp/2"
cmp -s "$tmp/1" "$tmp/2" && fail "two seeds give the same run"

# What is wrong, and what the message must hold.
bad() {
	expected=$1
	shift
	"$sim" "$@" >"$tmp/out" 2>"$tmp/err"
	[ $? -eq 2 ] || fail "$*: exit code is not 2"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: not one line: $(cat "$tmp/err")"
	grep -q -- "$expected" "$tmp/err" || fail "$*: '$(cat "$tmp/err")' does not say '$expected'"
	[ -s "$tmp/out" ] && fail "$*: printed results"
}

printf '1\n5\n3\n' >"$tmp/falling"
printf '1\nx\n' >"$tmp/word"
: >"$tmp/empty"
bad "'5' is wrong; expected a rate" --rate 5
bad 'rate is 0' --rate 0Mbit/s
bad "'2' is wrong" --buffer 2
bad "'-1%' is wrong; expected a share" --loss -1%
bad "'101%' is wrong" --loss 101%
bad 'expected three shares' --burst 1%,2%
bad 'each later than the one before' --rate-at 5s:1Mbit/s --rate-at 5s:2Mbit/s
bad 'expected the link to come back' --rate-at 5s:0Mbit/s
bad 'names of controls' --cca westwood
bad 'KEY=VALUE' --flow 'rtt'
bad 'KEY=VALUE' --flow 'count=999'
bad 'no such control or parameter' --param pep_bbr.cut=1
bad 'out of range' --param pep_bbr.cut-gain=9999
bad 'CONTROL.KEY=VALUE' --param cut-gain=1
bad 'warm-up' --time 2s
bad '257 flows' --flow count=200 --flow count=57
bad ":3: time 3 is before" --trace "$tmp/falling"
bad ":2: 'x' is not a time" --trace "$tmp/word"
bad 'there is none' --trace "$tmp/empty"
bad 'cannot open' --trace "$tmp/none"
bad "no preset 'x'" --preset x
bad 'unexpected word' word
bad 'unknown' --nothing

"$sim" --help | grep -q 'edgepep-sim \[OPTION' || fail '--help'
"$sim" --list-presets | grep -q '^mixed-rtt' || fail '--list-presets'
"$sim" --list-controls | grep -q 'cut-gain' || fail '--list-controls'
printf '0\n5\n10\n' >"$tmp/good"
"$sim" --trace "$tmp/good" --time 12s --cca cubic >"$tmp/out" || fail 'a trace'

exit $failed
