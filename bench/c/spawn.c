// spawn N --next CMD… --next CMD… runs each command in turn, N times over, and prints
// one line a round: the ns from spawn to reaped of each. posix_spawn does not
// copy this process, so what is timed is the command. What the commands print goes nowhere.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

int main(int argc, char **argv) {
	int n = argc > 2 ? atoi(argv[1]) : 0, cmds = 0;
	char **cmd[32];
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--next") && cmds < 32) {
			argv[i] = NULL;
			cmd[cmds++] = argv + i + 1;
		}
	posix_spawn_file_actions_t quiet;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	for (int r = 0; r < n; r++) {
		for (int c = 0; c < cmds; c++) {
			struct timespec a, b;
			pid_t pid;
			int status;
			clock_gettime(CLOCK_MONOTONIC, &a);
			if (posix_spawn(&pid, cmd[c][0], &quiet, NULL, cmd[c], environ) || waitpid(pid, &status, 0) != pid)
				return 71;
			clock_gettime(CLOCK_MONOTONIC, &b);
			if (status) {
				fprintf(stderr, "%s: status %x\n", cmd[c][0], status);
				return 1;
			}
			printf("%lld%c", (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec, c + 1 < cmds ? ' ' : '\n');
		}
	}
	return 0;
}
