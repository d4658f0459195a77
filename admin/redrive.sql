-- Sends messages again: pending, due now, with all attempts. Gives ids.
-- $1 ids: uuid[]; further ones of the conditions
-- Never a row under a valid lease, whose sender may be at work; nor one that somebody has locked: a claim must not wait.
-- They line up behind what is due: with their old due time, thousands would stand before every new message.
with these as (
  select o.id from {{table}} o
  where o.id = any($1::text[]::uuid[]) and not {{leased}} and {{conditions}}
  for update skip locked
)
update {{table}} t set
  estado             = 'pendiente',
  intentos           = 0,
  proximo_intento_en = now(),
  bloqueado_hasta    = null,
  actualizado_en     = now()
from these
where t.id = these.id
returning t.id::text
