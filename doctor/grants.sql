-- What of some rights on the outbox a role lacks, as the texts that a grant needs.
-- $1 schema, $2 table, $3 role: text; $4 privileges and $5 their columns: text[], empty for the whole table; $6 functions: text[]
-- has_column_privilege is also true of a right on the whole table. Columns and functions that are not there lack nothing.
select 'usage' as privilege, '' as on_column, '' as on_function
from pg_catalog.pg_namespace n where n.nspname = $1::text and not has_schema_privilege($3::text, n.oid, 'usage')
union all
select p.privilege, p.on_column, ''
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join unnest($4::text[], $5::text[]) p(privilege, on_column)
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = p.on_column and a.attnum > 0
where n.nspname = $1::text and c.relname = $2::text
  and case when p.on_column = '' then not has_table_privilege($3::text, c.oid, p.privilege)
           when a.attnum is null then false
           else not has_column_privilege($3::text, c.oid, a.attnum, p.privilege) end
union all
select 'execute', '', f
from unnest($6::text[]) f
where to_regprocedure(f) is not null and not has_function_privilege($3::text, to_regprocedure(f), 'execute')
