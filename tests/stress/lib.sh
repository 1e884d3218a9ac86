# SPDX-License-Identifier: Apache-2.0
# Shared by the stress tests: TAP, descendants of a process, what a sandbox could leave behind on the host.
set -u
sbx=$SBX_BUILDDIR/sbx
stress=$SBX_BUILDDIR/tests/stress
long=${SBX_STRESS:-short}
sbxflags=${SBX_FLAGS:-}
tmp=$(mktemp -d /tmp/sbx-stress-XXXXXX)
n=0 failed=0
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/ws"
cd "$tmp/ws" || exit 1

ok() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=1
	fi
}

is() { # GOT WANT NAME
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || printf '%s\n' "got '$1', want '$2'" | sed 's/^/# /'
}

has() { # FILE TEXT NAME
	grep -qF -- "$2" "$1"
	if ok $? "$3"; [ $failed -eq 1 ] && ! grep -qF -- "$2" "$1"; then tail -n 5 "$1" | sed 's/^/# /'; fi
}

skip() { # NAME WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

finish() {
	echo "1..$n"
	exit $failed
}

# sbx exec with a deadline; never waits for ever.
run() {
	# shellcheck disable=SC2086
	timeout -k 2 $((${limit:-60} * ${SBX_SLOW:-1})) "$sbx" exec $sbxflags "$@"
}

children() { # PID
	cat /proc/"$1"/task/*/children 2>/dev/null
}

descendants() { # PID
	for c in $(children "$1"); do
		echo "$c"
		descendants "$c"
	done
}

child_named() { # PID COMM
	for c in $(descendants "$1"); do
		{ IFS= read -r comm </proc/"$c"/comm; } 2>/dev/null && [ "$comm" = "$2" ] && echo "$c"
	done
}

# State and start time of a process, in $state and $born; no fork, so that looking takes less time than what is measured.
look() { # PID
	state= born=
	{ IFS= read -r look_line </proc/"$1"/stat; } 2>/dev/null || return 1
	# shellcheck disable=SC2086
	set -- ${look_line##*) }
	[ $# -ge 20 ] || return 1
	state=$1
	shift 19
	born=$1
}

# "PID:STARTTIME" of each.
stamp() { # PID...
	for p in "$@"; do
		look "$p" && echo "$p:$born"
	done
}

# Those of the list that are still the same ones and no zombies: $living.
living() { # STAMP...
	living=
	for s in "$@"; do
		look "${s%%:*}" || continue
		[ "$born" = "${s#*:}" ] && [ "$state" != Z ] && [ "$state" != X ] && living="$living ${s%%:*}"
	done
}

alive() { # STAMP...
	living "$@"
	# shellcheck disable=SC2086
	[ -z "$living" ] || printf '%s\n' $living
}

ms() {
	echo $(($(date +%s%N) / 1000000))
}

# Waits until none of the stamps is alive; 0 when that took less than MS.
gone_within() { # MS STAMP...
	end=$(($(ms) + $1))
	shift
	while living "$@" && [ -n "$living" ]; do
		[ "$(ms)" -gt $end ] && return 1
		sleep 0.02
	done
	return 0
}

wait_for() { # SECONDS COMMAND...
	tries=$(($1 * 20))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -le 0 ] && return 1
		sleep 0.05
	done
	return 0
}
