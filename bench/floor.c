/* The floor: a loop that does what any server must and nothing else. Reads what is there, finds what
   it needs of each line by searching for it, answers, writes once per read. It parses no JSON, checks
   nothing, and knows exactly the requests that the benches send: `echo` of plain JSON-RPC gets its
   params back; the handshakes of both eras, `tools/list` and `tools/call` of `echo` get what MCP asks
   for, out of pieces that are made beforehand.

   floor [ready] [--tools N]

   With the argument `ready` it waits as an event loop must: until the pipe is readable, and it takes
   only a refused read for the end of what is there. The difference between the two is what being an
   event loop costs, whoever writes it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CHUNK (64 << 10)
#define STARTS(at, text) (!strncmp(at, text, sizeof text - 1))
#define PUT(to, text) mempcpy(to, text, sizeof text - 1)

static const char INITIALIZED[] =
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"floor\",\"version\":\"1\"}}";
static const char DISCOVERED[] =
    "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"resultType\":\"complete\","
    "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"floor\",\"version\":\"1\"}}}";

static char *in, *out, *tools;
static size_t in_size = CHUNK, out_size = 4 * CHUNK, tools_size;

static void *grown(void *old, size_t size) {
    void *new = realloc(old, size);
    if (!new)
        exit(4);
    return new;
}

/* The whole answer to tools/list but for its id. */
static void list(int count) {
    FILE *to = open_memstream(&tools, &tools_size);
    fprintf(to, "{\"tools\":[");
    for (int n = 0; n < count; n++)
        fprintf(to,
                "%s{\"name\":\"%s%.0d\",\"description\":\"Say it again.\",\"inputSchema\":{\"type\":"
                "\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"description\":\"What to "
                "say.\"}},\"required\":[\"text\"]}}",
                n ? "," : "", n ? "echo_" : "echo", n);
    fprintf(to, "],\"resultType\":\"complete\"}");
    fclose(to);
}

/* Answers one line; gives the end of what is to be written, or nothing if it knows no answer. */
static char *answer(char *line, char *end, char *to) {
    char *id = memmem(line, (size_t)(end - line), "\"id\":", 5);
    if (!id)
        return to; /* a notification */
    id += 5;
    char *id_end = memchr(id, ',', (size_t)(end - id));
    char *method = id_end ? memmem(id_end, (size_t)(end - id_end), "\"method\":\"", 10) : NULL;
    if (!method)
        return NULL;
    method += 10;
    to = PUT(to, "{\"jsonrpc\":\"2.0\",\"id\":");
    to = mempcpy(to, id, (size_t)(id_end - id));
    to = PUT(to, ",\"result\":");
    if (STARTS(method, "tools/call\"")) {
        char *text = memmem(method, (size_t)(end - method), "\"text\":\"", 8);
        char *text_end = text ? memchr(text + 8, '"', (size_t)(end - text - 8)) : NULL;
        if (!text_end)
            return NULL;
        to = PUT(to, "{\"content\":[{\"type\":\"text\",\"text\":\"");
        to = mempcpy(to, text + 8, (size_t)(text_end - text - 8));
        to = PUT(to, "\"}],\"resultType\":\"complete\"}}\n");
        return to;
    }
    if (STARTS(method, "tools/list\""))
        to = mempcpy(to, tools, tools_size);
    else if (STARTS(method, "initialize\""))
        to = PUT(to, INITIALIZED);
    else if (STARTS(method, "server/discover\""))
        to = PUT(to, DISCOVERED);
    else if (STARTS(method, "ping\""))
        to = PUT(to, "{}");
    else {
        char *params = memmem(method, (size_t)(end - method), "\"params\":", 9);
        if (!params)
            return NULL;
        params += 9;
        to = mempcpy(to, params, (size_t)(end - params) - 1);
    }
    return PUT(to, "}\n");
}

int main(int argc, char **argv) {
    int ready = 0, count = 1, fd = 0, poll = -1;
    for (int n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "ready"))
            ready = 1;
        else if (!strcmp(argv[n], "--tools") && n + 1 < argc)
            count = atoi(argv[++n]);
        else
            return 3;
    }
    list(count);
    in = grown(NULL, in_size);
    out = grown(NULL, out_size);
    if (ready) {
        struct epoll_event readable = {.events = EPOLLIN | EPOLLET};
        fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK);
        poll = epoll_create1(0);
        if (fd < 0 || poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &readable))
            return 3;
        close(0);
    }
    for (size_t held = 0, searched = 0;;) {
        if (in_size - held < CHUNK)
            in = grown(in, in_size *= 2);
        ssize_t n = read(fd, in + held, in_size - held);
        if (n < 0 && errno == EAGAIN) {
            struct epoll_event event;
            epoll_wait(poll, &event, 1, -1);
            continue;
        }
        if (n <= 0)
            return n < 0;
        held += (size_t)n;
        size_t at = 0, used = 0;
        char *end;
        while ((end = memchr(in + searched, '\n', held - searched))) {
            /* What an answer needs at most. */
            size_t most = used + tools_size + (size_t)(end - in) - at + 1024;
            if (most > out_size)
                out = grown(out, out_size = 2 * most);
            char *to = answer(in + at, end, out + used);
            if (!to)
                return 2;
            used = (size_t)(to - out);
            at = searched = (size_t)(end - in) + 1;
        }
        held -= at;
        memmove(in, in + at, held);
        searched = held;
        for (size_t sent = 0; sent < used;) {
            ssize_t w = write(1, out + sent, used - sent);
            if (w < 0)
                return 1;
            sent += (size_t)w;
        }
    }
}
