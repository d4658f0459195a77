-- Writes one message, or nothing when its tenant and key exist, and gives the id of a new row.
-- $1 id, $2 tenant, $3 channel, $4 destination, $5 template, $6 data, $7 key: text; $8 max attempts: integer or null;
-- $9 scheduled for: timestamptz or null
-- Every text is cast twice, so that its parameter is a text: simple protocol and database/sql then store the same bytes.
insert into {{table}} (id, {{tenant}}, canal, destino, plantilla, datos, clave_idempotencia, max_intentos, programado_para{{optional}})
values ($1::text::uuid, $2::text::{{tenant_type}}, $3::text, $4::text, $5::text, $6::text::jsonb, $7::text,
        coalesce($8::integer, 5), coalesce($9::timestamptz, now()){{optional_values}})
on conflict ({{tenant}}, clave_idempotencia) do nothing
returning id::text
