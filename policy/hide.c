/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hide.h"

#include <string.h>

#include "base/macros.h"

/*
 * Reviewed by hand, beside the lists of what is shown at all below. Names, not patterns, because a
 * pattern would have to be expanded at start and would miss what comes later. /var/run is not here:
 * it is a link to /run, and host sockets are refused anyway. Grants below a hidden name are served
 * all the same: their parents are made up by the sentry.
 */
const struct hide_row policy_hide_rows[] = {
	{ "/boot", "kernel images and boot loader passwords", 0755 },
	{ "/dev", "host devices; the guest has its own", 0755 },
	{ "/etc/NetworkManager/system-connections", "wireless and VPN secrets" },
	{ "/etc/cni", "container network set-up" },
	{ "/etc/containers", "registry credentials" },
	{ "/etc/crypttab", "disk encryption" },
	{ "/etc/docker", "daemon keys" },
	{ "/etc/gshadow", "password hashes" },
	{ "/etc/gshadow-", "password hashes" },
	{ "/etc/ipsec.d", "VPN keys" },
	{ "/etc/ipsec.secrets", "VPN keys" },
	{ "/etc/krb5.keytab", "Kerberos keys" },
	{ "/etc/kubernetes", "cluster credentials" },
	{ "/etc/letsencrypt", "private keys" },
	{ "/etc/machine-id", "identifies the host" },
	{ "/etc/mysql/debian.cnf", "database password" },
	{ "/etc/netplan", "may hold wireless passwords" },
	{ "/etc/openvpn", "VPN keys" },
	{ "/etc/polkit-1", "who may do what on the host" },
	{ "/etc/ppp", "dial-up secrets" },
	{ "/etc/rancher", "cluster credentials" },
	{ "/etc/security/opasswd", "old password hashes" },
	{ "/etc/shadow", "password hashes" },
	{ "/etc/shadow-", "password hashes" },
	{ "/etc/ssh/ssh_host_dsa_key", "private host key" },
	{ "/etc/ssh/ssh_host_ecdsa_key", "private host key" },
	{ "/etc/ssh/ssh_host_ed25519_key", "private host key" },
	{ "/etc/ssh/ssh_host_rsa_key", "private host key" },
	{ "/etc/ssl/private", "private keys" },
	{ "/etc/pki/tls/private", "private keys" },
	{ "/etc/sssd", "directory service passwords" },
	{ "/etc/subgid", "host accounts" },
	{ "/etc/subuid", "host accounts" },
	{ "/etc/sudoers", "who may become root on the host" },
	{ "/etc/sudoers.d", "who may become root on the host" },
	{ "/etc/tailscale", "network keys" },
	{ "/etc/wireguard", "VPN keys" },
	{ "/etc/wpa_supplicant", "wireless passwords" },
	{ "/home", "homes of people", 0755 },
	{ "/media", "other disks", 0755 },
	{ "/mnt", "other disks", 0755 },
	{ "/proc", "host processes; the guest has its own", 0555 },
	{ "/root", "home of root", 0700 },
	{ "/run", "sockets of the host's services", 0755 },
	{ "/srv", "data that services serve", 0755 },
	{ "/sys", "host devices and kernel; the guest has its own", 0555 },
	{ "/tmp", "temporary files and sockets of others", 01777 },
	{ "/var/backups", "copies of password files", 0755 },
	{ "/var/cache/debconf/passwords.dat", "passwords of package set-up" },
	{ "/var/log", "what others did", 0755 },
	{ "/var/mail", "mail of people", 0775 },
	{ "/var/spool", "mail, print and cron jobs of people", 0755 },
	{ "/var/tmp", "temporary files of others", 01777 },
};
const size_t policy_hide_count = ARRAY_SIZE(policy_hide_rows);

static const char *const show_root[] = {
	"bin", "etc", "gnu",  "lib", "lib32", "lib64", "libx32",
	"nix", "opt", "sbin", "usr", "var",   NULL,
};
static const char *const show_var[] = { "cache", "lib", "local", "lock", "run", NULL };
static const char *const show_var_lib[] = {
	"alternatives",
	"apt",
	"aspell",
	"ca-certificates",
	"dictionaries-common",
	"dnf",
	"dpkg",
	"emacsen-common",
	"gems",
	"ghc",
	"hunspell",
	"ieee-data",
	"ispell",
	"man-db",
	"misc",
	"pacman",
	"pam",
	"python",
	"rpm",
	"sgml-base",
	"swcatalog",
	"texmf",
	"ucf",
	"vim",
	"xkb",
	"xml-core",
	NULL,
};

const struct show_row policy_show_rows[] = {
	{ "/", show_root },
	{ "/var", show_var },
	{ "/var/lib", show_var_lib },
};
const size_t policy_show_count = ARRAY_SIZE(policy_show_rows);

bool policy_shows(const struct show_row *row, const char *name)
{
	for (const char *const *n = row->names; *n; n++) {
		if (!strcmp(*n, name))
			return true;
	}
	return false;
}
