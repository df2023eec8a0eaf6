/* SPDX-License-Identifier: Apache-2.0 */
/* children HOW [PROGRAM [ARGUMENT...]]: starts children and ends in the ways that there are. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 50 };

static int status_of(pid_t pid)
{
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int by_vfork(char **argv)
{
    int answer = 0;
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execv(argv[0], argv);
            _exit(127);
        }
        answer = status_of(pid);
    }
    return answer;
}

static int by_fork(char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    return status_of(pid);
}

static int by_spawn(char **argv, bool search)
{
    pid_t pid;
    int error = search ? posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ)
                       : posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    return error != 0 ? 100 + error : status_of(pid);
}

static atomic_bool is_over;

static void *allocate(void *arg)
{
    while (!is_over)
        free(malloc(1000));
    return arg;
}

/* Forks while other threads allocate and start children of their own. */
static int from_threads(void)
{
    pthread_t threads[3];
    int bad = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, allocate, NULL);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i % 7);
        bad += status_of(pid) != i % 7;
    }
    is_over = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return bad;
}

static void on_signal(int signal)
{
    (void)signal;
    _exit(9); /* async-signal-safe, and must remain so */
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    char **rest = argv + 2;
    if (strcmp(how, "vfork") == 0)
        return by_vfork(rest);
    if (strcmp(how, "fork") == 0)
        return by_fork(rest);
    if (strcmp(how, "spawn") == 0 || strcmp(how, "spawnp") == 0)
        return by_spawn(rest, how[5] == 'p');
    if (strcmp(how, "execl") == 0)
        return execl(rest[0], rest[0], "exit", "5", (char *)NULL);
    if (strcmp(how, "execlp") == 0)
        return execlp(rest[0], rest[0], "exit", "5", (char *)NULL);
    if (strcmp(how, "execle") == 0) {
        char *const env[] = {(char[]){"ONLY=1"}, NULL};
        return execle(rest[0], rest[0], "print", "ONLY", (char *)NULL, env);
    }
    if (strcmp(how, "exec-fails") == 0) {
        execv("/nowhere/at/all", rest - 1);
        printf("%d\n", errno);
        return 0;
    }
    if (strcmp(how, "system") == 0)
        return WEXITSTATUS(system(rest[0]));
    if (strcmp(how, "popen") == 0) {
        char line[64] = "";
        FILE *pipe = popen(rest[0], "r");
        if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL)
            return 1;
        fputs(line, stdout);
        return WEXITSTATUS(pclose(pipe));
    }
    if (strcmp(how, "threads") == 0)
        return from_threads();
    if (strcmp(how, "print") == 0) {
        const char *value = getenv(rest[0]);
        puts(value == NULL ? "(none)" : value);
        return 0;
    }
    if (strcmp(how, "exit") == 0)
        exit(argc > 2 ? rest[0][0] - '0' : 0);
    if (strcmp(how, "_exit") == 0)
        _exit(4);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(6);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "signal") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    }
    return 2;
}
