/* Several engines on one store: who may write a run, and when (ADR 0021, clauses S6 and S17 of src/store/store.h).
 *
 * The store is a set of atomic transactions; everything between two of them may be stretched, cut or repeated:
 *   - a lease runs out at any time, whoever looks at it and whatever clocks say (world: fence);
 *   - an engine that is not scheduled is paused for as long as you like, also between a commit and what it orders;
 *   - a reply to a commit gets lost: the engine ends, as after E_IO (S10), and does not know what is stored;
 *   - an engine dies at any time and joins again under a new number;
 *   - whatever was given to a worker may come back late, any number of times, to any engine, or never;
 *   - a person cancels at any time.
 *
 * The log of a run is a word that only grows: its length stands for the number of its last event, so that `at` below is both the
 * state that folding it gives and the number that an append expects.
 *   FRESH, then step 0 under attempts 1..K, step 1 under attempts 1..K, then one end.
 *
 * Numbers of members and epochs of runs are never given twice, so only "the newest or not" is kept: `member` and `epoch` are bits
 * of what an engine believes that the store would still find equal. That is the whole abstraction.
 *
 * Every execution is finite (no cycle, see test/model/run) and ends with all runs ended, or an assertion fails.
 *
 * Wrong variants, each must be refuted:
 *   WRONG_CLOCK     an engine trusts its own clock: the store compares nothing
 *   WRONG_OUTSIDE   the epoch is compared, but in a transaction before the append
 *   WRONG_SEQUENCE  the append compares only the number that it expects; who is behind reads again and goes on
 *   WRONG_RESULT    a result counts whatever attempt it is of
 *   WRONG_DISPATCH  an attempt is handed out before the event that orders it is stored
 *   WRONG_CURSOR    the outbox moves without comparing who has its duty
 *   WRONG_STUCK     who takes a shard leaves alone what was in flight there: the last check of all can fail
 */
#ifndef ENGINES
#define ENGINES 3
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef K
#define K 2 /* attempts of a step that the engine makes by itself */
#endif
#ifndef FENCES
#define FENCES 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef GIVES
#define GIVES 1
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef OUTBOX
#define OUTBOX 2 /* events to publish */
#endif

#define NOBODY 255
#define FRESH 0
#define STARTED(s, k) (1 + (s) * K + (k) - 1) /* number of the event that orders attempt k of step s */
#define LAST STARTED(1, K)
#define COMPLETED (LAST + 1)
#define FAILED (LAST + 2)
#define CANCELLED (LAST + 3)
#define ENDED(a) ((a) > LAST)
#define STEP(a) (((a) - 1) / K)
#define ATTEMPT(a) (((a) - 1) % K + 1)
#define NEXT_STEP(a) (STEP(a) == 0 -> STARTED(1, 1) : COMPLETED)
#define AGAIN(a) (ATTEMPT(a) < K -> (a) + 1 : FAILED)

/* ---- the store */
byte at[RUNS];           /* the log of each run */
byte owner[RUNS];        /* of the shard that the run is in; a shard for each run is the hardest case */
byte cursor;             /* of the outbox: its duty goes with shard 0 */
bit cancel_wanted[RUNS]; /* the inbox */

/* ---- what engines believe. S: the store's answer to "is it still the newest?", kept where it belongs to */
typedef belief {
    bit joined;
    bit member;         /* S: its number has not been fenced */
    bit has[RUNS];      /* it thinks that the shard is its own */
    bit resident[RUNS]; /* it has claimed the run and folded it */
    bit epoch[RUNS];    /* S: nobody has claimed the run since */
    byte view[RUNS];    /* what it folded */
    bit fresh[RUNS];    /* just folded: what is in flight belongs to somebody who is gone */
    byte todo[RUNS];    /* an attempt that is durable and not yet handed out; 0 = none */
    byte place;         /* where it will move the cursor to; 0 = it has published nothing */
#ifdef WRONG_OUTSIDE
    bit checked[RUNS];
#endif
};
belief e[ENGINES];

/* ---- memory of the outside world, for the properties */
bit given[RUNS * (LAST + 1)]; /* attempts that a worker has got */
byte claimed_by[RUNS];        /* who claimed last */

byte fences_left, crashes_left, gives_left, cancels_left;

#define GIVEN(r, a) given[(r) * (LAST + 1) + (a)]
#define RUNNING(a) ((a) != FRESH && !ENDED(a))

inline forget(i, r)
{
    e[i].resident[r] = 0;
    e[i].epoch[r] = 0;
    e[i].view[r] = 0;
    e[i].fresh[r] = 0;
    e[i].todo[r] = 0;
#ifdef WRONG_OUTSIDE
    e[i].checked[r] = 0;
#endif
}

