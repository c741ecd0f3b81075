// Private to os/: the crash counter of test builds (see os.h). Every mutating disk call stands between the two.
#ifndef CAIRN_OS_FAULT_H
#define CAIRN_OS_FAULT_H

#ifdef CAIRN_FAULTS
void fault_before(void);
void fault_after(void);
#else
static inline void fault_before(void)
{
}
static inline void fault_after(void)
{
}
#endif

#endif
