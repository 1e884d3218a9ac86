# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
needs perl || { skip perl "no perl"; finish; }
app processes <<'END'
perl -e '$|=1; for (1..5) { unless (fork) { select(undef, undef, undef, $_ / 50); exit $_ } } while ((my $p = wait) > 0) { push @r, $? >> 8 } @r = sort @r; print "@r\n"; print `echo sub`, $? >> 8, "\n"; open P, "-|", "seq 3"; print <P>; close P; open Q, "|-", "sort -r"; print Q "a\nb\n"; close Q; print system("exit 3") >> 8, "\n"; exec "echo", "execed"'
perl -e '$SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; sleep 5 }; print $@; $SIG{USR1} = sub { print "usr1\n" }; kill USR1 => $$; pipe R, W; if (!fork) { close R; print W "x" x 200000; exit } close W; print length(join "", <R>), "\n"; $SIG{CHLD} = "IGNORE"; fork or exit; print wait, "\n"; kill 9, $$'; echo $?
END
app files <<'END'
perl -MFile::Find -MFile::Temp=tempfile -MFile::Copy -MFcntl=:flock,:seek -MFile::Path=make_path -MCwd -e 'make_path("a/b/c"); open F, "+>", "a/f"; print F "l$_\n" for 1..1000; seek F, 0, SEEK_SET; @l = <F>; print scalar(@l), -s "a/f", "\n"; flock(F, LOCK_EX) and print "lock\n"; copy("a/f", "a/g"); move("a/g", "a/b/h"); find({wanted => sub { print "$File::Find::name\n" }, no_chdir => 1, preprocess => sub { sort @_ }}, "a"); truncate F, 10; close F; print -s "a/f", "\n"; ($t, $n) = tempfile(UNLINK => 1); print $t "x"; print join(",", sort glob("a/*")), "\n"; symlink "f", "a/s"; print readlink "a/s", -l "a/s", "\n"; chmod 0600, "a/f"; printf "%o\n", (stat "a/f")[2]; rename "a/f", "nosuch/f" or print "$!\n"; unlink("a/s"), utime(1, 2, "a/f"); print((stat "a/f")[9], "\n"); opendir D, "a"; print join(" ", sort readdir D), "\n"'
seq 5 | perl -pe 's/(\d)/<$1>/'; seq 5 > f; perl -i.bak -pe '$_ *= 2' f; cat f f.bak; perl -ne 'print if eof' f; perl -MSocket -e 'socketpair A, B, AF_UNIX, SOCK_STREAM, 0; syswrite A, "hi"; sysread B, $x, 9; print "$x\n"; $r = ""; vec($r, fileno(B), 1) = 1; print select($r, undef, undef, 0.05), "\n"; socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un("s"); listen S, 5; if (!fork) { socket C, AF_UNIX, SOCK_STREAM, 0; connect C, sockaddr_un("s"); print C "client\n"; exit } accept N, S; print <N>'
perl -e 'print "$0 $^O ", $] >= 5, "\n"; die "bye\n"'; echo $?; perl -MPOSIX -e 'print POSIX::strftime("%F", gmtime 0), " ", POSIX::getpid() == $$, " ", (POSIX::uname)[0], "\n"; POSIX::_exit(6)'; echo $?; perl -MDigest::SHA=sha1_hex -MTime::HiRes=usleep -e 'usleep 1000; print sha1_hex("x"), "\n"'; perl -c -e 1; echo $?
END
finish
