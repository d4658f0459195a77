-- The table itself; no row when there is none.   $1 schema, $2 table: text
-- A policy for all commands that hides nothing from this role is as good as no row security.
select c.relkind::text, c.relpersistence::text, coalesce(c.reloptions, '{}'),
  row_security_active(c.oid) and not exists (
    select from pg_catalog.pg_policy p
    where p.polrelid = c.oid and p.polpermissive and p.polcmd = '*' and pg_get_expr(p.polqual, p.polrelid) = 'true'
      and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(r, 'usage')))
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relname = $2::text and c.relkind in ('r', 'p')
