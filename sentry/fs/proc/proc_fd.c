/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/fd and fdinfo. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/proc/proc_priv.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"

static struct file *file_of(const struct proc_inode *pi, struct task *t)
{
	return t->fdt ? fd_lookup(t->fdt, pi->fd) : NULL;
}

int proc_fd_place(struct proc_inode *pi, struct task *t, struct path *out)
{
	struct file *f = file_of(pi, t);
	int err;

	if (!f)
		return -ENOENT;
	err = file_place(f, &out->dentry, &out->mnt);
	file_put(f);
	return err;
}

int proc_fd_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct file *f = file_of(pi, t);
	char buf[PATH_MAX_LINUX];
	int n = 0;

	if (!f)
		return -ENOENT;
	if (f->dentry) {
		struct path p = { f->mnt, f->dentry };

		n = path_name(&p, t->fs ? &t->fs->root : NULL, buf, sizeof(buf));
		if (n >= 0)
			strbuf_add(b, buf, (size_t)n);
	} else if (f->anon_name && !strncmp(f->anon_name, "anon_inode:", 11)) {
		strbuf_puts(b, f->anon_name);
	} else if (S_ISREG(f->inode->mode)) {
		strbuf_printf(b, "/memfd:%s (deleted)", f->anon_name ? f->anon_name : "");
	} else if (S_ISCHR(f->inode->mode)) {
		strbuf_puts(b, "/dev/null"); /* a host device behind stdin, stdout or stderr */
	} else {
		strbuf_printf(b, "%s:[%llu]", S_ISSOCK(f->inode->mode) ? "socket" : "pipe",
		              (unsigned long long)f->inode->ino);
	}
	file_put(f);
	return n < 0 ? n : 0;
}

int proc_fdinfo_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct file *f = file_of(pi, t);

	if (!f)
		return -ENOENT;
	strbuf_printf(b, "pos:\t%llu\nflags:\t0%o\nmnt_id:\t%u\nino:\t%llu\n", (unsigned long long)f->pos,
		      f->flags | (fd_get_flags(t->fdt, pi->fd) > 0 ? 02000000u : 0), f->mnt ? f->mnt->id : 0,
		      (unsigned long long)f->inode->ino);
	file_put(f);
	return 0;
}
