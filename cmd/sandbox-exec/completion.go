package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// completion writes what makes a shell complete our command lines, made of
// the commands and flags that there are.
func (e *env) completion(c *cli.Context) error {
	shell, err := oneArg(c, "SHELL: bash, zsh or fish")
	if err != nil {
		return err
	}
	commands := c.Lineage()[len(c.Lineage())-2].App.Commands
	switch shell {
	case "bash":
		bashCompletion(e.stdout, commands)
	case "zsh":
		fmt.Fprintln(e.stdout, "autoload -U +X bashcompinit && bashcompinit")
		bashCompletion(e.stdout, commands)
	case "fish":
		fishCompletion(e.stdout, commands)
	default:
		return misuse(fmt.Sprintf("completion %q: want bash, zsh or fish", shell), "")
	}
	return nil
}

// flagWords are a command's flags, each as it is typed.
func flagWords(c *cli.Command) (words []string) {
	for _, f := range c.Flags {
		for _, name := range f.Names() {
			words = append(words, dashed(name))
		}
	}
	return append(words, "--help")
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func commandNames(list []*cli.Command) (names []string) {
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

func bashCompletion(w io.Writer, commands []*cli.Command) {
	fmt.Fprint(w, `_sandbox_exec() {
	local cur=${COMP_WORDS[COMP_CWORD]} path= words= i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) # the program's own
			if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$cur")); fi
			return
			;;
		-*) ;;
		*) path="$path ${COMP_WORDS[i]}" ;;
		esac
	done
	case $path in
`)
	arm := func(path string, words []string) {
		fmt.Fprintf(w, "\t%s) words='%s' ;;\n", path, strings.Join(words, " "))
	}
	for _, c := range commands {
		if len(c.Subcommands) == 0 {
			arm(fmt.Sprintf("' %s' | ' %s '*", c.Name, c.Name), flagWords(c))
			if c.Name == "run" { // its name can be left out
				arm("''", append(commandNames(commands), flagWords(c)...))
			}
			continue
		}
		arm(fmt.Sprintf("' %s'", c.Name), commandNames(c.Subcommands))
		for _, sub := range c.Subcommands {
			arm(fmt.Sprintf("' %s %s'*", c.Name, sub.Name), flagWords(sub))
		}
	}
	fmt.Fprint(w, `	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _sandbox_exec sandbox-exec
`)
}

func fishCompletion(w io.Writer, commands []*cli.Command) {
	flags := func(condition string, c *cli.Command) {
		for _, f := range c.Flags {
			name := f.Names()[0]
			option := "-l " + name
			if len(name) == 1 {
				option = "-s " + name
			}
			value := ""
			if f, ok := f.(cli.DocGenerationFlag); ok && f.TakesValue() {
				value = " -r"
			}
			fmt.Fprintf(w, "complete -c sandbox-exec -n '%s' %s%s -d %s\n", condition, option, value, quoteFish(usageOf(f)))
		}
	}
	for _, c := range commands {
		fmt.Fprintf(w, "complete -c sandbox-exec -n __fish_use_subcommand -a %s -d %s\n", c.Name, quoteFish(c.Usage))
		if c.Name == "run" {
			flags("__fish_use_subcommand", c)
		}
		flags("__fish_seen_subcommand_from "+c.Name, c)
		for _, sub := range c.Subcommands {
			seen := fmt.Sprintf("__fish_seen_subcommand_from %s; and ", c.Name)
			fmt.Fprintf(w, "complete -c sandbox-exec -n '%snot __fish_seen_subcommand_from %s' -a %s -d %s\n",
				seen, strings.Join(commandNames(c.Subcommands), " "), sub.Name, quoteFish(sub.Usage))
			flags(seen+"__fish_seen_subcommand_from "+sub.Name, sub)
		}
	}
}

func usageOf(f cli.Flag) string {
	if f, ok := f.(cli.DocGenerationFlag); ok {
		return strings.ReplaceAll(f.GetUsage(), "`", "")
	}
	return ""
}

func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
