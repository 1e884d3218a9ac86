# SPDX-License-Identifier: Apache-2.0
# Git in a workspace that is granted read-write, and in one whose changes stay in the sandbox.
. "$(dirname "$0")/lib.sh"
needs git || { skip git "no git"; finish; }
g='export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@x GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_DATE="@1700000000 +0000" GIT_COMMITTER_DATE="@1700000000 +0000"; '
for opt in --no-option --cow; do
	mode=$opt
	if [ $opt = --cow ]; then set -- --cow; else set --; mode=rw; fi
	app "$mode: init, commit, log, branch, merge, tag, diff" "$@" <<END
$g
$(cat <<'IN'
git init -q -b main r; cd r; for i in $(seq 40); do mkdir -p d$((i % 5)); seq $i > d$((i % 5))/f$i; done; git add .; git commit -qm one; git log --oneline; git status --short
git checkout -qb topic; echo t >> d1/f1; git commit -qam topic; git checkout -q main; echo m >> d2/f2; git commit -qam main2; git merge -q --no-edit topic; git log --oneline --graph; git diff HEAD~1 --stat
git tag -a v1 -m tag; git describe; echo x > d1/f1; git diff; git checkout d1/f1; git mv d2/f2 d2/moved; git rm -q d3/f3; git status --short; git commit -qm moved; git show --stat HEAD | tail -n 4; git branch -d topic; git rev-parse HEAD
echo conflict1 > c; git add c; git commit -qm c1; git checkout -qb x HEAD~1; echo conflict2 > c; git add c; git commit -qm c2; git merge main; echo $?; cat c; git merge --abort; git blame -s d1/f1 | head -n 2; git grep -c 20 -- d0 | head -n 3; git ls-files | wc -l
IN
)
END
	app "$mode: rebase, stash, worktree, gc, fsck, clone, apply" "$@" <<END
$g
$(cat <<'IN'
git init -q -b main r; cd r; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm c$i; done; git checkout -qb t HEAD~2; echo z > z; git add z; git commit -qm z; git rebase main 2>/dev/null | tail -n 1; git log --format=%s
echo dirty >> f1; git stash -q; git status --short; git stash pop -q; git status --short; git checkout -q f1; git worktree add -q ../wt -b w 2>/dev/null; (cd ../wt; git log --oneline | wc -l; echo w > w; git add w; git commit -qm w; git rev-parse --abbrev-ref HEAD); git worktree list | wc -l; git worktree remove ../wt
git gc -q; git fsck 2>/dev/null; echo $?; git count-objects; ls .git/objects/pack | sed 's/.*\.//' | sort; git clone -q . ../c; git clone -q --no-local . ../c2; git -C ../c2 log --oneline | wc -l; git clone -q --bare . ../b; git -C ../c fetch -q; git -C ../c pull -q; echo $?
git cherry-pick w >/dev/null; git format-patch -1 --stdout > ../p; git reset -q --hard HEAD~1; git am -q ../p; git log --format=%s -1; git diff HEAD~1 > ../d; git apply -R ../d; git status --short; git apply ../d; git clean -fdxq; git push -q ../b HEAD:new; git -C ../b branch; git archive HEAD | tar t
GIT_SEQUENCE_EDITOR='sed -i 2d' git rebase -qi HEAD~3 2>/dev/null; git log --format=%s; git bisect start -q HEAD HEAD~2 >/dev/null; git bisect run false >/dev/null; echo $?; git reflog | wc -l; git submodule status; git config user.x y; git config user.x; git repack -adq; git fsck 2>/dev/null; echo $?
IN
)
END
done
seed=$scratch/seed
mkdir "$seed"
(cd "$seed" && eval "$g" && git init -q -b main . && seq 2000 >f && git add f && git commit -qm base)
app "a repository of the host" <<'END'
git log --format=%s; git status --short; echo x >> f; git status --short; git -c user.name=a -c user.email=a@x commit -qam more; git log --format=%s; git fsck 2>/dev/null; echo $?
END
eval "$g"
cp -a "$seed" "$scratch/host"
"$sbx" exec --cow -w "$scratch/host" -- sh -c 'echo x >> f; git -c user.name=a -c user.email=a@x commit -qam more; git gc -q; rm f' >/dev/null 2>&1
check "--cow leaves the host's repository as it was" diff -r "$seed" "$scratch/host"
git -C "$scratch/host" worktree add -q "$scratch/tree" -b tree 2>/dev/null
cp "$scratch/host/.git/config" "$scratch/config"
"$sbx" exec -w "$scratch/tree" -- sh -c 'cd "$(git rev-parse --git-common-dir)" && echo evil > hooks/post-commit
	git config core.fsmonitor evil; echo y >> "$OLDPWD/f"; git -C "$OLDPWD" -c user.name=a -c user.email=a@x commit -qam tree' >/dev/null 2>&1
check "a worktree can commit" test "$(git -C "$scratch/host" log --format=%s -1 tree)" = tree
check "a worktree cannot write the common directory's hooks" test ! -e "$scratch/host/.git/hooks/post-commit"
check "its configuration neither" cmp "$scratch/config" "$scratch/host/.git/config"
finish
