-- The pauses: messages that no relay takes for now. Null means all channels, all tenants. Few rows, which people write.
-- Relays read it: grant select on it to whoever has select on the outbox. relay migrate does.
create table if not exists {{pause_table}} (
  canal      text,
  {{tenant}} {{tenant_type}},
  creado_en  timestamptz not null default now()
);
create unique index if not exists {{pause_key}} on {{pause_table}} (coalesce(canal, ''), coalesce({{tenant}}::text, ''));
comment on table {{pause_table}} is 'Messages of the outbox that no relay takes for now; null means all. Relays hear of changes only from relay pause and relay resume';
