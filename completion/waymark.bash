# Completion of waymark in bash. The program knows its commands, options and values; this passes the words on to it.
# shellcheck shell=bash

# REPLY: a word as it is written behind $2, the quote that the word on the command line begins with, or without quotes.
_waymark_quoted() {
    local -r single="'\\''" mark="\"'!'\""
    case $2 in
        \') REPLY=${1//\'/"$single"} ;;
        \")
            REPLY=${1//\\/\\\\}
            REPLY=${REPLY//\"/\\\"}
            REPLY=${REPLY//\$/\\\$}
            REPLY=${REPLY//\`/\\\`}
            REPLY=${REPLY//!/"$mark"}
            ;;
        *) printf -v REPLY %q "$1" ;;
    esac
    # Bash adds the closing quote, but not behind one.
    [[ $2 && $REPLY == *"$2" ]] && REPLY+=$2
    return 0
}

_waymark() {
    # The words before the cursor. Bash splits them at = and : too, so pieces without a space between them are joined.
    local -a words=()
    local REPLY
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
    # Within quotes it is what is after the quote. Where a word has more quotes, Bash and this may differ about what it
    # replaces, so there are no candidates.
    local raw=${words[-1]} quote=
    [[ $raw == --*=* ]] && raw=${raw#*=}
    if [[ $raw == [\'\"]* ]]; then
        quote=${raw:0:1}
        raw=${raw:1}
    elif [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]]; then
        kept=${typed%"${typed##*:}"}
    fi

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
                [[ $raw == *[\'\"]* ]] && continue
                _waymark_quoted "$piece" "$quote"
                COMPREPLY+=("$REPLY")
                ;;
        esac
    done
}
complete -F _waymark waymark
