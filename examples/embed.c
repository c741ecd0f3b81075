// A program with durable steps: kill it anywhere, start it again, and it goes on where it was.
//   cc embed.c $(pkg-config --cflags --libs cairn) && ./a.out orders.db
#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>

static const char document[] = "name: order\n"
                               "nodes:\n"
                               "  - id: charge\n"
                               "    use: charge-card\n"
                               "    with: { amount: $INPUTS.amount }\n"
                               "  - id: thank\n"
                               "    depends_on: [charge]\n"
                               "    echo: charged $charge.output.cents cents\n";

static enum cairn_answer charge(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)context;
    // A payment service would get attempt->key, so that a repeated attempt is no second payment.
    fprintf(stderr, "charging %s (%s)\n", attempt->input, attempt->key);
    result->output = "{\"cents\":4200}";
    return CAIRN_DONE;
}

static void check(enum cairn_code code, const struct cairn_error *error)
{
    if (code == CAIRN_OK) return;
    fprintf(stderr, "%s\n%s\n", error->message, error->hint);
    exit(1);
}

int main(int argc, char **argv)
{
    struct cairn *engine;
    struct cairn_error error;
    struct cairn_events *events;
    enum cairn_status status;
    struct cairn_kind kind = {.size = sizeof(kind), .name = "charge-card", .run = charge};
    struct cairn_start start = {.size = sizeof(start), .flags = CAIRN_ATTACH, .document = document, .run = "order-1"};
    struct cairn_event event = {.size = sizeof(event)};
    start.inputs = "{\"amount\":42}";

    check(cairn_open(argc > 1 ? argv[1] : "memory:", NULL, &engine, &error), &error);
    check(cairn_register(engine, &kind, &error), &error);
    check(cairn_start(engine, &start, NULL, &error), &error); // a second time it attaches to the run that is there
    check(cairn_wait(engine, "order-1", -1, &status, &error), &error);
    check(cairn_events_open(engine, "order-1", 0, &events, &error), &error);
    while (cairn_events_next(events, &event, &error) == CAIRN_OK)
        printf("%3llu %s\n", (unsigned long long)event.seq, event.type);
    cairn_events_close(events);
    printf("%s\n", cairn_status_name(status));
    cairn_close(engine, CAIRN_DRAIN, 1000);
    return status == CAIRN_COMPLETED ? 0 : 1;
}
