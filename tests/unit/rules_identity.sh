#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# edgepepctl rules: "down" puts every table, route and sysctl back as it was, whatever was there
# before and whatever went wrong in between. Runs in a network namespace of its own.
set -u

ctl=${EDGEPEPCTL:-./src/ctl/edgepepctl}

if [ "${1-}" != inside ]; then
	[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
	command -v iptables-restore ip unshare > /dev/null || { echo "SKIP: needs iptables, iproute2"; exit 77; }
	dir=$(mktemp -d) || exit 1
	trap 'rm -rf "$dir"' EXIT
	RULES_TEST_DIR=$dir EDGEPEPCTL=$(realpath "$ctl") unshare --net -- bash "$0" inside
	exit $?
fi

dir=$RULES_TEST_DIR
failed=0

conf() { # NAME [LINE...]
	local name=$1
	shift
	{
		echo 'wireless-interfaces = {"radio0"}'
		echo 'wired-interfaces = {"core0"}'
		echo 'workers = 2'
		echo "run-dir = \"$dir/run\""
		printf '%s\n' "$@"
	} > "$dir/$name.conf"
}

# Everything that "up" may change, as text; iptables-save without its dated comments.
snapshot() {
	for tool in iptables ip6tables; do
		$tool-save | grep -v '^#'
	done
	ip -4 rule; ip -6 rule
	ip -4 route show table all; ip -6 route show table all
	sysctl -a 2> /dev/null | grep -E '^net\.(ipv4|ipv6)\.' |
		grep -vE 'neigh|random|route\.|_mem|stable_secret|nf_conntrack_count|max_tw|max_orphans'
}

# shellcheck disable=SC2317 # called by must
rules() { # CONF VERB
	"$ctl" -c "$dir/$1.conf" rules "$2"
}

check() { # NAME: compares with the snapshot taken before
	snapshot > "$dir/after"
	if diff -u "$dir/before" "$dir/after" > "$dir/diff"; then
		echo "ok: $1"
	else
		echo "FAIL: $1"
		cat "$dir/diff"
		failed=1
	fi
}

must() {
	"$@" || { echo "FAIL: $*"; failed=1; }
}

must_not() {
	if "$@" 2> "$dir/err"; then
		echo "FAIL: succeeded: $*"
		failed=1
	fi
}

ip link set lo up
ip link add radio0 type veth peer name ue0
ip link add core0 type veth peer name srv0
for i in radio0 ue0 core0 srv0; do ip link set $i up; done
ip addr add 10.1.0.1/24 dev radio0
ip addr add 10.2.0.1/24 dev core0
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
conf one
conf two 'steering { table = 4242 rule-priority = 99 mark-mask = 0x7ff }' 'fail = closed'
sleep 2.5 # IPv6 addresses leave the tentative state, whose routes would change below us

snapshot > "$dir/before"

must_not "$ctl" -c "$dir/one.conf" rules sideways
must rules one down
check "down without up changes nothing"

must rules one up
iptables -t raw -C PREROUTING -i radio0 -j EDGEPEP-GATE || failed=1
ip6tables -t raw -C PREROUTING -i radio0 -j EDGEPEP-GATE || failed=1
snapshot > "$dir/up1"
must rules one up
snapshot > "$dir/up2"
must diff -u "$dir/up1" "$dir/up2"
must rules one down
check "tables that did not exist are gone again"
must rules one down
check "down can be repeated"

# A table of somebody else's that uses ours only in part.
iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
iptables -t nat -A POSTROUTING -o core0 -j MASQUERADE
iptables -P INPUT DROP
iptables -A INPUT -i lo -j ACCEPT
iptables -A INPUT -m comment --comment "-j EDGEPEP-GATE is not ours" -j ACCEPT
iptables -N OTHER
iptables -A FORWARD -j OTHER
ip6tables -t raw -A PREROUTING -p udp -j CT --notrack
ip rule add fwmark 0x4000000/0x4000000 lookup 100 priority 7357
ip route add 192.0.2.0/24 via 10.2.0.2 table 100
snapshot > "$dir/before"
must rules one up
must [ "$(iptables -S FORWARD 1)" = "-A FORWARD -i radio0 -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j EDGEPEP-FORWARD" ]
must rules one down
check "other people's rules, policies, ip rules and tables stay"

# What an earlier up of another configuration left is replaced.
must rules one up
must rules two up
must [ "$(ip -4 rule | grep -c 7357)" = 1 ]
must rules two down
check "a changed configuration leaves nothing of the old one"

# A daemon's user may have removed the state file; the tables tell then.
must rules one up
rm "$dir/run/rules.state"
must rules one down
sysctl -qw net.ipv4.tcp_early_demux=1
for t in raw mangle filter nat; do iptables -t $t -S > /dev/null; ip6tables -t $t -S > /dev/null; done
snapshot > "$dir/after.lost"
grep -v -- --comment "$dir/after.lost" | grep -q EDGEPEP && { echo "FAIL: rules left without a state file"; failed=1; }

# All tables there now; leftovers of a crashed run, with jumps twice and a chain of an older version.
snapshot > "$dir/before"
must rules one up
iptables -t raw -I PREROUTING -i radio0 -j EDGEPEP-GATE
iptables -t raw -N EDGEPEP-OLD
iptables -t raw -A EDGEPEP-OLD -j EDGEPEP-GATE
iptables -t raw -A PREROUTING -g EDGEPEP-OLD
must rules one up
must [ "$(iptables -t raw -S PREROUTING | grep -c EDGEPEP)" = 1 ]
must_not iptables -t raw -S EDGEPEP-OLD
must rules one down
check "leftovers of a crashed run are removed"

# A configuration that has become unreadable.
must rules one up
echo 'nonsense' >> "$dir/one.conf"
must_not rules one up
must [ "$(iptables -t raw -S PREROUTING | grep -c EDGEPEP)" = 1 ]
conf one
must rules one down
check "a broken configuration changes nothing"

# A name that is not there, and a routing table that is in use.
conf bad
sed -i 's/core0/nowhere0/' "$dir/bad.conf"
must_not rules bad up
must grep -q "no interface 'nowhere0'" "$dir/err"
conf bad 'steering { table = 100 }'
must_not rules bad up
must grep -q "routing table 100 already holds" "$dir/err"
check "a refused up changes nothing"

# A step that fails late: everything before it is taken back.
mkdir "$dir/bin"
printf '#!/bin/sh\ncase "$*" in *--test*) exec /usr/sbin/ip6tables-restore "$@";; esac\ncat > /dev/null\necho no luck >&2\nexit 1\n' > "$dir/bin/ip6tables-restore"
chmod +x "$dir/bin/ip6tables-restore"
PATH=$dir/bin:$PATH must_not rules one up
must grep -q "no luck" "$dir/err"
check "a late failure is rolled back"

# A kernel without xt_u32, which iptables-nft notices only when it loads the rules.
cat > "$dir/bin/ip6tables-restore" <<- 'END'
	#!/bin/sh
	text=$(cat)
	case "$*" in *--test*) ;; *) case "$text" in *--u32*) echo "no u32" >&2; exit 1 ;; esac ;; esac
	printf '%s\n' "$text" | exec /usr/sbin/ip6tables-restore "$@"
