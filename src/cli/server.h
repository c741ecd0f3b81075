// Where commands go when the runs are a server's: which one, and who we are there.
#ifndef CAIRN_CLI_SERVER_H
#define CAIRN_CLI_SERVER_H

#include "cli/cli.h"

bool url_is_server(const char *url); // "http:", "https:", "unix:"
bool url_is_here(const char *url);   // only this machine hears what is sent there

// Which of store and server is meant: a flag beats every setting, and of the settings the stronger one wins (cli/config.h).
// EXIT_OK with *url NULL: no server. Two of the same strength are an error, which was reported.
int server_choose(struct cli *cli, const char **url);

struct server_access {
    struct str token, ca_file;
    const char *token_from; // for people: "--token-file x", "$CAIRN_TOKEN"
};
// --token-file, $CAIRN_TOKEN, the setting token-file, what `cairn login` got there, or for a server of this machine the file that it
// left beside the store that is the default here. EXIT_OK, or what was reported: without a token nothing is sent.
int server_access(struct cli *cli, const char *url, const char *store, struct server_access *out);

#endif
