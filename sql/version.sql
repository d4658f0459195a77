-- The version of this outbox's definition: one table with one row for each outbox.
create table if not exists {{version_table}} (version int4 not null);
insert into {{version_table}} (version) select 0 where not exists (select from {{version_table}});
