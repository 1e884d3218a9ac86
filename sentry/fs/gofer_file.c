/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open regular files of a grant. The gofer donates a host fd, and data moves through that. One read-only and one
 * writable fd at most serve all opens of an inode; a read-only one is kept for a while after the last close, so that
 * opening a file again costs no round trip. A writable one is closed at once: while it is open the host could not run
 * the file (ETXTBSY).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/fdio.h"
#include "base/host/hostio.h"
#include "base/host/file.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

struct gofer_file {
	struct file file;
	struct gofer_hfd *h; /* used */
};

static struct gofer_hfd *file_hfd(struct file *f)
{
	return container_of(f, struct gofer_file, file)->h;
}

static void hfd_free(struct gofer_hfd *h)
{
	host_close(h->fd);
	free(h);
}

static void idle_remove(struct gofer_conn *c, struct gofer_hfd *h)
{
	if (list_empty(&h->idle))
		return;
	list_del(&h->idle);
	c->n_idle--;
}

/* Takes @h out of its slot; it is freed when nobody uses it. */
static void hfd_detach(struct gofer_hfd *h)
{
	struct gofer_inode *gi = h->gi;

	if (gi->rd == h)
		gi->rd = NULL;
	else
		gi->wr = NULL;
	idle_remove(gi->fs->conn, h);
	h->gi = NULL;
	if (!h->users)
		hfd_free(h);
}

struct gofer_hfd *gofer_hfd_install(struct gofer_inode *gi, int fd, bool readable, bool writable)
{
	struct gofer_hfd **slot = writable ? &gi->wr : &gi->rd, *h = calloc(1, sizeof(*h));

	if (!h) {
		host_close(fd);
		return NULL;
	}
	if (*slot)
		hfd_detach(*slot);
	h->fd = fd;
	h->readable = readable;
	h->writable = writable;
	h->gi = gi;
	list_init(&h->idle);
	*slot = h;
	return h;
}

void gofer_hfd_drop_idle(struct gofer_inode *gi)
{
	if (gi->rd && !gi->rd->users)
		hfd_detach(gi->rd);
	if (gi->wr && !gi->wr->users)
		hfd_detach(gi->wr);
}

bool gofer_hfd_drop_all_idle(struct gofer_conn *c)
{
	bool any = !list_empty(&c->idle);

	while (!list_empty(&c->idle))
		hfd_detach(list_first_entry(&c->idle, struct gofer_hfd, idle));
	return any;
}

void gofer_hfds_fini(struct gofer_inode *gi)
{
	if (gi->rd)
		hfd_detach(gi->rd);
	if (gi->wr)
		hfd_detach(gi->wr);
}

void gofer_unopened_close(struct gofer_conn *c)
{
	struct gofer_inode *gi = c->unopened;

	c->unopened = NULL;
	if (gi && gi->wr && !gi->wr->users)
		hfd_detach(gi->wr);
}

static void hfd_put(struct gofer_hfd *h)
{
	struct gofer_inode *gi = h->gi;
	struct gofer_conn *c;

	if (--h->users)
		return;
	if (!gi) {
		hfd_free(h);
		return;
	}
	c = gi->fs->conn;
	if (h->writable) {
		/* The last look at what was written, while it costs no round trip. */
		if (h->changed)
			(void)gofer_attrs_update(gi);
		hfd_detach(h);
		return;
	}
	if (gi->gone || gi->inode.nlink == 0) {
		hfd_detach(h);
		return;
	}
	list_add(&c->idle, &h->idle);
	if (++c->n_idle > GOFER_IDLE_FDS)
		hfd_detach(list_last_entry(&c->idle, struct gofer_hfd, idle));
}

static int request_open(struct gofer_inode *gi, uint32_t flags, struct gofer_hfd **ret)
{
	Sbx__Gofer__Open o = SBX__GOFER__OPEN__INIT;
	uint64_t until = gofer_until(gi->fs);
	struct gofer_call c;
	int r;

	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_OPEN;
	c.req.open = &o;
	o.flags = flags;
	r = gofer_call_fid(&c, gi, &o.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && (c.fd < 0 || c.n_attrs != 1))
		r = c.lost_fd ? -ENFILE : -EIO;
	if (r == 0 && (c.attrs[0]->ino != gi->ino || c.attrs[0]->dev != gi->dev || !S_ISREG(c.attrs[0]->mode)))
		r = gofer_stale(gi);
	if (r == 0) {
		if (!gi->wr || !gi->wr->changed)
			gofer_attr_set(gi, c.attrs[0], until);
		*ret = gofer_hfd_install(gi, c.fd, flags != O_WRONLY, flags != O_RDONLY);
		c.fd = -1;
		r = *ret ? 0 : -ENOMEM;
	}
	gofer_call_end(&c);
	return r;
}

static int hfd_get(struct gofer_inode *gi, bool read, bool write, struct gofer_hfd **ret)
{
	struct gofer_hfd *h = write ? gi->wr : gi->rd;
	int r = 0;

	if (gi->fs->conn->unopened == gi) {
		gi->fs->conn->unopened = NULL;
		if (!write)
			gofer_hfd_drop_idle(gi);
	}
	if (!h || (read && !h->readable)) {
		r = request_open(gi, write ? O_RDWR : O_RDONLY, &h);
		if (r == -ENFILE && gofer_hfd_drop_all_idle(gi->fs->conn))
			r = request_open(gi, write ? O_RDWR : O_RDONLY, &h);
		if (r == -EACCES && write && !read)
			r = request_open(gi, O_WRONLY, &h);
	}
	if (r == -ESTALE && !gi->fid && !gi->parent)
		r = -ENOENT;
	if (r < 0)
		return r;
	idle_remove(gi->fs->conn, h);
	h->users++;
	*ret = h;
	return 0;
}

