-- Gives the id of the message with this key.   $1 tenant, $2 key: text
-- A statement of its own: the insert that met a row of a transaction still open waited for it, and cannot see that row.
select id::text from {{table}} where {{tenant}} = $1::text::{{tenant_type}} and clave_idempotencia = $2::text
