/* truthd: a streaming endpoint that knows the truth about itself.
 *
 * It answers POST .../chat/completions and .../completions with server-sent events, sends every token when a
 * simple timetable says so, and logs when each one was really written. A load generator's own report can then be
 * judged request by request, by the response's id.
 *
 *   truthd --port N [--ttft-ms 200] [--itl-ms 20] [--jitter-pct 0] [--role-ms X] [--log FILE]
 *
 *   --ttft-ms     from the end of the request to the first token
 *   --itl-ms      from token to token
 *   --jitter-pct  each of those delays is drawn evenly from +-N % around its value
 *   --role-ms     send a chunk with the role and no text X ms ahead of the first token (chat only). Without this
 *                 option the role comes with the first token, as the field of one chunk
 *
 * Every finished stream leaves one line in the log (complete once SIGTERM or SIGINT has ended the program):
 *   {"id":7,"recv":NS,"read":US,"first":NS,"last":NS,"role":US,"tokens":256,"t":[US,...]}
 * recv, first, last are CLOCK_REALTIME nanoseconds: when the kernel had the request's last byte (SO_TIMESTAMPNS), and
 * just before the write of the first and the last token. read, role and t are microseconds from recv: when this
 * program came to read the request, and just before the write of the role chunk (-1: none) and of each token. The
 * kernel's stamp, because while this program writes to one stream the request of another waits to be read.
 * Response ids are chatcmpl-7 and cmpl-7.
 *
 * A stream of n tokens is n + 2 JSON events (tokens, finish, usage) and [DONE], each in a write and an HTTP chunk of
 * its own. One thread, epoll, a timerfd for the next token due, and a heap that knows which that is.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 16384, REQUEST_MAX = 1 << 18, EVENTS_AT_ONCE = 256, TOKENS_AT_ONCE = 1024 };

typedef struct {
    int fd;
    char *in;        /* what has been read and not yet answered */
    size_t in_len;
    int streaming;   /* in the heap, with `due` as its key */
    int chat;
    int role_sent;   /* or none is wanted */
    long id;
    int want, sent;  /* tokens */
    int64_t due;     /* CLOCK_MONOTONIC ns of the next chunk */
    int64_t stamp;             /* CLOCK_REALTIME ns at which the kernel had the last of `in` */
    int64_t recv, first, last; /* CLOCK_REALTIME ns */
    int64_t read_us, role_us;  /* from recv */
    int32_t *times_us;
    int times_cap;
} Conn;

static Conn *conns[MAX_FD];
static Conn *heap[MAX_FD];
static int heap_len;
static int epoll_fd;
static volatile sig_atomic_t stopping;
static FILE *log_file;
static long requests, finished, tokens_sent;

static int64_t ttft_ns = 200000000, itl_ns = 20000000, role_ns = -1;
static double jitter = 0;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t jittered(int64_t ns)
{
    if (jitter == 0)
        return ns;
    double u = 2.0 * rand() / RAND_MAX - 1.0;
    return ns + (int64_t)(ns * jitter * u);
}

/* ---- the heap: the connection whose next chunk is due first is heap[0] ---- */

static void heap_swap(int a, int b)
{
    Conn *t = heap[a];
    heap[a] = heap[b];
    heap[b] = t;
}

static void heap_up(int i)
{
    for (; i > 0 && heap[i]->due < heap[(i - 1) / 2]->due; i = (i - 1) / 2)
        heap_swap(i, (i - 1) / 2);
}

static void heap_down(int i)
{
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < heap_len; child++)
            if (heap[child]->due < heap[least]->due)
                least = child;
        if (least == i)
            return;
        heap_swap(i, least);
        i = least;
    }
}

static void heap_add(Conn *c)
{
    c->streaming = 1;
    heap[heap_len++] = c;
    heap_up(heap_len - 1);
}

