// Results and live lines from tool threads to the engine thread: a list under a mutex.
#include "engine/inside.h"

#include <stdlib.h>
#include <string.h>

void mailbox_init(struct mailbox *mailbox, void (*notify)(void *context), void *context)
{
    INVARIANT(pthread_mutex_init(&mailbox->mutex, NULL) == 0);
    os_condition(&mailbox->arrived);
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    mailbox->files = NULL;
    mailbox->woken = false;
    mailbox->notify = notify;
    mailbox->notify_context = context;
}

void message_free(struct message *message)
{
    if (!message->is_line && !message->aside) tool_result_free(&message->result);
    declared_files_free(message->files);
    free(message);
}

void mailbox_release(struct mailbox *mailbox)
{
    for (struct message *m = mailbox->first; m;) {
        struct message *next = m->next;
        message_free(m);
        m = next;
    }
    while (mailbox->files) {
        struct declared_files *files = mailbox->files;
        mailbox->files = files->next;
        declared_files_free(files);
    }
    pthread_cond_destroy(&mailbox->arrived);
    pthread_mutex_destroy(&mailbox->mutex);
}

static void post(struct mailbox *mailbox, struct message *message)
{
    INVARIANT(!message->next);
    LOCKED(&mailbox->mutex);
    *mailbox->last = message;
    mailbox->last = &message->next;
    pthread_cond_signal(&mailbox->arrived);
    if (mailbox->notify) mailbox->notify(mailbox->notify_context); // under the mutex: nobody has closed it yet
}

void mailbox_expect(struct mailbox *mailbox, struct declared_files *files)
{
    INVARIANT(files->count > 0 && !files->next);
    LOCKED(&mailbox->mutex);
    files->next = mailbox->files;
    mailbox->files = files;
}

struct declared_files *mailbox_files(struct mailbox *mailbox, uint64_t ticket)
{
    LOCKED(&mailbox->mutex);
    struct declared_files **at = &mailbox->files;
    while (*at && (*at)->ticket != ticket) at = &(*at)->next;
    struct declared_files *files = *at;
    if (files) *at = files->next;
    return files;
}

void mailbox_forget(struct mailbox *mailbox, uint64_t ticket)
{
    declared_files_free(mailbox_files(mailbox, ticket));
}

void mailbox_looked(struct mailbox *mailbox, struct tool_result *result, struct declared_files *files)
{
    struct message *message = calloc(1, sizeof(*message));
    INVARIANT(message != NULL); // losing a result would leave a run waiting for ever; dying recovers it
    message->result = *result;
    message->files = files;
    post(mailbox, message);
}

// After reports alone the attempt goes on, and its files are still to come.
void mailbox_result(void *context, struct tool_result *result)
{
    struct declared_files *files = result->only_reports ? NULL : mailbox_files(context, result->ticket);
    if (files && result->ok) declared_files_look(files, result);
    mailbox_looked(context, result, files);
}

void mailbox_aside(struct mailbox *mailbox, struct aside *aside)
{
    struct message *message = calloc(1, sizeof(*message));
    INVARIANT(message != NULL); // as above
    message->aside = aside;
    post(mailbox, message);
}

void mailbox_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    struct message *message = calloc(1, sizeof(*message) + line.len + 1);
    if (!message) return; // a line for the eye only
    message->is_line = true;
    message->ticket = ticket;
    message->is_stderr = is_stderr;
    message->len = line.len;
    if (line.len > 0) memcpy(message->text, line.ptr, line.len);
    post(context, message);
}

struct message *mailbox_take(struct mailbox *mailbox)
{
    LOCKED(&mailbox->mutex);
    struct message *first = mailbox->first;
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    mailbox->woken = false;
    return first;
}

void mailbox_wake(struct mailbox *mailbox)
{
    LOCKED(&mailbox->mutex);
    mailbox->woken = true;
    pthread_cond_signal(&mailbox->arrived);
    if (mailbox->notify) mailbox->notify(mailbox->notify_context);
}

void mailbox_wait(struct mailbox *mailbox, int64_t until_mono_ms)
{
    LOCKED(&mailbox->mutex);
    while (!mailbox->first && !mailbox->woken) {
        if (!os_wait_until(&mailbox->arrived, &mailbox->mutex, until_mono_ms)) break;
    }
}
