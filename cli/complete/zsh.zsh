#compdef trireme
# Completion of trireme for zsh; the program itself lists the words that fit.
#     source <(trireme completion zsh)       after compinit, or as _trireme in a directory of $fpath
_trireme() {
    local line candidate about
    local -a lines words_before names shown open open_shown
    words_before=("${(@Q)words[2,CURRENT-1]}")
    lines=("${(@f)$(command ${(Q)words[1]/#\~/$HOME} completion zsh -- "${(@)words_before}" "${(Q)PREFIX}" 2> /dev/null)}")
    case ${lines[1]} in
    files) _files; return ;;
    directories) _files -/; return ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        candidate=${line%%$'\t'*}
        about=${line#*$'\t'}
        [[ -n $candidate ]] || continue
        [[ -n $about ]] && about="$candidate  -- $about" || about=$candidate
        if [[ $candidate == *[=/] ]]; then
            open+=("$candidate"); open_shown+=("$about")
        else
            names+=("$candidate"); shown+=("$about")
        fi
    done
    (( $#open )) && compadd -S '' -l -d open_shown -a open
    (( $#names )) && compadd -l -d shown -a names
    return 0
}
if [[ ${funcstack[1]} == _trireme ]]; then
    _trireme "$@"
else
    compdef _trireme trireme
fi