static void heap_remove(Conn *c)
{
    c->streaming = 0;
    int i = 0;
    while (heap[i] != c) /* linear, but only once a stream */
        i++;
    heap[i] = heap[--heap_len];
    if (i < heap_len) {
        heap_up(i);
        heap_down(i);
    }
}

/* ---- writing ---- */

/* All of it, or -1. A client that does not read holds everybody up: its records will show it. */
static int write_all(Conn *c, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(c->fd, data, len);
        if (n < 0) {
            if (errno != EAGAIN)
                return -1;
            usleep(50);
            continue;
        }
        data += n;
        len -= n;
    }
    return 0;
}

static int write_http_chunk(Conn *c, const char *body, int len)
{
    char out[2048];
    int n = snprintf(out, sizeof out, "%x\r\n", len);
    memcpy(out + n, body, len);
    n += len;
    out[n++] = '\r';
    out[n++] = '\n';
    return write_all(c, out, n);
}

/* One event: `choices` is the array's inside, `tail` what follows it in the object. */
static int write_event(Conn *c, const char *choices, const char *tail)
{
    char out[1024];
    int n = snprintf(out, sizeof out,
                     "data: {\"id\":\"%s-%ld\",\"object\":\"%s\",\"created\":%lld,\"model\":\"truth\",\"choices\":[%s]%s}\n\n",
                     c->chat ? "chatcmpl" : "cmpl", c->id, c->chat ? "chat.completion.chunk" : "text_completion",
                     (long long)(c->recv / 1000000000LL), choices, tail);
    return write_http_chunk(c, out, n);
}

static int write_role(Conn *c)
{
    c->role_us = (clock_ns(CLOCK_REALTIME) - c->recv) / 1000;
    c->role_sent = 1;
    return write_event(c,
                       "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}",
                       "");
}

static int write_token(Conn *c)
{
    char choice[256];
    int word = c->sent % 1000;
    if (!c->chat)
        snprintf(choice, sizeof choice, "{\"index\":0,\"text\":\" w%03d\",\"logprobs\":null,\"finish_reason\":null}", word);
    else
        snprintf(choice, sizeof choice,
                 "{\"index\":0,\"delta\":{%s\"content\":\" w%03d\"},\"logprobs\":null,\"finish_reason\":null}",
                 c->sent == 0 && role_ns < 0 ? "\"role\":\"assistant\"," : "", word);
    if (c->sent == c->times_cap) {
        c->times_cap = c->times_cap ? 2 * c->times_cap : 512;
        c->times_us = realloc(c->times_us, c->times_cap * sizeof *c->times_us);
    }
    c->last = clock_ns(CLOCK_REALTIME);
    if (c->sent == 0)
        c->first = c->last;
    c->times_us[c->sent++] = (int32_t)((c->last - c->recv) / 1000);
    tokens_sent++;
    return write_event(c, choice, "");
}

static int write_end(Conn *c)
{
    char usage[160];
    snprintf(usage, sizeof usage, ",\"usage\":{\"prompt_tokens\":50,\"total_tokens\":%d,\"completion_tokens\":%d}", 50 + c->sent,
             c->sent);
    const char *finish = c->chat ? "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}"
                                 : "{\"index\":0,\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"length\"}";
    if (write_event(c, finish, "") || write_event(c, "", usage) || write_http_chunk(c, "data: [DONE]\n\n", 14))
        return -1;
    finished++;
    if (log_file) {
        fprintf(log_file, "{\"id\":%ld,\"recv\":%lld,\"read\":%lld,\"first\":%lld,\"last\":%lld,\"role\":%lld,\"tokens\":%d,\"t\":[",
                c->id, (long long)c->recv, (long long)c->read_us, (long long)c->first, (long long)c->last, (long long)c->role_us, c->sent);
        for (int i = 0; i < c->sent; i++)
            fprintf(log_file, i ? ",%d" : "%d", c->times_us[i]);
        fputs("]}\n", log_file);
    }
    return write_all(c, "0\r\n\r\n", 5);
}

