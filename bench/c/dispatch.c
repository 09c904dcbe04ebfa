// dispatch FOLDER: what 'stile dispatch open' asks of the kernel for an agent's folder with a log and a
// board, in the same order and with as many bytes: the lock file with its bytes on disk, the log copied with
// one record more, the board read and written with one item more, both on disk, and the release.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char lock_path[4096];
static int self;

static void die(const char *what) {
	perror(what);
	exit(1);
}

#include "lockfile.h"

static const char *record = ",\n  {\"v\":1,\"id\":\"01JDXYZ0000000000000000000\",\"agent\":\"ada\",\"task\":\"water the plants\","
	"\"opened_at\":\"2026-11-30T17:43:32.815Z\",\"opened_by\":{\"pid\":4711,\"host\":\"desk\"},\"status\":\"open\"}\n]\n";
static const char *item = ",\n    {\"dispatch\":\"01JDXYZ0000000000000000000\",\"title\":\"water the plants\",\"column\":\"todo\","
	"\"updated_at\":\"2026-11-30T17:43:32.815Z\"}\n  ]\n}\n";

static void sync_folder(const char *name) {
	int dir = must(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), name);
	must(fsync(dir), "fsync");
	close(dir);
}

static void fenced(void) {
	struct stat st;
	char got[512];
	int f = must(open(lock_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC), "fence");
	if (fstat(f, &st) || read(f, got, sizeof got) != sizeof content - 1 || memcmp(got, content, sizeof content - 1))
		die("fence");
	close(f);
}

// add replaces name by itself with more in place of what ends it.
static void add(const char *name, const char *end, const char *more) {
	char temp[4200], tail[16] = "", dir[4096];
	struct stat st;
	snprintf(dir, sizeof dir, "%s", name);
	*strrchr(dir, '/') = 0;
	snprintf(temp, sizeof temp, "%s.tmp-5bce98f7-%d-%024x", name, self, attempts++);
	int from = must(open(name, O_RDONLY | O_CLOEXEC), name);
	must(fstat(from, &st), "fstat");
	size_t len = strlen(end);
	if (pread(from, tail, len, st.st_size - len) != (ssize_t)len || strcmp(tail, end))
		die("it does not end as it should");
	int to = must(open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), temp);
	static char buf[4 << 20];
	off_t left = st.st_size - len;
	while (left > 0) {
		ssize_t n = must(read(from, buf, left < (off_t)sizeof buf ? left : (off_t)sizeof buf), "read");
		if (n == 0 || write(to, buf, n) != n)
			die("write");
		left -= n;
	}
	if (write(to, more, strlen(more)) < 0 || fsync(to))
		die("write");
	close(from);
	close(to);
	fenced();
	must(rename(temp, name), "rename");
	sync_folder(dir);
}

int main(int argc, char **argv) {
	char log[4096], board[4096];
	if (argc != 2)
		return 64;
	self = getpid();
	snprintf(log, sizeof log, "%s/spawn-log.json", argv[1]);
	snprintf(board, sizeof board, "%s/board/board.json", argv[1]);
	snprintf(lock_path, sizeof lock_path, "%s.lock", log);
	name_files(log);
	synced = 1;
	file_lock();
	add(log, "\n]\n", record);
	add(board, "\n  ]\n}\n", item);
	file_unlock();
	printf("01JDXYZ0000000000000000000\n");
	return 0;
}
