# Completion of trireme for fish; the program itself lists the words that fit.
#     trireme completion fish | source
function __trireme_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] completion fish -- $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$current"
        case directories
            __fish_complete_directories "$current"
    end
    if test (count $lines) -gt 1
        printf '%s\n' $lines[2..-1]
    end
end
complete -c trireme -e
complete -c trireme -f -a '(__trireme_complete)'