static int write_json(Conn *c, const char *body)
{
    char out[1024];
    int n = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                     strlen(body), body);
    return write_all(c, out, n);
}

/* ---- reading ---- */

static int number_after(const char *body, const char *key, int otherwise)
{
    const char *p = strstr(body, key);
    p = p ? strchr(p, ':') : NULL;
    return p ? atoi(p + 1) : otherwise;
}

static int asks_to_stream(const char *body)
{
    for (const char *p = body; (p = strstr(p, "\"stream\""));) {
        p += strlen("\"stream\"");
        const char *value = p + strspn(p, " :\t\r\n");
        if (!strncmp(value, "true", 4))
            return 1;
    }
    return 0;
}

static const char stream_head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                                  "transfer-encoding: chunked\r\n\r\n";

/* Answer the first request in c->in. 1: done or begun, 0: it is not complete yet, -1: the connection is of no use. */
static int answer(Conn *c)
{
    c->in[c->in_len] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end)
        return c->in_len < REQUEST_MAX ? 0 : -1;
    size_t head_len = end - c->in + 4, body_len = 0;
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    if (length && length < end)
        body_len = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    if (head_len + body_len > REQUEST_MAX)
        return -1;
    char *expect = strcasestr(c->in, "\r\nexpect: 100-continue");
    if (expect && expect < end && c->in_len == head_len && body_len)
        if (write_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25))
            return -1;
    if (c->in_len < head_len + body_len)
        return 0;

    int64_t wall = clock_ns(CLOCK_REALTIME), mono = clock_ns(CLOCK_MONOTONIC);
    char *body = c->in + head_len, next = body[body_len];
    body[body_len] = 0;
    int failed = 0;
    if (!strncmp(c->in, "GET ", 4)) {
        char *models = strstr(c->in, "/models");
        failed = write_json(c, models && models < end ? "{\"object\":\"list\",\"data\":[{\"id\":\"truth\",\"object\":\"model\","
                                                        "\"created\":1,\"owned_by\":\"truth\",\"max_model_len\":131072}]}"
                                                      : "{\"status\":\"ok\"}");
    } else if (!asks_to_stream(body)) {
        failed = write_json(c, "{\"id\":\"cmpl-0\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"truth\",\"choices\":[{\"index\":0,"
                               "\"message\":{\"role\":\"assistant\",\"content\":\"ok\"},\"text\":\"ok\",\"finish_reason\":\"stop\"}],"
                               "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}}");
    } else {
        char *chat = strstr(c->in, "/chat/completions");
        c->chat = chat && chat < end;
        c->id = ++requests;
        c->recv = c->stamp;
        c->read_us = (wall - c->recv) / 1000;
        c->sent = 0;
        c->role_us = -1;
        c->want = number_after(body, "\"max_completion_tokens\"", number_after(body, "\"max_tokens\"", 256));
        if (c->want < 1)
            c->want = 1;
        int64_t first_due = mono - (wall - c->recv) + jittered(ttft_ns);
        c->role_sent = role_ns < 0 || !c->chat;
        c->due = c->role_sent ? first_due : first_due - role_ns;
        failed = write_all(c, stream_head, strlen(stream_head));
        if (!failed)
            heap_add(c);
    }
    body[body_len] = next;
    c->in_len -= head_len + body_len;
    memmove(c->in, body + body_len, c->in_len);
    return failed ? -1 : 1;
}

static void close_conn(Conn *c)
{
    if (c->streaming)
        heap_remove(c);
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    close(c->fd);
    conns[c->fd] = NULL;
    free(c->in);
    free(c->times_us);
    free(c);
}

/* Requests that wait in the buffer, one after the other: a stream must end before the next begins. */
static void answer_waiting(Conn *c)
{
    int r = 1;
    while (c->in_len && !c->streaming && r > 0)
        r = answer(c);
    if (r < 0)
        close_conn(c);
}

