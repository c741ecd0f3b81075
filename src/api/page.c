// Files of the page: which one is meant, in which coding, and whether the browser has it already.
#include "api/page.h"

#include "api/inside.h"
#include "reach/reach.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum { DIR_FILE_MAX = 64 << 20, PAGE_HEADERS = 8 };

struct page {
    int root;     // of the directory; -1 = what the binary carries
    char **plain; // by index of page_files: unpacked once, for clients that take no packed ones. Net thread
};

// Scripts from here alone, the fold in WebAssembly among them; no style and no script in the markup, no frame around it, no request to
// anywhere else. Strings are never made into markup or scripts without a policy that says so (trusted types).
#define PAGE_POLICY                                                                                                    \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self'; "  \
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "               \
    "require-trusted-types-for 'script'"

enum code page_open(const char *dir, struct page **out, struct error *err)
{
    struct page *page = *out = calloc(1, sizeof(*page));
    if (!page) return error_nomem(err);
    page->root = -1;
    page->plain = calloc(page_file_count + 1, sizeof(*page->plain));
    if (!page->plain) return error_nomem(err);
    return dir ? reach_root(dir, &page->root, err) : OK;
}

void page_close(struct page *page)
{
    if (!page) return;
    for (size_t i = 0; page->plain && i < page_file_count; i++) free(page->plain[i]);
    free(page->plain);
    if (page->root >= 0) close(page->root);
    free(page);
}

// ---- answering

struct page_answer {
    struct http_header headers[PAGE_HEADERS];
    size_t count;
};

static void add(struct page_answer *answer, const char *name, struct str value)
{
    INVARIANT(answer->count < PAGE_HEADERS);
    answer->headers[answer->count++] = (struct http_header){str_from(name), value};
}

static int send_text(struct net_exchange *exchange, int status, struct str text)
{
    struct page_answer answer = {.count = 0};
    add(&answer, "Content-Type", STR("text/plain; charset=utf-8"));
    net_reply(exchange, status, answer.headers, answer.count, text);
    return status;
}

static void add_policy(struct page_answer *answer, const char *type, bool forever)
{
    add(answer, "Content-Type", str_from(type));
    add(answer, "Content-Security-Policy", STR(PAGE_POLICY));
    add(answer, "Cache-Control", forever ? STR("public, max-age=31536000, immutable") : STR("no-cache"));
}

// Unpacked for the first client that wants it so, and kept: there are few files and few such clients.
static bool unpack(struct page *page, size_t index, struct str *out)
{
    const struct page_file *file = &page_files[index];
    if (!page->plain[index]) {
        char *plain = malloc(file->size + 1);
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)file->gz.ptr, .avail_in = (uInt)file->gz.len};
        stream.next_out = (Bytef *)plain;
        stream.avail_out = (uInt)file->size + 1;
        if (!plain || inflateInit2(&stream, 15 + 16) != Z_OK) {
            free(plain);
            return false;
        }
        bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == file->size;
        inflateEnd(&stream);
        INVARIANT(whole); // the build packed it
        page->plain[index] = plain;
    }
    *out = (struct str){page->plain[index], file->size};
    return true;
}

static int send_carried(struct page *page, struct net_exchange *exchange, size_t index)
{
    const struct http_request *request = net_request(exchange);
    const struct page_file *file = &page_files[index];
    struct page_answer answer = {.count = 0};
    struct str body = {0}, etag = str_from(file->etag);
    add_policy(&answer, file->type, file->forever);
    add(&answer, "ETag", etag);
    add(&answer, "Vary", STR("Accept-Encoding"));
    if (tag_seen(request, etag)) {
        net_reply(exchange, 304, answer.headers, answer.count, body);
        return 304;
    }
    if (file->br.len > 0 && coding_taken(request, "br")) {
        add(&answer, "Content-Encoding", STR("br"));
        body = file->br;
    } else if (coding_taken(request, "gzip")) {
        add(&answer, "Content-Encoding", STR("gzip"));
        body = file->gz;
    } else if (!unpack(page, index, &body)) {
        return send_text(exchange, 503, STR("out of memory\n"));
    }
    net_reply(exchange, 200, answer.headers, answer.count, body);
    return 200;
}

