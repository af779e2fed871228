#compdef allclear
# zsh completion for allclear. It asks the program itself, which answers within a second, also with names of the cluster.
_allclear() {
    local line directive=0 word about
    local -a given found shown options
    given=("${(@)words[2,CURRENT]}")
    for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)given}" 2>/dev/null </dev/null)}"; do
        if [[ $line == :* ]]; then
            directive=${line#:}
        elif [[ -n $line ]]; then
            word=${line%%$'\t'*}
            about=
            if [[ $line == *$'\t'* ]]; then about="  -- ${line#*$'\t'}"; fi
            found+=("$word")
            shown+=("$word$about")
        fi
    done
    if ! ((directive & 4)); then
        _files
        return
    fi
    if ((directive & 2)); then options+=(-S ''); fi
    # What follows --namespace= is completed alone.
    if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
    if ((${#found})); then compadd -l -d shown "${options[@]}" -- "${found[@]}"; fi
}
if [[ ${funcstack[1]} == _allclear ]]; then
    _allclear "$@"
else
    compdef _allclear allclear
fi
