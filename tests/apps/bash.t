# SPDX-License-Identifier: Apache-2.0
# The shell: what scripts of an agent and of build systems use.
. "$(dirname "$0")/lib.sh"
app pipes <<'END'
seq 1000 | grep 7 | sort -rn | head -n 5; echo "${PIPESTATUS[@]}"
yes | head -n 100000 | wc -l
false | true; echo $?; set -o pipefail; false | true; echo $?
echo a | { read x; echo "got $x"; cat; }; ls /nonexistent |& wc -l
END
app jobs-and-wait <<'END'
for i in 1 2 3 4 5; do (sleep 0.0$i; exit $i) & p[$i]=$!; done
for i in 5 4 3 2 1; do wait ${p[$i]}; echo "$i: $?"; done
sleep 30 & kill $!; wait $!; echo $?
(exit 7) & wait -n; echo $?; wait; jobs; echo done
END
app traps <<'END'
trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; trap 'echo exit' EXIT
kill -USR1 $$; kill -USR1 $$; (trap 'echo sub' EXIT; exit 1)
trap 'echo err at $LINENO' ERR; false; trap '' INT; kill -INT $$; echo alive
sleep 20 & s=$!; (sleep 0.1; kill -TERM $$) & wait $s; echo not reached
END
app here-documents <<'END'
x=5; cat <<E
value $x $((x * 2)) `echo sub`
E
cat <<'E'
raw $x
E
tr a-z A-Z <<< "here string"; for i in $(seq 1 3000); do echo "line $i of a here-document larger than a pipe"; done > big
eval "wc -c <<E
$(cat big)
E"
END
app process-substitution <<'END'
diff <(seq 5) <(seq 2 6); echo $?; tee >(wc -c > count) < <(seq 100) | tail -n 1; until [ -s count ]; do sleep 0.1; done; cat count
while read -r a; do s=$((s + a)); done < <(seq 10); echo $s; paste <(echo a) <(echo b) <(echo c)
END
app job-control <<'END'
set -m; sleep 30 & echo "pgid is pid: $(($(ps -o pgid= -p $!) == $!))"
kill -STOP %1; for ((n = 0; n < 100; n++)); do [ -n "$(jobs -s)" ] && break; sleep 0.1; done; jobs | sed 's/ \+/ /g'; kill -CONT %1; kill %1; wait %1; echo $?
(sleep 0.1; exit 4) & fg %1 >/dev/null; echo $?; set +m
END
app subshells-and-exec <<'END'
x=1; (x=2; cd /; pwd; exit 9); echo $x $? $(pwd | wc -l); echo $BASH_SUBSHELL $(echo $BASH_SUBSHELL)
exec 5>f; echo five >&5; exec 5>&-; cat f; exec 6<>f; read -u 6 l; echo $l; (exec -a name bash -c 'echo $0')
{ echo out; echo err >&2; } 2>&1 >/dev/null | sed s/^/e:/; echo x > noclob; set -C; echo y > noclob; echo $?
f() { return $1; }; f 3; echo $?; nosuch 2>/dev/null; echo $?; ./f; echo $?; mkdir d; ./d; echo $?
END
app globbing <<'END'
mkdir -p a/b/c; touch a/{1..12}.txt a/b/x.c a/b/c/y.c .hid '[x]' 'a b'; echo a/*.txt; echo a/?.txt; echo *
shopt -s globstar dotglob extglob nullglob; echo **/*.c; echo *; echo a/!(1*).txt; echo none*; echo a/[1-3].txt
END
app arrays-and-expansion <<'END'
a=(one two "three four"); declare -A m=([k]=v [l]=w); echo ${#a[@]} "${a[2]}" ${m[k]} ${!a[@]}
s=/usr/lib/x.tar.gz; echo ${s##*/} ${s%%.*} ${s/lib/bin} ${s:5:3} ${s^^} ${u:-def}; printf '%05d|%-6s|%x|%q\n' 42 ab 255 'a b'
mapfile -t l < <(seq 5); echo ${l[@]: -2}; echo $((2 ** 40 % 1000)) {a..e}{1..2}; [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo ${BASH_REMATCH[2]}
END
app read-loops <<'END'
printf 'a:b:c\nd:e:f\n' > in; while IFS=: read -r x y z; do echo "$z$y$x"; done < in
seq 2000 > n; c=0; while read -r l; do ((c += l)); done < n; echo $c; read -t 0.2 x < <(sleep 2); echo $?
read -n 3 x <<< abcdef; echo $x; read -d : y < in; echo $y; read z < /dev/null; echo $?
END
app ulimit <<'END'
ulimit -n 64; ulimit -n; for i in {10..80}; do eval "exec $i<in" 2>/dev/null || break; done; touch in
(ulimit -f 1; head -c 100000 /dev/zero > big; echo $?; stat -c %s big); ulimit -c 0; ulimit -c; ulimit -s 4096; ulimit -s
(ulimit -t 1; while :; do :; done); echo $?; (ulimit -v 500000; python3 -c 'x = bytearray(1 << 30)' 2>&1 | tail -n 1)
END
app coproc <<'END'
coproc C { while read -r l; do echo "<$l>"; done; }
for i in 1 2 3; do echo $i >&${C[1]}; read -r r <&${C[0]}; echo $r; done; eval "exec ${C[1]}>&-"; wait $C_PID; echo $?
END
app timeout <<'END'
timeout 0.2 sleep 5; echo $?; timeout -s KILL 0.2 sleep 5; echo $?; timeout 5 true; echo $?; timeout 5 sh -c 'exit 9'; echo $?
timeout -k 0.2 1 sh -c 'trap "" TERM; sleep 9; sleep 9'; echo $?; timeout 1 nosuch; echo $?
END
app signals-of-children <<'END'
sh -c 'kill -SEGV $$'; echo $?; sh -c 'kill -KILL $$'; echo $?; sh -c 'ulimit -c 0; kill -ABRT $$'; echo $?
yes | head -n 1; echo ${PIPESTATUS[0]}; kill -l 15; (trap '' PIPE; yes 2>/dev/null; echo $?) | head -n 1
kill -0 $$; echo $?; kill -0 99999; echo $?; nohup sh -c 'kill -HUP $$; echo lives' 2>/dev/null
END
app deep-recursion-and-many-forks <<'END'
f() { (($1)) && f $(($1 - 1)) || echo bottom; }; f 500; for i in {1..60}; do x=$(echo $i); done; echo $x
r() { if (($1)); then (r $(($1 - 1))); else echo deep; fi; }; r 20; find / -maxdepth 0 -exec sh -c 'echo $$ | grep -c .' \;
END
finish
