# SPDX-License-Identifier: Apache-2.0
# Which platforms can run here, and how much more time they are given. Sourced by the runners, with $builddir set.

# 0, or 1 and the reason on stdout.
platform_check() { # NAME
	dir=$(mktemp -d /var/tmp/sbx-platform.XXXXXX) || return 1
	if why=$(timeout 60 "$builddir/sbx" exec --platform "$1" -w "$dir" -- /bin/true 2>&1 </dev/null); then
		rmdir "$dir"
		return 0
	fi
	rmdir "$dir"
	printf '%s\n' "${why:-it does not end}" | sed -n '1s/^sbx: //p; 1s/^\([^s].*\)/\1/p' | head -n 1
	return 1
}

# Deadlines are multiplied by it. A system call costs about a microsecond on kvm where the processor has the means; under another
# hypervisor it is fifty times that, and nobody tells.
platform_slowness() { # NAME
	case $1 in
	ptrace) echo 3 ;;
	kvm) echo 12 ;;
	*) echo 1 ;;
	esac
}
