// What noetl_tables.c and noetl_events.c share: a row per type of the vocabulary of playbooks.
#ifndef CAIRN_CONTRACT_NOETL_TABLES_H
#define CAIRN_CONTRACT_NOETL_TABLES_H

#include "contract/internal.h"

#define NOETL_CANCELLED "cancelled" // the kind of error of a run that was

enum entity {
    ENTITY_PLAYBOOK = 1,
    ENTITY_WORKFLOW,
    ENTITY_STEP,
    ENTITY_TASK,
    ENTITY_LOOP,
    ENTITY_NEXT,
    ENTITY_POLICY,
    ENTITY_RESULT
};
enum entity_status { IN_PROGRESS = 1, SUCCESS, FAILURE, SKIPPED, PAUSED };

extern const struct str noetl_entity_words[], noetl_standing_words[];

struct noetl_row {
    struct str type, alias;
    uint8_t entity, standing;
    bool flat; // the members of `value` are members of the payload
    const struct table *envelope, *payload;
};
extern const struct noetl_row noetl_rows[MOMENT_COUNT];

// Two types say in one word how it came out: `wrong` has an error besides.
const struct table *noetl_payload(enum moment_kind kind, bool wrong);
const struct table *noetl_envelope(void); // every member that an envelope may have, for reading
void noetl_tables_verify(void);

#endif
