# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
app grep <<'END'
mkdir -p d/e; seq 100 > d/n; printf 'foo\nbar baz\nFOO\n' > d/e/t; head -c 2000 /dev/zero > d/bin; grep -r foo d; grep -rli foo d; grep -c 1 d/n; grep -n -A1 -B1 '^50$' d/n
grep -E '^(9|10)' d/n; grep -oP '(?<=ba)\w' d/e/t; grep -v . d/n; echo $?; grep -q 99 d/n; echo $?; grep x nosuch; echo $?; grep -c '' d/bin; grep -w bar d/e/t; grep -f <(seq 3) -x d/n; grep -rL foo d | sort
END
app sed <<'END'
seq 10 > f; sed -n '3,5p' f; sed '/^1/d' f; sed -i.bak 's/5/five/' f; cat f f.bak | wc -l; sed -n '$=' f; sed '1!G;h;$!d' f | head -n 2; sed -e '2i\
inserted' -e '3q' f; sed -E 's/([0-9])0/\1x/' f | tail -n 1; sed -n '/five/w out' f; cat out; sed -i -e '1d' f; head -n 1 f; stat -c %a f; sed s/a/b/ nosuch; echo $?
END
app awk <<'END'
seq 1000 | awk '{s += $1} END {print s, NR}'; printf 'a b\nc d\n' | awk '{print $2, $1 > "out"; close("out")} END {while ((getline l < "out") > 0) print l}'
awk 'BEGIN {while (("echo x; echo y" | getline l) > 0) print "got", l; printf "%5.2f|%s\n", 3.14159, toupper("abc"); print substr("hello", 2, 3), length("abc"), index("abc", "c")}'
awk -F: '{n[$2]++} END {for (k in n) print k, n[k] | "sort"}' <<< $'1:a\n2:b\n3:a'; awk 'BEGIN {exit 3}'; echo $?; awk 'BEGIN {system("exit 4"); print "z" | "cat"}'; awk '{' 2>/dev/null; echo $?
END
app find <<'END'
mkdir -p a/{b,c}/{d,e}; touch a/b/1.c a/b/d/2.c a/c/3.h; ln -s ../b a/c/l; touch -d '2 days ago' a/c/3.h; find a | sort; find a -name '*.c' -exec echo {} + | tr ' ' '\n' | sort; find a -type d -empty | sort
find a -type l -printf '%p %l\n'; find -L a -name 1.c | sort; find a -mtime +1; find a -newer a/c/3.h -type f | sort; find a -maxdepth 1 -mindepth 1 | sort; find a -size 0 | wc -l; find a -name '*.c' -delete; find a -type f; find nosuch; echo $?
find a -perm -u+w -type d | wc -l; find a -depth -type d | tail -n 1; find a -path '*/c/*' -prune -o -print | sort; find / -xdev -maxdepth 1 -name usr; find /usr/lib -name 'libc.so.*' | wc -l
END
app find-in-system-directories <<'END'
find /usr/share/doc -maxdepth 1 | wc -l; find /etc -maxdepth 1 -type f -readable -name 'h*' | sort; ls /usr/bin | wc -l; cat /usr/share/common-licenses/GPL-3 | md5sum; grep -c . /etc/passwd
END
app xargs <<'END'
seq 10 | xargs; seq 10 | xargs -n 3 echo; printf 'a b\0c\0' | xargs -0 -n 1 echo; seq 8 | xargs -P 4 -n 1 sh -c 'sleep 0.0$0; echo $0' | sort; seq 3 | xargs -I{} echo x{}y; false | xargs -r echo none; echo a | xargs false; echo $?
echo x | xargs nosuch; echo $?; echo x | xargs sh -c 'exit 255'; echo $?; seq 20000 | xargs echo | wc -w; seq 20000 | xargs -s 8192 echo | wc -l; head -c 120000 /dev/zero | tr '\0' a | xargs echo | wc -c
END
app diff-and-patch <<'END'
mkdir a b; seq 20 > a/f; sed 's/^7$/seven/; 15d' a/f > b/f; echo new > b/g; cp a/f a/same; cp a/f b/same; diff -ru a b | sed 's/\t.*//' > p; cat p; diff -q a b; echo $?; diff -rN a b > p2; diff -ruN a b > p3; (cd a; patch -p1 < ../p3); diff -r a b; echo $?
(cd a; patch -R -p1 < ../p3); ls a; (cd b; patch -p1 --dry-run -N < ../p3); echo $?; cmp a/f b/f; echo $?; diff3 a/f b/f a/same | head -n 4; diff -y --width 20 <(seq 2) <(seq 3); sdiff -s <(seq 2) <(seq 3); comm -3 a/f b/f 2>/dev/null | wc -l
END
finish
