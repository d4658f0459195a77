-- Gives claimed rows back unsent, with the attempt and their place in line, and gives the positions of
-- those that were still ours.
-- $1 ids: uuid[]; $2 leases: timestamptz[]; $3 length of the lease: interval
-- The lease less its length is the moment of the claim. With a later moment a row would stand behind all that came while
-- it waited, and under a steady load be released again and again.
update {{table}} t set
  estado             = 'pendiente',
  intentos           = t.intentos - 1,
  proximo_intento_en = least(coalesce(t.proximo_intento_en, t.programado_para), r.lease - $3::interval),
  bloqueado_hasta    = null,
  actualizado_en     = now()
from unnest($1::uuid[], $2::timestamptz[]) with ordinality as r(id, lease, n)
where t.id = any(array[r.id]) and t.estado || '' = 'procesando' and t.bloqueado_hasta = r.lease
returning r.n
