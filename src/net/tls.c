// TLS by libssl: one context per certificate, swapped whole when files are read again.
#include "net/inside.h"

#include <openssl/err.h>
#include <string.h>

static enum code tls_error(struct error *err, const char *what, const char *path)
{
    unsigned long number = ERR_peek_last_error();
    const char *reason = number ? ERR_reason_error_string(number) : NULL;
    ERR_clear_error();
    return error_set(err, E_INVALID, "cannot use %s %s: %s", what, path, reason ? reason : "not in PEM format");
}

// HTTP/1.1 or nothing: a client that only speaks h2 is refused in the handshake.
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned int in_len, void *context)
{
    static const char ours[] = "http/1.1";
    (void)ssl;
    (void)context;
    for (unsigned int i = 0; i < in_len && i + 1 + in[i] <= in_len; i += 1u + in[i]) {
        if (in[i] != sizeof(ours) - 1 || memcmp(in + i + 1, ours, sizeof(ours) - 1) != 0) continue;
        *out = in + i + 1;
        *out_len = in[i];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static enum code load(SSL_CTX *context, const char *certificate, const char *key, struct error *err)
{
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return tls_error(err, "the certificate", certificate);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) return tls_error(err, "the key", key);
    if (SSL_CTX_check_private_key(context) != 1) return tls_error(err, "the certificate with the key", key);
    return OK;
}

enum code net_tls_make(const char *certificate, const char *key, SSL_CTX **out, struct error *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return error_nomem(err);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    enum code rc = load(context, certificate, key, err);
    if (rc != OK)
        SSL_CTX_free(context);
    else
        *out = context;
    return rc;
}

SSL *net_tls_accept(struct net_server *server, int fd)
{
    pthread_mutex_lock(&server->mutex);
    SSL *ssl = SSL_new(server->tls);
    pthread_mutex_unlock(&server->mutex);
    if (!ssl) return NULL;
    if (SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    return ssl;
}

enum code net_reload_tls(struct net_server *server, struct error *err)
{
    SSL_CTX *fresh = NULL;
    if (!server->certificate) return error_set(err, E_INVALID, "this server does not speak TLS");
    enum code rc = net_tls_make(server->certificate, server->key, &fresh, err);
    if (rc != OK) return rc;
    pthread_mutex_lock(&server->mutex);
    SSL_CTX *old = server->tls;
    server->tls = fresh;
    pthread_mutex_unlock(&server->mutex);
    SSL_CTX_free(old); // connections hold their own reference
    return OK;
}
