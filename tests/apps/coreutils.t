# SPDX-License-Identifier: Apache-2.0
# File utilities on the granted workspace and on the sandbox's own /tmp.
. "$(dirname "$0")/lib.sh"
for where in . /tmp; do
	enter="d=\$(mktemp -d -p $where) && cd \$d; trap 'rm -rf \$PWD' EXIT"
	app "files in $where: ls cp mv rm" <<END
$enter
$(cat <<'IN'
mkdir -p a/b; echo one > a/1; echo two > a/b/2; ln -s ../1 a/b/l; ln a/1 a/h; chmod 640 a/1; cp -a a c; ls -R c
stat -c '%n %A %h %F' c/* c/b/*; [ c/1 -ef c/h ] && echo linked; cp -r a/b d; readlink d/l; cp -L a/b/l e; cat e
mv a/1 a/b; mv -n e c/1; ls; mv c/b/2 c/b/2x; ls c/b; rm -r c; rm nosuch; echo $?; rmdir a; echo $?; rm -rf a; ls
mkdir m; cp e d/2 m; mv m n; ls n; cp --backup=numbered e n; cp --backup=numbered e n; ls n; cp -p nosuch x; echo $?
umask 027; touch u; mkdir ud; stat -c %a u ud; install -D -m 751 e i/j/k; stat -c '%a %n' i/j/k; rm -i u < /dev/null; ls u
IN
)
END
	app "links and times in $where" <<END
$enter
$(cat <<'IN'
echo x > f; ln -s f s; ln -s loop loop; cat loop; echo $?; ln f g; rm f; cat g s; echo $?; ln -sf g s; cat s; ln -sfn . s; ls -d s
touch -d '2001-02-03 04:05:06.789 UTC' t; stat -c '%y %Y %X' t; touch -r t u; stat -c %Y u; touch -a -d @1000000000 t; stat -c '%X %Y' t
realpath --relative-to=. s/g; readlink -f s/s/g | sed "s,$PWD,P,"; realpath -e nosuch; echo $?; readlink -m no/../x | sed "s,$PWD,P,"
test t -nt g; echo $?; test g -nt t; echo $?; chmod g-r,o+x g; stat -c %a g; chmod -R a-w .; stat -c %a . g; chmod u+w .
ln nosuch x; echo $?; ln . x; echo $?; mkdir q; rmdir q/.; echo $?; mv q q/r; echo $?; touch q/; echo $?; cat q; echo $?; ls g/; echo $?
IN
)
END
	app "sizes in $where: dd du truncate" <<END
$enter
$(cat <<'IN'
dd if=/dev/zero of=z bs=64k count=32 status=none; stat -c %s z; dd if=/dev/urandom of=z bs=1 seek=100 count=10 conv=notrunc status=none
stat -c %s z; truncate -s 10M sp; stat -c '%s' sp; du -k sp | cut -f1; du -k --apparent-size sp | cut -f1; truncate -s -1M sp; stat -c %s sp
printf abc | dd of=sp bs=1 seek=5000000 conv=notrunc status=none; dd if=sp bs=1 skip=5000000 count=3 status=none; echo; cp --sparse=always sp sq; cmp sp sq; echo $?
fallocate -l 100000 fa; stat -c %s fa; fallocate -p -o 0 -l 65536 fa; echo $?; cat z sp | wc -c; cat z >> z 2>/dev/null; echo $?
dd if=z of=y bs=1M iflag=fullblock oflag=append conv=notrunc,fsync status=none; cmp z y; echo $?; sync y; echo $?; df . | wc -l; df -i . | wc -l; tac < /dev/null
head -c 300000 /dev/urandom > r; split -b 70000 r part.; cat part.* | cmp - r; echo $?; ls part.*; shred -u r; ls r; echo $?
IN
)
END
done
app text-filters <<'END'
seq 20 | shuf --random-source=/dev/zero | sort -n | uniq | tail -n 3; printf 'b 2\na 10\nc 1\n' > f; sort f; sort -k2n f; sort -rk2,2 f; sort -c f; echo $?
printf 'a\na\nb\n' | uniq -c; cut -d' ' -f2 f; cut -c1 f; tr a-c A-C < f; wc f; head -n 1 f; head -c 3 f; echo; tail -n +2 f; tail -c 4 f; nl f; tac f
paste -sd, f; join <(sort f) <(printf 'a X\nc Y\n'); comm <(seq 3) <(seq 2 4); fold -w 3 <<< abcdefgh; expand <<< $'a\tb'; rev <<< abc; od -An -tx1 f; od -c f | head -n 2
seq 200000 > big; sort -R big | sort -n | cmp - big; echo $?; sort --parallel=2 -S 1M -r big | head -n 1; split -n l/3 big p; wc -l p*; factor 1234567; expr 3 \* 4; base64 f; cksum f; md5sum f
seq 5 | tee a b | wc -l; cat a b | wc -l; tee /dev/full < f > /dev/null; echo $?; echo x > /dev/full; echo $?; numfmt --to=iec 1048576; csplit -s big 1000 && wc -l xx00; yes x | head -c 10 | od -c
END
app tail-follow <<'END'
seen() { for ((i = 0; i < 100; i++)); do grep -q "$1" out && break; sleep 0.1; done; }
echo 1 > f; : >out; timeout 20 tail -f f > out & t=$!; seen 1; echo 2 >> f; seen 2; kill $t; wait $t; cat out
(sleep 0.3; echo late > g) & timeout 20 tail -F g 2>/dev/null | head -n 1 & sleep 2; echo end >> g; wait
END
app temporary-files <<'END'
f=$(mktemp); echo $?; stat -c %a "$f"; d=$(mktemp -d -t x.XXXX); stat -c %a "$d"; mktemp -u /nosuch/XXXX >/dev/null; echo $?; mktemp /nosuch/XXXX; echo $?; rm -r "$f" "$d"
mkfifo p; (echo through > p &); cat p; stat -c %F p; test -p p; echo $?; timeout 0.3 cat p; echo $?; mknod q p; echo $?; sleep 0.1 | cat; pathchk -p 'a b'; echo $?
END
app set-user-ID --cow <<'END'
for d in . /tmp; do (cd $d; touch s; chmod 6755 s; stat -c %a s; echo x > s; chown 1:1 s; stat -c %a s; chmod u+s s; cp -p s t; stat -c %a t; mkdir -m 2775 g; mkdir g/h; stat -c %a g/h; rm -r g s t); done
END
app listing <<'END'
touch -d @1000 x; mkdir y; ln -s x z; ls -l --time-style=+%s | tail -n +2 | sed 's/ [0-9]* 1[0-9]\{9\} / N /'; ls -a; ls -F; ls -1t | tail -n 1; ls nosuch; echo $?; ls -i x | grep -c '^[0-9]'
for i in $(seq 1500); do : > y/file-$i; done; ls y | wc -l; ls -U y | wc -l; rm y/file-*[13579]; ls y | wc -l; find y -type f | wc -l; stat -f -c %T . | grep -c .; rm -r y; ls
END
finish