static const char *type_of(struct str path)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},      {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},        {".svg", "image/svg+xml"},
                 {".json", "application/json"},              {".map", "application/json"},
                 {".wasm", "application/wasm"},              {".png", "image/png"},
                 {".txt", "text/plain; charset=utf-8"}};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (str_ends(path, str_from(types[i].end))) return types[i].type;
    return "application/octet-stream";
}

// Files of a directory change while a developer works on them: nothing is kept.
static bool send_read(struct page *page, struct net_exchange *exchange, struct str path, int *status)
{
    struct str bytes;
    struct error err = {0};
    struct page_answer answer = {.count = 0};
    if (reach_read(page->root, str_slice(path, 1, path.len), DIR_FILE_MAX, net_arena(exchange), &bytes, &err)) return false;
    add_policy(&answer, type_of(path), false);
    net_reply(exchange, 200, answer.headers, answer.count, bytes);
    *status = 200;
    return true;
}

static bool send_file(struct page *page, struct net_exchange *exchange, struct str path, int *status)
{
    if (page->root >= 0) return send_read(page, exchange, path, status);
    for (size_t i = 0; i < page_file_count; i++) {
        if (!str_is(path, page_files[i].path)) continue;
        *status = send_carried(page, exchange, i);
        return true;
    }
    return false;
}

static bool is_of_api(struct str path)
{
    static const char *const places[] = {"/v1", "/schemas"};
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        struct str place = str_from(places[i]);
        if (str_starts(path, place) && (path.len == place.len || path.ptr[place.len] == '/')) return true;
    }
    return false;
}

// The guides, below /docs: addresses are those of a site of files, so that it can be read from a disk, too.
static bool docs_answer(struct page *page, struct net_exchange *exchange, struct str path, int *status)
{
    if (str_is(path, "/docs")) {
        struct page_answer answer = {.count = 0};
        add(&answer, "Location", STR("/docs/"));
        net_reply(exchange, 308, answer.headers, answer.count, (struct str){0});
        *status = 308;
        return true;
    }
    if (!str_starts(path, STR("/docs/"))) return false;
    struct buf file SCOPED(buf_release) = buf_of(4096);
    buf_add(&file, path);
    if (str_ends(path, STR("/"))) buf_text(&file, "index.html");
    if (file.failed || !send_file(page, exchange, buf_str(&file), status))
        *status = send_text(exchange, 404, STR("there is no such page; the guides begin at /docs/\n"));
    return true;
}

bool page_answer(struct page *page, struct net_exchange *exchange, int *status)
{
    const struct http_request *request = net_request(exchange);
    struct str path = request->path;
    bool start = str_is(path, "/");
    if (!str_is(request->method, "GET") && !str_is(request->method, "HEAD")) return false;
    if (is_of_api(path)) return false;
    if (page->root < 0 && page_file_count == 0) {
        if (!start) return false;
        *status = send_text(exchange, 200,
                            STR("This cairn was built without its page (make PAGE=no).\n"
                                "The API is below /v1, and described in /openapi.json.\n"));
        return true;
    }
    if (docs_answer(page, exchange, path, status)) return true;
    if (!start && send_file(page, exchange, path, status)) return true;
    if (str_starts(path, STR("/assets/"))) { // of another version: the page says so, and loads itself again
        *status = send_text(exchange, 404, STR("this server has no such file\n"));
        return true;
    }
    if (!start && !accept_names(request, "text/html")) return false;
    if (send_file(page, exchange, STR("/index.html"), status)) return true;
    *status = send_text(exchange, 404, STR("there is no index.html in the directory of the page\n"));
    return true;
}
