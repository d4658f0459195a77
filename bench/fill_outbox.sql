-- Writes messages [$1, $2) in state $3, due $4 after now, as if they had been enqueued one after another, 100,000 a second;
-- finished ones are 30 days old.
-- $1, $2 integer; $3 text; $4 interval; $5 tenant, $6 channel: text; $7 payload, whose n is replaced: text
-- The ids begin with a time, as those of Enqueue do: rows that come one after another stand close together in the index.
insert into {{table}} (id, {{tenant}}, canal, destino, plantilla, datos, clave_idempotencia, estado, intentos,
  programado_para, enviado_en, creado_en, actualizado_en)
select overlay(md5(n::text) placing lpad(to_hex(v.ms + n / 100), 12, '0') || '7' from 1)::uuid,
  $5::text::uuid, $6::text, 'ana@example.com', 'reminder', jsonb_set(v.datos, '{n}', to_jsonb(n)), n::text, $3::text, v.intentos,
  v.due - ($2::integer - n) * interval '10 microseconds', v.sent, v.due, v.due
from generate_series($1::integer, $2::integer - 1) as n, (
  select extract(epoch from now())::bigint * 1000 as ms, $7::text::jsonb as datos,
    case when $3::text = 'pendiente' then 0 else 1 end as intentos,
    case when $3::text = 'pendiente' then now() + $4::interval else now() - interval '30 days' end as due,
    case when $3::text = 'pendiente' then null else now() - interval '30 days' end as sent
  offset 0) as v
