# Takes out of the program's output what depends on the machine and the moment, so that the rest can be compared.
BEGIN {
  number = "[0-9][0-9.,]*"
  # Columns of tables that say the same everywhere; of asynchronous rows the name and the processes alone.
  split("strategy workers epochs accuracy hash rank role microbatches layers parameters updates", names, " ")
  for (i in names) steady[names[i]] = 1
}

# Cells are two blanks apart.
function cells(line, out) {
  sub(/^ +/, "", line)
  return split(line, out, /  +/)
}

function row(   i, n, cell, line, async) {
  n = cells($0, cell)
  async = cell[1] ~ /mode=(async|bounded|backup)/
  for (i = 1; i <= n && i <= columns; i++)
    if (i == 1 || heading[i] == "workers" || (!async && (heading[i] in steady))) line = line " | " cell[i]
  return line
}

# Files that ship are named where they lie.
{
  root = ENVIRON["SOURCE"] "/"
  while (at = index($0, root)) $0 = substr($0, 1, at - 1) substr($0, at + length(root))
}

/^ *(strategy  +workers|rank  +host) / {
  columns = cells($0, heading)
  table = 1
}
table && /^ *$/ { table = 0 }
table { $0 = row() }

/^(trireme|device|memory|best here|processes|moved|waited for|staleness) / { $0 = $1 " *" }
{
  gsub("  examples/s " number, "")
  gsub("  tokens/s " number, "")
  gsub("  (" number " (min|h|d) )?" number " (ms|s|min|h|d) left", "")
  gsub(number " examples/s", "# examples/s")
  gsub(number " tokens/s", "# tokens/s")
  gsub(number " (us|ms|s|min|h)($|[^a-z])", "# s&")
  gsub("# s" number " (us|ms|s|min|h)", "# s")
  gsub("# s # s", "# s") # minutes and seconds
  gsub(number " [KMG]iB", "# B")
  gsub("stopped after step " number, "stopped after step #")
  sub(/^step +/, "step ")
  sub(/ +$/, "")
  print
}
