-- What is there of an outbox, one row; none when there is no such table.
-- $1 schema, $2 table, $3 name of the due index, $4 name of the trigger, $5 tenant column,
-- $6 name of the index of what failed, $7 name of the table of pauses: text
select
  (select jsonb_object_agg(attname, format_type(atttypid, atttypmod)) from pg_catalog.pg_attribute
   where attrelid = c.oid and attnum > 0 and not attisdropped),
  (select i.indisvalid from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
   where i.indrelid = c.oid and ic.relname = $3::text),
  exists (select from pg_catalog.pg_index i
   where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
     and (select array_agg(a.attname::text order by a.attname) from pg_catalog.pg_attribute a
          where a.attrelid = c.oid and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1])) -- not those it only includes
       = (select array_agg(x order by x) from unnest(array[$5::text, 'clave_idempotencia']) x)),
  (select t.tgenabled::text from pg_catalog.pg_trigger t where t.tgrelid = c.oid and t.tgname = $4::text),
  (select p.prosrc from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid
   where t.tgrelid = c.oid and t.tgname = $4::text),
  c.reloptions is not null,
  c.relkind = 'p',
  (select i.indisvalid from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
   where i.indrelid = c.oid and ic.relname = $6::text),
  exists (select from pg_catalog.pg_class p where p.relnamespace = c.relnamespace and p.relname = $7::text)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relname = $2::text and c.relkind in ('r', 'p')
