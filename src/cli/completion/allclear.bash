# bash completion for allclear. It asks the program itself, which answers within a second, also with names of the cluster.
_allclear() {
    local word words glued line begin directive=0 i
    words=()
    glued=
    # bash splits words at '=' and ':', and the program reads --namespace=shop and arn:aws:eks:eu-west-1:1:cluster/prod as one.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ( $word == [=:] || -n $glued ) ]]; then
            words[${#words[@]} - 1]+=$word
            if [[ $word == [=:] ]]; then glued=1; else glued=; fi
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    # What stands before the last ':' is another word to bash already.
    begin=
    if [[ ${#words[@]} -gt 0 && ${words[${#words[@]} - 1]} == *:* && $COMP_WORDBREAKS == *:* ]]; then
        begin=${words[${#words[@]} - 1]%:*}:
        begin=${begin#--*=}
    fi
    while IFS= read -r line; do
        case $line in
        :*) directive=${line#:} ;;
        *)
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$begin"}")
            ;;
        esac
    done < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null </dev/null)
    if ((directive & 2)); then compopt -o nospace 2>/dev/null; fi
    if ! ((directive & 4)); then compopt -o default 2>/dev/null; fi
}
complete -F _allclear allclear
