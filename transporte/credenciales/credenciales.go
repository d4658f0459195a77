// Package credenciales finds what a tenant sends with: an API key, the id of its number.
//
// Static finds it in a map, SQL by a query. A Cache stands before a query, so that a batch of a tenant's messages costs one.
// Each is what transporte.NewWhatsApp takes; a look-up of your own may be put behind a Cache, too.
//
//	lookup, err := credenciales.SQL(pool, `select api_key, phone_number_id, language
//		from numeros_whatsapp where organizacion_id = $1`, pgx.RowToStructByName[kapso.Credentials])
//	cache, err := credenciales.New(lookup, credenciales.Options{})
//	whatsapp, err := transporte.NewWhatsApp(cache.Find, k.Send, transporte.WhatsAppOptions{})
//
// A tenant that has none is discarded (credenciales, sin_credenciales); a look-up that fails is tried again later (red,
// credenciales_excepcion). Nothing here logs, and no error carries a credential.
package credenciales

import (
	"context"
	"maps"
)

// Lookup finds the credentials of a tenant. An error means that it could not be found out. It must return soon after ctx
// ends.
type Lookup[C any] func(ctx context.Context, tenantID string) (c C, found bool, err error)

// Static returns a Lookup in a copy of byTenant, which may come from a configuration.
func Static[C any](byTenant map[string]C) Lookup[C] {
	byTenant = maps.Clone(byTenant)
	return func(_ context.Context, tenantID string) (C, bool, error) {
		c, found := byTenant[tenantID]
		return c, found, nil
	}
}
