#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The systemd units: systemd finds nothing to complain about, and the two daemons are well confined.
set -eu

src=${srcdir:-.}
command -v systemd-analyze > /dev/null || { echo "SKIP: needs systemd-analyze"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# verify wants to see the programs, not to run them
mkdir "$dir/sbin" "$dir/units"
for program in edgepepd edgepepctl edgepep-mon edgepep-cca; do
	printf '#!/bin/sh\n' > "$dir/sbin/$program"
	chmod +x "$dir/sbin/$program"
done
for unit in edgepep edgepep-cca edgepep-mon edgepep-rules; do
	sed "s|@sbindir@|$dir/sbin|g" "$src/systemd/$unit.service.in" > "$dir/units/$unit.service"
done
cp "$src/systemd/edgepep-cca.mount" "$dir/units/run-edgepep\\x2dcca.mount"

failed=0
for unit in "$dir"/units/*; do
	if ! out=$(SYSTEMD_UNIT_PATH="$dir/units:" systemd-analyze verify --man=no "$unit" 2>&1) ||
		[ -n "$out" ]; then
		echo "FAIL: verify ${unit##*/}: $out"
		failed=1
	fi
done

# exposure 0 (none) to 10, given to --threshold in tenths
confined() { # UNIT LIMIT
	if out=$(systemd-analyze security --offline=yes --no-pager --threshold="$2" "$dir/units/$1" 2>&1); then
		echo "ok: $1: $(echo "$out" | tail -n 1)"
	else
		echo "FAIL: $1 is above $2 tenths"
		echo "$out"
		failed=1
	fi
}
confined edgepep.service 20
confined edgepep-mon.service 20
confined edgepep-rules.service 40
confined edgepep-cca.service 45

# Users that the units name are made by sysusers.
sed -n 's/^\(User\|SupplementaryGroups\)=//p' "$dir"/units/*.service | sort -u > "$dir/users"
while read -r user; do
	grep -q "^u $user " "$src/systemd/sysusers.d/edgepep.conf" || {
		echo "FAIL: nothing makes user $user"
		failed=1
	}
done < "$dir/users"
exit $failed
