# bash completion for allclear. It asks the program itself, which answers within a second, also with names of the cluster.
_allclear() {
    local word words glued line directive=0 i
    words=()
    glued=
    # bash splits words at '=', and the program reads --namespace=shop as one.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ( $word == '=' || -n $glued ) ]]; then
            words[${#words[@]} - 1]+=$word
            if [[ $word == '=' ]]; then glued=1; else glued=; fi
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :*) directive=${line#:} ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null </dev/null)
    if ((directive & 2)); then compopt -o nospace 2>/dev/null; fi
    if ! ((directive & 4)); then compopt -o default 2>/dev/null; fi
}
complete -F _allclear allclear
