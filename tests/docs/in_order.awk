# in_order.awk EXPECTED GOT: ends with 0 if the lines of the first file are found in the second in their order; else prints the
# first one that is not.
FNR == NR && FILENAME == ARGV[1] { expected[++count] = $0; next }
found < count && $0 == expected[found + 1] { found++ }
END {
  if (found == count) exit 0
  print expected[found + 1]
  exit 1
}