inline forget_all(i)
{
    byte q;
    for (q : 0 .. RUNS - 1) {
        forget(i, q);
        e[i].has[q] = 0;
    }
    q = 0;
    e[i].joined = 0;
    e[i].place = 0;
}

/* From now on nothing of its number is stored, and what it owned is free: one transaction. */
inline fence(i)
{
    byte f;
    for (f : 0 .. RUNS - 1) {
        if
        :: owner[f] == i -> owner[f] = NOBODY
        :: else
        fi
    }
    f = 0;
    e[i].member = 0;
}

/* The transaction of a batch: compare and store. `then` is what the log becomes; `got` tells what came of it. */
inline append(i, r, then, got)
{
#if defined(WRONG_CLOCK)
    got = 1;
#elif defined(WRONG_OUTSIDE) || defined(WRONG_SEQUENCE)
    got = (at[r] == e[i].view[r]);
#else
    got = (e[i].member && e[i].epoch[r] && at[r] == e[i].view[r]);
#endif
    if
    :: got ->
        assert(claimed_by[r] == i); /* P1: only who claimed last writes */
        assert(!ENDED(at[r]));      /* P2: one end, and nothing after it */
        assert(then > at[r]);        /* P3: no event twice, none in the past: attempts rise, a step that ended stays so */
        at[r] = then;
    :: else
    fi
}

/* One turn: append, and when that is known to have happened, owe what it orders. */
inline decide(i, r, then)
{
    bit stored;
#ifdef WRONG_DISPATCH
    if
    :: RUNNING(then) ->
        assert(at[r] >= then); /* P4 */
        GIVEN(r, then) = 1
    :: else
    fi;
#endif
    append(i, r, then, stored);
    if
    :: stored && crashes_left > 0 -> /* the reply is lost: it ends, and others find out what is stored */
        crashes_left--;
        forget_all(i)
    :: stored ->
        e[i].view[r] = then;
        e[i].fresh[r] = 0;
        e[i].todo[r] = (RUNNING(then) -> then : 0)
#ifdef WRONG_SEQUENCE
    :: !stored && at[r] != e[i].view[r] ->
        e[i].view[r] = at[r];
        e[i].fresh[r] = 1
#endif
    :: !stored && !e[i].member -> forget_all(i) /* fenced: it says so and joins again */
    :: !stored && e[i].member -> forget(i, r)   /* only this run is somebody else's */
    fi;
    stored = 0
}

#ifdef WRONG_OUTSIDE
#define CHECKED(i, r) (e[i].checked[r])
#define UNCHECK(i, r) e[i].checked[r] = 0
#else
#define CHECKED(i, r) true
#define UNCHECK(i, r) skip
#endif
#define FREE(i, r) (e[i].resident[r] && e[i].todo[r] == 0 && CHECKED(i, r))
#ifdef WRONG_STUCK
#define TAKES_UP(r) (at[r] == FRESH)
#else
#define TAKES_UP(r) (!ENDED(at[r]))
#endif

