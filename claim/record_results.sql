-- Writes the results of sends, and gives the positions of those whose rows were still ours.
-- $1 ids: uuid[]; $2 leases: timestamptz[]; $3 states: text[]; $4 wait before the next attempt in ms, null: none: bigint[];
-- $5 categories, $6 codes, $7 external ids: text[]; $8 max attempts: integer[], only ever raised
-- The lease is the fencing token: a row that another relay has claimed since carries another one and is left alone.
-- "any(array[...])" is no join in the planner's eyes: from a plan made while the table was empty, and cached, it could otherwise
-- go through the whole table for each write.
-- "estado || ''" hides the state from the planner, which would go through the whole backlog by the index on the due time.
update {{table}} t set
  estado                 = r.estado,
  proximo_intento_en     = case when r.wait is null then t.proximo_intento_en else now() + r.wait * interval '1 millisecond' end,
  bloqueado_hasta        = null,
  max_intentos           = greatest(t.max_intentos, r.max_intentos),
  ultimo_error_categoria = r.categoria,
  ultimo_error_codigo    = r.codigo,
  id_externo             = coalesce(r.id_externo, t.id_externo),
  enviado_en             = case when r.estado = 'enviado' then now() else t.enviado_en end,
  actualizado_en         = now()
from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::integer[])
  with ordinality as r(id, lease, estado, wait, categoria, codigo, id_externo, max_intentos, n)
where t.id = any(array[r.id]) and t.estado || '' = 'procesando' and t.bloqueado_hasta = r.lease
returning r.n
