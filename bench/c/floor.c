// The floor: what the system calls alone cost. The same worker commands, page
// and log as worker.go, in C, without the checks, records and waits that a
// library adds in its own code.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 40 }; // as in worker.go
enum { GATE, STOP, COUNTER, TURN, ASKING, FREED, GOT, SLOTS = 64 };

static volatile int64_t *page;
static char lock_path[4096];
static int checked, record, lockfile, self, fd = -1;
static char text[385]; // as long as a usual record
static struct stat kept;

static void die(const char *what) {
	perror(what);
	exit(1);
}

static int64_t mono(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t cpu(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void nap(int64_t ns) {
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void await(int word, int64_t v) {
	while (__atomic_load_n(&page[word], __ATOMIC_SEQ_CST) != v)
		nap(50000);
}

static void put(int word, int64_t v) {
	__atomic_store_n(&page[word], v, __ATOMIC_SEQ_CST);
}

#include "lockfile.h"

// c-flock opens the file each time, as most libraries do. The floors keep it
// open, as a kernlock handle does, and check that the path still names it.
static void lock(void) {
	struct statx b;
	if (lockfile) {
		file_lock();
		return;
	}
	if (!checked) {
		if ((fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || flock(fd, LOCK_EX))
			die("lock");
		return;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) && flock(fd, LOCK_EX))
		die("flock");
	if (statx(AT_FDCWD, lock_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &b) || b.stx_ino != kept.st_ino)
		die("the lock file was replaced");
	if (record) {
		char old[1024];
		if (pread(fd, old, sizeof old, 0) < 0 || pwrite(fd, text, sizeof text, 0) < 0)
			die("record");
	}
}

static void unlock(void) {
	if (lockfile) {
		file_unlock();
		return;
	}
	if (record && pwrite(fd, text, sizeof text, 0) < 0)
		die("record");
	if (flock(fd, LOCK_UN))
		die("unlock");
	if (!checked)
		close(fd);
}

static int64_t *map(const char *path, size_t size) {
	int f = open(path, O_RDWR | O_CREAT, 0600);
	struct stat st;
	if (f < 0 || fstat(f, &st))
		die(path);
	if ((size_t)st.st_size < size && ftruncate(f, size))
		die(path);
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (m == MAP_FAILED)
		die("mmap");
	close(f);
	return m;
}

static void ready(void) {
	puts("ready");
	fflush(stdout);
}

static int compare(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t *entries, room;

static void add(int64_t ask, int64_t enter, int64_t leave) {
	int64_t n = entries[0]++;
	if (n < room) {
		entries[1 + 3 * n] = ask;
		entries[2 + 3 * n] = enter;
		entries[3 + 3 * n] = leave;
	}
}

int main(int argc, char **argv) {
	const char *job = argc > 3 ? argv[2] : "", *who = argc > 3 ? argv[3] : "", *log = "";
	int64_t n = 0, hold = 0, id = 0;
	memset(text, ' ', sizeof text);
	record = !strcmp(who, "c-floor+record");
	lockfile = !strcmp(who, "c-lockfile");
	self = getpid();
	checked = record || !strcmp(who, "c-floor");
	for (int i = 4; i < argc; i++) {
		char *v = strchr(argv[i], '=');
		if (!v)
			return 64;
		*v++ = 0;
		if (!strcmp(argv[i], "path"))
			name_files(v), snprintf(lock_path, sizeof lock_path, "%s.lock", v);
		else if (!strcmp(argv[i], "page"))
			page = map(v, 4096);
		else if (!strcmp(argv[i], "log"))
			log = v;
		else if (!strcmp(argv[i], "room"))
			room = atoll(v);
		else if (!strcmp(argv[i], "n"))
			n = atoll(v);
		else if (!strcmp(argv[i], "hold"))
			hold = atoll(v);
		else if (!strcmp(argv[i], "id"))
			id = atoll(v);
	}
	if (*log)
		entries = map(log, 8 + room * 24);
	if (!lockfile && ((fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || fstat(fd, &kept)))
		die("open");
	if (!checked)
		close(fd);

	if (!strcmp(job, "cycle")) {
		for (int64_t i = 0; i < n / 10; i++)
			lock(), unlock();
		ready();
		int64_t c0 = cpu(), took[BATCHES];
		for (int b = 0; b < BATCHES; b++) {
			int64_t t0 = mono();
			for (int64_t i = 0; i < n / BATCHES; i++)
				lock(), unlock();
			took[b] = mono() - t0;
		}
		int64_t c1 = cpu();
		qsort(took, BATCHES, sizeof *took, compare);
		printf("ns %lld\ncpu %lld\nallocs 0\n", (long long)took[BATCHES / 2] * BATCHES, (long long)(c1 - c0));
	} else if (!strcmp(job, "contend")) {
		ready();
		while (!__atomic_load_n(&page[GATE], __ATOMIC_SEQ_CST))
			nap(100000);
		int64_t gate = page[GATE], stop = page[STOP];
		while (mono() < gate)
			;
		int64_t c0 = cpu(), ask;
		while ((ask = mono()) < stop) {
			lock();
			int64_t enter = mono(), seen = page[COUNTER];
			if (hold)
				nap(hold);
			page[COUNTER] = seen + 1;
			int64_t leave = mono();
			unlock();
			add(ask, enter, leave);
		}
		printf("cpu %lld\n", (long long)(cpu() - c0));
	} else if (!strcmp(job, "hand-over")) {
		ready();
		for (int64_t i = 1; i <= n; i++) {
			lock();
			put(GOT, 0);
			put(TURN, i);
			await(ASKING, i);
			nap(1000000 + i * 7919 % 200 * 10000);
			put(FREED, mono());
			unlock();
			while (!__atomic_load_n(&page[GOT], __ATOMIC_SEQ_CST))
				nap(50000);
			await(TURN, -i);
		}
	} else if (!strcmp(job, "take-over")) {
		ready();
		for (int64_t i = 1; i <= n; i++) {
			await(TURN, i);
			put(ASKING, i);
			lock();
			int64_t got = mono();
			add(page[FREED], got, got);
			put(GOT, got);
			unlock();
			put(TURN, -i);
		}
	} else if (!strcmp(job, "hold")) {
		lock();
		ready();
		pause();
	} else if (!strcmp(job, "enter")) {
		ready();
		put(SLOTS + 2 * id, mono());
		lock();
		put(SLOTS + 2 * id + 1, mono());
		pause();
	} else if (!strcmp(job, "queue")) {
		ready();
		int64_t ask = mono();
		lock();
		int64_t enter = mono();
		page[COUNTER]++;
		int64_t leave = mono();
		add(ask, enter, leave);
		unlock();
	} else if (!strcmp(job, "wait")) {
		ready();
		while (!__atomic_load_n(&page[GATE], __ATOMIC_SEQ_CST))
			nap(100000);
		int64_t c0 = cpu();
		put(ASKING, 1);
		lock();
		put(GOT, mono());
		printf("cpu %lld\n", (long long)(cpu() - c0));
		unlock();
	} else if (!strcmp(job, "doc-once")) {
		ready();
		int64_t t0 = mono();
		for (int64_t i = 0; i < n; i++)
			copy(!strcmp(who, "c-copy+sync"));
		printf("done %lld\nns %lld\n", (long long)n, (long long)(mono() - t0));
	} else
		return 64;
	return 0;
}
