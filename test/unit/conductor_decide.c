// Who wants what when a run and the workflow that shows it differ: a person's doing is one signal, a host's own is none, whenever it dies.
#include "conductor/decide.h"
#include "harness/test.h"

static void what_a_person_did_is_asked_for_and_what_cairn_did_is_shown(void)
{
    static const struct {
        struct sight now, was;
        bool known;
        struct doubt doubt;
        enum act act;
    } rows[] = {
        {{MINE_RUNNING, HIS_RUNNING}, {0}, false, {0}, ACT_NONE},
        {{MINE_PAUSED, HIS_PAUSED}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ACT_NONE},
        {{MINE_RUNNING, HIS_PAUSED}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ASK_PAUSE},
        {{MINE_PAUSED, HIS_RUNNING}, {MINE_PAUSED, HIS_PAUSED}, true, {0}, ASK_RESUME},
        {{MINE_PAUSED, HIS_RUNNING}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ACT_PAUSE},
        {{MINE_RUNNING, HIS_PAUSED}, {MINE_PAUSED, HIS_PAUSED}, true, {0}, ACT_RESUME},
        {{MINE_RUNNING, HIS_PAUSED}, {MINE_PAUSED, HIS_RUNNING}, true, {0}, ACT_RESUME},  // both have moved: Cairn is right
        {{MINE_RUNNING, HIS_PAUSED}, {0}, false, {0}, ACT_RESUME},                        // nobody knows: Cairn is right
        {{MINE_RUNNING, HIS_PAUSED}, {MINE_RUNNING, HIS_RUNNING}, true, {.refused = true}, ACT_RESUME},
        {{MINE_RUNNING, HIS_PAUSED}, {MINE_RUNNING, HIS_RUNNING}, true, {.sent = 1u << HIS_PAUSED}, ACT_RESUME}, // our own pause came late
        {{MINE_PAUSED, HIS_RUNNING}, {MINE_PAUSED, HIS_PAUSED}, true, {.sent = 1u << HIS_RUNNING}, ACT_PAUSE},
        {{MINE_RUNNING, HIS_TERMINATED}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ASK_CANCEL},
        {{MINE_RUNNING, HIS_TERMINATED}, {MINE_RUNNING, HIS_RUNNING}, true, {.ours = true}, ACT_START},
        {{MINE_RUNNING, HIS_TERMINATED}, {MINE_RUNNING, HIS_RUNNING}, true, {.recover = true}, ACT_START},
        {{MINE_RUNNING, HIS_TERMINATED}, {MINE_RUNNING, HIS_RUNNING}, true, {.refused = true}, ACT_START},
        {{MINE_RUNNING, HIS_FAILED}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ACT_START},
        {{MINE_PAUSED, HIS_NONE}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ACT_START},
        {{MINE_COMPLETED, HIS_RUNNING}, {MINE_RUNNING, HIS_RUNNING}, true, {0}, ACT_CLOSE},
        {{MINE_COMPLETED, HIS_PAUSED}, {0}, false, {0}, ACT_CLOSE},
        {{MINE_FAILED, HIS_RUNNING}, {0}, false, {.again = true}, ASK_RETRY_RUN},
        {{MINE_FAILED, HIS_RUNNING}, {0}, false, {.again = true, .refused = true}, ACT_CLOSE},
        {{MINE_GONE, HIS_RUNNING}, {0}, false, {.again = true}, ACT_CLOSE},
        {{MINE_CANCELLED, HIS_TERMINATED}, {0}, false, {0}, ACT_FORGET},
        {{MINE_GONE, HIS_NONE}, {0}, false, {0}, ACT_FORGET},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        enum act act = decide(&rows[i].now, rows[i].known ? &rows[i].was : NULL, &rows[i].doubt);
        if (act != rows[i].act) test_fail(__FILE__, __LINE__, "row %zu: %d, not %d", i, (int)act, (int)rows[i].act);
    }
}

// Pauses and resumes in Cairn alone, a host that looks now and then, whose calls may be lost or go unanswered, and which may die between
// any two things that it does: what it has written down (the picture) is all that the next one has.
struct life {
    uint64_t state;
    struct sight now, was;
    bool known;
    unsigned sent;
    struct picture {
        struct sight was;
        bool known;
        unsigned sent;
    } picture;
};

static uint64_t draw(struct life *life, uint64_t below)
{
    uint64_t z = life->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void show(struct life *life)
{
    life->picture = (struct picture){life->was, life->known, life->sent};
}

static bool dies(struct life *life)
{
    if (draw(life, 5)) return false;
    life->was = life->picture.was;
    life->known = life->picture.known;
    life->sent = life->picture.sent;
    return true;
}

static enum act look(struct life *life)
{
    struct doubt doubt = {.sent = life->sent};
    enum act act = decide(&life->now, life->known ? &life->was : NULL, &doubt);
    if (act == ACT_NONE) {
        life->was = life->now;
        life->known = true;
        life->sent = 0;
    } else if (act == ACT_PAUSE || act == ACT_RESUME) {
        life->sent |= 1u << (act == ACT_PAUSE ? HIS_PAUSED : HIS_RUNNING);
        show(life);
        if (dies(life)) return act;
        if (draw(life, 4)) life->now.his = act == ACT_PAUSE ? HIS_PAUSED : HIS_RUNNING;
    }
    if (!dies(life) && draw(life, 2)) show(life);
    return act;
}

static void what_a_host_did_itself_is_never_taken_for_a_persons_wish(void)
{
    struct life life = {.state = 17, .now = {MINE_RUNNING, HIS_RUNNING}};
    for (int i = 0; i < 300000; i++) {
        if (draw(&life, 3) == 0) life.now.mine = life.now.mine == MINE_PAUSED ? MINE_RUNNING : MINE_PAUSED;
        enum act act = look(&life);
        if (act != ASK_PAUSE && act != ASK_RESUME) continue;
        test_fail(__FILE__, __LINE__, "after %d looks a signal that nobody wanted: %d", i, (int)act);
    }
}

static void what_a_person_did_while_nothing_else_moved_is_never_missed(void)
{
    struct life life = {.state = 4, .now = {MINE_RUNNING, HIS_RUNNING}};
    for (int i = 0; i < 20000; i++) {
        if (draw(&life, 2)) life.now.mine = life.now.mine == MINE_PAUSED ? MINE_RUNNING : MINE_PAUSED;
        while (look(&life) != ACT_NONE) continue;
        while (look(&life) != ACT_NONE || life.sent) continue; // settled
        bool pause = life.now.his == HIS_RUNNING;
        life.now.his = pause ? HIS_PAUSED : HIS_RUNNING;
        struct doubt doubt = {.sent = life.sent};
        CHECK(decide(&life.now, &life.was, &doubt) == (pause ? ASK_PAUSE : ASK_RESUME));
        life.now.his = pause ? HIS_RUNNING : HIS_PAUSED;
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(what_a_person_did_is_asked_for_and_what_cairn_did_is_shown),
        TEST(what_a_host_did_itself_is_never_taken_for_a_persons_wish),
        TEST(what_a_person_did_while_nothing_else_moved_is_never_missed),
    };
    return test_main("conductor_decide", tests, ARRAY_COUNT(tests), argc, argv);
}
