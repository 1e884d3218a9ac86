# SPDX-License-Identifier: Apache-2.0
# Turns what tests/kvm-svm/init said into TAP: "begin KIND PROGRAM", "| LINE" of its output, "end STATUS". Results get the mode and
# the program in front of their names; a program without a result, or one that ends badly without saying so, fails.
function result(ok, what) {
	print (ok ? "ok" : "not ok") " 0 - " mode ": " what
	results++
	if (!ok)
		bad++
}
function show(lines) {
	for (i = n > lines ? n - lines : 0; i < n; i++)
		print "# " out[i]
}
$1 == "note" || $1 == "log" { print "# " mode ": " $0; next }
$1 == "begin" {
	results = bad = excused = n = 0
	kind = $2
	name = $0
	sub(/begin [a-z]+ /, "", name)
	if (kind != "run")
		sub(/.*\//, "", name)
	next
}
$1 == "end" && kind == "run" {
	result($2 == 0, name)
	if (!verbose)
		show($2 == 0 ? 0 : 15)
	next
}
$1 == "end" {
	if (!results || ($2 != 0 && !bad && !excused)) {
		result(0, name ": ended with status " $2)
		show(15)
	}
	next
}
$1 == "|" {
	line = substr($0, 3)
	if (verbose)
		print "# " line
	if (kind != "run" && line ~ /^(not )?ok /) {
		good = line ~ /^ok /
		sub(/^(not )?ok [0-9]+ (- )?/, "", line)
		at = line
		sub(/.*: /, "", at) # behind the platform and the program
		if (index(" " except " ", " " name ":" at " ")) {
			print "ok 0 - " mode ": " name ": " line " # SKIP the emulation has no such thing"
			results++
			excused += !good
			next
		}
		if (!good && !verbose)
			show(4)
		result(good, name ": " line)
	} else if (kind == "run" || line !~ /^1\.\./) {
		out[n++] = line
	}
}
