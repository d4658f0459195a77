-- Channels other than $1: text[], with how many messages each, in the 10,000 open messages that are due first and among what
-- was discarded for want of a sender within a day, in the last thousand blocks of the table. Older ones are history.
select canal, count(*)::integer from (
  (select canal from {{table}}
   where estado in ('pendiente', 'procesando')
   order by {{due}}, id limit 10000)
  union all
  (select canal from {{table}}
   where ctid >= (select format('(%s,0)', greatest(0, pg_relation_size({{table_text}}::regclass) / current_setting('block_size')::bigint - 1000))::tid)
     and estado = 'descartado' and ultimo_error_codigo = 'transporte_no_configurado' and actualizado_en > now() - interval '1 day')
) seen
where canal <> all($1::text[])
group by 1 order by 2 desc, 1
limit 20
