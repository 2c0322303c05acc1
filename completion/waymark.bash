# Completion of waymark in bash. The program knows its commands, options and values; this passes the words on to it.
# shellcheck shell=bash

_waymark() {
    # The words before the cursor. Bash splits them at = and : too, so pieces without a space between them are joined.
    local -a words=()
    local rest=${COMP_LINE:0:COMP_POINT} piece trimmed i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[! ]*}"}
        ((i == COMP_CWORD)) && piece=$trimmed
        if ((i > 0)) && [[ $trimmed == "$rest" && ${#words[@]} -gt 0 ]]; then
            words[-1]+=$piece
        else
            words+=("$piece")
        fi
        rest=${trimmed#"$piece"}
    done

    # As the program would get them: without quotes and backslashes.
    local -a plain=()
    for piece in "${words[@]}"; do
        [[ $piece == \~/* ]] && piece=$HOME${piece:1}
        piece=${piece//\\/}
        piece=${piece//\"/}
        plain+=("${piece//\'/}")
    done

    # Bash replaces what is after the last = or :, so that must be left out of the candidates.
    local typed=${plain[-1]} kept=
    [[ $typed == --*=* ]] && typed=${typed#*=}
    [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]] && kept=${typed%"${typed##*:}"}

    local -a answer=()
    mapfile -t answer < <("${plain[0]}" __complete "${plain[@]:1}" 2>/dev/null)
    COMPREPLY=()
    for piece in "${answer[@]}"; do
        case $piece in
            :files) compopt -o default ;;
            :folders) compopt -o dirnames ;;
            *)
                piece=${piece%%$'\t'*}
                piece=${piece#"$kept"}
                [[ ${words[-1]} == *[\'\"]* ]] || printf -v piece %q "$piece"
                COMPREPLY+=("$piece")
                ;;
        esac
    done
}
complete -F _waymark waymark
