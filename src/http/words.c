// Characters, tokens and headers by name.
#include "http/inside.h"

#include "json/make.h"

#define V CHAR_VALUE
#define G (CHAR_VALUE | CHAR_TARGET)              // in targets only
#define N (CHAR_VALUE | CHAR_TOKEN)               // in tokens only
#define T (CHAR_VALUE | CHAR_TOKEN | CHAR_TARGET) // in both
#define U (CHAR_VALUE | CHAR_TARGET | CHAR_HOST | CHAR_TOKEN | CHAR_UNRESERVED)
// clang-format off
const unsigned char http_chars[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, V, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
 /* ' '!  "  #  $  %  &  '  (  )  *  +  ,  -  .  /  0  1  2  3  4  5  6  7  8  9  :  ;  <  =  >  ? */
    V, T, V, N, T, T, T, T, G, G, T, T, G, U, U, G, U, U, U, U, U, U, U, U, U, U, G, G, V, G, V, G,
 /* @  A  B  C  D  E  F  G  H  I  J  K  L  M  N  O  P  Q  R  S  T  U  V  W  X  Y  Z  [  \  ]  ^  _ */
    G, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, G, V, G, N, U,
 /* `  a  b  c  d  e  f  g  h  i  j  k  l  m  n  o  p  q  r  s  t  u  v  w  x  y  z  {  |  }  ~ DEL */
    N, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, V, N, V, U, 0,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
};
// clang-format on
#undef V
#undef G
#undef N
#undef T
#undef U

bool http_all(struct str text, enum char_class mask)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(http_chars[(unsigned char)text.ptr[i]] & mask)) return false;
    return true;
}

bool http_same(struct str a, struct str b)
{
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if (char_lower(a.ptr[i]) != char_lower(b.ptr[i])) return false;
    return true;
}

bool http_name_is(struct str name, const char *text)
{
    size_t i = 0;
    for (; i < name.len && text[i]; i++)
        if (char_lower(name.ptr[i]) != char_lower(text[i])) return false;
    return i == name.len && !text[i];
}

struct str http_header_find(const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_is(headers[i].name, name)) return headers[i].value;
    return STR("");
}

struct str http_find(const struct http_request *request, const char *name)
{
    return http_header_find(request->headers, request->header_count, name);
}

bool http_has_token(struct str value, const char *token)
{
    while (value.len) {
        struct str item = str_trim(str_cut(value, ',', &value));
        if (http_name_is(item, token)) return true;
    }
    return false;
}

struct json http_problem(struct arena *arena, int status, struct str title, const char *code)
{
    return JSON_OF(arena, {"type", json_text_made(arena_format(arena, "urn:cairn:problem:%s", code))},
                   {"title", title.len ? json_string(title) : json_word(http_reason(status))},
                   {"status", json_int(status)}, {"code", json_word(code)});
}
