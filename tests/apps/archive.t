# SPDX-License-Identifier: Apache-2.0
# Archives keep hard links, symbolic links, holes, modes and times through the sandbox's file systems.
. "$(dirname "$0")/lib.sh"
make_tree='mkdir -p t/d/e t/empty; seq 5000 > t/f; echo x > t/d/g; ln t/f t/d/hard; ln -s ../f t/d/sym; ln -s nowhere t/dangling
chmod 751 t/d/g; chmod 600 t/f; chmod 1777 t/empty; truncate -s 8M t/sparse; printf end | dd of=t/sparse bs=1 seek=4000000 conv=notrunc status=none
mkfifo t/fifo; touch -d @1111111111 t/f t/d/g; touch -d @1222222222 t/d/e; long=$(printf "n%.0s" $(seq 180)); echo l > "t/$long"; echo sp > "t/with space"; touch "t/ü"
show() { (cd $1; find . -mindepth 1 | sort | while read -r p; do stat -c "%n %A %h %F %s" "$p"; done | sed "s/\(directory\) [0-9]*/\1/"; find . -type f | sort | xargs -d "\n" cksum; readlink d/sym); }'
for z in '' J; do
	app "tar c${z}f" --cow <<END
$make_tree
chmod 6751 t/d/g
tar -c${z}f a.tar -S t; echo \$?; mkdir o; tar -x${z}pf a.tar -C o; echo \$?; show o/t; [ o/t/f -ef o/t/d/hard ] && echo linked
stat -c '%n %Y' o/t/f o/t/d/g o/t/d/e; [ \$(du -k o/t/sparse | cut -f1) -lt 1000 ] && echo still sparse; tar -d${z}f a.tar; echo \$?; tar -t${z}f a.tar | sort | head -n 5
END
done
app "tar: through a pipe, append, update, delete" <<END
$make_tree
mkdir o; tar -cf - t | (cd o && tar -xpf -); show o/t | cksum; show t | cksum; tar -cf a.tar t/f; tar -rf a.tar t/d; tar -tf a.tar | sort; tar --delete -f a.tar t/f; tar -tf a.tar | sort
echo changed > t/d/g; tar -uf a.tar t/d/g; tar -tf a.tar | sort | uniq -c | sort -n | tail -n 1; tar -xOf a.tar t/d/g; tar -xf nosuch; echo \$?; head -c 5000 a.tar | tar -tf - >/dev/null; echo \$?; tar -C t --exclude=d -cf - . | tar -t | sort
END
app "tar to the sandbox's own tmpfs" <<END
$make_tree
d=\$(mktemp -d); tar -cf - t | tar -xpf - -C \$d; show \$d/t; [ \$d/t/f -ef \$d/t/d/hard ] && echo linked; cp -a \$d/t u; show u | cksum; show t | cksum; rm -r \$d
END
app gzip-xz-bzip2 <<'END'
for c in gzip xz bzip2; do seq 100000 > f; cksum < f; chmod 640 f; touch -d @1000000 f; $c f; ls; stat -c '%a %Y' f.*; $c -t f.*; echo $?; $c -dc f.* | cksum; $c -d f.*; cksum < f; seq 1000 | $c | $c -d | tail -n 1; $c nosuch; echo $?; head -c 100 f | $c -d >/dev/null; echo $?; done
seq 50000 | gzip -9 > g.gz; zcat g.gz | wc -l; zgrep -c 99 g.gz; gzip -l g.gz | tail -n 1; xz -T2 -k f; xz -l f.xz | wc -l; cat g.gz g.gz | gunzip | wc -l
END
if needs zip unzip; then
	app zip <<'END'
mkdir d; seq 1000 > d/f; chmod 755 d/f; ln -s f d/l; zip -qry a.zip d; unzip -q a.zip -d o; cksum o/d/f; readlink o/d/l; stat -c %a o/d/f; unzip -tq a.zip; unzip -p a.zip d/f | tail -n 1
END
fi
if needs cpio; then
	app cpio <<'END'
mkdir -p d/e; seq 100 > d/f; ln d/f d/g; find d | sort | cpio -o -H newc --quiet > a.cpio; mkdir o; (cd o; cpio -id --quiet < ../a.cpio; find . | sort; stat -c %h d/f)
END
fi
finish
