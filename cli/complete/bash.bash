# Completion of trireme for bash; the program itself lists the words that fit.
#     source <(trireme completion bash)
_trireme() {
    local line=${COMP_LINE:0:COMP_POINT} kind= candidate current replaced head
    local -a words
    read -r -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[${#words[@]}-1]}
    current=${current#[\"\']}
    words[${#words[@]}-1]=$current
    # Readline replaces what follows the last of its separators only.
    replaced=$current
    [[ $COMP_WORDBREAKS == *=* ]] && replaced=${replaced##*=}
    [[ $COMP_WORDBREAKS == *:* ]] && replaced=${replaced##*:}
    head=${current%"$replaced"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        if [[ -z $kind ]]; then
            kind=$candidate
        else
            COMPREPLY+=("${candidate#"$head"}")
        fi
    done < <(command "${words[0]/#\~/$HOME}" completion bash -- "${words[@]:1}" 2> /dev/null)
    local IFS=$'\n'
    case $kind in
    files)
        compopt -o filenames
        COMPREPLY+=($(compgen -f -- "$replaced"))
        ;;
    directories)
        compopt -o filenames
        COMPREPLY+=($(compgen -d -- "$replaced"))
        ;;
    esac
    # A key waits for its value, a directory for what is in it.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    return 0
}
complete -F _trireme trireme
