/* floor: the least that receiving streams can cost on this machine.
 *
 * It receives the same streams that the other clients receive, reads the kernel's receive stamp of every segment as
 * ours does, and does nothing else: no HTTP, no SSE, no JSON, only the bytes counted and the end of each response
 * recognised. Each connection is opened before the clock starts and asks `rounds` times.
 *
 *   floor PORT STREAMS ROUNDS TOKENS [DELAY_US]
 *
 * DELAY_US: after the first readiness wait so long, then read all that is ready in one sweep.
 * Prints one line of JSON: cpu_s (user + system, from the first request to the last byte), events, reads, bytes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_FD = 65536, EVENTS_AT_ONCE = 4096 };

static char request[8192];
static int request_len;
static int left[MAX_FD]; /* responses still to come, by file descriptor */

static double cpu_s(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + 1e-6 * (r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void ask(int fd)
{
    if (write(fd, request, request_len) != request_len) {
        perror("floor: write");
        exit(1);
    }
}

static int connected(int port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || fd >= MAX_FD || connect(fd, (struct sockaddr *)&where, sizeof where)) {
        perror("floor: connect");
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    return fd;
}

static void compose_request(int tokens)
{
    char body[4096];
    int n = snprintf(body, sizeof body,
                     "{\"model\":\"truth\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":%d,"
                     "\"messages\":[{\"role\":\"user\",\"content\":\"%0300d\"}]}",
                     tokens, 0);
    request_len = snprintf(request, sizeof request,
                           "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n%s",
                           n, body);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: floor PORT STREAMS ROUNDS TOKENS [DELAY_US]\n", stderr);
        return 2;
    }
    int port = atoi(argv[1]), streams = atoi(argv[2]), rounds = atoi(argv[3]), tokens = atoi(argv[4]);
    int delay_us = argc > 5 ? atoi(argv[5]) : 0;
    compose_request(tokens);

    int poll_fd = epoll_create1(0);
    int *fds = calloc(streams, sizeof *fds);
    for (int i = 0; i < streams; i++) {
        fds[i] = connected(port);
        left[fds[i]] = rounds;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, fds[i], &e);
    }

    static struct epoll_event ready[EVENTS_AT_ONCE];
    static char data[65536], control[CMSG_SPACE(64)];
    long reads = 0, bytes = 0;
    int live = streams;
    double before = cpu_s();
    for (int i = 0; i < streams; i++)
        ask(fds[i]);
    while (live > 0) {
        int n = epoll_wait(poll_fd, ready, EVENTS_AT_ONCE, -1);
        if (delay_us) {
            usleep(delay_us);
            n = epoll_wait(poll_fd, ready, EVENTS_AT_ONCE, 0);
        }
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            struct iovec part = {data, sizeof data};
            struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
            ssize_t got = recvmsg(fd, &message, 0);
            if (got <= 0) {
                fputs("floor: the server closed a connection\n", stderr);
                return 1;
            }
            reads++;
            bytes += got;
            if (got >= 5 && !memcmp(data + got - 5, "0\r\n\r\n", 5)) {
                if (--left[fd] > 0)
                    ask(fd);
                else
                    live--;
            }
        }
    }
    double cpu = cpu_s() - before;
    long events = (long)streams * rounds * (tokens + 2);
    printf("{\"cpu_s\":%.6f,\"events\":%ld,\"reads\":%ld,\"bytes\":%ld}\n", cpu, events, reads, bytes);
    return 0;
}
