/* How long a rank waited for others during training. */
#ifndef TR_TRAIN_DESCRIBE_WAITED_H
#define TR_TRAIN_DESCRIBE_WAITED_H

/* Seconds that a rank waited, without those while the root saved, evaluated or reported: the training took
   `seconds` without these (0: not known), and no rank can have computed and waited longer. */
double tr_train_waited(double waited, double computed, double seconds);

#endif
