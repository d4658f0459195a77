-- The optional columns. Without a default, so that no row is rewritten.
alter table {{table}} add column if not exists clave_orden text, add column if not exists cabeceras jsonb;
