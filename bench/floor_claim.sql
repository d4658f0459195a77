-- Takes up to $1 due rows, oldest first, and gives their payload.   $1 integer
with due as materialized (
  select id from {{table}}
  where estado in ('pendiente', 'procesando') and {{due}} <= now()
  order by {{due}}, id
  limit $1::integer
  for update skip locked
)
update {{table}} t set estado = 'procesando', intentos = t.intentos + 1, bloqueado_hasta = now() + interval '10 minutes'
from due
where t.id = due.id
returning t.datos::text
