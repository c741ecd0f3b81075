// TLS by libssl: one context per certificate, swapped whole when files are read again.
#include "net/inside.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

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

// Whose certificates count, and that a session is of one connection: a resumed one would carry an identity that is not looked at again.
static enum code trust(const struct net_server *server, SSL_CTX *context, struct error *err)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    if (!server->client_ca) return OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(server->client_ca);
    if (!names) return tls_error(err, "the CA of clients", server->client_ca);
    SSL_CTX_set_client_CA_list(context, names);
    if (SSL_CTX_load_verify_locations(context, server->client_ca, NULL) != 1)
        return tls_error(err, "the CA of clients", server->client_ca);
    if (server->client_crl) {
        X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
        if (!lookup) return error_nomem(err);
        if (X509_load_crl_file(lookup, server->client_crl, X509_FILETYPE_PEM) < 1)
            return tls_error(err, "the list of revoked certificates", server->client_crl);
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    }
    SSL_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (server->options.tls_client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return OK;
}

enum code net_tls_make(const struct net_server *server, SSL_CTX **out, struct error *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return error_nomem(err);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    enum code rc = load(context, server->certificate, server->key, err);
    if (!rc) rc = trust(server, context, err);
    if (rc != OK)
        SSL_CTX_free(context);
    else
        *out = context;
    return rc;
}

SSL *net_tls_accept(struct conn *conn)
{
    struct net_server *server = conn->server;
    pthread_mutex_lock(&server->mutex);
    SSL *ssl = SSL_new(server->tls);
    conn->trusted = server->readings;
    pthread_mutex_unlock(&server->mutex);
    if (!ssl) return NULL;
    if (SSL_set_fd(ssl, conn->fd) != 1) {
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
    enum code rc = net_tls_make(server, &fresh, err);
    if (rc != OK) return rc;
    pthread_mutex_lock(&server->mutex);
    SSL_CTX *old = server->tls;
    server->tls = fresh;
    server->readings++;
    pthread_mutex_unlock(&server->mutex);
    SSL_CTX_free(old); // connections hold their own reference
    return OK;
}

// ---- certificates of clients

// The files were read again since its handshake: what was revoked meanwhile does not count any more.
static bool verify_again(struct conn *conn, X509 *certificate)
{
    struct net_server *server = conn->server;
    pthread_mutex_lock(&server->mutex);
    SSL_CTX *context = server->tls;
    uint64_t readings = server->readings;
    SSL_CTX_up_ref(context);
    pthread_mutex_unlock(&server->mutex);
    bool good = readings == conn->trusted;
    X509_STORE_CTX *check = good ? NULL : X509_STORE_CTX_new();
    if (check && X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context), certificate,
                                     SSL_get_peer_cert_chain(conn->ssl)) == 1) {
        X509_STORE_CTX_set_default(check, "ssl_client");
        good = X509_verify_cert(check) == 1;
    }
    X509_STORE_CTX_free(check);
    SSL_CTX_free(context);
    ERR_clear_error();
    if (good) conn->trusted = readings;
    return good;
}

// Text without NUL inside; empty when it is none.
static struct str text_of(const ASN1_STRING *value, struct arena *arena)
{
    unsigned char *utf8 = NULL;
    int size = value ? ASN1_STRING_to_UTF8(&utf8, value) : -1;
    struct str out = {0};
    if (size > 0 && !memchr(utf8, 0, (size_t)size)) out = arena_copy(arena, (struct str){(const char *)utf8, (size_t)size});
    OPENSSL_free(utf8);
    return out.ptr ? out : (struct str){"", 0};
}

// Of several, and of names that cannot be read, none. `has`: it has one at least.
static struct str uri_of(X509 *certificate, struct arena *arena, bool *has)
{
    int critical = -1; // stays so where there is no such extension
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, NULL);
    const ASN1_STRING *found = NULL;
    size_t count = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI) continue;
        found = name->d.uniformResourceIdentifier;
        count++;
    }
    struct str out = count == 1 ? text_of(found, arena) : (struct str){"", 0};
    *has = count > 0 || (!names && critical != -1);
    GENERAL_NAMES_free(names);
    return out;
}

static struct str name_of(X509 *certificate, struct arena *arena)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return (struct str){"", 0};
    return text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), arena);
}

bool net_certificate(struct net_exchange *x, struct net_certificate *out)
{
    struct conn *conn = (struct conn *)x;
    struct tm until;
    X509 *certificate = conn->ssl && conn->server->client_ca ? SSL_get1_peer_certificate(conn->ssl) : NULL;
    if (!certificate) return false;
    bool good = SSL_get_verify_result(conn->ssl) == X509_V_OK && verify_again(conn, certificate) &&
                ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) == 1;
    if (good) {
        bool has_uri;
        out->uri = uri_of(certificate, &conn->arena, &has_uri);
        out->name = has_uri ? (struct str){"", 0} : name_of(certificate, &conn->arena);
        out->expires_ms = (int64_t)timegm(&until) * 1000;
    }
    X509_free(certificate);
    return good;
}
