package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
	"github.com/mafesoftware/outbox-relay/transporte/resend"
)

// buildSenders makes the sender of each channel of s.
func (a *app) buildSenders(s *served) error {
	for name, channel := range s.Channels {
		sender, err := buildSender(channel, s, a.stdout)
		if err != nil {
			return fmt.Errorf("%schannel %s: %w", prefix(s.Outbox), name, err)
		}
		s.senders[name] = sender
	}
	return nil
}

func buildSender(c config.Channel, s *served, stdout io.Writer) (transporte.Sender, error) {
	switch o := c.Options.(type) {
	case *config.Print:
		return transporte.Print(stdout), nil
	case *config.Resend:
		return resendSender(o)
	}
	return nil, fmt.Errorf("%w: nothing sends by %q", errUsage, c.Sender)
}

func resendSender(o *config.Resend) (transporte.Sender, error) {
	provider, err := resend.New(string(o.APIKey), resend.Options{BaseURL: o.BaseURL, ReplyTo: o.ReplyTo})
	if err != nil {
		return nil, err
	}
	return email(o.Email, provider.Send)
}

func email(o config.Email, send func(context.Context, transporte.Email) (string, error)) (transporte.Sender, error) {
	templates, err := plantillas.Load(os.DirFS(string(o.Templates)))
	if err != nil {
		return nil, err
	}
	return transporte.NewCorreo(o.From, templates.Email, send)
}
