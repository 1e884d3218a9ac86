# SPDX-License-Identifier: Apache-2.0
# Grants on overlayfs, on which containers have their files.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || { skip overlayfs "not root"; finish; }
if [ -z "${OVERLAY_NAMESPACE-}" ]; then
	rm -rf "$scratch"
	export OVERLAY_NAMESPACE=1
	exec unshare -m sh "$0"
fi
# The upper directory must not be on overlayfs itself.
mkdir "$scratch/lower" "$scratch/memory" "$scratch/merged" && mount -t tmpfs none "$scratch/memory" &&
	mkdir "$scratch/memory/upper" "$scratch/memory/work" "$scratch/lower/work" &&
	mount -t overlay -o "lowerdir=$scratch/lower,upperdir=$scratch/memory/upper,workdir=$scratch/memory/work" none \
		"$scratch/merged" || { not_ok "overlayfs is mounted"; finish; }
work=$scratch/merged/work
app appending <<'END'
printf 12345 >f; exec 3<f; : >f; printf ab >>f; truncate -s 1 f; printf c >>f; cat f - <&3; echo
exec 4>>f; printf x >&4; printf y >>f; printf z >&4; truncate -s 2 f; printf w >&4; cat f; echo; stat -c %s f
for i in 1 2 3 4; do (for j in {1..25}; do echo "$i $j" >>log; done) & done; wait; wc -l <log; sort -u log | wc -l
END
app links-and-names <<'END'
echo 1 >a; ln a b; echo 2 >>b; cat a; mv a c; ln -s c l; cat l; stat -c '%h %s' b c; rm b; stat -c %h c; mkdir -p d/e; mv c d/e; mv d g; find . | sort
echo new >n; exec 3<n; rm n; cat <&3; ls; rmdir g 2>&1 | grep -o 'not empty'; rm -r g; ls -A
END
umount "$scratch/merged" "$scratch/memory"
finish
