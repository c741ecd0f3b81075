// The web page: files that the binary carries, or those of a directory while they are worked on.
//
// The page is for everybody who reaches the service: it holds no data. What it shows it asks for like every other
// client, at the routes of route.c.
//
//   /                      index.html
//   /assets/NAME-HASH.js   kept by browsers for ever: other bytes have another name
//   /docs/                 the guides (web/docs.mjs): /docs/ and below it, /docs/format/ is index.html there
//   /runs/3f2a, ...        index.html, for browsers that want a document, wherever no route and no file is
#ifndef CAIRN_API_PAGE_H
#define CAIRN_API_PAGE_H

#include "base/str.h"
#include "net/net.h"

#include <stdbool.h>
#include <stddef.h>

// As web/build.mjs writes them, ascending by path. One table in the binary; empty when it was built without (make PAGE=no).
struct page_file {
    const char *path; // "/assets/main-1A2B.js"
    const char *type; // with its charset
    const char *etag; // with its quotes
    bool forever;     // its name has its hash in it
    size_t size;      // unpacked
    struct str br, gz; // br is empty where the file is carried once
};
extern const struct page_file page_files[]; // at least one element; only page_file_count are files
extern const size_t page_file_count;

struct page;

// dir: read from there at each request instead; NULL = what the binary carries. E_NOT_FOUND and so on when it cannot be read.
enum code page_open(const char *dir, struct page **out, struct error *err) MUST_CHECK;
void page_close(struct page *page);
// Answers a request that no route has. False: it is none of the page's business, and nothing was answered. Net thread. *status is what was
// answered.
bool page_answer(struct page *page, struct net_exchange *exchange, int *status);

#endif
