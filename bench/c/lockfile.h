// The lock file's cycle: the system calls that stile's lockfile makes without Sync for a guarded file
// that is there, in the same order, with the names and as many bytes as it has, and nothing else.
#include <dirent.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

static char guarded[4000], folder[4000], prefix[256], pending[4200], moved[4200];
static char content[224];
static unsigned attempts;
static int synced; // with Sync the pending file is on disk before it is linked

static void name_files(const char *path) {
	snprintf(guarded, sizeof guarded, "%s", path);
	snprintf(folder, sizeof folder, "%s", path);
	char *slash = strrchr(folder, '/');
	if (!slash)
		die("the path must be absolute");
	snprintf(prefix, sizeof prefix, "%.200s.", slash + 1);
	*slash = 0;
	memset(content, ' ', sizeof content);
}

static void attempt(char *name, const char *kind) {
	sprintf(name, "%s.%s-5bce98f7-%d-%024x", lock_path, kind, self, attempts++);
}

static int must(int got, const char *what) {
	if (got < 0)
		die(what);
	return got;
}

// As the sweep does it, the names are looked at where the kernel has put them.
static int list(void) {
	static char buf[32 << 10];
	int n, found = 0, dir = must(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "folder");
	size_t len = strlen(prefix);
	while ((n = must(syscall(SYS_getdents64, dir, buf, sizeof buf), "getdents64")) > 0)
		for (int at = 0; at < n; at += *(unsigned short *)(buf + at + 16))
			found += !strncmp(buf + at + 19, prefix, len);
	close(dir);
	return found;
}

static void file_lock(void) {
	struct stat st;
	struct utsname u;
	must(lstat(guarded, &st), "lstat");
	if (list())
		die("something is left beside the guarded file");
	if (open(lock_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC) >= 0)
		die("locked");
	if (uname(&u) || uname(&u)) // for the content and for the names
		die("uname");
	attempt(pending, "pending");
	int f = must(open(pending, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), "pending");
	if (write(f, content, sizeof content - 1) < 0 || (synced && fsync(f)) || fstat(f, &st) || close(f))
		die("pending");
	must(link(pending, lock_path), "link");
	must(unlink(pending), "unlink");
}

static void file_unlock(void) {
	struct stat st;
	char got[512];
	attempt(moved, "broken");
	must(rename(lock_path, moved), "rename");
	int f = must(open(moved, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC), "moved");
	if (fstat(f, &st) || read(f, got, sizeof got) != sizeof content - 1 || memcmp(got, content, sizeof content - 1))
		die("moved");
	close(f);
	must(unlink(moved), "unlink");
}

// copy replaces the guarded file by a copy of itself.
static void copy(int sync) {
	static char buf[256 << 10];
	int n, from = must(open(guarded, O_RDONLY | O_CLOEXEC), guarded);
	attempt(pending, "tmp");
	int to = must(open(pending, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), pending);
	while ((n = must(read(from, buf, sizeof buf), "read")) > 0)
		if (write(to, buf, n) != n)
			die("write");
	if (sync)
		must(fsync(to), "fsync");
	close(from);
	close(to);
	must(rename(pending, guarded), "rename");
	if (sync) {
		int dir = must(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "folder");
		must(fsync(dir), "fsync");
		close(dir);
	}
}
