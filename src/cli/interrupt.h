// SIGINT, SIGTERM and SIGHUP as a count: the handler only counts, so that nothing happens inside of it. The one piece of
// global state of the command line, because that is what a signal handler can reach. A signal that the leader of our process
// group sends again within a second counts once: timeout(1) sends each one to its child, and then to the group.
#ifndef CAIRN_CLI_INTERRUPT_H
#define CAIRN_CLI_INTERRUPT_H

void interrupts_catch(void);
int interrupts_count(void);
int interrupts_number(void); // of the first one; 0 = none yet
// For a service SIGHUP is no reason to end: it is counted apart.
void reloads_catch(void);
int reloads_count(void); // changes with each one

#endif
