/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs inside: proc(5). Every inode has a node, which says what it is: a static directory, a text, a link, or one of
 * the directories whose names are numbers. Texts are made anew when they are read from offset 0.
 */
#ifndef SBX_SENTRY_FS_PROC_PROC_PRIV_H
#define SBX_SENTRY_FS_PROC_PROC_PRIV_H

#include "base/strbuf.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

struct dentry;
struct mount;
struct path;
struct task;
struct tgroup;

enum proc_kind { PROC_DIR, PROC_ROOT, PROC_TASKS, PROC_FDS, PROC_FDINFOS, PROC_TEXT, PROC_LINK, PROC_KINDS };

struct proc_inode;

struct proc_node {
	const char *name;
	uint32_t mode; /* permission bits */
	enum proc_kind kind;
	/* Only for who may look into the task as by ptrace(2), "Ptrace access mode checking". */
	bool look;
	/* PROC_DIR: its entries, ended by one without a name. */
	const struct proc_node *children;
	/* PROC_TEXT: appends the content. @t is the task that the inode is about (NULL outside a pid directory), alive
	 * and counted by the caller. 0 or -errno. */
	int (*text)(struct strbuf *b, struct proc_inode *pi, struct task *t);
	/* PROC_TEXT with a write bit in mode: takes what was written. */
	int (*store)(struct proc_inode *pi, struct task *t, const char *s, size_t len);
	/* PROC_LINK: what readlink shows. */
	int (*link)(struct strbuf *b, struct proc_inode *pi, struct task *t);
	/* PROC_LINK: the place itself (a magic link), both references the caller's; NULL: an ordinary symlink. */
	int (*follow)(struct proc_inode *pi, struct task *t, struct path *out);
};

struct proc_inode {
	struct inode in;
	const struct proc_node *node;
	pid_t pid; /* 0: not about a task */
	int fd;    /* in fd and fdinfo; else -1 */
	bool thread; /* pid is a thread's in a task directory */
};

extern const struct proc_node proc_root_children[];
extern const struct proc_node proc_pid_node, proc_tid_node; /* PROC_DIR */
extern const struct proc_node proc_fd_node, proc_fdinfo_node;

/* The task of a proc inode: counted, -ESRCH when it is gone (or a zombie without the part that is asked for). */
struct task *proc_task(const struct proc_inode *pi);

int proc_inode_create(struct super *sb, const struct proc_node *node, pid_t pid, int fd, bool thread,
                      struct inode **ret);

/* A file system of nodes alone: procfs and sysfs. */
int proc_super_create(const struct proc_node *root, const char *fstype, uint64_t magic, struct super **ret);

/* proc_fd.c */
int proc_fd_place(struct proc_inode *pi, struct task *t, struct path *out);
int proc_fd_link(struct strbuf *b, struct proc_inode *pi, struct task *t);
int proc_fdinfo_text(struct strbuf *b, struct proc_inode *pi, struct task *t);

#endif
