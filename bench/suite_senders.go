package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing/fstest"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
	"github.com/mafesoftware/outbox-relay/transporte/resend"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

// sendersSuite measures the real senders from the table to the record: the relay claims, the sender renders or signs and
// calls a provider on this host over a connection, which reads all of it and answers. It counts what arrived there.
func sendersSuite(ctx context.Context, b *bench) error {
	return b.measureSenders(ctx, scale(b, 5, 1), scale(b, 30_000, 5_000))
}

// hanging is a channel whose provider takes every request and never answers.
const hanging = "lento"

// sendersOptions: each channel sends 64 at once. The calls that hang end by the shortest timeout there is, so that the
// channel also has something to record and to try again.
var sendersOptions = relay.Options{Concurrency: 64, Batch: 500,
	Channels: map[string]relay.ChannelOptions{hanging: {Timeout: time.Second}}}

var (
	resendContender  = throughSender("email, Resend", "plantillas, Correo and resend to a stub over HTTP, 64 at once", 0, resendSender)
	webhookContender = throughSender("webhook", "webhook, signed once, to a stub over HTTP, 64 at once", 0, webhookSender)
	smtpContender    = throughSender("email, SMTP", "plantillas, Correo and smtp to a stub, a pool of 5 connections, no TLS", 0, smtpSender)
	hangContender    = throughSender("email, Resend, beside a channel that hangs",
		"the same beside as many older messages of a channel whose 64 calls at once all hang until their timeout of 1 s", 1, resendSender)
)

// throughSender is a relay with a real sender of the channel. For each of its messages there are so many older ones of the
// channel that hangs.
func throughSender(name, about string, hung int, make makeSenders) contender {
	return contender{name: name, about: about, open: func(ctx context.Context, db *database) (system, error) {
		if err := migrateOutbox(ctx, db, ownTrigger); err != nil {
			return nil, err
		}
		s := outboxSystem{db: db, options: sendersOptions, senders: make}
		if hung > 0 {
			s.senders = besideOneThatHangs(make)
		}
		return &senderSystem{s, hung}, nil
	}}
}

type senderSystem struct {
	outboxSystem
	hung int
}

func (s *senderSystem) fill(ctx context.Context, from, to int) error {
	if s.hung > 0 {
		if err := fillOutbox(ctx, s.db.pool, hanging, -to*s.hung, -from*s.hung, outbox.Pending, 0); err != nil {
			return err
		}
	}
	return s.outboxSystem.fill(ctx, from, to)
}

func (b *bench) measureSenders(ctx context.Context, rounds, n int) error {
	return b.measureDrain(ctx, "senders", noWork, rounds, n, resendContender, hangContender, webhookContender, smtpContender)
}

func resendSender(handle handle) (relay.Senders, func() error, error) {
	stub := newHTTPStub(acceptEmail, handle)
	provider, err := resend.New("re_bench", resend.Options{BaseURL: stub.URL})
	if err != nil {
		return nil, nil, err
	}
	correo, err := newCorreo(provider.Send)
	return relay.Senders{channel: correo}, stub.end, err
}

func webhookSender(handle handle) (relay.Senders, func() error, error) {
	stub := newHTTPStub(acceptWebhook, handle)
	endpoint := webhook.Endpoint{URL: stub.URL + "/hook", Secrets: []string{"whsec_ZXhhbXBsZS1leGFtcGxlLWV4YW1wbGUh"}}
	find := func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) { return endpoint, true, nil }
	sender, err := webhook.New(find, webhook.Options{Development: true})
	return relay.Senders{channel: sender}, stub.end, err
}

func smtpSender(handle handle) (relay.Senders, func() error, error) {
	stub, err := newSMTPStub(handle)
	if err != nil {
		return nil, nil, err
	}
	client, err := smtp.New(stub.addr(), smtp.Options{IdempotencyHeader: keyHeader})
	if err != nil {
		return nil, nil, err
	}
	correo, err := newCorreo(client.Send)
	return relay.Senders{channel: correo}, func() error { return errors.Join(client.Close(), stub.end()) }, err
}

// besideOneThatHangs adds the channel that hangs.
func besideOneThatHangs(make makeSenders) makeSenders {
	return func(handle handle) (relay.Senders, func() error, error) {
		senders, end, err := make(handle)
		if err != nil {
			return nil, nil, err
		}
		stub := newHTTPStub(func(_ http.ResponseWriter, r *http.Request, _ []byte) (int, error) {
			<-r.Context().Done() // until the sender gives up
			return 0, errHung
		}, handle)
		provider, err := resend.New("re_bench", resend.Options{BaseURL: stub.URL})
		if err != nil {
			return nil, nil, err
		}
		senders[hanging], err = newCorreo(provider.Send)
		return senders, func() error { return errors.Join(end(), stub.end()) }, err
	}
}

// newCorreo renders as a service does whose emails stand in files.
func newCorreo(send func(context.Context, transporte.Email) (string, error)) (*transporte.Correo, error) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	set, err := plantillas.Load(fstest.MapFS{
		"reminder.asunto.txt": text("{{.name}}, your appointment"),
		"reminder.html":       text("<p>Dear {{.name}},</p><p>{{.text}}</p><p>{{.when}}, {{.address}}</p>"),
		"reminder.txt":        text("Dear {{.name}},\n\n{{.text}}\n{{.when}}, {{.address}}\n"),
	})
	if err != nil {
		return nil, fmt.Errorf("the emails' templates: %w", err)
	}
	return transporte.NewCorreo("Club <avisos@club.example>", set.Email, send)
}
