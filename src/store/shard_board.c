#include "store/shard_board.h"

static struct board_engine *find(const struct shard_board *board, uint64_t member)
{
    for (size_t i = 0; i < board->count; i++)
        if (board->engines[i].number == member) return &board->engines[i];
    return NULL;
}

bool board_knows(const struct shard_board *board, uint64_t member)
{
    return find(board, member) != NULL;
}

bool board_allows(const struct shard_board *board, uint64_t member, uint32_t shard)
{
    if (shard == 0 || board->owner[shard - 1] == member) return true;
    return member == 0 && !find(board, board->owner[shard - 1]);
}

enum code board_join(struct shard_board *board, struct arena *arena, uint64_t *member, struct error *err)
{
    if (!ARENA_ROOM(arena, board->engines, board->count, &board->capacity)) return error_nomem(err);
    *member = ++board->last_number;
    board->engines[board->count++] = (struct board_engine){.number = *member};
    return OK;
}

void board_renew(struct shard_board *board, uint64_t member, int64_t until_ms)
{
    find(board, member)->until_ms = until_ms;
}

static void forget(struct shard_board *board, uint64_t member)
{
    struct board_engine *engine = find(board, member);
    if (engine) *engine = board->engines[--board->count];
}

static bool is_free(const struct shard_board *board, size_t i, int64_t now_ms)
{
    const struct board_engine *owner = find(board, board->owner[i]);
    return !owner || owner->until_ms < now_ms;
}

void board_move(struct shard_board *board, uint64_t member, uint64_t take, uint64_t give, int64_t now_ms)
{
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        if (give >> i & 1 && board->owner[i] == member) board->owner[i] = 0;
        if (!(take >> i & 1) || board->owner[i] == member || !is_free(board, i, now_ms)) continue;
        forget(board, board->owner[i]); // the fence, before anything is taken
        board->owner[i] = member;
        board->epoch[i]++;
    }
}

void board_tell(const struct shard_board *board, uint64_t member, int64_t now_ms, struct shard_map *out)
{
    *out = (struct shard_map){.self = member};
    for (size_t i = 0; i < board->count; i++)
        out->members += board->engines[i].number == member || board->engines[i].until_ms >= now_ms;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        out->owner[i] = board->owner[i];
        out->epoch[i] = board->epoch[i];
        if (board->owner[i] == member)
            out->mine |= UINT64_C(1) << i;
        else if (is_free(board, i, now_ms))
            out->free |= UINT64_C(1) << i;
    }
}
