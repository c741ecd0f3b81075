// Hosts in processes of their own (outside.c), as rows of equiv.c have them.
#ifndef CAIRN_EQUIV_OUTSIDE_H
#define CAIRN_EQUIV_OUTSIDE_H

#include "equiv/inside.h"

enum code server_play_open(struct equiv_host *host, struct error *err) MUST_CHECK;
enum code temporal_play_open(struct equiv_host *host, struct error *err) MUST_CHECK;
enum code conductor_play_open(struct equiv_host *host, struct error *err) MUST_CHECK;
enum code outside_play(struct equiv_host *host, struct equiv_playing *playing, struct error *err) MUST_CHECK;
void outside_close(struct equiv_host *host);

#endif
