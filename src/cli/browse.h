// The page in a browser: an address with a ticket in it, printed and opened.
#ifndef CAIRN_CLI_BROWSE_H
#define CAIRN_CLI_BROWSE_H

#include "cli/cli.h"

// Prints "URL/#ticket=TICKET" and opens it in the browser of a desktop. `beside` is a path whose directory only we write: other users
// of the machine see command lines, so the browser is given a file there that leads on. Empty ticket: the address alone.
void browse(struct cli *cli, const char *url, struct str ticket, const char *beside);
// The same at a server that runs already: the ticket is asked for there. The exit code.
int browse_server(struct cli *cli, const char *url, struct str token, struct str ca_file, const char *beside);

#endif
