-- Takes up to $1 rows that need attention under one lease of $2, oldest due first.
-- $1 limit: integer; $2 lease: interval; $3 lower bound of the due time, a hint: timestamptz or null;
-- $4 channels, null for all: text[]
--
-- Gives, in no order: now (the server's clock), snapshot, next due time or null, then the columns of the taken row.
-- With next_due.sql around it ("open", "close"; $5 how far ahead to look, null without limit: interval) there is at least one
-- row, whose id is null when nothing was taken. Alone, which is quicker, it gives nothing then, and no next due time.
--
-- Joined by ctid, which no index orders: from a plan made while the table was empty, and cached, the planner could otherwise
-- go through the whole table for each claim. The rows are locked, so they stay in their place. One that was changed between
-- the statement's snapshot and the lock is left to the next look.
-- "due" must be a CTE: a plain "where id in (select ... limit)" may be run more than once by the planner.
-- The states are literals and the expression is the index's own: only then can the planner prove that the index serves.
-- A row whose attempts are used up is closed here and not sent: a relay that dies in every send would send for ever.
-- "and_unpaused" is empty while there are no pauses: the claim then reads nothing but the outbox.
with due as materialized (
  select tableoid as piece, ctid as place, {{due}} as due
  from {{table}} o
  where estado in ('pendiente', 'procesando')
    and {{due}} <= now()
    and {{due}} >= coalesce($3::timestamptz, '-infinity')
    and ($4::text[] is null or canal = any($4::text[])){{and_unpaused}}
  order by {{due}}, id
  limit $1::integer
  for update skip locked
){{open}}
  update {{table}} t set
    estado          = case when t.intentos >= t.max_intentos then 'fallido' else 'procesando' end,
    intentos        = case when t.intentos >= t.max_intentos then t.intentos else t.intentos + 1 end,
    bloqueado_hasta = case when t.intentos >= t.max_intentos then null else now() + $2::interval end,
    ultimo_error_categoria = case when t.intentos >= t.max_intentos then 'red' else t.ultimo_error_categoria end,
    ultimo_error_codigo    = case when t.intentos < t.max_intentos then t.ultimo_error_codigo
                                  when t.estado = 'procesando' then 'lease_agotado' else 'intentos_agotados' end,
    actualizado_en  = now()
  from due
  where t.ctid = due.place and t.tableoid = due.piece
  returning {{alone}}t.id, t.{{tenant}}::text as tenant, t.canal, t.destino, t.plantilla, t.datos, t.clave_idempotencia,
    t.estado, t.ultimo_error_codigo, t.intentos, t.max_intentos, t.bloqueado_hasta, t.programado_para, due.due{{optional}}
{{close}}
