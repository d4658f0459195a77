-- The indexes of the table.   $1 schema, $2 table: text
-- Name, whether it may be used, whether it makes its columns unique in every row and at once, those columns.
select ic.relname::text, i.indisvalid and i.indisready, i.indisunique and i.indimmediate and i.indpred is null and i.indexprs is null,
  coalesce((select array_agg(a.attname::text order by a.attname) from pg_catalog.pg_attribute a
            where a.attrelid = c.oid and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1])), '{}') -- not those it only includes
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_class ic on ic.oid = i.indexrelid
where n.nspname = $1::text and c.relname = $2::text
order by 1
