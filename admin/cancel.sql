-- Discards messages that wait. Gives ids.
-- $1 ids: uuid[]; $2 category, $3 code: text; further ones of the conditions
with these as (
  select o.id from {{table}} o
  where o.id = any($1::text[]::uuid[]) and not {{leased}} and {{conditions}}
  for update skip locked
)
update {{table}} t set
  estado                 = 'descartado',
  bloqueado_hasta        = null,
  ultimo_error_categoria = $2::text,
  ultimo_error_codigo    = $3::text,
  actualizado_en         = now()
from these
where t.id = these.id
returning t.id::text
