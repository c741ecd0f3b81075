// People who signed in at an identity provider: what they got is kept in a file for each server, which only they can read, and renewed
// before it is over. It is sent to that server and to no other.
#ifndef CAIRN_CLI_LOGIN_H
#define CAIRN_CLI_LOGIN_H

#include "cli/cli.h"

// The token for the server; empty: the user has not signed in there. EXIT_OK, or what was reported: it is over and could not be renewed.
int login_token(struct cli *cli, const char *url, struct str *token, const char **from);

#endif
