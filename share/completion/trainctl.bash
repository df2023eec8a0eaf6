# SPDX-License-Identifier: Apache-2.0
# bash completion for trainctl. The candidates come from the program itself.
_trainctl()
{
    local current=${COMP_WORDS[COMP_CWORD]} word
    local candidates=()
    COMPREPLY=()
    while IFS= read -r word; do
        if [[ $word == ':files '* ]]; then
            compopt -o filenames
            while IFS= read -r word; do
                candidates+=("$word")
            done < <(compgen -d -- "$current"; compgen -f -X "!${word#:files }" -- "$current")
        else
            candidates+=("$word")
        fi
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=("${candidates[@]}")
}
complete -F _trainctl trainctl
