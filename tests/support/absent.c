/* Two libraries: one that the other needs, and that is not where it would be found. */
#ifdef ABSENT
int tr_test_absent(void);
int tr_test_absent(void)
{
    return 1;
}
#else
int tr_test_absent(void);
int clGetPlatformIDs(void);
int clGetPlatformIDs(void)
{
    return tr_test_absent();
}
#endif
