package main

import (
	"fmt"
	"io"
	"strings"
)

func completionVerb() verb {
	return verb{
		name:     "completion",
		brief:    "print a completion script for a shell",
		synopsis: "bash|zsh|fish",
		detail:   "Prints a script that completes verbs, flags and file names in the shell named.",
		examples: `stile completion bash > /etc/bash_completion.d/stile
stile completion zsh > "${fpath[1]}/_stile"
stile completion fish > ~/.config/fish/completions/stile.fish`,
		operands: "bash zsh fish",
		run:      cmdCompletion,
	}
}

func cmdCompletion(args []string) int {
	p, err := parse(args, nil, false)
	if err == nil && len(p.operands) != 1 {
		err = usageHint("stile completion bash", "name one shell: bash, zsh or fish")
	}
	if err != nil {
		return fail(err, false)
	}
	switch p.operands[0] {
	case "bash":
		completeBash(stdout)
	case "zsh":
		completeZsh(stdout)
	case "fish":
		completeFish(stdout)
	default:
		return fail(usageHint("bash, zsh or fish", "there is no completion for %q", p.operands[0]), false)
	}
	return 0
}

func verbNames() []string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return append(names, "help")
}

// flagWords are a verb's flags as typed; those that take a value apart.
func flagWords(v *verb) (all, valued []string) {
	for _, o := range v.flags() {
		for _, n := range strings.Split(o.names, ",") {
			all = append(all, dashed(n))
			if o.arg != "" {
				valued = append(valued, dashed(n))
			}
		}
	}
	return append(all, "--help"), valued
}

func completeBash(w io.Writer) {
	fmt.Fprintf(w, `# bash completion for stile
_stile() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '%s' -- "$cur"))
        return
    fi
    local flags='' words='' values=''
    case ${COMP_WORDS[1]} in
`, strings.Join(verbNames(), " "))
	for _, v := range verbs() {
		all, valued := flagWords(&v)
		fmt.Fprintf(w, "    %s)\n        flags='%s'\n        words='%s'\n        values='%s' ;;\n",
			v.name, strings.Join(all, " "), operandWords(&v), strings.Join(valued, " "))
	}
	fmt.Fprintf(w, "    help) words='%s' ;;\n", strings.Join(verbNames(), " "))
	fmt.Fprint(w, `    esac
    if [[ ${COMP_WORDS[1]} == run || ${COMP_WORDS[1]} == edit || ${COMP_WORDS[1]} == grant && ${COMP_WORDS[2]} == run ]]; then
        case $prev in
        --policy) COMPREPLY=($(compgen -W 'mutation monitor single_flight' -- "$cur")); return ;;
        esac
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then
                if ((i + 1 == COMP_CWORD)); then
                    COMPREPLY=($(compgen -c -- "$cur"))
                else
                    COMPREPLY=($(compgen -f -- "$cur"))
                fi
                return
            fi
        done
    fi
    if [[ " $values " == *" $prev "* ]]; then
        return
    fi
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    elif [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -o bashdefault -F _stile stile
`)
}

// operandWords are the words that a verb's operand is one of, or "".
func operandWords(v *verb) string {
	if v.operands == "FILE" || v.operands == "DIR" {
		return ""
	}
	return v.operands
}

func completeZsh(w io.Writer) {
	fmt.Fprint(w, `#compdef stile
# zsh completion for stile
_stile() {
    local -a verbs
    verbs=(
`)
	for _, v := range verbs() {
		fmt.Fprintf(w, "        %s\n", shellQuote(v.name+":"+v.brief))
	}
	fmt.Fprint(w, `        'help:show help'
    )
    if (( CURRENT == 2 )); then
        _describe 'verb' verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
`)
	for _, v := range verbs() {
		fmt.Fprintf(w, "    %s)\n        _arguments -S \\\n", v.name)
		for _, o := range v.flags() {
			for _, n := range strings.Split(o.names, ",") {
				spec := dashed(n)
				if o.arg != "" {
					spec += map[bool]string{true: "+", false: "="}[len(n) == 1]
				}
				spec += "[" + zshText(o.help) + "]"
				if o.arg != "" {
					spec += ":" + o.arg + ":"
					if o.words != "" {
						spec += "(" + o.words + ")"
					}
				}
				fmt.Fprintf(w, "            %s \\\n", shellQuote(spec))
			}
		}
		fmt.Fprintf(w, "            '--help[show help]' \\\n")
		switch {
		case v.name == "run" || v.name == "edit":
			fmt.Fprintf(w, "            '1:target:_files' '*::command:_normal' ;;\n")
		case operandWords(&v) != "":
			fmt.Fprintf(w, "            '1:word:(%s)' ;;\n", operandWords(&v))
		case v.operands == "DIR":
			fmt.Fprintf(w, "            '1:folder:_files -/' ;;\n")
		case v.operands == "FILE":
			fmt.Fprintf(w, "            '1:path:_files' ;;\n")
		default:
			fmt.Fprintf(w, "            ;;\n")
		}
	}
	fmt.Fprint(w, `    help) _describe 'verb' verbs ;;
    esac
}
_stile "$@"
`)
}

func zshText(s string) string {
	return strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func completeFish(w io.Writer) {
	fmt.Fprint(w, "# fish completion for stile\ncomplete -c stile -n __fish_use_subcommand -f\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "complete -c stile -n __fish_use_subcommand -a %s -d %s\n", v.name, shellQuote(v.brief))
	}
	fmt.Fprint(w, "complete -c stile -n __fish_use_subcommand -a help -d 'show help'\n")
	for _, v := range verbs() {
		seen := "'__fish_seen_subcommand_from " + v.name + "'"
		for _, o := range v.flags() {
			fmt.Fprintf(w, "complete -c stile -n %s", seen)
			for _, n := range strings.Split(o.names, ",") {
				if len(n) == 1 {
					fmt.Fprintf(w, " -s %s", n)
				} else {
					fmt.Fprintf(w, " -l %s", n)
				}
			}
			if o.arg != "" {
				fmt.Fprint(w, " -x")
			}
			if o.words != "" {
				fmt.Fprintf(w, " -a %s", shellQuote(o.words))
			}
			fmt.Fprintf(w, " -d %s\n", shellQuote(o.help))
		}
		fmt.Fprintf(w, "complete -c stile -n %s -l help -d 'show help'\n", seen)
		if words := operandWords(&v); words != "" {
			fmt.Fprintf(w, "complete -c stile -n %s -f -a %s\n", seen, shellQuote(words))
		}
	}
	fmt.Fprintf(w, "complete -c stile -n '__fish_seen_subcommand_from help' -f -a '%s'\n", strings.Join(verbNames(), " "))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
