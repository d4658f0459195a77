package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is what relay completion --help says in addition.
func (*completionCmd) Help() string {
	return `For bash:  source <(relay completion bash)            in ~/.bashrc
For zsh:   source <(relay completion zsh)             in ~/.zshrc, after compinit
For fish:  relay completion fish | source             in ~/.config/fish/config.fish`
}

// completionScripts ask relay complete for what may come next, so they need not know the commands.
var completionScripts = map[string]string{
	"bash": `_relay() {
  local IFS=$'\n'
  COMPREPLY=($(relay complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _relay relay
`,
	"zsh": `_relay() {
  local -a found
  found=("${(@f)$(relay complete -- "${(@)words[2,CURRENT]}" 2>/dev/null | sed -e 's/:/\\:/g' -e $'s/\t/:/')}")
  _describe relay found || _files
}
compdef _relay relay
`,
	"fish": `complete -c relay -a '(relay complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

func (c *completionCmd) Run(a *app) error {
	_, err := io.WriteString(a.stdout, completionScripts[c.Shell])
	return err
}

// completeCmd answers the scripts.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what the last word may become, each with a description after a tab.
func (c *completeCmd) Run(a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, candidate := range candidates(a.grammar, words[:len(words)-1], last) {
		if strings.HasPrefix(candidate.word, last) {
			fmt.Fprintf(a.stdout, "%s\t%s\n", candidate.word, candidate.help)
		}
	}
	return nil
}

type candidate struct{ word, help string }

// candidates are the words that may follow others: values after a flag that has a few, flags after a hyphen, else commands.
func candidates(node *kong.Node, before []string, last string) (all []candidate) {
	flags := node.Flags
	for i := 0; i < len(before); i++ {
		if f := valueFlag(flags, before[i]); f != nil {
			if i++; i == len(before) {
				return valuesOf(f)
			}
		} else if child := childOf(node, before[i]); child != nil {
			node, flags = child, append(flags, child.Flags...)
		}
	}
	if strings.HasPrefix(last, "-") {
		for _, f := range flags {
			if !f.Hidden {
				all = append(all, candidate{"--" + f.Name, f.Help})
			}
		}
		return all
	}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, candidate{child.Name, child.Help})
		}
	}
	for _, positional := range node.Positional {
		for _, value := range positional.EnumSlice() {
			all = append(all, candidate{value, positional.Help})
		}
	}
	return all
}

// valueFlag is the flag of a word whose value is the next word.
func valueFlag(flags []*kong.Flag, word string) *kong.Flag {
	for _, f := range flags {
		if word == "--"+f.Name && !f.IsBool() {
			return f
		}
	}
	return nil
}

func valuesOf(f *kong.Flag) (all []candidate) {
	for _, value := range strings.Split(f.PlaceHolder, "|") {
		if strings.Contains(f.PlaceHolder, "|") {
			all = append(all, candidate{value, f.Help})
		}
	}
	return all
}

func childOf(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word {
			return child
		}
	}
	return nil
}
