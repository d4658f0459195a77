package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
	"github.com/mafesoftware/outbox-relay/transporte/resend"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// buildSenders makes the sender of each channel of s, and reports all that cannot be made.
func (a *app) buildSenders(conf *config.Config, s *served) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(s.Channels)) {
		sender, err := s.buildSender(name, s.Channels[name], a.stdout)
		if err != nil {
			key := "channels." + name
			if inner := (*within)(nil); errors.As(err, &inner) {
				key += "." + inner.key
			}
			faults = append(faults, conf.Fault(s.Outbox, key, err))
			continue
		}
		s.senders[name] = sender
	}
	return errors.Join(faults...)
}

func (s *served) buildSender(channel string, c config.Channel, stdout io.Writer) (transporte.Sender, error) {
	switch o := c.Options.(type) {
	case *config.Print:
		return transporte.Print(stdout), nil
	case *config.Resend:
		return resendSender(o)
	case *config.SMTP:
		return s.smtpSender(o, c)
	case *config.Kapso:
		return s.kapsoSender(channel, o)
	case *config.Meta:
		return s.metaSender(channel, o)
	case *config.Webhook:
		return s.webhookSender(channel, o, c)
	}
	return nil, fmt.Errorf("nothing sends by %q", c.Sender)
}

func resendSender(o *config.Resend) (transporte.Sender, error) {
	provider, err := resend.New(string(o.APIKey), resend.Options{BaseURL: o.BaseURL, ReplyTo: o.ReplyTo})
	if err != nil {
		return nil, err
	}
	return emailSender(o.Email, provider.Send)
}

func (s *served) smtpSender(o *config.SMTP, c config.Channel) (transporte.Sender, error) {
	modes := map[string]smtp.TLS{"": smtp.StartTLS, "starttls": smtp.StartTLS, "starttls_always": smtp.StartTLSAlways, "implicit": smtp.ImplicitTLS, "none": smtp.NoTLS}
	authority, err := trusting(o.CAFile)
	if err != nil {
		return nil, err
	}
	client, err := smtp.New(o.Server, smtp.Options{
		Username: o.Username, Password: string(o.Password), TLS: modes[o.TLS], TLSConfig: authority,
		MaxConnections: o.MaxConnections, IdleTimeout: o.IdleTimeout.Std(), MaxMessages: o.MaxMessages, Timeout: c.Timeout.Std(),
		LocalName: o.LocalName, MessageIDDomain: o.MessageIDDomain, IdempotencyHeader: o.IdempotencyHeader,
	})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, client)
	return emailSender(o.Email, client.Send)
}

func emailSender(o config.Email, send func(context.Context, transporte.Email) (string, error)) (transporte.Sender, error) {
	templates, err := loadTemplates(o.Templates)
	if err != nil {
		return nil, err
	}
	return transporte.NewCorreo(o.From, templates.Email, send)
}

func loadTemplates(folder config.Path) (*plantillas.Set, error) {
	const put = "put NAME.asunto.txt and NAME.txt or NAME.html for each email there, NAME.whatsapp.txt for each WhatsApp template (docs/templates.md)"
	if info, err := os.Stat(string(folder)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("templates: there is no folder %q: make it and %s", folder, put)
	}
	files := os.DirFS(string(folder))
	if there, err := fs.Glob(files, "[^.]*"); err == nil && len(there) == 0 {
		return nil, fmt.Errorf("templates: the folder %q is empty: %s", folder, put)
	}
	return plantillas.Load(files)
}

// trusting trusts the authorities in a PEM file. No file means the system's.
func trusting(file config.Path) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(string(file))
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: there is no certificate in %s: give a PEM file", file)
	}
	return &tls.Config{RootCAs: authorities}, nil
}
