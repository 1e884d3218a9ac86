/* SPDX-License-Identifier: Apache-2.0 */
/* A grant as a file system: the superblock and the tables of operations. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "sentry/fs/gofer_priv.h"

#define GOFER_MAGIC   0x73627866 /* "sbxf" */
#define FIRST_BUCKETS 64

const struct inode_ops gofer_reg_inode_ops = {
	.settle = gofer_settle,
	.refresh = gofer_refresh,
	.setattr = gofer_setattr,
	.open = gofer_open,
	.getxattr = gofer_getxattr,
	.setxattr = gofer_setxattr,
	.listxattr = gofer_listxattr,
	.removexattr = gofer_removexattr,
	.destroy = gofer_inode_destroy,
};

const struct inode_ops gofer_dir_inode_ops = {
	.refresh = gofer_refresh,
	.lookup = gofer_lookup,
	.revalidate = gofer_revalidate,
	.create = gofer_create,
	.mkdir = gofer_mkdir,
	.mknod = gofer_mknod,
	.symlink = gofer_symlink,
	.link = gofer_link,
	.unlink = gofer_unlink,
	.rmdir = gofer_rmdir,
	.rename = gofer_rename,
	.tmpfile = gofer_tmpfile,
	.setattr = gofer_setattr,
	.getxattr = gofer_getxattr,
	.setxattr = gofer_setxattr,
	.listxattr = gofer_listxattr,
	.removexattr = gofer_removexattr,
	.destroy = gofer_inode_destroy,
};

const struct inode_ops gofer_link_inode_ops = {
	.refresh = gofer_refresh,
	.readlink = gofer_readlink,
	.setattr = gofer_setattr,
	.destroy = gofer_inode_destroy,
};

/* FIFOs and sockets serve as names of the guest's own; devices of the host cannot be opened. */
const struct inode_ops gofer_special_inode_ops = {
	.refresh = gofer_refresh,
	.setattr = gofer_setattr,
	.destroy = gofer_inode_destroy,
};

static int gofer_statfs(struct super *sb, struct kstatfs *st)
{
	Sbx__Gofer__StatFs m = SBX__GOFER__STAT_FS__INIT;
	struct gofer_inode *root = gofer_inode(sb->root);
	struct gofer_call c;
	int r;

	gofer_call_init(&c, root->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_STATFS;
	c.req.statfs = &m;
	r = gofer_call_fid(&c, root, &m.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && !c.rep->statfs)
		r = -EIO;
	if (r == 0) {
		const Sbx__Gofer__StatFsReply *s = c.rep->statfs;

		*st = (struct kstatfs){
			.type = s->type, .bsize = s->bsize, .blocks = s->blocks, .bfree = s->bfree, .bavail = s->bavail,
			.files = s->files, .ffree = s->ffree, .namelen = s->namelen,
		};
	}
	gofer_call_end(&c);
	return r;
}

static void gofer_super_destroy(struct super *sb)
{
	struct gofer_fs *fs = container_of(sb, struct gofer_fs, sb);

	gofer_flush(fs->conn);
	gofer_ahead_clear(fs->conn);
	BUG_ON(fs->n_inodes);
	gofer_conn_put(fs->conn);
	free(fs->buckets);
	free(fs);
}

static int gofer_sync(struct super *sb)
{
	gofer_flush(container_of(sb, struct gofer_fs, sb)->conn);
	return 0;
}

static const struct super_ops gofer_super_ops = {
	.sync = gofer_sync,
	.statfs = gofer_statfs,
	.destroy = gofer_super_destroy,
};

static int attach(struct gofer_fs *fs)
{
	Sbx__Gofer__Attach m = SBX__GOFER__ATTACH__INIT;
	struct gofer_inode *root;
	struct gofer_call c;
	int r;

	gofer_call_init(&c, fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_ATTACH;
	c.req.attach = &m;
	m.grant = fs->args.grant;
	r = gofer_call_new_fid(&c, &m.new_fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && (c.n_attrs != 1 || (!S_ISDIR(c.attrs[0]->mode) && !S_ISREG(c.attrs[0]->mode))))
		r = -EIO;
	if (r == 0) {
		fs->root_dev = c.attrs[0]->dev;
		r = gofer_iget(fs, NULL, NULL, c.attrs[0], gofer_until(fs), &root);
	}
	if (r == 0) {
		root->fid = m.new_fid;
		c.n_alloc = 0;
		fs->sb.root = &root->inode;
	}
	gofer_call_end(&c);
	return r;
}

int gofer_fs_create(struct gofer_conn *c, const struct gofer_fs_args *args, struct super **ret)
{
	struct gofer_fs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return -ENOMEM;
	fs->n_buckets = FIRST_BUCKETS;
	fs->buckets = malloc(fs->n_buckets * sizeof(*fs->buckets));
	if (!fs->buckets) {
		free(fs);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < fs->n_buckets; i++)
		list_init(&fs->buckets[i]);
	super_init(&fs->sb, &gofer_super_ops, "gofer", GOFER_MAGIC);
	fs->sb.stable = !args->live;
	fs->args = *args;
	fs->conn = c;
	ref_get(&c->ref);
	r = attach(fs);
	if (r < 0) {
		super_put(&fs->sb);
		return r;
	}
	*ret = &fs->sb;
	return 0;
}
