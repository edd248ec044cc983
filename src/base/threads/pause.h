/* A moment's rest between two looks at a word that another thread will change: some nanoseconds, in which the
   processor gives its other hardware thread the room. */
#ifndef TR_BASE_PAUSE_H
#define TR_BASE_PAUSE_H

static inline void tr_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