END
PATH=$dir/bin:$PATH must rules one up 2> "$dir/err"
must [ "$(grep -c 'no xt_u32' "$dir/err")" = 1 ]
must [ "$(ip6tables -t raw -S | grep -c -- '--queue-balance 7000:7001')" = 1 ]
must [ "$(iptables -t raw -S | grep -c -- --u32)" = 1 ]
must rules one down
check "a kernel without xt_u32 gets rules that do without"

# A hostile state file is not believed.
mkdir -p "$dir/run"
cat > "$dir/run/rules.state" <<- 'END'
	{"version": 1, "ipv4": {"created_tables": ["nat"], "set": true, "route_table": 254, "rules":
	[{"iif": "--help", "mark": 1, "table": 254, "priority": 0}]}, "sysctls": {"kernel.sysrq": "1"}}
END
must rules one up
must rules one down
check "a damaged state file is not used"

# IPv6 off.
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
snapshot > "$dir/before"
"$ctl" -c "$dir/one.conf" rules up 2> "$dir/err" || failed=1
must [ "$(grep -c 'IPv6 is disabled' "$dir/err")" = 1 ]
must [ "$(ip6tables-save | grep -c EDGEPEP)" = 0 ]
must rules one down
check "a host without IPv6 gets IPv4 alone"

exit $failed
