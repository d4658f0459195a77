-- Takes up to $1 due rows, oldest first, and gives what a sender needs to know.   $1 integer
-- The commit of the claim does not wait for the disk, as that of our own does not.
with due as materialized (
  select id from {{table}}
  where estado in ('pendiente', 'procesando') and {{due}} <= now()
  order by {{due}}, id
  limit $1::integer
  for update skip locked
), quick as materialized (select set_config('synchronous_commit', 'off', true))
update {{table}} t set estado = 'procesando', intentos = t.intentos + 1, bloqueado_hasta = now() + interval '10 minutes'
from due, quick
where t.id = due.id
returning t.id, t.bloqueado_hasta, t.datos::text
