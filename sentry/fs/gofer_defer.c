/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that are set a little later.
 *
 * Programs that unpack or copy set the times and the mode of each file they made, one call after the other, and then
 * make the next. For a file that is open here for writing and belongs to the user, nothing but a broken host can refuse
 * that. So it is noted (gofer_inode.pend), and goes to the gofer in front of the next request, or after
 * GOFER_DEFER_NS, or before anything from which somebody could learn that it is not done yet: the file's attributes are
 * looked at, data is read or written, something is written to a host file or pipe (vfs_settle), the sandbox ends.
 *
 * An error that comes late is given by the next fsync, as it is for data.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/log.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/kernel/timer.h"
#include "sentry/vfs/vfs.h"

#define GOFER_DEFER_NS (NSEC_PER_SEC / 500)
#define DEFERRABLE     (ATTR_MODE | ATTR_ATIME | ATTR_MTIME)

static struct gofer_conn *waiting; /* the one that has something put off */

static void settle(void)
{
	if (waiting)
		gofer_flush(waiting);
}

static void timer_fired(struct ktimer *kt)
{
	/* What is waiting now may have come since it was armed: most is taken along by the next request. */
	if (waiting && waiting->pending_until > clock_mono_ns() && ktimer_arm(kt, waiting->pending_until) == 0)
		return;
	settle();
}

void gofer_flush(struct gofer_conn *c)
{
	struct gofer_call call;

	if (!c->n_pending)
		return;
	gofer_call_init(&call, c);
	if (gofer_call_run(&call) < 0)
		log_dbg(CH_FS, "setting attributes failed");
	gofer_call_end(&call);
	/* Not even asked: the connection is gone. */
	for (unsigned i = 0; i < c->n_pending; i++) {
		c->pending[i]->pend.valid = 0;
		inode_put(&c->pending[i]->inode);
	}
	c->n_pending = 0;
	waiting = NULL;
	vfs_settle = NULL;
}

static bool can_defer(const struct gofer_inode *gi, uint32_t valid)
{
	const struct gofer_hfd *h = gi->wr;

	return !(valid & ~DEFERRABLE) && h && h->users && gi->fid && gi->owned && !gi->gone && !gi->fs->sb.stable &&
	       gofer_now() < gi->attr_until;
}

bool gofer_defer(struct gofer_inode *gi, const struct iattr *attr, uint32_t valid)
{
	struct gofer_conn *c = gi->fs->conn;
	struct inode *in = &gi->inode;

	if (!can_defer(gi, valid) || (waiting && waiting != c))
		return false;
	if (!gi->pend.valid) {
		if (c->n_pending == GOFER_PENDING_MAX)
			gofer_flush(c);
		if (!c->defer_timer.fire)
			ktimer_init(&c->defer_timer, timer_fired);
		if (!c->n_pending)
			c->pending_until = clock_mono_ns() + GOFER_DEFER_NS;
		if (!c->defer_timer.index && ktimer_arm(&c->defer_timer, c->pending_until) < 0)
			return false;
		c->pending[c->n_pending++] = gofer_inode(inode_get(in));
		waiting = c;
		vfs_settle = settle;
	}
	gi->pend.valid |= valid;
	if (valid & ATTR_MODE)
		gi->pend.mode = attr->mode & 01777; /* set-id bits are never given to a file of the host */
	if (valid & ATTR_ATIME)
		gi->pend.atime = attr->atime;
	if (valid & ATTR_MTIME)
		gi->pend.mtime = attr->mtime;
	/* What vfs goes by until then. */
	if (valid & ATTR_MODE)
		in->mode = (in->mode & S_IFMT) | gi->pend.mode;
	if (valid & ATTR_ATIME)
		in->atime = attr->atime;
	if (valid & ATTR_MTIME)
		in->mtime = attr->mtime;
	return true;
}

void gofer_setattr_fill(Sbx__Gofer__SetAttr *m, const struct iattr *attr, uint32_t valid)
{
	m->valid = valid;
	m->mode = attr->mode & 07777;
	m->size = attr->size;
	m->atime = attr->atime.sec;
	m->atime_nsec = attr->atime.nsec;
	m->mtime = attr->mtime.sec;
	m->mtime_nsec = attr->mtime.nsec;
}

void gofer_defer_send(struct gofer_call *c)
{
	struct gofer_conn *conn = c->conn;

	for (unsigned i = 0; i < conn->n_pending; i++) {
		struct gofer_inode *gi = conn->pending[i];
		Sbx__Gofer__SetAttr *m = conn->before_ptrs[i] = &conn->before[i];

		sbx__gofer__set_attr__init(m);
		m->fid = gi->fid;
		gofer_setattr_fill(m, &gi->pend, gi->pend.valid);
		gi->pend.valid = 0;
		conn->sent[i] = gi;
	}
	c->req.before = conn->before_ptrs;
	c->req.n_before = conn->n_sent = conn->n_pending;
	conn->n_pending = 0;
	if (waiting == conn) {
		waiting = NULL;
		vfs_settle = NULL;
		/* The timer stays: it costs less to let it find nothing. */
	}
}

void gofer_defer_done(struct gofer_call *c)
{
	struct gofer_conn *conn = c->conn;

	for (unsigned i = 0; i < conn->n_sent; i++) {
		struct gofer_inode *gi = conn->sent[i];
		const Sbx__Gofer__Done *d = c->rep && i < c->rep->n_done ? c->rep->done[i] : NULL;

		gofer_touched(gi);
		if (d && !d->error && d->attr) {
			gofer_attr_set(gi, d->attr, gofer_attr_until(gi));
		} else {
			gi->late_error = d && d->error ? -(int)d->error : -EIO;
			log_dbg(CH_FS, "attributes that were put off: error %d", gi->late_error);
		}
		inode_put(&gi->inode);
	}
	conn->n_sent = 0;
}

void gofer_settle(struct inode *in)
{
	if (gofer_inode(in)->pend.valid)
		gofer_flush(gofer_inode(in)->fs->conn);
}
