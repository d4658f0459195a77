-- The current role, and the statements that grant it what a relay needs and it lacks.   $1 schema; $2 table; $3 table of the pauses, if there is one
-- From the catalog: a regclass of a table whose schema one may not use is an error.
select current_user::text,
       array_remove(array[
         case when not has_schema_privilege(n.oid, 'usage') then format('grant usage on schema %I to %I', n.nspname, current_user) end,
         case when not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'update'))
              then format('grant select, update on %I.%I to %I', n.nspname, c.relname, current_user) end,
         case when not has_table_privilege(p.oid, 'select') then format('grant select on %I.%I to %I', n.nspname, p.relname, current_user) end], null)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_class p on p.relnamespace = n.oid and p.relname = $3::text
where n.nspname = $1::text and c.relname = $2::text
