/* How long a rank waited for others while the job trained. */
#ifndef TR_TRAIN_DESCRIBE_WAITED_H
#define TR_TRAIN_DESCRIBE_WAITED_H

/* Seconds that a rank waited, of which those do not count that it spent while the first one saved, evaluated
   or told: the training took `seconds` without these (0: not known), and nobody can have computed and waited
   longer. */
double tr_train_waited(double waited, double computed, double seconds);

#endif
