-- The columns of the table, in order.   $1 schema, $2 table: text
-- Name, type, not null, default or null, whether the server fills it by itself.
select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
  a.attidentity <> '' or a.attgenerated <> ''
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where n.nspname = $1::text and c.relname = $2::text and a.attnum > 0 and not a.attisdropped
order by a.attnum
