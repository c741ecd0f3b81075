// Every function of libpq that is used, as a call through a pointer that pq_load has found.
#include "os/pq.h"

#include "os/library.h"

#include <postgresql/libpq-fe.h>

// X(return, type before the name, name, parameters, arguments)
#define PQ_LIST(X)                                                                                                     \
    X(return, int, PQcancel, (PGcancel * p0, char *p1, int p2), (p0, p1, p2))                                          \
    X(, void, PQclear, (PGresult * p0), (p0))                                                                          \
    X(return, char *, PQcmdTuples, (PGresult * p0), (p0))                                                              \
    X(return, PostgresPollingStatusType, PQconnectPoll, (PGconn * p0), (p0))                                           \
    X(return, PGconn *, PQconnectStartParams, (const char *const *p0, const char *const *p1, int p2), (p0, p1, p2))    \
    X(return, PGconn *, PQconnectdb, (const char *p0), (p0))                                                           \
    X(return, PGconn *, PQconnectdbParams, (const char *const *p0, const char *const *p1, int p2), (p0, p1, p2))       \
    X(, void, PQconninfoFree, (PQconninfoOption * p0), (p0))                                                           \
    X(return, PQconninfoOption *, PQconninfoParse, (const char *p0, char **p1), (p0, p1))                              \
    X(return, int, PQconsumeInput, (PGconn * p0), (p0))                                                                \
    X(return, char *, PQdb, (const PGconn *p0), (p0))                                                                  \
    X(return, char *, PQerrorMessage, (const PGconn *p0), (p0))                                                        \
    X(return, char *, PQescapeLiteral, (PGconn * p0, const char *p1, size_t p2), (p0, p1, p2))                         \
    X(return, PGresult *, PQexec, (PGconn * p0, const char *p1), (p0, p1))                                             \
    X(return, PGresult *, PQexecPrepared,                                                                              \
            (PGconn * p0, const char *p1, int p2, const char *const *p3, const int *p4, const int *p5, int p6),        \
            (p0, p1, p2, p3, p4, p5, p6))                                                                              \
    X(, void, PQfinish, (PGconn * p0), (p0))                                                                           \
    X(return, char *, PQfname, (const PGresult *p0, int p1), (p0, p1))                                                 \
    X(, void, PQfreeCancel, (PGcancel * p0), (p0))                                                                     \
    X(, void, PQfreemem, (void *p0), (p0))                                                                             \
    X(return, Oid, PQftype, (const PGresult *p0, int p1), (p0, p1))                                                    \
    X(return, PGcancel *, PQgetCancel, (PGconn * p0), (p0))                                                            \
    X(return, PGresult *, PQgetResult, (PGconn * p0), (p0))                                                            \
    X(return, int, PQgetisnull, (const PGresult *p0, int p1, int p2), (p0, p1, p2))                                    \
    X(return, int, PQgetlength, (const PGresult *p0, int p1, int p2), (p0, p1, p2))                                    \
    X(return, char *, PQgetvalue, (const PGresult *p0, int p1, int p2), (p0, p1, p2))                                  \
    X(return, char *, PQhost, (const PGconn *p0), (p0))                                                                \
    X(return, int, PQisBusy, (PGconn * p0), (p0))                                                                      \
    X(return, int, PQnfields, (const PGresult *p0), (p0))                                                              \
    X(return, int, PQntuples, (const PGresult *p0), (p0))                                                              \
    X(return, char *, PQport, (const PGconn *p0), (p0))                                                                \
    X(return, PGresult *, PQprepare, (PGconn * p0, const char *p1, const char *p2, int p3, const Oid *p4),             \
            (p0, p1, p2, p3, p4))                                                                                      \
    X(return, char *, PQresultErrorField, (const PGresult *p0, int p1), (p0, p1))                                      \
    X(return, ExecStatusType, PQresultStatus, (const PGresult *p0), (p0))                                              \
    X(return, int, PQsendQueryParams,                                                                                  \
            (PGconn * p0, const char *p1, int p2, const Oid *p3, const char *const *p4, const int *p5, const int *p6,  \
             int p7),                                                                                                  \
            (p0, p1, p2, p3, p4, p5, p6, p7))                                                                          \
    X(return, PQnoticeProcessor, PQsetNoticeProcessor, (PGconn * p0, PQnoticeProcessor p1, void *p2), (p0, p1, p2))    \
    X(return, PQnoticeReceiver, PQsetNoticeReceiver, (PGconn * p0, PQnoticeReceiver p1, void *p2), (p0, p1, p2))       \
    X(return, int, PQsocket, (const PGconn *p0), (p0))                                                                 \
    X(return, ConnStatusType, PQstatus, (const PGconn *p0), (p0))                                                      \
    X(return, PGTransactionStatusType, PQtransactionStatus, (const PGconn *p0), (p0))

LIBRARY(PQ_LIST, "libpq.so.5", "PostgreSQL's client library", "libpq5")

enum code pq_load(struct error *err)
{
    return os_library_load(&library, err);
}
