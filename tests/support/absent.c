/* Two libraries: one that the other needs, and that is not where it would be found. */
#ifdef ABSENT
__attribute__((visibility("default"))) int tr_test_absent(void);
int tr_test_absent(void)
{
    return 1;
}
#else
int tr_test_absent(void);
__attribute__((visibility("default"))) int clGetPlatformIDs(void);
int clGetPlatformIDs(void)
{
    return tr_test_absent();
}
#endif
