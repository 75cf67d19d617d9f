package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// explain lets a command and all below it say how they are meant: a group refuses a word that is none of its commands,
// where the library would print the help and end well, and wrong arguments are answered with the usage.
func explain(cmd *cobra.Command) {
	for _, one := range cmd.Commands() {
		explain(one)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE, cmd.DisableFlagsInUseLine = cobra.ArbitraryArgs, group, true
		return
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: write `%s`", err, cmd.UseLine())
		}
		return nil
	}
}

// group is what a command does that has commands below it and nothing of its own.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 {
		return fmt.Errorf("there is no command `%s %s`: `%[1]s --help` lists them", cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("there is no command `%s %s`: perhaps %s is meant", cmd.CommandPath(), args[0], strings.Join(near, " or "))
}
