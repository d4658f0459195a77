package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/plural"
)

type configCmd struct {
	Show   configShowCmd   `cmd:"" default:"withargs" help:"Print the effective configuration, with stars in place of secrets. The default."`
	Check  configCheckCmd  `cmd:"" help:"Say everything that is wrong with the configuration; asks no database."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON schema of relay.yaml, for editors."`
}

type configShowCmd struct{ jsonFlag }

func (c *configShowCmd) Run(a *app) error {
	conf, err := a.config()
	if err != nil {
		return err
	}
	show := conf.YAML
	if c.JSON {
		show = conf.JSON
	}
	text, err := show()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

type configCheckCmd struct{}

func (*configCheckCmd) Run(a *app) error {
	conf, err := a.config()
	if err == nil {
		err = a.checkSenders(conf)
	}
	faults := config.Errors(err)
	if err != nil && len(faults) == 0 {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintln(a.stderr, fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: the configuration has %s: mend what stands above", errUsage, plural.Of(len(faults), "fault"))
	}
	_, err = fmt.Fprintln(a.stdout, "the configuration is good")
	return err
}

// checkSenders makes all senders, which reads their templates and checks their options.
func (a *app) checkSenders(conf *config.Config) error {
	var faults []error
	for _, o := range conf.Outboxes {
		s, err := a.prepare(conf, o, slog.New(slog.DiscardHandler))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.close()
	}
	return errors.Join(faults...)
}

type configSchemaCmd struct{}

func (*configSchemaCmd) Run(a *app) error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(schema)
	return err
}