/* What engine i does with run r. */
proctype driver(byte i; byte r)
{
    byte then, j;
end:
    do
    /* the shard, and the run in it */
    :: atomic {
        e[i].joined && !e[i].has[r] && owner[r] == NOBODY ->
        if
        :: e[i].member -> owner[r] = i; e[i].has[r] = 1
        :: else -> forget_all(i)
        fi
    }
    :: atomic {
        e[i].has[r] && !e[i].resident[r] && TAKES_UP(r) ->
        if
        :: e[i].member && owner[r] == i ->
            for (j : 0 .. ENGINES - 1) {
                e[j].epoch[r] = 0;
            }
            j = 0;
            e[i].epoch[r] = 1;
            e[i].resident[r] = 1;
            e[i].view[r] = at[r];
            e[i].fresh[r] = 1;
            claimed_by[r] = i
        :: !e[i].member -> forget_all(i)
        :: e[i].member && owner[r] != i -> e[i].has[r] = 0; e[i].place = (r == 0 -> 0 : e[i].place)
        fi
    }
#ifdef WRONG_OUTSIDE
    :: atomic { e[i].resident[r] && e[i].todo[r] == 0 && !e[i].checked[r] && e[i].member && e[i].epoch[r] &&
        !ENDED(e[i].view[r]) -> e[i].checked[r] = 1 }
#endif
    /* begin */
    :: atomic { FREE(i, r) && e[i].view[r] == FRESH -> UNCHECK(i, r); then = STARTED(0, 1); decide(i, r, then); then = 0 }
    /* recovery: what was in flight runs again, under the next attempt */
    :: atomic {
        FREE(i, r) && e[i].fresh[r] && RUNNING(e[i].view[r]) ->
        UNCHECK(i, r);
        then = AGAIN(e[i].view[r]);
        decide(i, r, then);
        then = 0
    }
    /* a result of the current attempt; whoever had it, and however often it has come before */
    :: atomic {
        FREE(i, r) && !e[i].fresh[r] && RUNNING(e[i].view[r]) && GIVEN(r, e[i].view[r]) ->
        UNCHECK(i, r);
        then = NEXT_STEP(e[i].view[r]);
        decide(i, r, then);
        then = 0
    }
#ifdef WRONG_RESULT
    :: atomic {
        FREE(i, r) && !e[i].fresh[r] && RUNNING(e[i].view[r]) && ATTEMPT(e[i].view[r]) > 1 &&
        GIVEN(r, e[i].view[r] - 1) ->
        assert(at[r] != e[i].view[r] || !e[i].epoch[r]); /* P5: an outcome is of the attempt that is current */
        then = NEXT_STEP(e[i].view[r]);
        decide(i, r, then);
        then = 0
    }
#endif
    :: atomic {
        FREE(i, r) && cancel_wanted[r] && !ENDED(e[i].view[r]) ->
        UNCHECK(i, r);
        then = CANCELLED;
        decide(i, r, then);
        then = 0
    }
    /* hands out what it owes; any time may have passed since it was stored */
    :: atomic {
        e[i].todo[r] != 0 ->
#ifndef WRONG_DISPATCH
        assert(at[r] >= e[i].todo[r]);   /* P4: nothing is handed out before it is durable */
        assert(!GIVEN(r, e[i].todo[r])); /* P6: no attempt is handed out twice */
        GIVEN(r, e[i].todo[r]) = 1;
#endif
        e[i].todo[r] = 0
    }
    /* gives the shard away; it may do so in order, or forget to let go of the run */
    :: atomic {
        gives_left > 0 && e[i].has[r] ->
        gives_left--;
        if
        :: e[i].member && owner[r] == i -> owner[r] = NOBODY
        :: else
        fi;
        e[i].has[r] = 0;
        e[i].place = (r == 0 -> 0 : e[i].place); /* sinks are closed first: found by this model */
        if
        :: forget(i, r)
        :: skip
        fi
    }
    od
}

/* What engine i does as a member. */
proctype engine(byte i)
{
end:
    do
    :: atomic { !e[i].joined -> fence(i); e[i].joined = 1; e[i].member = 1 }
    :: atomic { crashes_left > 0 && e[i].joined -> crashes_left--; forget_all(i) }
#if !defined(WRONG_CLOCK) && !defined(WRONG_SEQUENCE) && !defined(WRONG_OUTSIDE)
    /* renewing tells it, when nothing else does */
    :: atomic { e[i].joined && !e[i].member -> forget_all(i) }
#endif
    /* the outbox: publishes, then moves the cursor. Any time passes in between */
    :: atomic { e[i].has[0] && e[i].place == 0 && cursor < OUTBOX -> e[i].place = cursor + 1 }
    :: atomic {
        e[i].place != 0 ->
        if
#ifdef WRONG_CURSOR
        :: true
#else
        :: e[i].member && owner[0] == i
#endif
            ->
            assert(e[i].place >= cursor); /* P7: it never goes back */
            cursor = e[i].place
#ifndef WRONG_CURSOR
        :: !e[i].member -> forget_all(i)
        :: e[i].member && owner[0] != i -> e[i].has[0] = 0
#endif
        fi;
        e[i].place = 0
    }
    od
}

proctype world()
{
    byte i;
end:
    do
    :: atomic { fences_left > 0 -> fences_left--; select(i : 0 .. ENGINES - 1); fence(i); i = 0 }
    :: atomic { cancels_left > 0 -> cancels_left--; select(i : 0 .. RUNS - 1); cancel_wanted[i] = 1; i = 0 }
    od
}

init
{
    byte n;
    atomic {
        fences_left = FENCES;
        crashes_left = CRASHES;
        gives_left = GIVES;
        cancels_left = CANCELS;
        for (n : 0 .. RUNS - 1) {
            owner[n] = NOBODY;
        }
        for (n : 0 .. ENGINES - 1) {
            run engine(n);
            run driver(n, 0);
#if RUNS > 1
            run driver(n, 1);
#endif
        }
        run world();
        n = 0
    }
    /* Nothing can happen any more: then nothing may be owed (I17). */
    timeout -> assert(ENDED(at[0]) && ENDED(at[RUNS - 1]) && cursor == OUTBOX)
}
