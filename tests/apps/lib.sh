# SPDX-License-Identifier: Apache-2.0
# For the tests in this directory: runs a script natively and in sbx and compares. Sourced by sh from a <name>.t.
#
#	app NAME [SBX-OPTION...] <<'END'	the script, for bash; starts in an empty directory (or a copy of $seed)
#	check NAME COMMAND...			one line from a command's status
#	needs PROGRAM... || skip NAME REASON
#	patience SECONDS			a deadline on the platform $p
#	finish					the plan; the last line of each test
set -u
: "${SBX_BUILDDIR:?names the build directory}"
sbx=$SBX_BUILDDIR/sbx
platforms=$(echo "${SBX_PLATFORMS:-unotify}" | tr , ' ')
scratch=$(mktemp -d /var/tmp/sbx-apps.XXXXXX) || exit 1
trap 'chmod -R u+rwX "$scratch"; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
builddir=$SBX_BUILDDIR
. "$(dirname "$0")/../platforms.sh"
n=0 failed=0 seed= limit=60
work=$scratch/work
ok() { # NAME
	n=$((n + 1))
	echo "ok $n - $1"
}
not_ok() { # NAME [FILE...]: why, in the files
	n=$((n + 1)) failed=1
	echo "not ok $n - $1"
	shift
	[ $# -eq 0 ] || cat "$@" | head -n 12 | sed 's/^/# /'
}
skip() { # NAME REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >"$scratch/check" 2>&1; then ok "$name"; else not_ok "$name" "$scratch/check"; fi
}
needs() {
	for prog in "$@"; do command -v "$prog" >/dev/null 2>&1 || return 1; done
}
patience() { # SECONDS
	echo $(($1 * $(platform_slowness "$p")))
}
finish() {
	echo "1..$n"
	exit $failed
}
fresh() { # an empty $work, or a copy of the directory $seed
	[ ! -e "$work" ] || chmod -R u+rwX "$work"
	rm -rf "$work"
	if [ -n "$seed" ]; then cp -a "$seed" "$work"; else mkdir "$work"; fi
}
# The environment that sbx gives a command, for the native run.
native() { # COMMAND...
	(cd "$work" && timeout "$limit" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$HOME" USER="$(id -un)" \
		LOGNAME="$(id -un)" LC_ALL=C.UTF-8 TERM=dumb PAGER=cat GIT_PAGER=cat EDITOR=true GIT_EDITOR=true CI=true \
		NO_COLOR=1 "$@")
}
app() { # NAME [SBX-OPTION...] <SCRIPT
	case_name=$1
	shift
	script=$(cat)
	fresh
	native bash -c "$script" >"$scratch/native" 2>"$scratch/native.err" </dev/null
	rc=$?
	echo "status $rc" >>"$scratch/native"
	for p in $platforms; do
		fresh
		slow=$(platform_slowness "$p")
		timeout $((limit * slow + 30)) "$sbx" exec --platform "$p" -t $((limit * slow)) -w "$work" "$@" -- bash -c "$script" \
			>"$scratch/out" 2>"$scratch/err" </dev/null
		echo "status $?" >>"$scratch/out"
		if cmp -s "$scratch/native" "$scratch/out"; then
			ok "$p: $case_name"
		else
			diff "$scratch/native" "$scratch/out" >"$scratch/diff"
			not_ok "$p: $case_name" "$scratch/diff" "$scratch/err"
		fi
	done
}
