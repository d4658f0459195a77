-- One message for each tenant and key: what makes enqueueing idempotent.
create unique index concurrently if not exists {{key_index}} on {{table}} ({{tenant}}, clave_idempotencia);
