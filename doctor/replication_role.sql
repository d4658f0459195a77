-- Roles whose sessions in this database begin with session_replication_role = replica; empty names mean all.
select coalesce(r.rolname::text, ''), coalesce(d.datname::text, '')
from pg_catalog.pg_db_role_setting s
left join pg_catalog.pg_roles r on r.oid = s.setrole
left join pg_catalog.pg_database d on d.oid = s.setdatabase
where 'session_replication_role=replica' = any(s.setconfig) and (s.setdatabase = 0 or d.datname = current_database())
order by 1, 2
