-- The table as the TypeScript package makes it. One that exists stays as it is.
create table if not exists {{table}} (
  id                     uuid primary key default gen_random_uuid(),
  {{tenant}}             {{tenant_type}} not null,
  canal                  text not null,
  destino                text not null,
  plantilla              text not null,
  datos                  jsonb not null default '{}',
  clave_idempotencia     text not null,
  estado                 text not null default 'pendiente',
  intentos               integer not null default 0,
  max_intentos           integer not null default 5,
  programado_para        timestamptz not null default now(),
  proximo_intento_en     timestamptz,
  bloqueado_hasta        timestamptz,
  ultimo_error_categoria text,
  ultimo_error_codigo    text,
  id_externo             text,
  enviado_en             timestamptz,
  creado_en              timestamptz not null default now(),
  actualizado_en         timestamptz not null default now()
);

comment on table {{table}} is 'Transactional outbox: messages to be sent once the transaction that wrote them commits';
comment on column {{table}}.estado is 'pendiente, procesando, enviado, fallido or descartado';
comment on column {{table}}.bloqueado_hasta is 'End of the lease; also the fencing token of whoever claimed the row';
