// Every function of libnghttp2 that is used, as a call through a pointer that h2_load has found.
#include "grpc/h2.h"

#include "os/library.h"

// X(return, type before the name, name, parameters, arguments)
#define H2_LIST(X)                                                                                                     \
    X(return, int, nghttp2_session_callbacks_new, (nghttp2_session_callbacks * *p0), (p0))                             \
    X(, void, nghttp2_session_callbacks_del, (nghttp2_session_callbacks * p0), (p0))                                   \
    X(, void, nghttp2_session_callbacks_set_on_data_chunk_recv_callback,                                               \
      (nghttp2_session_callbacks * p0, nghttp2_on_data_chunk_recv_callback p1), (p0, p1))                              \
    X(, void, nghttp2_session_callbacks_set_on_header_callback,                                                        \
      (nghttp2_session_callbacks * p0, nghttp2_on_header_callback p1), (p0, p1))                                       \
    X(, void, nghttp2_session_callbacks_set_on_stream_close_callback,                                                  \
      (nghttp2_session_callbacks * p0, nghttp2_on_stream_close_callback p1), (p0, p1))                                 \
    X(, void, nghttp2_session_callbacks_set_on_frame_recv_callback,                                                    \
      (nghttp2_session_callbacks * p0, nghttp2_on_frame_recv_callback p1), (p0, p1))                                   \
    X(return, int, nghttp2_session_client_new,                                                                         \
      (nghttp2_session * *p0, const nghttp2_session_callbacks *p1, void *p2), (p0, p1, p2))                            \
    X(, void, nghttp2_session_del, (nghttp2_session * p0), (p0))                                                       \
    X(return, ssize_t, nghttp2_session_mem_send, (nghttp2_session * p0, const uint8_t **p1), (p0, p1))                 \
    X(return, ssize_t, nghttp2_session_mem_recv, (nghttp2_session * p0, const uint8_t *p1, size_t p2), (p0, p1, p2))   \
    X(return, int, nghttp2_session_want_read, (nghttp2_session * p0), (p0))                                            \
    X(return, int, nghttp2_session_want_write, (nghttp2_session * p0), (p0))                                           \
    X(return, int, nghttp2_session_set_local_window_size,                                                              \
      (nghttp2_session * p0, uint8_t p1, int32_t p2, int32_t p3), (p0, p1, p2, p3))                                    \
    X(return, void *, nghttp2_session_get_stream_user_data, (nghttp2_session * p0, int32_t p1), (p0, p1))              \
    X(return, int, nghttp2_session_set_stream_user_data, (nghttp2_session * p0, int32_t p1, void *p2), (p0, p1, p2))   \
    X(return, int, nghttp2_submit_settings,                                                                            \
      (nghttp2_session * p0, uint8_t p1, const nghttp2_settings_entry *p2, size_t p3), (p0, p1, p2, p3))               \
    X(return, int32_t, nghttp2_submit_request,                                                                         \
      (nghttp2_session * p0, const nghttp2_priority_spec *p1, const nghttp2_nv *p2, size_t p3,                         \
       const nghttp2_data_provider *p4, void *p5),                                                                     \
      (p0, p1, p2, p3, p4, p5))                                                                                        \
    X(return, int, nghttp2_submit_rst_stream, (nghttp2_session * p0, uint8_t p1, int32_t p2, uint32_t p3),             \
      (p0, p1, p2, p3))                                                                                                \
    X(return, int, nghttp2_submit_ping, (nghttp2_session * p0, uint8_t p1, const uint8_t *p2), (p0, p1, p2))           \
    X(return, const char *, nghttp2_strerror, (int p0), (p0))

LIBRARY(H2_LIST, "libnghttp2.so.14", "the library for HTTP/2", "libnghttp2-14")

enum code h2_load(struct error *err)
{
    return os_library_load(&library, err);
}
