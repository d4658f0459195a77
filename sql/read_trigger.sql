-- The wake-up trigger; no row when there is none.   $1 schema, $2 table, $3 trigger, in double quotes or not: text
-- Whether it is enabled, its definition, and the function's body and settings: the fields of Trigger.
-- With an empty search_path for the transaction: otherwise the definition names a function that it finds there without its schema.
select t.tgenabled::text, pg_get_triggerdef(t.oid), p.prosrc, coalesce(p.proconfig, '{}')
from pg_catalog.pg_trigger t
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_proc p on p.oid = t.tgfoid
where n.nspname = $1::text and c.relname = $2::text and t.tgname = trim(both '"' from $3::text)
