-- Whether the role may read the table of pauses; no row when there is none.   $1 schema, $2 table: text
select has_table_privilege(c.oid, 'select')
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relname = $2::text and c.relkind = 'r'
