# Completion of waymark in fish. The program knows its commands, options and values; this passes the words on to it.

function __waymark_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # fish replaces the whole word, so candidates for --option=beginning need the option before them.
    set -l before (string match -r -- '^--[^=]*=' "$current")
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (string replace -- "$before" '' "$current") file | string replace -r -- '^' "$before"
            case :folders
                __fish_complete_directories (string replace -- "$before" '' "$current") folder |
                    string replace -r -- '^' "$before"
            case '*'
                echo -- "$before$line"
        end
    end
end

complete -c waymark -f -a '(__waymark_complete)'
