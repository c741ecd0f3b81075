/* Attempts that outlive their engine (ADR 0039): an engine dies at any time, and the next one claims what was in flight at the Temporal
 * server under its number, instead of naming a new attempt.
 *
 * One step. The log has the number of the attempt that was ordered last and whether the step has ended. The server has a history: which
 * attempts are pending, which have ended and how. A worker takes an attempt that is pending at most once, and may die of it. The workflow
 * may be continued as new, which forgets its history. A task (permission to send commands) is answered at any moment, by what the engine
 * wants then; everything between two atomic blocks may be cut off by the engine's death.
 *
 * Promised: an attempt runs once under its number at most, and only when the log names it; the step ends once; nothing waits for ever (every
 * execution that ends, ends with the step).
 *
 * Wrong variants, each must be refuted:
 *   WRONG_CONTINUE  a workflow is continued as new before the engine has claimed what ended meanwhile
 *   WRONG_DISPATCH  an attempt is sent before the event that orders it is stored
 *   WRONG_HEARD     a result counts as heard before it is stored
 */
#ifndef CRASHES
#define CRASHES 3
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef CONTINUES
#define CONTINUES 2
#endif
#define K 4
#define NONE 0
#define PENDING 1
#define TAKEN 2
#define DONE 3
#define LOST 4
#define IDLE(k) (history[k] != PENDING && history[k] != TAKEN)
#ifdef WRONG_CONTINUE
#define MAY_CONTINUE true
#else
#define MAY_CONTINUE (driven && (wanted == 0 || history[wanted] == NONE))
#endif

byte log_k = 0;      /* the store: the last attempt that was ordered */
bool log_end = false;
byte history[K];     /* the server */
byte ran[K];         /* the world */
byte wanted = 0;     /* the engine's memory: the attempt that it wants outside; 0 = none */
bool driven = false; /* it has taken the run up */
bool alive = false;
bool heard = false;  /* WRONG_HEARD */
byte crashes = 0, deaths = 0, continues = 0;

active proctype engine()
{
    do
    :: atomic { alive && log_end -> break }
    :: atomic { !alive -> alive = true; wanted = 0; driven = false }
    :: atomic { alive && crashes < CRASHES -> crashes++; alive = false; wanted = 0; driven = false }
    /* the step begins: stored, then wanted */
    :: atomic { alive && !driven && log_k == 0 -> log_k = 1 }
    /* recovery: what is in flight is wanted under its number */
    :: atomic { alive && !driven && log_k > 0 && !log_end -> driven = true; wanted = log_k }
#ifdef WRONG_DISPATCH
    :: atomic { alive && !driven && log_k == 0 && history[1] == NONE -> history[1] = PENDING }
#endif
    /* a task: an end that history has is heard; what it does not have is sent */
    :: atomic { alive && wanted > 0 && history[wanted] == NONE -> history[wanted] = PENDING }
#ifdef WRONG_HEARD
    :: atomic { alive && wanted > 0 && history[wanted] == DONE && !heard -> heard = true; history[wanted] = NONE }
    :: atomic { alive && heard && driven -> assert(!log_end); log_end = true; wanted = 0 }
#else
    :: atomic { alive && wanted > 0 && history[wanted] == DONE -> assert(!log_end); log_end = true; wanted = 0 }
#endif
    :: atomic { alive && wanted > 0 && history[wanted] == LOST && wanted + 1 < K -> log_k = wanted + 1; wanted = 0; driven = false }
    /* continued as new: nothing is pending, and the engine has heard of every end */
    :: atomic { alive && continues < CONTINUES && MAY_CONTINUE && IDLE(1) && IDLE(2) && IDLE(3) ->
                continues++; history[1] = NONE; history[2] = NONE; history[3] = NONE }
    od;
    assert(log_end)
}

active [2] proctype worker()
{
    byte k;
begin:
    do
    :: atomic { log_end -> break }
    :: atomic { history[1] == PENDING -> k = 1 }; goto take
    :: atomic { history[2] == PENDING -> k = 2 }; goto take
    :: atomic { history[3] == PENDING -> k = 3 }; goto take
    od;
    goto over;
take:
    if
    :: atomic { history[k] == PENDING -> history[k] = TAKEN; ran[k]++; assert(ran[k] == 1); assert(k <= log_k) }
    :: atomic { history[k] != PENDING -> goto again }
    fi;
    if
    :: atomic { history[k] == TAKEN -> history[k] = DONE }
    :: atomic { deaths < DEATHS && history[k] == TAKEN -> deaths++; history[k] = LOST } /* found by its heartbeat */
    fi;
again:
    goto begin;
over:
    skip
}
