// Private to store/: engines and shards of a store that lives in this process (memory). Others keep theirs in tables.
#ifndef CAIRN_STORE_SHARD_BOARD_H
#define CAIRN_STORE_SHARD_BOARD_H

#include "store/backend.h"

struct board_engine {
    uint64_t number;
    int64_t until_ms;
};
struct shard_board {
    uint64_t last_number; // given so far
    struct board_engine *engines;
    size_t count, capacity;
    uint64_t owner[SHARD_COUNT], epoch[SHARD_COUNT];
};

bool board_knows(const struct shard_board *board, uint64_t member);
// Whether `member` may claim, or make, runs of this shard. 0: no living engine owns it.
bool board_allows(const struct shard_board *board, uint64_t member, uint32_t shard);
enum code board_join(struct shard_board *board, struct arena *arena, uint64_t *member, struct error *err) MUST_CHECK;
void board_renew(struct shard_board *board, uint64_t member, int64_t until_ms);
void board_move(struct shard_board *board, uint64_t member, uint64_t take, uint64_t give, int64_t now_ms);
void board_tell(const struct shard_board *board, uint64_t member, int64_t now_ms, struct shard_map *out);

#endif
