# fish completion for allclear. It asks the program itself, which answers within a second, also with names of the cluster.
function __allclear_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' $last)
    for line in (command $words[1] __complete $words[2..-1] "$last" 2>/dev/null </dev/null)
        if string match -q -- ':0' $line
            __fish_complete_path (string replace -r -- '^--[^=]*=' '' $last)
        else if not string match -q -- ':*' $line
            echo -- "$prefix$line"
        end
    end
end
complete -c allclear -f -a '(__allclear_complete)'