static void on_readable(Conn *c)
{
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec part = {c->in + c->in_len, REQUEST_MAX - c->in_len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->fd, &message, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        close_conn(c);
        return;
    }
    c->in_len += n;
    c->stamp = clock_ns(CLOCK_REALTIME);
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    if (cmsg && cmsg->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec t;
        memcpy(&t, CMSG_DATA(cmsg), sizeof t);
        c->stamp = t.tv_sec * 1000000000LL + t.tv_nsec;
    }
    answer_waiting(c);
}

static void on_connect(int listener)
{
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (fd >= MAX_FD) {
            close(fd);
            continue;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        Conn *c = calloc(1, sizeof *c);
        c->fd = fd;
        c->in = malloc(REQUEST_MAX + 1);
        conns[fd] = c;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

/* The next chunk of a stream whose time has come. */
static void advance(Conn *c)
{
    if (!c->role_sent) {
        if (write_role(c)) {
            close_conn(c);
            return;
        }
        c->due += role_ns;
        heap_down(0);
        return;
    }
    if (write_token(c)) {
        close_conn(c);
        return;
    }
    if (c->sent < c->want) {
        c->due += jittered(itl_ns);
        heap_down(0);
        return;
    }
    heap_remove(c);
    if (write_end(c))
        close_conn(c);
    else
        answer_waiting(c);
}

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on); /* accepted sockets inherit it */
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&where, sizeof where) || listen(fd, 4096)) {
        perror("truthd: cannot listen");
        exit(1);
    }
    return fd;
}

static void on_signal(int signum)
{
    (void)signum;
    stopping = 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"port", 1, 0, 'p'},       {"ttft-ms", 1, 0, 't'}, {"itl-ms", 1, 0, 'i'},
                                            {"jitter-pct", 1, 0, 'j'}, {"role-ms", 1, 0, 'r'}, {"log", 1, 0, 'l'},
                                            {0}};
    int port = 0;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'p')
            port = atoi(optarg);
        else if (o == 't')
            ttft_ns = atof(optarg) * 1e6;
        else if (o == 'i')
            itl_ns = atof(optarg) * 1e6;
        else if (o == 'j')
            jitter = atof(optarg) / 100;
        else if (o == 'r')
            role_ns = atof(optarg) * 1e6;
        else if (o == 'l' && !(log_file = fopen(optarg, "w"))) {
            perror(optarg);
            return 1;
        } else if (o == '?')
            return 2;
    }
    if (!port) {
        fputs("usage: truthd --port N [--ttft-ms 200] [--itl-ms 20] [--jitter-pct 0] [--role-ms X] [--log FILE]\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    int listener = listen_on(port);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    epoll_fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, ready[EVENTS_AT_ONCE];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
    e.data.fd = timer;
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer, &e);

    int64_t armed = 0;
    while (!stopping) {
        int64_t next = heap_len ? heap[0]->due : 0;
        int overdue = next && next <= clock_ns(CLOCK_MONOTONIC);
        if (next && !overdue && next != armed) {
            struct itimerspec at = {.it_value = {next / 1000000000LL, next % 1000000000LL}};
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
            armed = next;
        }
        int n = epoll_wait(epoll_fd, ready, EVENTS_AT_ONCE, overdue ? 0 : 100);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd == timer) {
                uint64_t expirations;
                if (read(timer, &expirations, sizeof expirations) > 0)
                    armed = 0;
            } else if (fd == listener) {
                on_connect(listener);
            } else if (conns[fd]) {
                on_readable(conns[fd]);
            }
        }
        int64_t now = clock_ns(CLOCK_MONOTONIC);
        for (int budget = TOKENS_AT_ONCE; budget > 0 && heap_len && heap[0]->due <= now; budget--)
            advance(heap[0]);
    }
    if (log_file)
        fclose(log_file);
    fprintf(stderr, "truthd: %ld requests, %ld finished, %ld tokens\n", requests, finished, tokens_sent);
    return 0;
}
