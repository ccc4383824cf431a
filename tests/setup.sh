# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Set-up shared by ./demo and ./check; to be sourced from the top of the tree, with set -e.
#
#   setup_packages demo|check   installs the Debian packages that are missing
#   setup_build [ARG...]        builds everything in build/, configured with these arguments;
#                               without any, a configuration that is there stays

SETUP_BUILD="build-essential autoconf automake pkg-config libevent-dev libmnl-dev
	libnetfilter-queue-dev libconfuse-dev libcap-ng-dev libjansson-dev libncurses-dev libbpf-dev
	libcmocka-dev clang bpftool"
SETUP_LAB="iproute2 iptables iperf3 python3 util-linux"
SETUP_CHECK="clang-format clang-14 libclang-rt-dev curl nginx-light ethtool procps git xz-utils
	shellcheck mandoc gnuplot-nox qemu-system-x86 busybox-static kmod systemd chromium prometheus jq"

setup_say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

setup_die() {
	setup_say "$*"
	exit 1
}

# Which of the packages named are not installed.
setup_missing() {
	for setup_package in "$@"; do
		setup_state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$setup_package" 2>/dev/null) ||
			setup_state=
		case $setup_state in
		ii*) ;;
		*) printf '%s ' "$setup_package" ;;
		esac
	done
}

# Packages that bring a server must not start it on this machine: the tests start their own.
setup_install() {
	setup_policy=/usr/sbin/policy-rc.d
	setup_own_policy=
	if [ ! -e "$setup_policy" ]; then
		setup_own_policy=yes
		trap 'rm -f "$setup_policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$setup_policy"
		chmod 755 "$setup_policy"
	fi
	setup_code=0
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@" \
		>&2 </dev/null || setup_code=$?
	if [ -n "$setup_own_policy" ]; then
		rm -f "$setup_policy"
		trap - EXIT
	fi
	return "$setup_code"
}

setup_packages() {
	setup_want="$SETUP_BUILD $SETUP_LAB"
	[ "$1" = check ] && setup_want="$setup_want $SETUP_CHECK"
	[ "$(id -u)" = 0 ] || setup_die "needs root: network namespaces, and packages if some are missing"
	command -v dpkg-query >/dev/null || {
		setup_say "no Debian here; these packages or their like are needed: $setup_want"
		return 0
	}
	# The lists are words on purpose.
	# shellcheck disable=SC2086
	setup_need=$(setup_missing $setup_want)
	[ -n "$setup_need" ] || return 0
	setup_say "installing $setup_need"
	apt-get -q update >&2 </dev/null || setup_say "apt-get update failed, going on with what is known"
	# shellcheck disable=SC2086
	setup_install $setup_need || setup_die "could not install: $setup_need"
}

# Runs a step quietly; its output is shown when it fails.
setup_step() {
	setup_log=build/setup.log
	"$@" >"$setup_log" 2>&1 </dev/null || {
		tail -n 40 "$setup_log" >&2
		setup_die "failed: $* (all of it in $setup_log)"
	}
}

setup_configure() {
	(cd build && ../configure "$@")
}

setup_build() {
	mkdir -p build
	if [ ! -e configure ] || [ -n "$(find . -path ./build -prune -o \
		\( -name configure.ac -o -name Makefile.am -o -name Makefile.inc \) \
		-newer configure -print)" ]; then
		setup_say "autoreconf"
		setup_step autoreconf -fi
	fi
	if [ ! -e build/config.status ] || [ configure -nt build/config.status ] ||
		{ [ $# -gt 0 ] && [ "$(cat build/setup.args 2>/dev/null)" != "$*" ]; }; then
		setup_say "configure $*"
		setup_step setup_configure "$@"
		printf '%s\n' "$*" >build/setup.args
	fi
	setup_say "make"
	setup_step make -C build "-j$(nproc)"
}
