package config

import (
	"net/netip"
	"slices"
)

// senders makes the options of each kind of sender.
var senders = map[string]func() any{
	"print":   func() any { return new(Print) },
	"resend":  func() any { return new(Resend) },
	"smtp":    func() any { return new(SMTP) },
	"kapso":   func() any { return new(Kapso) },
	"meta":    func() any { return new(Meta) },
	"webhook": func() any { return new(Webhook) },
}

func senderNames() []string {
	names := make([]string, 0, len(senders))
	for name := range senders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Print writes messages to standard output instead of sending them.
type Print struct{}

// Email is what every sender of emails has.
type Email struct {
	From      string `yaml:"from" required:"" help:"The sender: one address, perhaps with a name."`
	Templates Path   `yaml:"templates" required:"" help:"Folder of the templates (docs/templates.md)."`
}

// Resend sends emails by Resend's API.
type Resend struct {
	Email
	APIKey  Secret `yaml:"api_key" required:"" help:"Resend's API key."`
	ReplyTo string `yaml:"reply_to" help:"Where answers go. Default the sender."`
	BaseURL string `yaml:"base_url" help:"The API's address. Default https://api.resend.com."`
}

// SMTP sends emails through a server.
type SMTP struct {
	Email
	Server            string   `yaml:"server" required:"" help:"host:port."`
	Username          string   `yaml:"username" help:"Default none: the server asks for no login."`
	Password          Secret   `yaml:"password" help:"Goes with username."`
	TLS               string   `yaml:"tls" enum:"starttls,starttls_always,implicit,none" help:"Default starttls; implicit for port 465."`
	CAFile            Path     `yaml:"ca_file" help:"PEM file of a private certificate authority. Default the system's."`
	MaxConnections    int      `yaml:"max_connections" help:"Messages sent at once, 1 to 100: no fewer than the concurrency of the channel. Default 5."`
	IdleTimeout       Duration `yaml:"idle_timeout" help:"How long a connection is kept for the next message. Default 30s."`
	MaxMessages       int      `yaml:"max_messages" help:"Messages of one connection. Default 100."`
	LocalName         string   `yaml:"local_name" help:"Name in EHLO. Default the host's."`
	MessageIDDomain   string   `yaml:"message_id_domain" help:"Default the domain of from."`
	IdempotencyHeader string   `yaml:"idempotency_header" help:"Header for the idempotency key. Default none."`
}

// Lookup is a query for what a tenant sends with.
type Lookup struct {
	Query      string   `yaml:"query" required:"" help:"SQL whose $1 is the tenant. Columns that are null: coalesce them. No row: the tenant has none."`
	TTL        Duration `yaml:"ttl" help:"How long an answer is used. Default 1m."`
	MissingTTL Duration `yaml:"missing_ttl" help:"How long it is believed that a tenant has none. Default 1s."`
	Max        int      `yaml:"max" help:"Tenants that are remembered. Default 10000."`
}

// WebhookLookup is a query for endpoints.
type WebhookLookup struct {
	Lookup
	By string `yaml:"by" enum:"tenant,destination" help:"What $1 is. Default tenant."`
}

// WhatsApp is what both senders of WhatsApp templates have.
type WhatsApp struct {
	Language  string  `yaml:"language" help:"Language of the templates of tenants that have none of their own. Default es_AR."`
	BaseURL   string  `yaml:"base_url" help:"The API's address with its version."`
	Templates Path    `yaml:"templates" help:"Folder with lists of parameters (docs/templates.md). Default the elements of the message's data."`
	Lookup    *Lookup `yaml:"credentials" help:"Query for the credentials of those that are not in tenants, with columns as below."`
}

// KapsoNumber is what a tenant sends with through Kapso.
type KapsoNumber struct {
	APIKey        Secret `yaml:"api_key" help:"Of the project that the number belongs to."`
	PhoneNumberID string `yaml:"phone_number_id" help:"Meta's id of the number."`
}

// Kapso sends WhatsApp templates through Kapso.
type Kapso struct {
	WhatsApp
	KapsoNumber
	Tenants map[string]KapsoTenant `yaml:"tenants" help:"Credentials of single tenants. What one lacks, and tenants that are not here, have what stands beside this."`
}

// KapsoTenant is a tenant's number and the language of its templates.
type KapsoTenant struct {
	KapsoNumber
	Language string `yaml:"language" help:"Of its templates."`
}

// MetaNumber is what a tenant sends with through Meta.
type MetaNumber struct {
	Token         Secret `yaml:"token" help:"Of a system user, with the right whatsapp_business_messaging."`
	PhoneNumberID string `yaml:"phone_number_id" help:"Meta's id of the number."`
}

// Meta sends WhatsApp templates by Meta's Cloud API.
type Meta struct {
	WhatsApp
	MetaNumber
	Tenants map[string]MetaTenant `yaml:"tenants" help:"Credentials of single tenants. What one lacks, and tenants that are not here, have what stands beside this."`
}

// MetaTenant is a tenant's number and the language of its templates.
type MetaTenant struct {
	MetaNumber
	Language string `yaml:"language" help:"Of its templates."`
}

// Endpoint is a receiver of webhooks.
type Endpoint struct {
	URL       string   `yaml:"url" help:"Where it listens. Default the message's destination."`
	Secrets   []Secret `yaml:"secrets" help:"whsec_ and base64; two while one is replaced."`
	Permanent []int    `yaml:"permanent" help:"Statuses by which it refuses a message for good."`
}

// Webhook sends signed webhooks.
type Webhook struct {
	Endpoint
	Tenants     map[string]Endpoint `yaml:"tenants" help:"Endpoints of single tenants; others have the one above."`
	Lookup      *WebhookLookup      `yaml:"credentials" help:"Query for the url and secrets (text[]) of those that are not in tenants."`
	Allow       []netip.Prefix      `yaml:"allow" help:"Networks that may be called though they are not public."`
	Ports       []uint16            `yaml:"ports" help:"Ports besides 443, and 80 with allow_http."`
	AllowHTTP   bool                `yaml:"allow_http" help:"Allow addresses with http. Default false."`
	Development bool                `yaml:"development" help:"Allow this host's addresses, http and every port. Default false."`
	CAFile      Path                `yaml:"ca_file" help:"PEM file of a private certificate authority. Default the system's."`
}