int gofer_open(struct inode *in, struct file *f)
{
	struct gofer_file *gf = container_of(f, struct gofer_file, file);

	return hfd_get(gofer_inode(in), file_readable(f), file_writable(f), &gf->h);
}

static void gofer_release(struct file *f)
{
	struct gofer_hfd *h = file_hfd(f);

	if (h)
		hfd_put(h);
}

static ssize_t gofer_read(struct file *f, struct uio *u, uint64_t *pos)
{
	const struct gofer_hfd *h = file_hfd(f);
	void *buf = uio_bounce();
	ssize_t done = 0;

	gofer_settle(f->inode);
	while (u->resid) {
		size_t n = MIN(u->resid, (uint64_t)UIO_BOUNCE_SIZE);
		ssize_t got = host_pread(h->fd, buf, n, (off_t)*pos), put;

		if (got <= 0)
			return done ? done : got;
		put = uio_copy_to(u, buf, (size_t)got);
		if (put < 0)
			return done ? done : put;
		*pos += (uint64_t)put;
		done += put;
		if (put < got || (size_t)got < n)
			break;
	}
	return done;
}

static void wrote(struct gofer_inode *gi, struct gofer_hfd *h, uint64_t end)
{
	if (end > gi->inode.size)
		gi->inode.size = end;
	if (h->changed && !gi->attr_until)
		return;
	gofer_touched(gi);
	h->changed = true;
}

static ssize_t gofer_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct gofer_inode *gi = gofer_inode(f->inode);
	struct gofer_hfd *h = file_hfd(f);
	void *buf = uio_bounce();
	ssize_t done = 0;

	/* All, not only this file's: what is written here may tell the host of them. */
	gofer_flush(gi->fs->conn);
	while (u->resid) {
		ssize_t got = uio_copy_from(u, buf, MIN(u->resid, (uint64_t)UIO_BOUNCE_SIZE)), put;
		uint64_t end = 0;

		if (got < 0)
			return done ? done : got;
		if (f->flags & O_APPEND)
			put = host_file_append(h->fd, buf, (size_t)got, &end);
		else
			put = host_pwrite(h->fd, buf, (size_t)got, (off_t)*pos);
		if (put < got)
			uio_revert(u, (size_t)(put < 0 ? got : got - put));
		if (put < 0)
			return done ? done : put;
		*pos = f->flags & O_APPEND ? end : *pos + (uint64_t)put;
		wrote(gi, h, *pos);
		done += put;
		if (put < got)
			break;
	}
	return done;
}

static int64_t gofer_llseek(struct file *f, int64_t off, int whence)
{
	int64_t r;

	if (whence == SEEK_DATA || whence == SEEK_HOLE) {
		r = host_lseek(file_hfd(f)->fd, off, whence);
		if (r >= 0)
			f->pos = (uint64_t)r;
		return r;
	}
	r = whence == SEEK_END ? gofer_refresh(f->inode) : 0;
	return r < 0 ? r : file_seek(f, off, whence, f->inode->size);
}

static int gofer_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	(void)prot; /* checked against the file's mode by vfs; the host checks the fd's again */
	(void)shared;
	gofer_settle(f->inode);
	*map = (struct file_map){ .fd = file_hfd(f)->fd };
	if (shared && file_writable(f)) /* writes will not be seen here */
		gofer_touched(gofer_inode(f->inode));
	return 0;
}

static int gofer_fsync(struct file *f, bool data_only)
{
	struct gofer_inode *gi = gofer_inode(f->inode);
	int r;

	gofer_settle(f->inode);
	r = gi->late_error;
	gi->late_error = 0;
	return r ? r : host_fsync(file_hfd(f)->fd, data_only);
}

static int gofer_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	struct gofer_hfd *h = file_hfd(f);
	int r;

	gofer_settle(f->inode);
	r = host_fallocate(h->fd, mode, (off_t)off, (off_t)len);
	if (r == 0)
		wrote(gofer_inode(f->inode), h, 0);
	return r;
}

static int truncate_hfd(struct gofer_inode *gi, struct gofer_hfd *h, uint64_t size)
{
	int r;

	gofer_settle(&gi->inode);
	r = size > INT64_MAX ? -EINVAL : host_ftruncate(h->fd, (off_t)size);
	if (r < 0)
		return r;
	gi->inode.size = size;
	wrote(gi, h, size);
	return 0;
}

static int gofer_truncate(struct file *f, uint64_t size)
{
	struct gofer_hfd *h = file_hfd(f);

	return h->writable ? truncate_hfd(gofer_inode(f->inode), h, size) : -EINVAL;
}

int gofer_truncate_fd(struct gofer_inode *gi, uint64_t size)
{
	return gi->wr ? truncate_hfd(gi, gi->wr, size) : -ENOENT;
}

const struct file_ops gofer_file_ops = {
	.file_size = sizeof(struct gofer_file),
	.read = gofer_read,
	.write = gofer_write,
	.llseek = gofer_llseek,
	.mmap = gofer_mmap,
	.fsync = gofer_fsync,
	.fallocate = gofer_fallocate,
	.truncate = gofer_truncate,
	.release = gofer_release,
};
