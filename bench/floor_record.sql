-- Records rows as sent while they still carry their lease.   $1 ids: uuid[]; $2 leases: timestamptz[]
update {{table}} t set estado = 'enviado', bloqueado_hasta = null, enviado_en = now()
from unnest($1::uuid[], $2::timestamptz[]) as r(id, lease)
where t.id = r.id and t.estado || '' = 'procesando' and t.bloqueado_hasta = r.lease
